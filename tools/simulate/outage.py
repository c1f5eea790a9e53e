"""How long an agent was cut off: from its first lost watch until all its watches are open again."""

from array import array
from dataclasses import dataclass, field


@dataclass(slots=True)
class Outage:
    """One agent's outage, while there is one; `lengths_s` collects those that ended."""

    lengths_s: "array[float]"
    _down: set[object] = field(default_factory=set)
    _since_s: float = 0.0

    def lost(self, watch: object, now_s: float) -> None:
        """Note that `watch`, once open, is lost."""
        if not self._down:
            self._since_s = now_s
        self._down.add(watch)

    def opened(self, watch: object, now_s: float) -> None:
        """Note that `watch` is open."""
        if watch in self._down:
            self._down.remove(watch)
            if not self._down:
                self.lengths_s.append(now_s - self._since_s)
