"""``Hublet-Durable``: a write that is answered when it is in the bucket.

Owns who waits (the header, or a kind that is configured so), for how long, and what is said when it
took too long: the write has been made all the same. The handler runs as always and its answer is
held back; a request that asks for nothing meets a header look-up and no further await.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from hub.clock import Clock
from hub.http.api import Headers, Request
from hub.http.deadline import bound_s
from hub.http.info import RequestInfo
from hub.http.negotiate import JSON
from hub.http.reply import Reply
from hub.meta.errors import bad_request, precondition_failed, timed_out
from hub.registry.call import Receipt
from hub.registry.kind import Kind
from hub.store import Revision

HEADER = "Hublet-Durable"
_NAME = HEADER.lower()
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
WAIT_S = 30.0

Wait: TypeAlias = Callable[[Revision], Awaitable[str]]
"""Returns "" once the bucket holds a revision, or why it does not come to that."""


@dataclass(frozen=True, slots=True)
class Durability:
    """What this hub can promise: `wait` is None where nothing is shipped."""

    clock: Clock
    wait: Wait | None = None
    kinds: frozenset[str] = frozenset()
    """Resources (`Kind.id`) whose writes wait without being asked."""
    wait_s: float = WAIT_S

    def hold(self, info: RequestInfo, kind: Kind, request: Request, reply: Reply) -> "Held | None":
        """Return where the answer of a write goes that is to be durable, None for any other.

        Before anything is written.

        :raises ApiError: 400 for a header that says neither true nor false, 412 without a bucket
        """
        asked = request.headers.get(_NAME)
        if asked not in (None, "true", "false"):
            raise bad_request(f"the header {HEADER} must be true or false, not {asked[:64]!r}")
        if asked != "true" and kind.id not in self.kinds:
            return None
        if self.wait is None:
            raise precondition_failed(
                f"{HEADER}: this hub has no object store and ships nowhere; nothing was written"
            )
        timeout = info.query.get("timeout")
        limit_s = min(self.wait_s, bound_s(timeout)) if timeout else self.wait_s
        return Held(reply, self.wait, self.clock, ends_s=self.clock.monotonic_s() + limit_s)


class Held(Reply):
    """An answer that is ready and not given yet; what else is told goes straight to the reply."""

    __slots__ = ("_clock", "_ends_s", "_give", "_pieces", "_reply", "_wait", "receipt")

    def __init__(self, reply: Reply, wait: Wait, clock: Clock, *, ends_s: float) -> None:
        super().__init__(reply.responder, reply.audit_id)
        self.receipt = Receipt()
        """For the engine, which notes in it what is to be waited for."""
        self._reply, self._wait, self._clock, self._ends_s = reply, wait, clock, ends_s
        self._give: Callable[[], None] | None = None
        self._pieces: Iterator[bytes] | None = None

    def warn(self, text: str) -> None:
        """Tell the client something beside the answer."""
        self._reply.warn(text)

    def send(
        self, status: int, body: bytes, content_type: str = JSON, *, extra: Headers = ()
    ) -> None:
        """Keep an answer."""
        self._give = partial(self._reply.send, status, body, content_type, extra=extra)

    async def pour(self, pieces: Iterator[bytes]) -> None:
        """Keep an answer in pieces, made when it is given."""
        self._pieces = pieces

    async def give(self) -> None:
        """Give the answer once what was written, or found as it was to be, is in the bucket.

        :raises ApiError: 504 when it is not there in time, or the hub stops; 503 when it never will
        """
        if self.receipt.revision:
            await self._settle(self.receipt.revision)
            self._reply.add_header(_NAME, "true")
        if self._pieces is not None:
            await self._reply.pour(self._pieces)
        elif self._give is not None:
            self._give()

    async def _settle(self, revision: Revision) -> None:
        trouble = "the bucket has not taken it in time"
        try:
            async with asyncio.timeout(max(0.0, self._ends_s - self._clock.monotonic_s())):
                trouble = await self._wait(revision)
        except TimeoutError:
            pass
        if trouble:
            raise timed_out(
                f"the write has been made on this hub at resourceVersion {revision} and is not in "
                f"the bucket yet ({trouble}); it will be shipped. Read before you repeat it"
            )
