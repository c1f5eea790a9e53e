"""The structure of discovery and OpenAPI documents, small enough to keep and to compare.

Two API servers describe one kind in other words and with other `$ref`s; what a client relies on is
which resources there are, what may be done with them, and which fields of which type an object has.
An outline holds that and no description.
"""

from collections.abc import Iterable

from hub.meta import Obj

_GVK = "x-kubernetes-group-version-kind"
_METHODS = ("delete", "get", "patch", "post", "put")
_GENERIC = {"APIGroup", "DeleteOptions", "Status", "WatchEvent"}
_MERGE = (
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
)


def outline_index(index: Obj) -> Obj:
    """Return the paths of ``/openapi/v3``, each with the address but for its hash."""
    return {
        path: str(entry["serverRelativeURL"]).split("?")[0]
        for path, entry in index["paths"].items()
    }


def outline_openapi(document: Obj) -> Obj:
    """Return what an OpenAPI v3 document says of paths and of kinds."""
    schemas = (document.get("components") or {}).get("schemas") or {}
    kinds: Obj = {}
    for schema in schemas.values():
        for gvk in schema.get(_GVK) or ():
            if gvk["kind"] in _GENERIC or gvk["kind"].endswith("List"):
                continue
            name = f"{gvk['group']}/{gvk['version']} {gvk['kind']}".lstrip("/")
            kinds[name] = _outline_schema(schema, schemas, frozenset())
    paths = {path: _outline_path(item) for path, item in document["paths"].items()}
    return {"paths": paths, "kinds": kinds}


def _outline_path(item: Obj) -> Obj:
    shared = item.get("parameters") or []
    return {
        method: _outline_operation(item[method], shared) for method in _METHODS if method in item
    }


def _outline_operation(operation: Obj, shared: list[Obj]) -> Obj:
    parameters = [*shared, *(operation.get("parameters") or ())]
    found: Obj = {"query": {p["name"]: True for p in parameters if p.get("in") == "query"}}
    if "x-kubernetes-action" in operation:
        found["action"] = operation["x-kubernetes-action"]
    if _GVK in operation:
        found["kind"] = operation[_GVK]["kind"]
    if "patch" in operation.get("x-kubernetes-action", ""):
        found["accepts"] = dict.fromkeys(operation["requestBody"]["content"], True)
    return found


def _outline_schema(schema: Obj, schemas: Obj, above: frozenset[str]) -> Obj | str:
    """Return an object as its properties, a list as its item and how it merges, else the type.

    A schema inside itself is its name.
    """
    schema, names = _resolved(schema, schemas)
    if names & above:
        return f"({min(names).rsplit('.', 1)[-1]})"
    above |= names
    if "properties" in schema:
        found: Obj = {
            name: _outline_schema(child, schemas, above)
            for name, child in schema["properties"].items()
        }
        if schema.get("required"):
            found["(required)"] = sorted(schema["required"])
        return found
    if "items" in schema:
        merge = {key.removeprefix("x-kubernetes-"): schema[key] for key in _MERGE if key in schema}
        return {"(items)": _outline_schema(schema["items"], schemas, above), **merge}
    values = schema.get("additionalProperties")
    if isinstance(values, dict) and values:
        return {"(values)": _outline_schema(values, schemas, above)}
    return " ".join(str(schema[key]) for key in ("type", "format") if key in schema) or "any"


def _resolved(schema: Obj, schemas: Obj) -> tuple[Obj, frozenset[str]]:
    """Follow ``$ref``, also the one that an ``allOf`` of one wraps; merge rules stay."""
    kept = {key: schema[key] for key in _MERGE if key in schema}
    names: set[str] = set()
    while True:
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            names.add(name)
            schema = schemas[name]
        elif len(schema.get("allOf") or ()) == 1:
            schema = schema["allOf"][0]
        else:
            return {**schema, **kept}, frozenset(names)


def outline_discovery(document: Obj) -> Obj:
    """Return an APIGroupDiscoveryList as ``group/version resource`` with what each offers."""
    return {
        f"{item['metadata'].get('name', '')}/{version['version']} {resource['resource']}": {
            **_without(resource, ("resource", "subresources")),
            "verbs": sorted(resource["verbs"]),
            "subresources": {
                sub["subresource"]: {
                    **_without(sub, ("subresource",)),
                    "verbs": sorted(sub["verbs"]),
                }
                for sub in resource.get("subresources") or ()
            },
        }
        for item in document["items"]
        for version in item["versions"]
        for resource in version["resources"]
    }


def outline_resources(document: Obj) -> Obj:
    """Return an APIResourceList by name; the hash of the storage version is anybody's own."""
    return {
        resource["name"]: {
            **_without(resource, ("name", "storageVersionHash")),
            "verbs": sorted(resource["verbs"]),
        }
        for resource in document["resources"]
    }


def _without(obj: Obj, names: Iterable[str]) -> Obj:
    return {key: value for key, value in obj.items() if key not in names}
