"""The figures of a run: from counters and times to a JSON document and a few lines. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hub.meta import Obj
from tools.simulate.figures import (
    deliveries,
    latencies,
    lease_puts,
    quantile,
    refusals,
    request_counts,
    request_rates,
    spread,
)
from tools.simulate.tally import Tally

_RATES = 6
"""How many kinds of requests the summary names."""


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
    joined: int = 0
    addons_each: int = 0
    addons_done: int = 0
    """By their own status, and by the hub's label on the cluster."""
    available_within_s: Sequence[float] = ()
    """From a cluster's own first request until the hub showed it as available."""
    memory_mib: float = 0.0
    lease_s: int = 60
    unlabelled_at_end: Sequence[str] = ()
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
                    bool(self.unlabelled_at_end),
                    f"{len(self.unlabelled_at_end)} clusters lack an add-on's label at the end",
                ),
                (
                    tally.omitted > 0,
                    f"{tally.omitted} works were left out of a list: agents would evict them",
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


def render_report(outcome: Outcome, tally: Tally) -> Obj:
    """Return the report as a JSON object."""
    failures = outcome.failures(tally)
    ready = sorted(outcome.ready_after_s)
    return {
        "passed": not failures,
        "failures": failures,
        "interrupted": outcome.is_interrupted,
        "clusters": outcome.clusters,
        "clusters_joined": outcome.joined,
        "clusters_available": len(ready),
        "works": outcome.clusters * outcome.works_each,
        "works_done": outcome.works_done,
        "works_more": outcome.works_more,
        "addons": outcome.clusters * outcome.addons_each,
        "addons_done": outcome.addons_done,
        "lease_seconds": outcome.lease_s,
        "csrs_created": tally.csrs_created,
        "addon_csrs_created": tally.addon_csrs_created,
        "certificates_issued": tally.certificates_issued,
        "certificates_reused": tally.certificates_reused,
        "seconds": round(outcome.seconds, 3),
        "steady_seconds": round(outcome.steady_s, 3),
        "cpu_seconds": round(outcome.cpu_s, 3),
        "memory_mib": round(outcome.memory_mib),
        "available_after_seconds": _available_after(ready, outcome.clusters),
        "available_within_seconds": spread(outcome.available_within_s),
        "requests": request_counts(tally.requests),
        "requests_per_second": request_rates(
            tally, joining_s=max(ready, default=outcome.seconds), steady_s=outcome.steady_s
        ),
        "refused": refusals(tally.requests),
        "latency_ms": latencies(tally),
        "lease_put_ms": lease_puts(tally),
        "work_delivery_ms": deliveries(tally),
        "reconnect_seconds": spread(tally.outages_s),
        "evictions": {
            "begun": tally.evictions_begun,
            "ended": tally.evictions_ended,
            "evicted": tally.evicted,
        },
        "probes": {"created": tally.probes_created, "done": tally.probes_done},
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
        "errors": dict(sorted(tally.errors.items())),
        "protocol_error_samples": tally.protocol_error_samples,
        "lapses": dict(sorted(outcome.lapses.items())),
        "connected_at_end": outcome.connected_at_end,
        "unavailable_at_end": list(outcome.unavailable_at_end),
        "unlabelled_at_end": list(outcome.unlabelled_at_end),
    }


def render_summary(report: Obj) -> str:
    """Return the report in a few lines for a person."""
    verdict = "passed" if report["passed"] else "FAILED: " + "; ".join(report["failures"])
    return "\n".join(
        [
            *_counts(report),
            *_times(report),
            *(f"refused  {kind}: {count}" for kind, count in report["refused"].items()),
            *(f"errors   {kind}: {count}" for kind, count in report["errors"].items()),
            *(f"error    {sample}" for sample in report["protocol_error_samples"]),
            "{verdict} ({seconds} s, {cpu_seconds} s of CPU, {memory_mib} MiB, {steady_seconds} s"
            " steady)".format(verdict=verdict, **report),
        ]
    )


def _counts(report: Obj) -> list[str]:
    more = f", and {report['works_more']} more that were there" if report["works_more"] else ""
    lines = [
        "clusters {clusters_joined} joined, {clusters_available}/{clusters} available",
        f"works    {{works_done}}/{{works}} applied and available{more}",
        "add-ons  {addons_done}/{addons} available",
        (
            "certs    {csrs_created} CSRs created, {certificates_issued} issued,"
            " {certificates_reused} reused"
        ),
        (
            "wire     {connections} connections, {reconnects} reconnects, {watch_restarts} watches"
            " reopened, {watches_expired_410} expired, {conflicts} conflicts"
        ),
    ]
    return [line.format_map(report) for line in lines if "{addons}" not in line or report["addons"]]


def _times(report: Obj) -> list[str]:
    after = report["available_after_seconds"]
    times = ", ".join(
        f"{share} never" if time_s is None else f"{share} after {time_s} s"
        for share, time_s in after.items()
    )
    total = sum(
        count
        for verbs in report["requests"].values()
        for statuses in verbs.values()
        for count in statuses.values()
    )
    lines = [f"times    {times}; {total} requests"]
    lines += _line("join", "first request to Available", report["available_within_seconds"], "s")
    for verb, found in report["latency_ms"].items():
        lines += _line("latency", f"{verb:7}", found, "ms")
    for phase in ("joining", "steady"):
        lines += _line("lease", f"PUT, {phase}", report["lease_put_ms"][phase], "ms")
        lines += _line("deliver", f"new work, {phase}", report["work_delivery_ms"][phase], "ms")
        lines += _rate(phase, report["requests_per_second"][phase])
    return [
        *lines,
        *_line("outage", "until all watches are back", report["reconnect_seconds"], "s"),
    ]


def _line(title: str, what: str, found: Obj, unit: str) -> list[str]:
    if not found["count"]:
        return []
    figures = "p50 {p50} p95 {p95} p99 {p99} max {max}".format(**found)
    return [f"{title:8} {what} {figures} {unit} ({found['count']})"]


def _rate(phase: str, rates: Obj) -> list[str]:
    kinds = [
        (rate, f"{verb} {resource}") for resource, by in rates.items() for verb, rate in by.items()
    ]
    if not kinds:
        return []
    most = ", ".join(f"{rate} {kind}" for rate, kind in sorted(kinds, reverse=True)[:_RATES])
    return [f"rate     {phase}: {sum(rate for rate, _ in kinds):.1f}/s: {most}"]


def _available_after(ready: Sequence[float], clusters: int) -> Obj:
    """Return the times at which shares of all `clusters` had become available; null when never."""
    padded = [*ready, *[-1.0] * (clusters - len(ready))]
    times = {f"{share}%": quantile(padded, share / 100) for share in (50, 95, 99, 100)}
    return {share: None if time_s < 0 else round(time_s, 3) for share, time_s in times.items()}
