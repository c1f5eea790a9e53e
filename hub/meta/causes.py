"""The causes of a 422, worded as apimachinery's ``pkg/util/validation/field`` does.

Owns reasons and texts only; collecting causes and raising `hub.meta.errors.invalid` is the
validator's business.
"""

import json
from collections.abc import Sequence

from hub.meta.errors import Cause


def invalid_value(field: str, value: object, detail: str) -> Cause:
    """Return a cause: the value at `field` breaks the rule that `detail` states."""
    return Cause("FieldValueInvalid", f"Invalid value: {_show(value)}: {detail}", field)


def required(field: str, detail: str = "") -> Cause:
    """Return a cause: `field` is missing."""
    return Cause("FieldValueRequired", _with("Required value", detail), field)


def forbidden_field(field: str, detail: str) -> Cause:
    """Return a cause: `field` may not be set here."""
    return Cause("FieldValueForbidden", _with("Forbidden", detail), field)


def not_supported(field: str, value: object, supported: Sequence[str]) -> Cause:
    """Return a cause: the value is none of the closed list."""
    known = ", ".join(_show(s) for s in supported)
    message = f"Unsupported value: {_show(value)}: supported values: {known}"
    return Cause("FieldValueNotSupported", message, field)


def duplicate(field: str, value: object) -> Cause:
    """Return a cause: the value stands twice in a set."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {_show(value)}", field)


def _with(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


def _show(value: object) -> str:
    # %q for strings and compact JSON for the rest; non-ASCII stays readable in both
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
