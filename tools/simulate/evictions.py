"""What a work agent has applied, and what it begins to remove because the hub shows it no more.

As OCM's agent (pkg/work/spoke/controllers/finalizercontroller): it keeps an AppliedManifestWork for
every work that it applies. One whose work is missing in what the watch has shown gets an eviction
start time; after `GRACE_S` it is deleted, and what was applied with it. A work that comes back
before that ends the eviction. A work that is deleted in order takes its record with it.
"""

from collections.abc import Callable, Container, Iterable

from tools.simulate.tally import Tally

GRACE_S = 3600.0


class Evictions:
    """The AppliedManifestWorks of one cluster; `applied` are those of an earlier run."""

    def __init__(
        self, tally: Tally, now_s: Callable[[], float], *, applied: Iterable[str] = ()
    ) -> None:
        self._tally, self._now_s = tally, now_s
        self._applied = set(applied)
        self._since_s: dict[str, float] = {}

    @property
    def begun(self) -> frozenset[str]:
        """Which works are being evicted."""
        return frozenset(self._since_s)

    def applied(self, name: str) -> None:
        """Note a work whose finalizer is there: from now on it is applied."""
        self._applied.add(name)

    def removed(self, name: str) -> None:
        """Note that what a work had applied is gone, as the hub asked for."""
        self._applied.discard(name)
        self._since_s.pop(name, None)

    def look(self, shown: Container[str]) -> None:
        """Compare with what the hub shows, once its list is complete."""
        for name in self._applied:
            if name in shown:
                if self._since_s.pop(name, None) is not None:
                    self._tally.evictions_ended += 1
            elif name not in self._since_s:
                self._since_s[name] = self._now_s()
                self._tally.evictions_begun += 1
        self._evict()

    def _evict(self) -> None:
        """Remove what has been missing for too long."""
        last_s = self._now_s() - GRACE_S
        for name in [name for name, since_s in self._since_s.items() if since_s <= last_s]:
            self.removed(name)
            self._tally.evicted += 1
