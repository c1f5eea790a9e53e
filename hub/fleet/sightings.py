"""What the agents of each cluster were last seen doing, for whoever asks why one is silent.

In memory only, and bounded: a few facts a cluster, gone with the process. Nothing is decided by it.
A request is a cluster's when its client certificate names an agent of that cluster.
"""

import datetime as dt
from collections import deque
from dataclasses import dataclass, field

from hub.clock import Clock
from hub.meta import Obj
from hub.meta.timestamp import format_time

_PREFIX = "system:open-cluster-management:"
_REFUSALS = 5
_PROGRAMS = 8
"""A cluster has three or four; the names are the client's own words."""
_MOST_TEXT = 256
"""Characters kept of a User-Agent and of a request: both are the client's own words too."""
_MOST_CLUSTERS = 20_000
_REFUSED = frozenset({401, 403, 413, 415, 422, 429})
"""What an agent does not expect; conflicts and absences are its daily bread."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request of an agent: ``GET leases``, its answer's code, and who says it was."""

    what: str
    code: int
    at: dt.datetime
    agent: str
    user_agent: str
    certificate_ends: dt.datetime | None

    def as_obj(self) -> Obj:
        """Return the wire form."""
        ends = self.certificate_ends
        return {
            "request": self.what,
            "code": self.code,
            "time": format_time(self.at),
            "agent": self.agent,
            "userAgent": self.user_agent,
            **({"certificateEnds": format_time(ends)} if ends else {}),
        }


@dataclass(slots=True)
class _Cluster:
    last: dict[str, Request] = field(default_factory=dict)
    """By program, the first word of the User-Agent; the one seen longest ago first."""
    refused: deque[Request] = field(default_factory=lambda: deque(maxlen=_REFUSALS))


def is_agent(common_name: str) -> bool:
    """Whether a name is that of a cluster's own agent: prefix, cluster, agent."""
    return common_name.startswith(_PREFIX) and common_name.count(":") == 3


def cluster_of(agent: str) -> tuple[str, str]:
    """Return the cluster and the agent that the common name of an agent names."""
    cluster, _, own = agent.removeprefix(_PREFIX).partition(":")
    return cluster, own


class Sightings:
    """Notes requests. For the event loop's thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._clusters: dict[str, _Cluster] = {}
        self._since = clock.now()

    def note(
        self,
        user: str,
        *,
        what: str,
        code: int,
        user_agent: str,
        certificate_ends_unix_s: float | None,
    ) -> None:
        """Note a request if it is an agent's."""
        if not is_agent(user):
            return
        cluster, agent = cluster_of(user)
        found = self._clusters.get(cluster)
        if found is None:
            if len(self._clusters) >= _MOST_CLUSTERS:
                self._clusters.clear()
            found = self._clusters[cluster] = _Cluster()
        ends = certificate_ends_unix_s
        request = Request(
            what=what[:_MOST_TEXT],
            code=code,
            at=self._clock.now(),
            agent=agent,
            user_agent=user_agent[:_MOST_TEXT],
            certificate_ends=None if ends is None else dt.datetime.fromtimestamp(ends, dt.UTC),
        )
        program = request.user_agent.partition("/")[0]
        found.last.pop(program, None)
        found.last[program] = request
        if len(found.last) > _PROGRAMS:
            del found.last[next(iter(found.last))]
        if code in _REFUSED:
            found.refused.append(request)

    def of(self, cluster: str) -> Obj:
        """Return what was seen of a cluster since the hub started.

        ``last`` by program, ``refused`` the latest refusals, oldest first.
        """
        found = self._clusters.get(cluster) or _Cluster()
        return {
            "since": format_time(self._since),
            "now": format_time(self._clock.now()),
            "last": {program: request.as_obj() for program, request in found.last.items()},
            "refused": [request.as_obj() for request in found.refused],
        }
