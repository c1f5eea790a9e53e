"""How many certificate requests one identity may make.

The bootstrap token lies on every cluster, and whoever has it may ask for certificates under any
name. So each requester has a pace, and a number of requests that may wait undecided; beyond either
it is told to come again (429), which client-go does by itself. Other identities are not concerned.

The pace fits 3,000 clusters that join at once through one shared token, and an agent that renews.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from hub.auth.user import MASTERS
from hub.clock import Clock
from hub.fleet.approval import is_listed
from hub.meta import Obj
from hub.meta.errors import too_many_requests
from hub.registry.engine import Engine
from hub.registry.requests import CSR, has_condition
from hub.registry.strategy import Occasion
from hub.registry.watch import Event
from hub.store import Op


@dataclass(frozen=True, slots=True)
class Pace:
    """`a_second` requests in the long run, `burst` of them at once."""

    a_second: float
    burst: float


BOOTSTRAP = Pace(100.0, 1000.0)
"""For ServiceAccounts, bootstrap tokens and listed users, which many clusters may share."""

AGENT = Pace(0.2, 20.0)
"""For everybody else: an agent asks once in weeks, and a few times when something is wrong."""

MOST_WAITING = 10_000
"""Undecided requests of one identity; 3,000 clusters that wait for a person have 3,000."""

_TIDY_AT = 10_000
_ROUNDING = 1e-6
_SHARED = ("system:serviceaccount:", "system:bootstrap:")


class RequestPace:
    """The admission of CertificateSigningRequests."""

    def __init__(
        self, engine: Engine, clock: Clock, *, bootstrap_users: Collection[str] = ()
    ) -> None:
        self._clock, self._bootstrap_users = clock, bootstrap_users
        self._full_at_s: dict[str, float] = {}
        """When each requester's bucket is full again."""
        self._waiting: Counter[str] = Counter()
        for request in engine.each(CSR):
            self._count(request, 1)
        engine.watches.listen(CSR, self._changed)

    def __call__(self, new: Obj, old: Obj | None, occasion: Occasion) -> None:  # noqa: ARG002  the seam
        """Refuse a new request of somebody who makes too many.

        :raises ApiError: 429
        """
        user = occasion.user
        if old is not None or MASTERS in user.groups:
            return
        if self._waiting[user.name] >= MOST_WAITING:
            raise too_many_requests()
        pace = BOOTSTRAP if self._is_shared(user.name) else AGENT
        now_s = self._clock.monotonic_s()
        full_at_s = max(self._full_at_s.get(user.name, now_s), now_s) + 1 / pace.a_second
        if (full_at_s - now_s) * pace.a_second > pace.burst + _ROUNDING:
            raise too_many_requests()
        self._full_at_s[user.name] = full_at_s
        self._tidy(now_s)

    def _is_shared(self, user: str) -> bool:
        return user.startswith(_SHARED) or is_listed(user, self._bootstrap_users)

    def _tidy(self, now_s: float) -> None:
        if len(self._full_at_s) > _TIDY_AT:
            self._full_at_s = {u: at for u, at in self._full_at_s.items() if at > now_s}

    def _changed(self, event: Event) -> None:
        before = event.previous
        if before is not None:
            self._count(before, -1)
        if event.change.op is not Op.DELETE:
            self._count(event.obj, 1)

    def _count(self, request: Obj, by: int) -> None:
        if has_condition(request, "Approved") or has_condition(request, "Denied"):
            return
        name = str((request.get("spec") or {}).get("username") or "")
        self._waiting[name] += by
        if self._waiting[name] <= 0:
            del self._waiting[name]


def install_pace(engine: Engine, clock: Clock, *, bootstrap_users: Collection[str]) -> None:
    """Put the limits into the engine; `bootstrap_users` as the operator has listed them."""
    engine.admit(CSR, RequestPace(engine, clock, bootstrap_users=bootstrap_users))
