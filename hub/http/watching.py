"""WATCH: a stream of changes, from the present, from a revision, or after the whole state.

Owns the life of one watch: its start, bookmarks, time-out, and the end of a client that reads too
slowly. After the start it costs no task: the watch hub pushes encoded events straight to the
connection.

A watch never answers 410 as an HTTP error: kube-apiserver sends 200 and one ERROR event, and
reflectors rely on it.
"""

import asyncio
import random
from collections.abc import Callable, Iterable
from functools import partial

from hub.http.api import Responder
from hub.http.entries import FIRST, next_count
from hub.http.listing import select, wait_for
from hub.http.render import Renderer
from hub.http.reply import SLICE_BYTES, Reply
from hub.http.tally import Cut
from hub.meta.codec.json import encode
from hub.meta.errors import ApiError, expired, resource_version_too_large
from hub.registry.engine import Engine
from hub.registry.options import ListOptions
from hub.registry.watch import Alarm, Alarms, Event, Watcher, frame
from hub.store import Compacted, FutureRevision, Revision, decode_key, encode_key
from hub.store import prefix as key_prefix

_DEFAULT_TIMEOUT_S = 1800
_BOOKMARK_EVERY_S = 60.0
_MAX_QUEUED_BYTES = 4 * 1024 * 1024


class Watching:
    """Starts and ends watches on one engine.

    `bookmark` gives the revision that bookmarks carry, by default the present one. No change is
    shown after a bookmark that it covers, so it may be lower, and never above the present.
    """

    def __init__(
        self, engine: Engine, alarms: Alarms, *, bookmark: Callable[[], int] | None = None
    ) -> None:
        self._engine, self._alarms = engine, alarms
        self._bookmark = bookmark or (lambda: engine.store.revision)

    async def answer(
        self, renderer: Renderer, namespace: str, options: ListOptions, reply: Reply
    ) -> None:
        """Answer a WATCH; returns once its start is sent, the stream goes on without a task.

        :raises ApiError: 504 when the client's revision lies in the future
        """
        await wait_for(self._engine, options.revision)
        wants_state = options.wants_initial_events or (
            options.wants_initial_events is None and not options.revision
        )
        reply.stream()
        watch = _OpenWatch(
            self._engine, renderer, namespace, options, reply.responder, bookmark=self._bookmark
        )
        watcher = watch.watcher
        try:
            if wants_state:
                await self._send_state(watch, renderer, options, reply)
            else:
                await self._send_history(watch, options, reply)
        except ApiError as error:
            reply.responder.write(frame("ERROR", encode(error.status())))
            reply.responder.end()
            return
        watcher.cut = partial(reply.responder.abort, Cut.SLOW_READER)
        while watcher.held and not reply.responder.is_closed:
            await _pour(watcher.take_held(), reply)
        watcher.release()

    async def _send_state(
        self, watch: "_OpenWatch", renderer: Renderer, options: ListOptions, reply: Reply
    ) -> None:
        """Send what there is as ADDED events, then (WatchList) the bookmark that ends them."""
        engine, watcher = self._engine, watch.watcher
        entries = select(engine, watcher.kind, watcher.namespace, options)
        watcher.since = watcher.told = entries.revision
        watcher.cut = partial(reply.responder.abort, Cut.SLOW_READER)
        watch.begin(self._alarms, options)
        lines = (
            frame("ADDED", watcher.next_variant().encode(engine.store.read(entry)))
            for entry in entries
        )
        await _pour(lines, reply)
        if options.wants_initial_events:
            is_first = watcher.next_variant().later is not None
            end = renderer.bookmark(entries.revision, is_initial_end=True, is_first=is_first)
            reply.responder.write(frame("BOOKMARK", end))

    async def _send_history(self, watch: "_OpenWatch", options: ListOptions, reply: Reply) -> None:
        """Send every change after the client's revision, then go on live without a gap.

        :raises ApiError: 410 when the log no longer reaches back that far
        """
        engine, watcher = self._engine, watch.watcher
        kind = watcher.kind
        # without a revision (sendInitialEvents=false): from now on
        after = watcher.since = watcher.told = Revision(options.revision or engine.store.revision)
        if after < (oldest := engine.forgotten.oldest(kind)):
            raise expired(f"too old resource version: {after} ({oldest})")
        prefix = key_prefix(kind.id, watcher.namespace or None)
        if watcher.name and (watcher.namespace or not kind.is_namespaced):
            prefix = encode_key(kind.id, watcher.namespace, watcher.name)
        is_behind, count = True, FIRST
        while is_behind:
            # what lies above the visible revision is shown to live watchers later, in order
            visible = engine.store.revision
            try:
                changes = engine.store.changes(watcher.since, prefix, limit=count)
            except Compacted as error:
                raise expired(f"too old resource version: {after} ({error.oldest})") from error
            except FutureRevision as error:
                raise resource_version_too_large(after, error.current) from error
            is_behind = len(changes) == count and changes[-1].revision <= visible
            count = next_count(len(changes), sum(len(change.value) for change in changes))
            for change in changes:
                if change.revision <= visible:
                    _, namespace, name = decode_key(change.key)
                    watcher.offer(Event(change, kind, namespace, name))
            if is_behind:
                await _pour(watcher.take_held(), reply)
                await asyncio.sleep(0)
        watcher.since = max(watcher.since, visible)
        watch.begin(self._alarms, options)


