"""The operations of a resource as OpenAPI describes them: paths, parameters, media types.

Owns what clients look for in ``/openapi/v3``: kubectl finds the kind of a path by
``x-kubernetes-group-version-kind``, asks the patch operation whether it knows ``fieldValidation``
and ``dryRun``, and reads which patches there are from its media types. Mirrors what
k8s.io/apiserver/pkg/endpoints/installer.go publishes of built-in kinds, and
apiextensions-apiserver's ``controller/openapi/builder`` of custom ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hub.meta import Obj

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
BODY_TYPES = ("application/json", "application/yaml")
PATCH_TYPES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
)
STRATEGIC = "application/strategic-merge-patch+json"

_PARAMETERS: dict[str, tuple[str, str]] = {
    "allowWatchBookmarks": ("boolean", "Whether a watch may send bookmarks"),
    "continue": ("string", "Where to go on with a list, from the part before"),
    "dryRun": ("string", "All = try it without storing anything"),
    "fieldManager": ("string", "The name of who sets the fields"),
    "fieldSelector": ("string", "Only objects with these fields"),
    "fieldValidation": ("string", "What unknown and double fields lead to: Ignore, Warn or Strict"),
    "force": ("boolean", "Take fields from other managers when applying"),
    "gracePeriodSeconds": ("integer", "How long the object may take to go"),
    "labelSelector": ("string", "Only objects with these labels"),
    "limit": ("integer", "The most objects to list at once"),
    "orphanDependents": ("boolean", "Replaced by propagationPolicy"),
    "pretty": ("string", "Whether to print the answer on several lines"),
    "propagationPolicy": ("string", "What becomes of dependents: Orphan, Background, Foreground"),
    "resourceVersion": ("string", "Which state to answer from"),
    "resourceVersionMatch": ("string", "How resourceVersion is meant"),
    "sendInitialEvents": ("boolean", "Whether a watch begins with the objects there are"),
    "timeoutSeconds": ("integer", "How long the request may take"),
    "watch": ("boolean", "Send changes as they happen"),
}
_LIST = (
    *("allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit"),
    *("resourceVersion", "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch"),
)
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_WATCH = ("allowWatchBookmarks", "watch")
_DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")


@dataclass(frozen=True, slots=True)
class _Verb:
    """How an API verb is written in OpenAPI: method, action, word of the id, query parameters."""

    method: str
    action: str
    word: str
    parameters: tuple[str, ...]
    codes: tuple[str, ...] = ("200",)


_VERBS = {
    "list": _Verb("get", "list", "list", _LIST),
    "create": _Verb("post", "post", "create", _WRITE, ("200", "201", "202")),
    "deletecollection": _Verb("delete", "deletecollection", "deleteCollection", (*_LIST, *_DELETE)),
    "get": _Verb("get", "get", "read", ("resourceVersion",)),
    "update": _Verb("put", "put", "replace", _WRITE, ("200", "201")),
    "delete": _Verb("delete", "delete", "delete", _DELETE, ("200", "202")),
    "patch": _Verb("patch", "patch", "patch", (*_WRITE, "force"), ("200", "201")),
}
_ON_MANY = ("list", "create", "deletecollection")
_ON_ONE = ("get", "update", "delete", "patch")
_CODE_TEXTS = {"200": "OK", "201": "Created", "202": "Accepted", "401": "Unauthorized"}


@dataclass(frozen=True, slots=True)
class Target:
    """What the operations of a path act on.

    `component` is the schema of the object, `list_component` that of a list of them. `suffix` ends
    the operation ids of a subresource.
    """

    group: str
    version: str
    kind: str
    component: str
    list_component: str
    is_namespaced: bool
    is_custom: bool
    suffix: str = ""


def collection_item(target: Target, verbs: Sequence[str], *, across: bool = False) -> Obj | None:
    """Return the path item of a collection; `across`: the list over all namespaces."""
    wanted = ("list",) if across else _ON_MANY
    return _item(target, [v for v in wanted if v in verbs], is_one=False, across=across)


def object_item(target: Target, verbs: Sequence[str]) -> Obj | None:
    """Return the path item of one object, or of a subresource of it."""
    wanted = ("create", *_ON_ONE) if target.suffix else _ON_ONE
    return _item(target, [v for v in wanted if v in verbs], is_one=True)


def _item(
    target: Target, verbs: Sequence[str], *, is_one: bool, across: bool = False
) -> Obj | None:
    if not verbs:
        return None
    in_path = []
    if is_one:
        in_path.append(_path_parameter("name", f"name of the {target.kind}"))
    if target.is_namespaced and not across:
        in_path.append(_path_parameter("namespace", "name of the namespace"))
    item = {_VERBS[v].method: _operation(target, v, across=across) for v in verbs}
    return {**item, "parameters": [*in_path, _query_parameter("pretty")]}


def _operation(target: Target, verb: str, *, across: bool) -> Obj:
    spec = _VERBS[verb]
    operation: Obj = {
        "tags": [f"{_lower(_camel(target.group or 'core'))}_{target.version}"],
        "description": f"{verb} {target.kind} objects",
        "operationId": _operation_id(target, spec.word, across=across),
        "responses": dict(_responses(target, verb)),
        "x-kubernetes-action": spec.action,
        "x-kubernetes-group-version-kind": {
            "group": target.group,
            "version": target.version,
            "kind": target.kind,
        },
    }
    parameters = [_query_parameter(name) for name in _parameters(target, verb)]
    if parameters:  # Go drops an empty list, and takes the document for another then
        operation["parameters"] = parameters
    if verb in ("create", "update"):
        operation["requestBody"] = _body(target.component, BODY_TYPES, is_required=True)
    elif verb == "patch":
        types = (*PATCH_TYPES, STRATEGIC) if not target.is_custom else PATCH_TYPES
        operation["requestBody"] = _body(f"{META}.Patch", types, is_required=True)
    elif verb.startswith("delete"):
        operation["requestBody"] = _body(f"{META}.DeleteOptions", BODY_TYPES, is_required=False)
    return operation


def _parameters(target: Target, verb: str) -> Sequence[str]:
    """Return the query parameters that are told; more are read."""
    hidden: Sequence[str] = ()
    if verb == "deletecollection":
        hidden = _DELETE if target.is_custom else _WATCH
    elif verb == "get" and not target.is_custom:
        hidden = ("resourceVersion",)
    return [name for name in _VERBS[verb].parameters if name not in hidden]


def _responses(target: Target, verb: str) -> Iterator[tuple[str, Obj]]:
    component = target.component
    if verb == "list":
        component = target.list_component
    elif verb.startswith("delete"):
        component = f"{META}.Status"
    for code in _VERBS[verb].codes:
        yield code, {"description": _CODE_TEXTS[code], "content": _content(component, BODY_TYPES)}
    yield "401", {"description": _CODE_TEXTS["401"]}


def _operation_id(target: Target, word: str, *, across: bool) -> str:
    place = f"{_camel(target.group.removesuffix('.k8s.io') or 'core')}{_camel(target.version)}"
    scope = "Namespaced" if target.is_namespaced and not across else ""
    collection = "Collection" if word == "deleteCollection" else ""
    end = "ForAllNamespaces" if across else target.suffix
    return f"{word.removesuffix('Collection')}{place}{collection}{scope}{target.kind}{end}"


def _camel(text: str) -> str:
    words = text.replace("-", ".").split(".")
    return "".join(w[:1].upper() + w[1:] for w in words)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _body(component: str, types: Sequence[str], *, is_required: bool) -> Obj:
    content: Obj = {"content": _content(component, types)}
    return {**content, "required": True} if is_required else content


def _content(component: str, types: Sequence[str]) -> Obj:
    return {t: {"schema": {"$ref": f"#/components/schemas/{component}"}} for t in types}


def _query_parameter(name: str) -> Obj:
    type_, description = _PARAMETERS[name]
    schema = {"type": type_, "uniqueItems": True}
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _path_parameter(name: str, description: str) -> Obj:
    schema = {"type": "string", "uniqueItems": True}
    head = {"name": name, "in": "path", "description": description}
    return {**head, "required": True, "schema": schema}
