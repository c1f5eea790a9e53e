"""The Open Cluster Management kinds: names, versions, defaults, printer columns, validation of the
fields we read.

Facts (groups, names, defaults, columns) are upstream's, the schemas and words ours. Whole
structural schemas come with CustomResourceDefinitions in a later issue; what is checked here is
what the hub itself relies on.
"""

from hub.fleet import addon_view
from hub.meta import Obj
from hub.meta.errors import Cause
from hub.registry.kind import Kind, View
from hub.registry.printing import age_printer, name_printer, path_printer
from hub.registry.strategy import Strategy

CLUSTER_GROUP = "cluster.open-cluster-management.io"
WORK_GROUP = "work.open-cluster-management.io"
ADDON_GROUP = "addon.open-cluster-management.io"
REGISTER_GROUP = "register.open-cluster-management.io"
MAX_MANIFESTS_BYTES = 500 * 1024


def condition_path(type_: str, field: str = "status") -> str:
    """Return the JSON path of a condition's field."""
    return f'.status.conditions[?(@.type=="{type_}")].{field}'


def _required(field: str) -> Cause:
    return Cause("FieldValueRequired", "Required value", field)


def _type_problem(obj: Obj, field: str, expected: type, word: str) -> list[Cause]:
    """Return the cause when a spec field has another type than the schema's."""
    value = (obj.get("spec") or {}).get(field)
    is_bool_for_int = expected is int and isinstance(value, bool)
    if value is None or (isinstance(value, expected) and not is_bool_for_int):
        return []
    kind = {bool: "boolean", str: "string", int: "integer", dict: "object", list: "array"}
    got = kind.get(type(value), "number")
    text = f'Invalid value: "{got}": spec.{field} in body must be of type {word}: "{got}"'
    return [Cause("FieldValueTypeInvalid", text, f"spec.{field}")]


class ManagedClusterStrategy(Strategy):
    """A cluster waits for acceptance and renews its lease every 60 seconds unless told otherwise."""

    def default(self, obj: Obj) -> None:
        """Fill the lease duration; whoever creates the object decides nothing by leaving spec out."""
        spec = obj.setdefault("spec", {})
        if isinstance(spec, dict):
            spec.setdefault("hubAcceptsClient", False)
            if not spec.get("leaseDurationSeconds"):
                spec["leaseDurationSeconds"] = 60

    def validate(self, obj: Obj) -> list[Cause]:
        """Check the types of what the hub reads."""
        causes = _type_problem(obj, "hubAcceptsClient", bool, "boolean")
        causes += _type_problem(obj, "leaseDurationSeconds", int, "integer")
        return causes


class SetStrategy(Strategy):
    """A set selects by the exclusive label unless told otherwise."""

    def default(self, obj: Obj) -> None:
        """Fill the selector."""
        spec = obj.setdefault("spec", {})
        selector = spec.setdefault("clusterSelector", {})
        selector.setdefault("selectorType", "ExclusiveClusterSetLabel")


class ManifestWorkStrategy(Strategy):
    """A work carries whole objects, at most 500 KiB of them, each with a name and each once."""

    def default(self, obj: Obj) -> None:
        """Fill the defaults of deleteOption and manifestConfigs."""
        spec = obj.setdefault("spec", {})
        option = spec.get("deleteOption")
        if isinstance(option, dict):
            option.setdefault("propagationPolicy", "Foreground")
        for config in spec.get("manifestConfigs") or []:
            config.setdefault("feedbackScrapeType", "Poll")
            strategy = config.get("updateStrategy")
            if isinstance(strategy, dict):
                strategy.setdefault("type", "Update")
                apply = strategy.get("serverSideApply")
                if isinstance(apply, dict):
                    apply.setdefault("fieldManager", "work-agent")
                    for ignored in apply.get("ignoreFields") or []:
                        ignored.setdefault("condition", "OnSpokePresent")


class AddOnStrategy(Strategy):
    """An add-on installs into a namespace of its own unless told otherwise."""

    def default(self, obj: Obj) -> None:
        """Fill the install namespace (upstream defaults it on every read of v1alpha1)."""
        spec = obj.setdefault("spec", {})
        if not spec.get("installNamespace"):
            spec["installNamespace"] = addon_view.DEFAULT_INSTALL_NAMESPACE


MANAGED_CLUSTER = Kind(
    kind="ManagedCluster",
    plural="managedclusters",
    singular="managedcluster",
    short_names=("mcl", "mcls"),
    views=(
        View(
            CLUSTER_GROUP,
            "v1",
            printers=(
                name_printer(),
                path_printer("Hub Accepted", ".spec.hubAcceptsClient", type_="boolean"),
                path_printer("Managed Cluster URLs", ".spec.managedClusterClientConfigs[*].url"),
                path_printer("Joined", condition_path("ManagedClusterJoined")),
                path_printer("Available", condition_path("ManagedClusterConditionAvailable")),
                age_printer("date"),
            ),
        ),
    ),
    is_namespaced=False,
    strategy=ManagedClusterStrategy(),
    subresources=("status",),
    has_generation=True,
    is_custom=True,
    is_protected=True,
)
MANAGED_CLUSTER_SET = Kind(
    kind="ManagedClusterSet",
    plural="managedclustersets",
    singular="managedclusterset",
    short_names=("mclset", "mclsets"),
    views=(
        View(
            CLUSTER_GROUP,
            "v1beta2",
            printers=(
                name_printer(),
                path_printer("Empty", condition_path("ClusterSetEmpty")),
                age_printer("date"),
            ),
        ),
    ),
    is_namespaced=False,
    strategy=SetStrategy(),
    subresources=("status",),
    has_generation=True,
    is_custom=True,
)
MANIFEST_WORK = Kind(
    kind="ManifestWork",
    plural="manifestworks",
    singular="manifestwork",
    views=(View(WORK_GROUP, "v1", printers=(name_printer(), age_printer("date"))),),
    is_namespaced=True,
    strategy=ManifestWorkStrategy(),
    subresources=("status",),
    has_generation=True,
    is_custom=True,
    is_sealed=True,
)
_ADDON_PRINTERS = (
    name_printer(),
    path_printer("Available", condition_path("Available")),
    path_printer("Degraded", condition_path("Degraded")),
    path_printer("Progressing", condition_path("Progressing")),
)
MANAGED_CLUSTER_ADDON = Kind(
    kind="ManagedClusterAddOn",
    plural="managedclusteraddons",
    singular="managedclusteraddon",
    short_names=("mca", "mcas"),
    views=(
        View(ADDON_GROUP, "v1alpha1", printers=_ADDON_PRINTERS),
        View(
            ADDON_GROUP,
            "v1beta1",
            printers=_ADDON_PRINTERS,
            to_storage=addon_view.to_v1alpha1,
            from_storage=addon_view.to_v1beta1,
        ),
    ),
    is_namespaced=True,
    strategy=AddOnStrategy(),
    subresources=("status",),
    has_generation=True,
    is_custom=True,
)
FLEET = (MANAGED_CLUSTER, MANAGED_CLUSTER_SET, MANIFEST_WORK, MANAGED_CLUSTER_ADDON)
