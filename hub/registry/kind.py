"""A kind as data: names, versions, subresources, columns, and the strategy that knows its rules.

Owns the description that discovery, routing, the engine and Tables read; no behaviour of its own.
One stored object may be shown through several *views* (ManagedClusterAddOn v1alpha1 and v1beta1,
Event in two groups); exactly one view, the first, is how it is stored.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from hub.meta import Obj
from hub.meta.errors import Resource
from hub.registry.printing import Printer
from hub.registry.shape import Shape
from hub.registry.strategy import Strategy

STANDARD_VERBS = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)

SUBRESOURCE_VERBS = {
    "status": ("get", "patch", "update"),
    "approval": ("get", "patch", "update"),
    "finalize": ("update",),
    "token": ("create",),
    "scale": ("get", "patch", "update"),
    "release": ("create",),
    "snapshot": ("create",),
}


def same(obj: Obj) -> Obj:
    """Convert between views that have the same fields."""
    return obj


@dataclass(frozen=True, slots=True)
class View:
    """One served version of a kind.

    `shape` has the types of the fields that the hub reads. `to_storage` and `from_storage` take
    and return whole objects, apiVersion and kind included, and never change their argument.
    `printers` are what ``kubectl get`` prints; none = name and age. `prune` drops the fields that a
    custom kind's schema does not name and returns their paths; built-in kinds have tables for that.
    `is_served`: a request may name it (objects may be stored in a version that is not).
    `is_read_through`: stored objects pass `from_storage` even in the storage view, as they may have
    been written before the schema was what it is. `warning` is told to whoever uses the view.
    `field_names`: its names of selectable fields for those of the storage view; none = the same.
    """

    group: str
    version: str
    printers: tuple[Printer, ...] = ()
    shape: dict[str, Shape] = field(default_factory=dict, compare=False)
    prune: Callable[[Obj], tuple[Obj, list[str]]] | None = field(default=None, compare=False)
    to_storage: Callable[[Obj], Obj] = same
    from_storage: Callable[[Obj], Obj] = same
    is_served: bool = True
    is_read_through: bool = False
    warning: str = ""
    field_names: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def api_version(self) -> str:
        """Return ``group/version``, or the bare version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where a kind keeps what its scale subresource shows; `selector` () = it has none."""

    replicas: tuple[str, ...]
    current: tuple[str, ...]
    selector: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kind:
    """A resource the hub serves.

    `has_generation`: metadata.generation counts changes outside metadata and status.
    `is_custom`: behaves as a custom resource (protobuf and strategic merge patches are refused,
    types are checked as by a schema). `is_conditional`: an update must carry a resourceVersion,
    as that of every custom resource. `is_sealed`: encrypted at rest. `is_volatile`: outside
    log, state hash and snapshots. `is_exact`: of a volatile kind, whose deletions no log
    remembers: a watch from before one gets 410, so that its client lists again. `is_virtual`:
    answered without being stored (access reviews).
    `returns_deleted`: a deletion is answered with the object instead of a Status.
    `is_protected`: its creation is shipped to the bucket at once. `indexed_labels`: objects are
    found by them without a scan. `list_name`: the kind of a list, when it is no plain one. `scale`:
    what the subresource of that name shows. `keeper`: who writes a kind that clients only read, for
    the message that tells them.
    """

    kind: str
    plural: str
    singular: str
    views: tuple[View, ...]
    is_namespaced: bool
    strategy: Strategy = field(default_factory=Strategy)
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = STANDARD_VERBS
    has_generation: bool = False
    is_custom: bool = False
    is_conditional: bool = False
    is_sealed: bool = False
    is_volatile: bool = False
    is_exact: bool = False
    is_virtual: bool = False
    returns_deleted: bool = False
    is_protected: bool = False
    indexed_labels: tuple[str, ...] = ()
    list_name: str = ""
    scale: ScalePaths | None = None
    keeper: str = ""

    @property
    def storage(self) -> View:
        """Return the view in which objects are stored."""
        return self.views[0]

    @cached_property
    def id(self) -> str:
        """Return the resource part of store keys, ``plural.group`` of the storage view."""
        return str(self.resource)

    @cached_property
    def resource(self) -> Resource:
        """Return the name that error messages print."""
        return Resource(self.storage.group, self.plural)

    @property
    def list_kind(self) -> str:
        """Return the kind of a list of these."""
        return self.list_name or f"{self.kind}List"

    @property
    def offered_verbs(self) -> tuple[str, ...]:
        """Return the verbs that discovery tells of: those that are not refused as things stand."""
        if not self.strategy.creation_refusal():
            return self.verbs
        return tuple(verb for verb in self.verbs if verb != "create")

    @property
    def needs_revision(self) -> bool:
        """Whether an update must carry a resourceVersion."""
        return self.is_custom or self.is_conditional

    @property
    def has_status(self) -> bool:
        """Whether status is written through its own subresource."""
        return "status" in self.subresources


@dataclass(frozen=True, slots=True)
class Served:
    """A kind through one of its views: what a request's path names."""

    kind: Kind
    view: View

    @property
    def resource(self) -> Resource:
        """Return the name that error messages print, with the group asked for."""
        return Resource(self.view.group, self.kind.plural)
