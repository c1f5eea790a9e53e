"""What a kind adds to the generic engine: defaults, preparation, validation, selectable fields.

Pure functions on plain objects in their *stored* version; the engine decides when each runs (the
order of k8s.io/apiserver/pkg/registry/rest/create.go and update.go). Anything that needs other
objects or the user's rights is an `Admission`, run by the engine between preparation and
validation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from hub.auth.user import User
from hub.clock import Clock
from hub.meta import Obj
from hub.meta.errors import Cause
from hub.meta.names import subdomain_errors


@dataclass(frozen=True, slots=True)
class Occasion:
    """The circumstances of a write: who asks, and the clock."""

    user: User
    clock: Clock


class Admission(Protocol):
    """A rule that looks beyond the object itself.

    Called with the object as it would be stored (it may be changed in place) and the one before,
    None on create. Raises `ApiError` to refuse.
    """

    def __call__(self, new: Obj, old: Obj | None, occasion: Occasion) -> None:
        """Admit, amend or refuse."""
        ...


class Strategy:
    """The rules of a kind; this base has those that all kinds share."""

    def default(self, obj: Obj) -> None:
        """Fill the fields that have defaults, in place; idempotent."""

    def prepare_create(self, obj: Obj, occasion: Occasion) -> None:
        """Set what only the server may set on a new object."""

    def prepare_update(self, new: Obj, old: Obj, occasion: Occasion) -> None:
        """Carry over what a main-resource update may not change."""

    def apply_subresource(
        self, subresource: str, target: Obj, wanted: Obj, occasion: Occasion
    ) -> None:
        """Write into `target`, a copy of the stored object, what may change of `wanted`."""
        target.pop("status", None)
        if "status" in wanted:
            target["status"] = wanted["status"]

    def name_problems(self, name: str) -> list[str]:
        """Return why `name` is no name for this kind, one message a problem."""
        return subdomain_errors(name)

    def validate(self, obj: Obj) -> list[Cause]:
        """Return what is wrong with `obj`, one cause a field."""
        return []

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """Return which immutable fields changed."""
        return []

    def validate_change(self, new: Obj, old: Obj) -> list[Cause]:
        """Return all that is wrong with an update; kinds that forgive old faults override it."""
        return [*self.validate(new), *self.validate_update(new, old)]

    def fields(self, obj: Obj) -> Mapping[str, str]:
        """Return what field selectors know beside metadata.name and metadata.namespace."""
        return {}

    def selectable(self) -> tuple[str, ...]:
        """Return the names of those fields, so that an unknown one is refused."""
        return ()

    def deletes_at_once(self, obj: Obj) -> bool:
        """Whether an object without metadata.finalizers goes when it is deleted.

        A Namespace waits for its contents.
        """
        return True

    def creation_refusal(self) -> str:
        """Return why no object may be created now, "" when some may."""
        return ""

    def deletion_refusal(self, name: str) -> str:
        """Return why the object of that name may never be deleted, "" when it may."""
        return ""

    def begin_deletion(self, obj: Obj) -> None:
        """Mark, beyond metadata, an object that begins to be deleted."""

    def is_renewal(self, new: Obj, old: Obj) -> bool:
        """Whether an update is a heartbeat that may live in the memory overlay (Lease)."""
        return False
