"""The resources the agents use, and how their requests are spelled.

Owns paths, queries and media types as recorded from OCM's agents (client-go writes query keys
sorted). No I/O.
"""

from dataclasses import dataclass
from urllib.parse import quote, urlencode

JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
MERGE_PATCH = "application/merge-patch+json"
ACCEPT_JSON = "application/json, */*"
ACCEPT_PROTOBUF = "application/vnd.kubernetes.protobuf,application/json"


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of the API; `is_builtin` ones are asked for as protobuf."""

    group: str
    version: str
    plural: str
    is_builtin: bool = False

    @property
    def api_version(self) -> str:
        """Return ``group/version`` as objects carry it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def accept(self) -> str:
        """Return the Accept header OCM's agents send for it."""
        return ACCEPT_PROTOBUF if self.is_builtin else ACCEPT_JSON

    def path(self, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the request path of the collection, or of one object."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if namespace:
            parts.append(f"namespaces/{quote(namespace, safe='')}")
        parts += [part for part in (self.plural, quote(name, safe=""), subresource) if part]
        return "/".join(parts)


CLUSTERS = Resource("cluster.open-cluster-management.io", "v1", "managedclusters")
ADDONS = Resource("addon.open-cluster-management.io", "v1beta1", "managedclusteraddons")
MANAGEMENT_ADDONS = Resource(ADDONS.group, ADDONS.version, "clustermanagementaddons")
WORKS = Resource("work.open-cluster-management.io", "v1", "manifestworks")
CSRS = Resource("certificates.k8s.io", "v1", "certificatesigningrequests", is_builtin=True)
LEASES = Resource("coordination.k8s.io", "v1", "leases", is_builtin=True)
EVENTS = Resource("events.k8s.io", "v1", "events", is_builtin=True)
SECRETS = Resource("", "v1", "secrets", is_builtin=True)


@dataclass(frozen=True, slots=True)
class Selection:
    """What a watch covers: a resource, perhaps in one namespace, perhaps by a selector."""

    resource: Resource
    namespace: str = ""
    field_selector: str = ""
    label_selector: str = ""

    def target(self, *, revision: str, is_initial: bool, timeout_s: int) -> str:
        """Return the target of a watch from `revision`, or of a WatchList not older than it."""
        query = {
            "allowWatchBookmarks": "true",
            "fieldSelector": self.field_selector,
            "labelSelector": self.label_selector,
            "resourceVersion": revision,
            "resourceVersionMatch": "NotOlderThan" if is_initial else "",
            "sendInitialEvents": "true" if is_initial else "",
            "timeout": f"{timeout_s // 60}m{timeout_s % 60}s",
            "timeoutSeconds": str(timeout_s),
            "watch": "true",
        }
        path = self.resource.path(namespace=self.namespace)
        return f"{path}?{urlencode({k: v for k, v in query.items() if v})}"
