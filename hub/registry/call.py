"""What a call of the engine comes with, and what a deletion comes to. Values only."""

from dataclasses import dataclass, field

from hub.auth.user import User
from hub.meta import Obj
from hub.registry.strictness import Strictness

SYSTEM = User("system:hublet", ("system:masters",))
"""The hub itself."""


@dataclass(frozen=True, slots=True)
class Call:
    """Who calls, and how: `is_dry_run` goes through everything but the commit."""

    user: User = SYSTEM
    is_dry_run: bool = False
    fields: Strictness = field(default_factory=Strictness)


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
