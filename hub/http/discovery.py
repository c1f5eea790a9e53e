"""Discovery: which groups, versions and resources there are, in the legacy and the aggregated form.

Built from the catalogue, again when kinds have come or gone since. Shapes are those of
k8s.io/api/apidiscovery/v2 and k8s.io/apimachinery/pkg/apis/meta/v1 (APIGroupList, APIResourceList).
"""

import base64
import hashlib

from hub.http.document import Document
from hub.http.negotiate import JSON, parse_accept
from hub.meta import Obj
from hub.meta.codec.json import encode
from hub.registry.catalog import Catalog
from hub.registry.kind import SUBRESOURCE_VERBS, Kind, Served

_VIRTUAL_SUBRESOURCES = {
    "token": ("TokenRequest", "authentication.k8s.io", "v1"),
    "scale": ("Scale", "autoscaling", "v1"),
    "release": ("Status", "", "v1"),
    "snapshot": ("Status", "", "v1"),
}
_AGGREGATED = ("v2", "v2beta1")


class Discovery:
    """Every discovery document of a hub, by path."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._plain: dict[str, Document] = {}
        self._aggregated: dict[tuple[str, str], Document] = {}
        self._generation = -1

    def find(self, path: str, accept: str | None) -> Document | None:
        """Return the document at `path` in the form that `accept` prefers, None if none is."""
        if self._generation != self._catalog.generation:
            self._build()
        path = path.rstrip("/") or path
        for accepted in parse_accept(accept or ""):
            if accepted.type_ != JSON:
                continue
            if accepted.parameters.get("as") == "APIGroupDiscoveryList":
                found = self._aggregated.get((path, accepted.parameters.get("v", "")))
                if found is not None:
                    return found
            elif not accepted.parameters:
                break
        return self._plain.get(path)

    def _build(self) -> None:
        self._generation = self._catalog.generation
        self._plain, self._aggregated = {}, {}
        groups = self._catalog.group_versions()
        self._put("/api", {"kind": "APIVersions", "versions": groups.get("", []), **_ADDRESSES})
        named = {group: versions for group, versions in groups.items() if group}
        listed = [_group(group, versions) for group, versions in named.items()]
        self._put("/apis", {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed})
        for group, versions in groups.items():
            if group:
                self._put(f"/apis/{group}", {**_group(group, versions), **_GROUP_TYPE})
            for version in versions:
                base = f"/apis/{group}" if group else "/api"
                self._put(f"{base}/{version}", self._resource_list(group, version))
        for shape in _AGGREGATED:
            core = [self._group_discovery(g, v) for g, v in groups.items() if not g]
            rest = [self._group_discovery(g, v) for g, v in named.items()]
            self._put_aggregated("/api", shape, core)
            self._put_aggregated("/apis", shape, rest)

    def _put(self, path: str, obj: Obj) -> None:
        self._plain[path] = Document(encode(obj) + b"\n", JSON)

    def _put_aggregated(self, path: str, shape: str, items: list[Obj]) -> None:
        api_version = f"apidiscovery.k8s.io/{shape}"
        listing: Obj = {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}}
        body = encode({**listing, "items": items}) + b"\n"
        # the order g, v, as matters to old parsers
        content_type = f"{JSON};g=apidiscovery.k8s.io;v={shape};as=APIGroupDiscoveryList"
        etag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
        self._aggregated[path, shape] = Document(body, content_type, etag, "public")

    def _resource_list(self, group: str, version: str) -> Obj:
        resources: list[Obj] = []
        for served in self._catalog.in_version(group, version):
            resources.append(_resource(served))
            resources.extend(_subresource(served, name) for name in served.kind.subresources)
        group_version = f"{group}/{version}" if group else version
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version,
            "resources": sorted(resources, key=lambda r: str(r["name"])),
        }

    def _group_discovery(self, group: str, versions: list[str]) -> Obj:
        found = [
            {
                "version": version,
                "resources": [_discovered(s) for s in self._catalog.in_version(group, version)],
                "freshness": "Current",
            }
            for version in versions
        ]
        return {"metadata": {"name": group} if group else {}, "versions": found}


_ADDRESSES: Obj = {"serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}]}
_GROUP_TYPE: Obj = {"kind": "APIGroup", "apiVersion": "v1"}


def _group(group: str, versions: list[str]) -> Obj:
    listed = [{"groupVersion": f"{group}/{v}", "version": v} for v in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _resource(served: Served) -> Obj:
    kind = served.kind
    found: Obj = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.is_namespaced,
        "kind": kind.kind,
        "verbs": list(kind.offered_verbs),
    }
    if kind.short_names:
        found["shortNames"] = list(kind.short_names)
    if kind.categories:
        found["categories"] = list(kind.categories)
    if not kind.is_virtual:
        found["storageVersionHash"] = _storage_version_hash(kind)
    return found


def _storage_version_hash(kind: Kind) -> str:
    """Return what changes when objects are stored in another version.

    As k8s.io/apiserver/pkg/endpoints/discovery.StorageVersionHash makes it.
    """
    stored_as = f"{kind.storage.group}/{kind.storage.version}/{kind.kind}"
    return base64.b64encode(hashlib.sha256(stored_as.encode()).digest()[:8]).decode()


def _response_kind(served: Served, subresource: str) -> tuple[str, str, str]:
    return _VIRTUAL_SUBRESOURCES.get(subresource) or _own_kind(served)


def _own_kind(served: Served) -> tuple[str, str, str]:
    """Return kind, group and version, which are told of custom kinds only, as kube-apiserver does.

    Without them they are those of the resource.
    """
    view = served.view if served.kind.is_custom else None
    return served.kind.kind, view.group if view else "", view.version if view else ""


def _subresource(served: Served, name: str) -> Obj:
    kind, group, version = _response_kind(served, name)
    found: Obj = {
        "name": f"{served.kind.plural}/{name}",
        "singularName": "",
        "namespaced": served.kind.is_namespaced,
        "kind": kind,
        "verbs": list(SUBRESOURCE_VERBS[name]),
    }
    if name in _VIRTUAL_SUBRESOURCES:
        found |= {"group": group, "version": version}
    return found


def _discovered(served: Served) -> Obj:
    kind = served.kind
    found: Obj = {
        "resource": kind.plural,
        "responseKind": _type_of(*_own_kind(served)),
        "scope": "Namespaced" if kind.is_namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.offered_verbs),
    }
    if kind.short_names:
        found["shortNames"] = list(kind.short_names)
    if kind.categories:
        found["categories"] = list(kind.categories)
    if kind.subresources:
        found["subresources"] = [_discovered_subresource(served, n) for n in kind.subresources]
    return found


def _discovered_subresource(served: Served, name: str) -> Obj:
    return {
        "subresource": name,
        "responseKind": _type_of(*_response_kind(served, name)),
        "verbs": list(SUBRESOURCE_VERBS[name]),
    }


def _type_of(kind: str, group: str, version: str) -> Obj:
    return {"group": group, "version": version, "kind": kind}
