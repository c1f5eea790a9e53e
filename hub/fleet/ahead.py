"""Agents that have seen more than a restored state knows, and how they are kept from evicting.

A work agent that lists the works of its cluster and misses one that it has applied starts to evict
it: after an hour what it had applied is deleted (OCM's unmanaged_appliedmanifestwork_controller).
A hub that was restored to an older state would serve such lists. It can tell: an agent that goes on
from a revision above the restored one has seen history that is lost. Until the grace period is over
such an agent is answered 503 and keeps all it has; client-go asks again with the same revision.
Once one such agent was seen, history is known to be lost, and agents that begin without a revision
wait too.

Revisions alone would accuse agents of a state that lost nothing: renewals of Leases take revisions
and are never shipped. So bookmarks carry no revision that is not shipped (`hub.http.watching`).
"""

from dataclasses import dataclass

import structlog

from hub.fleet.kinds import MANAGED_CLUSTER_ADDON, MANIFEST_WORK
from hub.fleet.sightings import is_agent
from hub.registry.hold import Hold
from hub.store import Revision

_log = structlog.get_logger("hub.fleet")
RETRY_AFTER_S = 10
"""Thousands of agents may wait."""
_RESOURCES = {(kind.storage.group, kind.plural) for kind in (MANIFEST_WORK, MANAGED_CLUSTER_ADDON)}
_WHY = (
    "the hub was restored to an older state and this agent has seen a later one: it is answered "
    "when the restore grace period is over, so that it does not remove what the hub no longer knows"
)
_HINT = (
    "agents have seen a later state than the one restored: make again what is missing, or restore "
    "a later state, before the grace period is over; see hublet why NAME"
)


@dataclass(frozen=True, slots=True)
class Lost:
    """The revisions that a restore has lost: above `after`, up to and including `upto`."""

    after: Revision
    upto: Revision

    def has(self, revision: int) -> bool:
        """Whether whoever has seen `revision` has seen history that is lost."""
        return self.after < revision <= self.upto


@dataclass(frozen=True, slots=True)
class Look:
    """A read by an agent: a LIST or WATCH of `resource` in a namespace, after `revision`."""

    user: str
    group: str
    resource: str
    namespace: str
    revision: str


class Ahead:
    """Holds the lists of agents that are ahead; `lost` is None for a start that lost nothing."""

    def __init__(self, hold: Hold, lost: Lost | None) -> None:
        self._hold, self._lost = hold, lost
        self._clusters: set[str] = set()

    @property
    def clusters(self) -> frozenset[str]:
        """Which clusters' agents were seen ahead of the restored state."""
        return frozenset(self._clusters)

    @property
    def is_holding(self) -> bool:
        """Whether agents that are ahead are kept waiting."""
        return self._lost is not None and self._hold.grace_left_s > 0

    def refusal(self, look: Look) -> str:
        """Return why a read is not answered now, "" when it is."""
        lost = self._lost
        if lost is None or (look.group, look.resource) not in _RESOURCES:
            return ""
        if not look.namespace or not is_agent(look.user):
            return ""
        revision = int(look.revision) if look.revision.isdecimal() else 0
        if lost.has(revision):
            self._note(look.namespace)
        elif revision or not self._clusters:
            return ""
        return _WHY if self.is_holding else ""

    def _note(self, cluster: str) -> None:
        """Note a cluster, and say of the first one what it means."""
        if not self._clusters:
            for_s = round(self._hold.grace_left_s)
            _log.warning("history_lost", seen_by=cluster, held_for_s=for_s, hint=_HINT)
        self._clusters.add(cluster)
