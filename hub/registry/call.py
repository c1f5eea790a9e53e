"""What a call of the engine comes with, and what a deletion comes to. Values only."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hub.auth.user import User
from hub.meta import Obj
from hub.registry.strictness import Strictness
from hub.store import Revision

if TYPE_CHECKING:
    from hub.registry.kind import Kind

SYSTEM = User("system:hublet", ("system:masters",))
"""The hub itself."""


class Receipt:
    """The revision that a snapshot must reach to hold what a call wrote, or found as it was to be.

    0: nothing that is ever shipped, as after a renewal, a dry run, or a write to an Event.
    """

    __slots__ = ("revision",)

    def __init__(self) -> None:
        self.revision = Revision(0)


@dataclass(frozen=True, slots=True)
class Call:
    """Who calls, and how: `is_dry_run` goes through everything but the commit.

    `receipt`: for whoever wants to know what to wait for.
    """

    user: User = SYSTEM
    is_dry_run: bool = False
    fields: Strictness = field(default_factory=Strictness)
    receipt: Receipt | None = None

    def note(self, kind: "Kind", revision: Revision) -> None:
        """Note what was committed; of several revisions the last counts."""
        if self.receipt is not None and not kind.is_volatile:
            self.receipt.revision = max(self.receipt.revision, revision)

    def note_found(self, kind: "Kind", obj: Obj, revision: Revision) -> None:
        """Note an object that was to be as it is, unless a renewal made it so."""
        if self.receipt is None or self.is_dry_run or kind.strategy.is_renewal(obj, obj):
            return
        self.note(kind, revision)


@dataclass(frozen=True, slots=True)
class Preconditions:
    """What must hold of the object for a write to go through; "" = not asked."""

    uid: str = ""
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a deletion came to: the last state, and whether it is gone or waits for finalizers."""

    obj: Obj
    is_gone: bool


NO_PRECONDITIONS = Preconditions()
SYSTEM_CALL = Call()
"""A call of the hub itself."""
