"""What is wrong with an object's owner references and finalizers.

Pure; mirrors ValidateOwnerReferences and ValidateFinalizers of
k8s.io/apimachinery/pkg/api/validation/objectmeta.go.
"""

from collections.abc import Sequence

from hub.meta import Obj
from hub.meta.causes import invalid_value
from hub.meta.errors import Cause
from hub.meta.names import label_key_errors

_NEEDED = ("kind", "name", "uid")


def owner_causes(references: Sequence[Obj], field: str) -> list[Cause]:
    """Return the causes of a 422 for owner references found at `field`."""
    causes: list[Cause] = []
    controller = ""
    for reference in references:
        causes += _reference_causes(reference, field)
        if not reference.get("controller"):
            continue
        name = f"{reference.get('kind')}/{reference.get('name')}"
        if controller:
            text = (
                'Only one reference can have Controller set to true. Found "true" in references '
                f"for {controller} and {name}"
            )
            causes.append(invalid_value(field, list(references), text))
        controller = controller or name
    return causes


def _reference_causes(reference: Obj, field: str) -> list[Cause]:
    causes = []
    version = str(reference.get("apiVersion") or "")
    if not version.rpartition("/")[2]:
        causes.append(invalid_value(f"{field}.apiVersion", version, "version must not be empty"))
    causes += [
        invalid_value(f"{field}.{name}", "", f"{name} must not be empty")
        for name in _NEEDED
        if not reference.get(name)
    ]
    if version == "v1" and reference.get("kind") == "Event":
        text = "/v1, Kind=Event is disallowed from being an owner"
        causes.append(invalid_value(field, reference, text))
    return causes


def finalizer_name_causes(finalizers: Sequence[str], field: str) -> list[Cause]:
    """Return the causes of a 422 for finalizers: qualified names, and one policy at most."""
    causes = [
        invalid_value(field, name, error) for name in finalizers for error in label_key_errors(name)
    ]
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        causes.append(invalid_value(field, list(finalizers), text))
    return causes
