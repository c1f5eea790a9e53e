"""From a request to its audit records: what is noted at its start, and the ends of its answer.

Only there when an audit log is on; costs a request nothing otherwise.
"""

import contextlib
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter

from hub.auth.audit import Entry, Record, Stage, shorten_agent, source_ips
from hub.auth.auditlog import AuditLog, Counts
from hub.clock import Clock
from hub.http.api import Headers, Request, Responder
from hub.http.info import parse_request
from hub.http.tally import Cut
from hub.meta.errors import ApiError


class Auditor:
    """Notes requests and writes their records to a log."""

    def __init__(self, log: AuditLog, clock: Clock) -> None:
        self._log, self._clock = log, clock

    def begin(self, request: Request, audit_id: str) -> Entry:
        """Return what is known of a request as it comes in."""
        return Entry(
            audit_id=audit_id,
            method=request.method,
            uri=request.target,
            received=self._clock.now(),
            source_ips=source_ips(request.headers, request.remote),
            user_agent=shorten_agent(request.headers.get("user-agent", "")),
        )

    def follow(self, entry: Entry, responder: Responder) -> "AuditedResponder":
        """Return a responder that records how the request ends."""
        return AuditedResponder(self, entry, responder)

    def record(self, entry: Entry, stage: Stage, code: int, body: bytes = b"") -> None:
        """Have one stage written. Bodies are kept only where the record needs a part of them."""
        if not entry.verb:  # refused before its path was looked at
            _read_path(entry)
        needed = code >= 400 or (code == 201 and entry.asked is not None and not entry.asked.name)
        self._log.put(Record(entry, stage, self._clock.now(), code, body if needed else b""))


class AuditedResponder:
    """A `Responder` that tells the auditor of the answer's start and end."""

    __slots__ = ("_auditor", "_entry", "_inner")

    def __init__(self, auditor: Auditor, entry: Entry, inner: Responder) -> None:
        self._auditor, self._entry, self._inner = auditor, entry, inner

    @property
    def is_closed(self) -> bool:
        """Whether the answer is finished or the client is gone."""
        return self._inner.is_closed

    @property
    def queued_bytes(self) -> int:
        """Bytes written for this stream that the socket has not taken yet."""
        return self._inner.queued_bytes

    def respond(self, status: int, headers: Headers, body: bytes) -> None:
        """Answer at once, and record it."""
        self._inner.respond(status, headers, body)
        self._auditor.record(self._entry, "ResponseComplete", status, body)

    def start(self, status: int, headers: Headers) -> None:
        """Begin a stream; its end is recorded, and the start of a watch."""
        self._inner.start(status, headers)
        if self._entry.verb == "watch":
            self._auditor.record(self._entry, "ResponseStarted", status)
        self._inner.on_close(lambda: self._auditor.record(self._entry, "ResponseComplete", status))

    def write(self, data: bytes) -> bool:
        """Queue `data`; see `Responder`."""
        return self._inner.write(data)

    async def drain(self) -> None:
        """Wait until the queue is short or the stream is closed."""
        await self._inner.drain()

    def end(self) -> None:
        """Finish the stream cleanly."""
        self._inner.end()

    def abort(self, cause: Cut = Cut.FAILED) -> None:
        """Cut the stream so that the client sees an error."""
        self._inner.abort(cause)

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the stream ends."""
        self._inner.on_close(callback)


def _read_path(entry: Entry) -> None:
    entry.verb = entry.method.lower()
    with contextlib.suppress(ApiError):  # a path that means nothing is recorded all the same
        info = parse_request(entry.method, entry.uri)
        entry.verb, entry.asked = info.verb, info.attributes()


@contextlib.contextmanager
def open_auditor(target: str, clock: Clock, metrics: CollectorRegistry) -> Iterator[Auditor | None]:
    """Give an auditor that writes to `target`, None when that is empty; write all out at the end.

    Raises OSError when the file cannot be opened.
    """
    written = Counter("hublet_audit_records", "Audit records written.", registry=metrics)
    lost = Counter("hublet_audit_lost_records", "Audit records not written.", registry=metrics)
    if not target:
        yield None
        return
    log = AuditLog(target, Counts(written.inc, lost.inc))
    try:
        yield Auditor(log, clock)
    finally:
        log.close()
