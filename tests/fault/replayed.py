"""A hub process that can be run again from any point of its life: for `tests.fault.explorer`.

The process is the real code (`snapshot.start.begin`, `snapshot.chain.Chain`, `snapshot.local` on a
real directory, real segments) around a store that is one small file. Its remote answers from a
list, and stops the process at the first question that the list does not answer. As everything in it
is determined by its directory and the answers so far, running it again with one more answer brings
it to its next question; a `Node` is such a point, made once however often the search comes by.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from hub.store import Position, Revision
from snapshot.chain import Chain
from snapshot.errors import (
    ChainMoved,
    Fenced,
    NothingToRestore,
    ObjectExists,
    ObjectMissing,
    PreconditionFailed,
    RemoteError,
    RemoteUnavailable,
    SnapshotError,
)
from snapshot.head import Head
from snapshot.header import Kind
from snapshot.local import claim_on, save_claim
from snapshot.remote import Blob, Entry, Source
from snapshot.segment import Segment
from snapshot.start import begin
from tests.unit.snapshot.support import KEY, StillClock, next_segment, record

RESERVE = 10
TRIES = 8
"""More than any execution needs: every failed try costs it a fault."""

Files = tuple[tuple[str, bytes], ...]
"""The content of a data directory."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a process asks of the remote."""

    op: str
    """get, fetch, list, create or swap."""
    name: str
    data: bytes = field(default=b"", repr=False)
    etag: str = field(default="", repr=False)

    @property
    def is_write(self) -> bool:
        return self.op in {"create", "swap"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What the remote says; `error` is one of `ERRORS`."""

    error: str = ""
    data: bytes = b""
    etag: str = ""
    names: tuple[str, ...] = ()


ERRORS: dict[str, type[RemoteError]] = {
    "no answer": RemoteUnavailable,
    "missing": ObjectMissing,
    "exists": ObjectExists,
    "another": PreconditionFailed,
}


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a process did or learnt, after the newest answer."""

    what: str
    """epoch, acked, handed, fenced."""
    head: Head | None = None
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Process:
    """One life of a hub: who, the how-manieth, on which files, and what it is to do."""

    name: str
    life: int
    files: Files
    is_restored: bool
    """Restores from the bucket first, unless that has been done."""
    writes: int
    repeats: bool
    """After no answer, offers the same segment again; else cuts another, as `snapshot.ship`."""

    def __str__(self) -> str:
        return f"{self.name}{self.life}"


class Paused(BaseException):
    """The process asks what has no answer yet; nothing in the code under test may catch this."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.request = request


class ScriptedRemote:
    """A `Remote` that answers from a list."""

    def __init__(self, answers: list[Answer]) -> None:
        self._answers, self._at = answers, 0

    @property
    def is_at_end(self) -> bool:
        """Whether everything from now on is new."""
        return self._at == len(self._answers)

    @property
    def url(self) -> str:
        return "explored://"

    def get(self, name: str) -> Blob:
        answer = self._ask(Request("get", name))
        return Blob(answer.data, answer.etag)

    def get_to_file(self, name: str, path: Path) -> int:
        return path.write_bytes(self._ask(Request("fetch", name)).data)

    def put_if_absent(self, name: str, source: Source) -> str:
        content = source if isinstance(source, bytes) else source.read_bytes()
        return self._ask(Request("create", name, content)).etag

    def put_if_match(self, name: str, source: bytes, *, etag: str) -> str:
        return self._ask(Request("swap", name, source, etag)).etag

    def head(self, name: str) -> Entry:
        raise NotImplementedError("nothing that is explored asks for it")

    def list(self, under: str = "") -> Iterator[Entry]:
        answer = self._ask(Request("list", under))
        return iter([Entry(name, 0, StillClock().now()) for name in answer.names])

    def delete(self, name: str) -> None:
        raise NotImplementedError("nothing that is explored asks for it")

    def close(self) -> None:
        pass

    def _ask(self, request: Request) -> Answer:
        if self.is_at_end:
            raise Paused(request)
        answer = self._answers[self._at]
        self._at += 1
        if answer.error:
            raise ERRORS[answer.error](answer.error, op=request.op, object=request.name)
        return answer


class Node:
    """A point in the life of a process: what it asks next, or how it ended.

    `files` are the contents that its directory has had since the answer before, oldest first: a
    crash leaves one of them.
    """

    __slots__ = ("_children", "answer", "ended", "events", "files", "number", "parent", "request")

    def __init__(self, number: int, parent: "Node | None", answer: Answer | None) -> None:
        self.number, self.parent, self.answer = number, parent, answer
        self._children: dict[Answer, Node] = {}
        self.request: Request | None = None
        self.ended = ""
        self.events: list[Event] = []
        self.files: list[Files] = []

    def answers(self) -> list[Answer]:
        found: list[Answer] = []
        node: Node | None = self
        while node is not None:
            if node.answer is not None:
                found.append(node.answer)
            node = node.parent
        return found[::-1]


class Lab:
    """Runs processes, and keeps what it has learnt of them."""

    def __init__(self, path: Path, chain: type[Chain] = Chain) -> None:
        self._dir, self._spool = path / "dir", path / "spool"
        for each in (self._dir, self._spool):
            each.mkdir()
        self.chain = chain
        self._roots: dict[Process, Node] = {}
        self._segments: dict[tuple[object, ...], Segment] = {}
        self.runs = 0

    def start(self, process: Process) -> Node:
        """Return the point at which a new process asks its first question."""
        node = self._roots.get(process)
        if node is None:
            node = self._roots[process] = self._explore(process, None, None)
        return node

    def answered(self, process: Process, node: Node, answer: Answer) -> Node:
        """Return where a process is after an answer to what it asked."""
        child = node._children.get(answer)
        if child is None:
            child = node._children[answer] = self._explore(process, node, answer)
        return child

    def _explore(self, process: Process, parent: Node | None, answer: Answer | None) -> Node:
        self.runs += 1
        node = Node(self.runs, parent, answer)
        self._lay_out(process.files)
        remote = ScriptedRemote(node.answers())

        def sync(_handle: int) -> None:
            if remote.is_at_end and (files := self._files()) != node.files[-1]:
                node.files.append(files)

        node.files.append(process.files if parent is None else parent.files[-1])
        hub = _Hub(process, self._dir, remote, lab=self, node=node)
        with patch.object(os, "fsync", sync):
            try:
                hub.live()
                node.ended = "done"
            except Paused as pause:
                node.request = pause.request
            except SnapshotError as error:
                node.ended = type(error).__name__
        return node

    def _lay_out(self, files: Files) -> None:
        for name in os.listdir(self._dir):  # noqa: PTH208  a third of the cost of iterdir
            Path(self._dir, name).unlink()
        for name, data in files:
            Path(self._dir, name).write_bytes(data)

    def _files(self) -> Files:
        names = os.listdir(self._dir)  # noqa: PTH208  a third of the cost of iterdir
        return tuple(
            (name, Path(self._dir, name).read_bytes())
            for name in sorted(names)
            if not name.startswith(".")
        )

    def cut(self, hub: "_Hub", chain: Chain, to_rev: int) -> Segment:
        """Cut a segment up to a revision, once for the same place in the same life."""
        head = chain.head
        place = (str(hub.process), hub.cuts, head.hub_id, head.epoch, head.seq, head.chain, to_rev)
        segment = self._segments.get(place)
        if segment is None:
            drawn = hub.clock._drawn
            segment = next_segment(
                chain,
                self._spool / f"{len(self._segments)}.hs",
                kind=Kind.FULL if head.full is None else Kind.DELTA,
                records=[record("x", to_rev, repr(place).encode())],
            )
            hub.clock._drawn = drawn  # the nonces after it do not depend on who cut it first
            self._segments[place] = segment
        return segment


class _Store:
    """A store in one small file: the revision it stands at, which tells its state too."""

    def __init__(self, directory: Path) -> None:
        self._path, self._floor = directory / "store", 0
        self.is_there = self._path.exists()
        words = self._path.read_text().split() if self.is_there else ("", "0")
        self.dir_id, self.revision = words[0], int(words[1])

    @property
    def position(self) -> Position:
        state = hashlib.blake2b(str(self.revision).encode(), digest_size=32).digest()
        return Position(Revision(self.revision), state, 1)

    def make(self, dir_id: str, revision: int) -> None:
        """Begin with what has been restored, or with nothing."""
        self.dir_id = dir_id
        self._save(revision)

    def raise_floor(self, floor: int) -> None:
        self._floor = floor

    def write(self) -> int:
        """Make a change durable, and return the revision it was given."""
        self._save(max(self.revision, self._floor) + 1)
        return self.revision

    def _save(self, revision: int) -> None:
        self.revision = revision
        spooled = self._path.with_name(".store")
        spooled.write_text(f"{self.dir_id} {revision}")
        spooled.replace(self._path)
        os.fsync(-1)


class _Hub:
    """What a hub does with its prefix from start to stop.

    It does not even note down that it was fenced (`snapshot.start.remember_fenced`), and all
    directories are at one place, as clones of a volume may be: the protocol must do without.
    """

    def __init__(
        self, process: Process, directory: Path, remote: ScriptedRemote, *, lab: Lab, node: Node
    ) -> None:
        self.process, self._dir, self._remote = process, directory, remote
        self._lab, self._events = lab, node.events
        self.clock = StillClock(str(process))
        self.cuts = 0
        self._store = _Store(directory)

    def live(self) -> None:
        """Begin, write and ship, make sure of the prefix, release it."""
        chain = self._new_chain()
        self._make_store()
        begun = begin(
            chain,
            self._dir,
            dir_id=self._store.dir_id,
            position=self._store.position,
            reserve=RESERVE,
        )
        self._tell("epoch", head=chain.head)
        self._store.raise_floor(begun.floor)
        try:
            self._serve(chain)
        except Fenced:
            self._tell("fenced")
            self._be_stubborn(chain)
            raise

    def _new_chain(self) -> Chain:
        return self._lab.chain(self._remote, KEY, clock=self.clock)

    def _make_store(self) -> None:
        if self._store.is_there:
            return
        revision = 0
        if self.process.is_restored:
            head = self._new_chain().read_head()
            if head is None or head.full is None:
                raise NothingToRestore("there is no full", op="restore")
            save_claim(
                self._dir, claim_on(head, None, object_store="explored://", clock=self.clock)
            )
            revision = head.rev
        self._store.make(f"dir-{self.process.name}", revision)

    def _serve(self, chain: Chain) -> None:
        self._ship(chain)  # what a crash has left
        for _ in range(self.process.writes):
            self._tell("handed", revision=self._store.write())
            self._ship(chain)
        reserved_rev = self._store.revision + RESERVE
        self._try(lambda: chain.confirm(reserved_rev=reserved_rev))
        self._try(lambda: chain.release(last_rev=self._store.revision))
        self._tell("released")

    def _ship(self, chain: Chain) -> None:
        """Have HEAD cover the store."""
        segment: Segment | None = None
        is_shipping = False
        for _ in range(TRIES):
            to_rev = self._store.revision
            if chain.head.rev >= to_rev:
                break
            is_shipping = True
            if segment is None or not self.process.repeats:
                self.cuts += 1
                segment = self._lab.cut(self, chain, to_rev)
            try:
                chain.commit_segment(segment, reserved_rev=to_rev + RESERVE)
            except ChainMoved:
                segment = None
            except RemoteError:
                continue
        else:
            raise RemoteUnavailable("gave up", op="commit")
        if is_shipping:
            self._tell("acked", head=chain.head)

    def _try(self, commit: Callable[[], Head]) -> None:
        for _ in range(TRIES):
            with contextlib.suppress(RemoteError, ChainMoved):
                commit()
                return
        raise RemoteUnavailable("gave up", op="confirm")

    def _be_stubborn(self, chain: Chain) -> None:
        """Go on writing although fenced: the chain must not let it."""
        segment = self._lab.cut(self, chain, max(self._store.revision, chain.head.rev) + 1)
        attempts: tuple[Callable[[], Head], ...] = (
            lambda: chain.commit_segment(segment, reserved_rev=0),
            chain.confirm,
            chain.release,
        )
        for attempt in attempts:
            with contextlib.suppress(ValueError, Fenced):
                attempt()

    def _tell(self, what: str, *, head: Head | None = None, revision: int = 0) -> None:
        if self._remote.is_at_end:
            self._events.append(Event(what, head, revision))
