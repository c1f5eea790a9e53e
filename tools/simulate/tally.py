"""What happened on the wire, counted.

Owns the counters of one run, shared by all its sessions; `report` turns them into figures. A
protocol error is what must not happen at all; only the first ones are kept as samples.
"""

from array import array
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TypeAlias

MAX_SAMPLES = 20

RequestKey: TypeAlias = tuple[str, str, str]
"""(verb, resource[/subresource], status); status is a word when there was no answer."""


@dataclass(slots=True)
class Tally:
    """The counters of a run."""

    requests: Counter[RequestKey] = field(default_factory=Counter)
    latencies_s: defaultdict[str, "array[float]"] = field(
        default_factory=lambda: defaultdict(lambda: array("d"))
    )
    watch_events: Counter[str] = field(default_factory=Counter)
    early_refusals: Counter[str] = field(default_factory=Counter)
    unavailable: Counter[str] = field(default_factory=Counter)
    csrs_created: int = 0
    certificates_issued: int = 0
    certificates_reused: int = 0
    connections: int = 0
    reconnects: int = 0
    watches_opened: int = 0
    watch_restarts: int = 0
    watches_expired: int = 0
    conflicts: int = 0
    events_created: int = 0
    protocol_error_count: int = 0
    protocol_error_samples: list[str] = field(default_factory=list)
    final_refusal: str = ""
    """The first answer that no later try will change."""

    def answered(self, verb: str, resource: str, status: int, seconds: float) -> None:
        """Count an answered request; for a watch `seconds` ends at the head of the answer."""
        self.requests[verb, resource, str(status)] += 1
        self.latencies_s[verb].append(seconds)

    def unanswered(self, verb: str, resource: str) -> None:
        """Count a request that got no answer."""
        self.requests[verb, resource, "none"] += 1

    def protocol_error(self, text: str) -> None:
        """Count something a hub must not do."""
        self.protocol_error_count += 1
        if len(self.protocol_error_samples) < MAX_SAMPLES:
            self.protocol_error_samples.append(text)
