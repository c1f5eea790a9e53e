"""What a CustomResourceDefinition must look like, and what of it may not change.

Pure; mirrors apiextensions-apiserver's ``pkg/apis/apiextensions/validation/validation.go`` with its
messages. A schema that all versions share is named as kube does, ``spec.validation``; the same goes
for columns and subresources. The schema itself is `hub.meta.schema.check`'s; CEL rules in it are
accepted as they stand.
"""

from collections.abc import Callable, Iterator, Sequence

from hub.meta import Obj
from hub.meta.causes import duplicate, forbidden_field, invalid_value, not_supported, required
from hub.meta.errors import ApiError, Cause
from hub.meta.names import service_name_errors, subdomain_errors
from hub.meta.schema.check import check_structural
from hub.meta.schema.structural import parse
from hub.registry.crd.conditions import is_true
from hub.registry.crd.version import column_causes, scale_causes, selectable_causes

_SCOPES = ("Cluster", "Namespaced")
_APPROVAL = "api-approved.kubernetes.io"


def definition_causes(obj: Obj, *, is_own: bool) -> list[Cause]:
    """Return what is wrong with a definition whose defaults are filled.

    `is_own`: it describes a kind of the hub itself, which is served whatever stands here.

    :raises ApiError: 400 for a schema with values of wrong types
    """
    spec = obj["spec"]
    names, group = spec["names"], str(spec.get("group") or "")
    causes: list[Cause] = []
    wanted = f"{names.get('plural') or ''}.{group}"
    name = str(obj["metadata"].get("name") or "")
    if name != wanted:
        text = 'must be spec.names.plural+"."+spec.group'
        causes.append(invalid_value("metadata.name", name, text))
    causes += _approval(obj, group)
    causes += _group(group)
    causes += _scope(spec)
    causes += _versions(spec)
    causes += _names(names)
    if not is_own:
        causes += _conversion(spec)
    if spec.get("preserveUnknownFields"):
        text = "must be false in order to use schemas; set x-kubernetes-preserve-unknown-fields"
        causes.append(invalid_value("spec.preserveUnknownFields", value=True, detail=text))
    return [*causes, *stored_version_causes(obj)]


def change_causes(new: Obj, old: Obj) -> list[Cause]:
    """Return which immutable fields changed."""
    fixed = [("group",), ("names", "plural")]
    if is_true(old, "Established"):
        fixed += [("scope",), ("names", "kind")]
    causes = []
    for path in fixed:
        value, before = new["spec"], old["spec"]
        for key in path:
            value, before = (value or {}).get(key), (before or {}).get(key)
        if value != before:
            at = ".".join(("spec", *path))
            causes.append(invalid_value(at, value, "field is immutable"))
    return causes


def _approval(obj: Obj, group: str) -> Iterator[Cause]:
    is_guarded = f".{group}".endswith((".k8s.io", ".kubernetes.io"))
    if is_guarded and not (obj["metadata"].get("annotations") or {}).get(_APPROVAL):
        yield required(
            f"metadata.annotations[{_APPROVAL}]",
            "protected groups must have approval annotation"
            f' "{_APPROVAL}", see https://github.com/kubernetes/enhancements/pull/1111',
        )


def _group(group: str) -> Iterator[Cause]:
    if not group:
        yield required("spec.group")
        return
    problems = subdomain_errors(group)
    if problems:
        yield invalid_value("spec.group", group, ",".join(problems))
    if "." not in group:
        yield invalid_value("spec.group", group, "should be a domain with at least one dot")


def _scope(spec: Obj) -> Iterator[Cause]:
    scope = spec.get("scope")
    if not scope:
        yield required("spec.scope")
    elif scope not in _SCOPES:
        yield not_supported("spec.scope", scope, _SCOPES)


def _names(names: Obj) -> Iterator[Cause]:
    at = "spec.names"
    for key in ("plural", "singular", "kind", "listKind"):
        value = str(names.get(key) or "")
        problems = service_name_errors(value.lower() if key in ("kind", "listKind") else value)
        if not value:
            yield required(f"{at}.{key}")
        elif problems and key in ("kind", "listKind"):
            text = "may have mixed case, but should otherwise match: " + ",".join(problems)
            yield invalid_value(f"{at}.{key}", value, text)
        elif problems:
            yield invalid_value(f"{at}.{key}", value, ",".join(problems))
    for key in ("shortNames", "categories"):
        for index, value in enumerate(names.get(key) or ()):
            problems = service_name_errors(value)
            if problems:
                yield invalid_value(f"{at}.{key}[{index}]", value, ",".join(problems))
    if names.get("listKind") and names.get("kind") == names["listKind"]:
        text = "kind and listKind may not be the same"
        yield invalid_value(f"{at}.listKind", names["listKind"], text)


