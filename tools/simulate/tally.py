"""What happened on the wire, counted.

Owns the counters of one run, shared by all its sessions; `report` turns them into figures. A
protocol error is what must not happen at all; only the first ones are kept as samples.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tools.simulate.honesty import OMITTED, Fault

MAX_SAMPLES = 20

RequestKey: TypeAlias = tuple[str, str, str]
"""(verb, resource[/subresource], status); status is a word when there was no answer."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Where some counters stood: requests, number of latencies, number of deliveries."""

    requests: Counter[RequestKey]
    latencies: dict[tuple[str, str], int]
    deliveries: int


@dataclass(slots=True)
class Tally:
    """The counters of a run."""

    requests: Counter[RequestKey] = field(default_factory=Counter)
    latencies_s: defaultdict[tuple[str, str], "array[float]"] = field(
        default_factory=lambda: defaultdict(lambda: array("d"))
    )
    """By verb and resource[/subresource]."""
    deliveries_s: "array[float]" = field(default_factory=lambda: array("d"))
    """From the request that creates a work until its agent's watch has shown it."""
    outages_s: "array[float]" = field(default_factory=lambda: array("d"))
    """From an agent's first lost watch until all its watches are open again."""
    before_steady: Mark | None = None
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
    addon_csrs_created: int = 0
    evictions_begun: int = 0
    """Works that an agent has applied and that were missing in what the hub showed."""
    evictions_ended: int = 0
    """Of these, those that came back in time."""
    evicted: int = 0
    probes_created: int = 0
    probes_done: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    """Protocol errors by kind."""
    protocol_error_count: int = 0
    protocol_error_samples: list[str] = field(default_factory=list)
    final_refusal: str = ""
    """The first answer that no later try will change."""

    def answered(self, verb: str, resource: str, status: int, seconds: float) -> None:
        """Count an answered request; for a watch `seconds` ends at the head of the answer."""
        self.requests[verb, resource, str(status)] += 1
        self.latencies_s[verb, resource].append(seconds)

    def unanswered(self, verb: str, resource: str) -> None:
        """Count a request that got no answer."""
        self.requests[verb, resource, "none"] += 1

    def mark_steady(self) -> None:
        """Note where the counters stand when all is in order for the first time."""
        lengths = {key: len(values) for key, values in self.latencies_s.items()}
        self.before_steady = Mark(Counter(self.requests), lengths, len(self.deliveries_s))

    @property
    def omitted(self) -> int:
        """How many objects that an agent holds were left out of a list."""
        return self.errors[OMITTED]

    def lied(self, where: str, faults: Sequence[Fault]) -> None:
        """Count what the checks of a watch have found."""
        for fault in faults:
            self.protocol_error(f"{where}: {fault.text}", kind=fault.kind)

    def protocol_error(self, text: str, *, kind: str = "protocol") -> None:
        """Count something a hub must not do."""
        self.errors[kind] += 1
        self.protocol_error_count += 1
        if len(self.protocol_error_samples) < MAX_SAMPLES:
            self.protocol_error_samples.append(text)
