"""The kind CustomResourceDefinition: its defaults, its status, and how it is deleted.

Mirrors apiextensions-apiserver's ``pkg/registry/customresourcedefinition``. What a definition must
look like is `hub.registry.crd.validate`'s, what becomes of it a controller's.
"""

from collections.abc import Collection

from hub.meta import Obj
from hub.meta.errors import Cause
from hub.registry.crd import fields
from hub.registry.crd.conditions import FINALIZER, set_condition
from hub.registry.crd.validate import change_causes, definition_causes, stored_version_causes
from hub.registry.kind import Kind, View
from hub.registry.objects import is_deleting, meta_of
from hub.registry.printing import created_printer, name_printer
from hub.registry.strategy import Occasion, Strategy

GROUP = "apiextensions.k8s.io"


def storage_version(obj: Obj) -> str:
    """Return the version in which a definition's objects are stored, "" when none is marked."""
    versions = (obj.get("spec") or {}).get("versions") or ()
    return next((str(v.get("name")) for v in versions if v.get("storage")), "")


class DefinitionStrategy(Strategy):
    """A definition stays, being deleted, until its objects are gone.

    `own` are the names of those that describe the hub's own kinds.
    """

    def __init__(self, own: Collection[str]) -> None:
        self._own = frozenset(own)

    def default(self, obj: Obj) -> None:
        """Derive singular and list kind; convert by None."""
        spec = obj.setdefault("spec", {})
        names = spec.setdefault("names", {})
        kind = names.get("kind") or ""
        if kind:
            names["singular"] = names.get("singular") or kind.lower()
            names["listKind"] = names.get("listKind") or f"{kind}List"
        conversion = spec.setdefault("conversion", {})
        conversion["strategy"] = conversion.get("strategy") or "None"
        if not spec.get("preserveUnknownFields"):
            spec.pop("preserveUnknownFields", None)

    def prepare_create(self, obj: Obj, occasion: Occasion) -> None:  # noqa: ARG002  a hook has the whole signature
        """Begin with a status in which nothing is accepted yet."""
        version = storage_version(obj)
        obj["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": [version] if version else [],
        }

    def prepare_update(self, new: Obj, old: Obj, occasion: Occasion) -> None:  # noqa: ARG002  the same
        """Remember every version in which objects were ever stored."""
        version = storage_version(new)
        stored = (new.get("status") or {}).get("storedVersions") or []
        if version and version not in stored:
            new["status"] = {**(new.get("status") or {}), "storedVersions": [*stored, version]}

    def validate(self, obj: Obj) -> list[Cause]:
        """Return what is wrong with a definition."""
        return definition_causes(obj, is_own=str(meta_of(obj).get("name")) in self._own)

    def validate_change(self, new: Obj, old: Obj) -> list[Cause]:
        """Return what is wrong with an update; a spec that stays is not looked into again."""
        if new["spec"] == old["spec"]:
            return stored_version_causes(new)
        return [*self.validate(new), *change_causes(new, old)]

    def deletes_at_once(self, obj: Obj) -> bool:
        """Whether the objects are gone, so that the definition may go."""
        return is_deleting(obj)

    def begin_deletion(self, obj: Obj) -> None:
        """Hold the definition until its objects are gone.

        Other than for other kinds, generation and grace period stay as they are (``Delete`` in
        apiextensions' ``etcd.go``).
        """
        meta = meta_of(obj)
        meta["generation"] = int(meta["generation"]) - 1
        meta.pop("deletionGracePeriodSeconds", None)
        present = meta.get("finalizers") or []
        if FINALIZER not in present:
            meta["finalizers"] = [*present, FINALIZER]
        set_condition(
            obj,
            str(meta["deletionTimestamp"]),
            "Terminating",
            status="True",
            reason="InstanceDeletionPending",
            text="CustomResourceDefinition marked for deletion; CustomResource deletion will begin"
            " soon",
        )

    def deletion_refusal(self, name: str) -> str:
        """Return why a definition of the hub's own kinds stays."""
        if name in self._own:
            return "this kind is built into the hub, its definition cannot be deleted"
        return ""


def definition_kind(own: Collection[str] = ()) -> Kind:
    """Return the kind; `own` are the names of definitions that describe built-in kinds."""
    view = View(
        GROUP,
        "v1",
        printers=(name_printer(), created_printer()),
        shape=fields.FIELDS,
        prune=fields.prune,
    )
    return Kind(
        kind="CustomResourceDefinition",
        plural="customresourcedefinitions",
        singular="customresourcedefinition",
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        views=(view,),
        is_namespaced=False,
        strategy=DefinitionStrategy(own),
        subresources=("status",),
        has_generation=True,
        returns_deleted=True,
    )
