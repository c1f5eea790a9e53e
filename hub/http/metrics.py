"""Metrics of requests and connections, prefix ``hublet_`` (docs/operations.md).

Owns the label sets, which are closed: what is not in one of them is counted as "other", so that no
client and no definition can make more series. A request costs two look-ups and two additions; what
the server counts anyway is read when somebody asks.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hub.http.info import RequestInfo
from hub.http.tally import Cut, Handshake
from hub.http.transport import ConnectionStats

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
OTHER, NONE, CORE = "other", "none", "core"
CREDENTIALS = ("certificate", "token")
_CONNECTION_CUTS = (Cut.SLOW_READER, Cut.LATE_REQUEST)
_R = TypeVar("_R", bound=str)
_SECONDS = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0)


class RequestMetrics:
    """Counts requests by verb, group and code, and how long they took."""

    def __init__(
        self, registry: CollectorRegistry, groups: Iterable[str], *, under_way: Callable[[], int]
    ) -> None:
        """Take the API groups that have a label of their own."""
        self._groups = frozenset(groups)
        self._requests = Counter(
            "hublet_requests",
            "Requests answered.",
            ["verb", "group", "code"],
            registry=registry,
        )
        self._children: dict[tuple[str, str, int], Counter] = {}
        seconds = Histogram(
            "hublet_request_seconds",
            "From a request's last byte to its answer, watches left out.",
            ["verb"],
            buckets=_SECONDS,
            registry=registry,
        )
        timed = [verb for verb in (*VERBS, OTHER) if verb != "watch"]
        self._seconds = {verb: seconds.labels(verb) for verb in timed}
        failures = Counter(
            "hublet_authentication_failures",
            "Requests whose credential was no good.",
            ["credential"],
            registry=registry,
        )
        self._failures = {kind: failures.labels(kind) for kind in CREDENTIALS}
        count = Gauge(
            "hublet_request_count", "Requests for resources under way.", registry=registry
        )
        count.set_function(under_way)

    def answered(self, info: RequestInfo | None, code: int, seconds: float) -> None:
        """Count a request; `info` is None when it was refused before its path was looked at."""
        verb = info.verb if info is not None and info.verb in VERBS else OTHER
        key = (verb, self._group_of(info), code)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = self._requests.labels(verb, key[1], str(code))
        child.inc()
        timer = self._seconds.get(verb)
        if timer is not None:
            timer.observe(seconds)

    def not_authenticated(self, credential: str) -> None:
        """Count a 401: the token's when there was one, else the certificate's."""
        self._failures[credential].inc()

    def _group_of(self, info: RequestInfo | None) -> str:
        if info is None or not info.is_resource:
            return NONE
        if info.group not in self._groups:
            return OTHER
        return info.group or CORE


class ConnectionMetrics(Collector):
    """Exports what a server knows of its connections."""

    def __init__(self, stats: Callable[[], ConnectionStats]) -> None:
        self._stats = stats

    def collect(self) -> Iterator[Metric]:
        """Read the server's numbers."""
        now = self._stats()
        for name, text, value in (
            ("hublet_connection_count", "Open connections.", now.open),
            ("hublet_handshake_count", "Connections in their TLS handshake.", now.handshaking),
            ("hublet_stream_count", "Requests and watches that have not ended.", now.streams),
            ("hublet_pending_body_bytes", "Bodies of unfinished requests.", now.pending_body_bytes),
        ):
            yield GaugeMetricFamily(name, text, value=value)
        text = "Connections accepted."
        yield CounterMetricFamily("hublet_connections", text, value=now.accepted_total)
        text = "TLS handshakes that came to nothing."
        yield _by_reason("hublet_handshake_failures", text, Handshake, now.failed_handshakes)
        text = "Answers cut short by the hub."
        yield _by_reason("hublet_cut_streams", text, Cut, now.cut_streams)
        text = "Connections cut by the hub for what the client did."
        yield _by_reason("hublet_cut_connections", text, _CONNECTION_CUTS, now.cut_connections)


def _by_reason(
    name: str, text: str, reasons: Iterable[_R], counts: Mapping[_R, int]
) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=["reason"])
    for reason in reasons:
        family.add_metric([reason], counts.get(reason, 0))
    return family
