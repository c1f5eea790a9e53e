"""What is wrong with a ``metav1.LabelSelector``, as the causes of a 422.

Mirrors k8s.io/apimachinery/pkg/apis/meta/v1/validation.
"""

from hub.meta import Obj
from hub.meta.causes import forbidden_field, invalid_value, required
from hub.meta.errors import Cause
from hub.meta.names import label_causes, label_key_errors, label_value_errors


def label_selector_causes(selector: Obj, field: str) -> list[Cause]:
    """Return the causes for the selector at `field`; its fields' types are checked already."""
    causes = label_causes(selector.get("matchLabels") or {}, f"{field}.matchLabels")
    for position, expression in enumerate(selector.get("matchExpressions") or ()):
        causes += _expression_causes(expression, f"{field}.matchExpressions[{position}]")
    return causes


def _expression_causes(expression: Obj, field: str) -> list[Cause]:
    causes: list[Cause] = []
    operator, values = expression.get("operator") or "", expression.get("values") or []
    if operator in ("In", "NotIn") and not values:
        detail = "must be specified when `operator` is 'In' or 'NotIn'"
        causes.append(required(f"{field}.values", detail))
    elif operator in ("Exists", "DoesNotExist") and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        causes.append(forbidden_field(f"{field}.values", detail))
    elif operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        detail = "not a valid selector operator"
        causes.append(invalid_value(f"{field}.operator", operator, detail))
    key = expression.get("key") or ""
    causes += [invalid_value(f"{field}.key", key, text) for text in label_key_errors(key)]
    for position, value in enumerate(values):
        where = f"{field}.values[{position}]"
        causes += [invalid_value(where, value, text) for text in label_value_errors(value)]
    return causes