class _OpenWatch:
    """What a watch's alarms, its connection and the watch hub call.

    One object and no closures: a hub has five for every agent.
    """

    __slots__ = (
        "_alarms",
        "_bookmark",
        "_engine",
        "_renderer",
        "_responder",
        "_wants_bookmarks",
        "watcher",
    )

    def __init__(
        self,
        engine: Engine,
        renderer: Renderer,
        namespace: str,
        options: ListOptions,
        responder: Responder,
        *,
        bookmark: Callable[[], int],
    ) -> None:
        self._engine, self._renderer, self._responder = engine, renderer, responder
        self._bookmark = bookmark
        self._wants_bookmarks = options.wants_bookmarks
        self._alarms: tuple[Alarm, ...] = ()
        self.watcher = Watcher(
            kind=renderer.served.kind,
            namespace=namespace,
            name=options.pinned_name,
            labels=options.labels,
            fields=options.fields,
            variant=renderer.variant(),
            sink=self._push,
            since=Revision(0),
            held=[],
            held_limit_bytes=_MAX_QUEUED_BYTES,
        )

    def begin(self, alarms: Alarms, options: ListOptions) -> None:
        """Begin to receive changes after `watcher.since`; arm the alarms."""
        now = self._engine.clock.monotonic_s()
        timeout = options.timeout_s or _DEFAULT_TIMEOUT_S * (1 + random.random())  # noqa: S311 jitter
        self._alarms = (alarms.at(now + timeout, self._expire),)
        if self._wants_bookmarks:
            first = _BOOKMARK_EVERY_S * (0.5 + random.random() / 2)  # noqa: S311 jitter
            self._alarms += (alarms.at(now + first, self._mark),)
        self.watcher.on_timeout = self._finish
        self._engine.watches.add(self.watcher)
        self._responder.on_close(self._close)

    def _push(self, line: bytes) -> None:
        responder = self._responder
        if not responder.write(line) and responder.queued_bytes > _MAX_QUEUED_BYTES:
            responder.abort(Cut.SLOW_READER)

    def _close(self) -> None:
        self._engine.watches.remove(self.watcher)
        for alarm in self._alarms:
            alarm.off()

    def _finish(self) -> None:
        self._close()
        self._responder.end()

    def _expire(self) -> None:
        if self.watcher.is_closed:
            return
        if self._wants_bookmarks:
            self._send_bookmark()
        self._finish()

    def _mark(self) -> float | None:
        if self.watcher.is_closed:
            return None
        self._send_bookmark()
        return self._engine.clock.monotonic_s() + _BOOKMARK_EVERY_S

    def _send_bookmark(self) -> None:
        revision = max(self.watcher.told, self._bookmark())
        is_first = self.watcher.next_variant().later is not None
        bookmark = self._renderer.bookmark(revision, is_first=is_first)
        self.watcher.send(frame("BOOKMARK", bookmark))


async def _pour(lines: Iterable[bytes], reply: Reply) -> None:
    """Write `lines` in slices, giving the loop back between them."""
    responder = reply.responder
    pieces: list[bytes] = []
    size = 0
    for line in lines:
        pieces.append(line)
        size += len(line)
        if size >= SLICE_BYTES:
            if responder.is_closed:
                return
            if not responder.write(b"".join(pieces)):
                await responder.drain()
            await asyncio.sleep(0)
            pieces, size = [], 0
    if pieces:
        responder.write(b"".join(pieces))