def _versions(spec: Obj) -> Iterator[Cause]:
    versions: list[Obj] = spec.get("versions") or []
    at = "spec.versions"
    for index, version in enumerate(versions):
        name = str(version.get("name") or "")
        problems = service_name_errors(name)
        if problems:
            yield invalid_value(f"{at}[{index}].name", name, ",".join(problems))
        if version.get("deprecationWarning") is not None and not version.get("deprecated"):
            text = "can only be set for deprecated versions"
            yield invalid_value(
                f"{at}[{index}].deprecationWarning", version["deprecationWarning"], text
            )
    shown = [version.get("name") for version in versions]
    if len(set(shown)) != len(shown):
        yield invalid_value(at, shown, "must contain unique version names")
    if sum(1 for version in versions if version.get("storage")) != 1:
        text = "must have exactly one version marked as storage version"
        yield invalid_value(at, shown, text)
    yield from _each(versions, "schema", "spec.validation", _schema)
    yield from _each(versions, "subresources", "spec.subresources", _subresources)
    yield from _each(
        versions, "additionalPrinterColumns", "spec.additionalPrinterColumns", _columns
    )
    yield from _each(versions, "selectableFields", "spec.selectableFields", _selectable)


def _each(
    versions: Sequence[Obj],
    key: str,
    shared: str,
    check: Callable[[Obj, str], Iterator[Cause]],
) -> Iterator[Cause]:
    """Check a part of every version, once when it is the same in all."""
    if versions and all(v.get(key) == versions[0].get(key) for v in versions):
        yield from check(versions[0], shared)
        return
    for index, version in enumerate(versions):
        yield from check(version, f"spec.versions[{index}].{key}")


def _schema(version: Obj, at: str) -> Iterator[Cause]:
    raw = (version.get("schema") or {}).get("openAPIV3Schema")
    if raw is None:
        yield required(f"{at}.openAPIV3Schema", "schemas are required")
        return
    has_status = (version.get("subresources") or {}).get("status") is not None
    yield from check_structural(parse(raw), f"{at}.openAPIV3Schema", has_status=has_status)


def _subresources(version: Obj, at: str) -> Iterator[Cause]:
    scale = (version.get("subresources") or {}).get("scale")
    if scale is not None:
        yield from scale_causes(scale, f"{at}.scale")


def _columns(version: Obj, at: str) -> Iterator[Cause]:
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        yield from column_causes(column, f"{at}[{index}]")


def _selectable(version: Obj, at: str) -> Iterator[Cause]:
    raw = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    fields = version.get("selectableFields") or ()
    if not fields:
        return
    try:
        schema = parse(raw)
    except ApiError:  # told by the check of the schema
        return
    yield from selectable_causes(fields, schema, at)


def _conversion(spec: Obj) -> Iterator[Cause]:
    conversion = spec.get("conversion") or {}
    strategy = conversion.get("strategy")
    at = "spec.conversion"
    if strategy not in ("None", "Webhook"):
        yield not_supported(f"{at}.strategy", strategy, ("None", "Webhook"))
    elif strategy == "None" and conversion.get("webhook") is not None:
        text = 'should not be set when strategy is not set to "Webhook"'
        yield forbidden_field(f"{at}.webhook", text)
    elif strategy == "Webhook":
        served = [v for v in spec.get("versions") or () if v.get("served")]
        if len(served) > 1 or not served[0].get("storage"):
            text = (
                "this hub calls no conversion webhooks; serve the stored version only, or convert"
                " by None"
            )
            yield invalid_value(f"{at}.strategy", strategy, text)


def stored_version_causes(obj: Obj) -> list[Cause]:
    """Return what is wrong with the list of versions in which objects are or were stored."""
    return list(_stored_versions(obj))


def _stored_versions(obj: Obj) -> Iterator[Cause]:
    stored = (obj.get("status") or {}).get("storedVersions") or []
    at = "status.storedVersions"
    if len(set(stored)) != len(stored):
        yield duplicate(at, stored)
    known = [version.get("name") for version in obj["spec"].get("versions") or ()]
    storage = [v.get("name") for v in obj["spec"].get("versions") or () if v.get("storage")]
    for index, name in enumerate(stored):
        if name not in known:
            yield invalid_value(f"{at}[{index}]", name, "missing from spec.versions")
    if storage and storage[0] not in stored:
        text = f"must have the storage version {storage[0]}"
        yield invalid_value(at, stored, text)
