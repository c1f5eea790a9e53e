"""The figures of a run: from counters and times to a JSON document and a few lines. Pure."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from hub.meta import Obj
from tools.simulate.tally import Tally


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to; times are in seconds since its start."""

    clusters: int
    works_each: int
    works_done: int
    """Of those asked for."""
    ready_after_s: Sequence[float]
    steady_s: float
    wanted_s: float
    is_interrupted: bool
    seconds: float
    cpu_s: float
    works_more: int = 0
    """Beyond those asked for: there from earlier runs, or made by others."""
    lapses: dict[str, str] = field(default_factory=dict)
    unavailable_at_end: Sequence[str] = ()
    connected_at_end: int = 0
    problem: str = ""

    def failures(self, tally: Tally) -> list[str]:
        """Return why the run did not pass, empty when it did."""
        missing = self.clusters - len(self.ready_after_s)
        return [
            text
            for is_wrong, text in (
                (bool(self.problem), self.problem),
                (missing > 0, f"{missing} of {self.clusters} clusters did not become available"),
                (bool(self.lapses), f"{len(self.lapses)} clusters were seen not available"),
                (
                    bool(self.unavailable_at_end),
                    f"{len(self.unavailable_at_end)} clusters are not available at the end",
                ),
                (
                    tally.protocol_error_count > 0,
                    f"{tally.protocol_error_count} protocol errors",
                ),
                (
                    self.is_interrupted,
                    f"interrupted after {self.steady_s:.1f} of {self.wanted_s:.1f} steady seconds",
                ),
            )
            if is_wrong
        ]


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of the sorted `values` do not exceed; 0 when there is none.

    >>> quantile([1.0, 2.0, 3.0, 4.0], 0.5)
    2.0
    """
    if not values:
        return 0.0
    rank = -(-len(values) * round(share * 1000) // 1000)  # ceiling, exact for shares in thousandths
    return values[max(rank, 1) - 1]


def render_report(outcome: Outcome, tally: Tally) -> Obj:
    """Return the report as a JSON object."""
    failures = outcome.failures(tally)
    ready = sorted(outcome.ready_after_s)
    return {
        "passed": not failures,
        "failures": failures,
        "interrupted": outcome.is_interrupted,
        "clusters": outcome.clusters,
        "clusters_available": len(ready),
        "works": outcome.clusters * outcome.works_each,
        "works_done": outcome.works_done,
        "works_more": outcome.works_more,
        "csrs_created": tally.csrs_created,
        "certificates_issued": tally.certificates_issued,
        "certificates_reused": tally.certificates_reused,
        "seconds": round(outcome.seconds, 3),
        "steady_seconds": round(outcome.steady_s, 3),
        "cpu_seconds": round(outcome.cpu_s, 3),
        "available_after_seconds": _available_after(ready, outcome.clusters),
        "requests": _requests(tally.requests),
        "latency_ms": _latencies(tally),
        "watch_events": dict(sorted(tally.watch_events.items())),
        "connections": tally.connections,
        "reconnects": tally.reconnects,
        "watches_opened": tally.watches_opened,
        "watch_restarts": tally.watch_restarts,
        "watches_expired_410": tally.watches_expired,
        "conflicts": tally.conflicts,
        "events_created": tally.events_created,
        "hub_away": dict(sorted(tally.unavailable.items())),
        "early_refusals": dict(sorted(tally.early_refusals.items())),
        "protocol_errors": tally.protocol_error_count,
        "protocol_error_samples": tally.protocol_error_samples,
        "lapses": dict(sorted(outcome.lapses.items())),
        "connected_at_end": outcome.connected_at_end,
        "unavailable_at_end": list(outcome.unavailable_at_end),
    }


def render_summary(report: Obj) -> str:
    """Return the report in a few lines for a person."""
    after = report["available_after_seconds"]
    times = ", ".join(
        f"{share} never" if after[share] is None else f"{share} after {after[share]} s"
        for share in ("50%", "95%", "100%")
    )
    more = f", and {report['works_more']} more that were there" if report["works_more"] else ""
    total = sum(_count(report["requests"]).values())
    verdict = "passed" if report["passed"] else "FAILED: " + "; ".join(report["failures"])
    lines = [
        "clusters {clusters_available}/{clusters} available",
        f"works    {{works_done}}/{{works}} applied and available{more}",
        (
            "certs    {csrs_created} CSRs created, {certificates_issued} issued,"
            " {certificates_reused} reused"
        ),
        (
            "wire     {connections} connections, {reconnects} reconnects, {watch_restarts} watches"
            " reopened, {watches_expired_410} expired, {conflicts} conflicts"
        ),
    ]
    latencies = [
        f"latency  {verb:7} p50 {ms['p50']} p95 {ms['p95']} p99 {ms['p99']} ms ({ms['count']})"
        for verb, ms in report["latency_ms"].items()
    ]
    return "\n".join(
        [
            *(line.format_map(report) for line in lines),
            f"times    {times}; {total} requests",
            *latencies,
            *(f"error    {sample}" for sample in report["protocol_error_samples"]),
            "{verdict} ({seconds} s, {cpu_seconds} s of CPU, {steady_seconds} s steady)".format(
                verdict=verdict, **report
            ),
        ]
    )


def _available_after(ready: Sequence[float], clusters: int) -> Obj:
    """Return the times at which shares of all `clusters` had become available; null when never."""
    padded = [*ready, *[-1.0] * (clusters - len(ready))]
    times = {f"{share}%": quantile(padded, share / 100) for share in (50, 95, 100)}
    return {share: None if time_s < 0 else round(time_s, 3) for share, time_s in times.items()}


def _requests(counted: Counter[tuple[str, str, str]]) -> Obj:
    """Return counts as resource -> verb -> status -> count."""
    tree: defaultdict[str, defaultdict[str, dict[str, int]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for (verb, resource, status), count in sorted(counted.items()):
        tree[resource][verb][status] = count
    return {resource: dict(verbs) for resource, verbs in sorted(tree.items())}


def _count(requests: Obj) -> Counter[str]:
    """Return the number of requests by verb."""
    total: Counter[str] = Counter()
    for verbs in requests.values():
        for verb, statuses in verbs.items():
            total[verb] += sum(statuses.values())
    return total


def _latencies(tally: Tally) -> Obj:
    result: Obj = {}
    for verb, values in sorted(tally.latencies_s.items()):
        ordered = sorted(values)
        result[verb] = {
            "count": len(ordered),
            **{
                f"p{share}": round(quantile(ordered, share / 100) * 1000, 2)
                for share in (50, 95, 99)
            },
            "max": round(ordered[-1] * 1000, 2),
        }
    return result
