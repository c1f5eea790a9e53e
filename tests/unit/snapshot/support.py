"""What the snapshot tests share: a still clock, a fixed key, a remote that fails on cue."""

import datetime as dt
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hub.store import Draft, HubKey, Index, Key, Op, Record, Revision, Store, Write, encode_key
from snapshot.chain import Chain
from snapshot.errors import RemoteUnavailable
from snapshot.head import Head, Level, SegmentRef, Writer
from snapshot.header import ZERO, Header, Kind
from snapshot.remote import Blob, Entry, Remote, Source
from snapshot.segment import Preamble, Segment, write_segment

HUB_ID = "6f1c2f64-3c0a-4d4e-9b7e-1d2a3b4c5d6e"
KEY = HubKey(bytes(range(32)))
OTHER_KEY = HubKey(bytes(range(1, 33)))
HASH = "11" * 32


class StillClock:
    """A clock that moves when told, and draws the same "random" bytes every time."""

    def __init__(self, seed: str = "still") -> None:
        self.at = dt.datetime(2026, 5, 4, 3, 2, 1, tzinfo=dt.UTC)
        self._seed, self._drawn = seed, 0

    def now(self) -> dt.datetime:
        return self.at

    def monotonic_s(self) -> float:
        return self.at.timestamp()

    def uid(self) -> str:
        digits = self.token(16).hex()
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"

    def token(self, n_bytes: int) -> bytes:
        self._drawn += 1
        drawn = hashlib.shake_256(f"{self._seed} {self._drawn}".encode())
        return drawn.digest(n_bytes)

    def pass_s(self, seconds: float) -> None:
        self.at += dt.timedelta(seconds=seconds)


@dataclass
class FlakyRemote:
    """A remote in front of another, whose next puts can be made to lose their request or answer.

    `faults` maps a part of an object's name to what happens to its next puts, one each: "lost" (the
    request never arrives), "answer" (it lands, the answer is lost), "late" (it lands when `land` is
    called), "ok".
    """

    inner: Remote
    faults: dict[str, list[str]] = field(default_factory=dict)
    late: list[Callable[[], object]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.inner.url

    def get(self, name: str) -> Blob:
        return self.inner.get(name)

    def get_to_file(self, name: str, path: Path) -> int:
        return self.inner.get_to_file(name, path)

    def put_if_absent(self, name: str, source: Source) -> str:
        content = source if isinstance(source, bytes) else source.read_bytes()
        return self._put(name, lambda: self.inner.put_if_absent(name, content))

    def put_if_match(self, name: str, source: bytes, *, etag: str) -> str:
        return self._put(name, lambda: self.inner.put_if_match(name, source, etag=etag))

    def head(self, name: str) -> Entry:
        return self.inner.head(name)

    def list(self, under: str = "") -> Iterator[Entry]:
        return self.inner.list(under)

    def delete(self, name: str) -> None:
        self.inner.delete(name)

    def close(self) -> None:
        self.inner.close()

    def land(self) -> None:
        for put in self.late:
            put()
        self.late.clear()

    def _put(self, name: str, put: Callable[[], str]) -> str:
        fault = next(
            (queue.pop(0) for part, queue in self.faults.items() if part in name and queue), "ok"
        )
        if fault == "late":
            self.late.append(put)
        etag = put() if fault in {"ok", "answer"} else ""
        if fault != "ok":
            raise RemoteUnavailable("no answer", op="put", object=name)
        return etag


def writer(name: str = "a") -> Writer:
    return Writer(dir=f"dir-{name}", session=f"session-{name}", host="host", pid=1)


def take(chain: Chain, name: str = "a") -> Head:
    return chain.take_epoch(
        chain.read_head(), hub_id=HUB_ID, writer=writer(name), reserved_rev=1000
    )


def header(*, kind: Kind = Kind.DELTA, from_rev: int = 0, to_rev: int = 9, **facts: int) -> Header:
    return Header(
        kind=kind,
        hub_id=HUB_ID,
        epoch=facts.get("epoch", 1),
        from_seq=facts.get("from_seq", 0),
        seq=facts.get("seq", 1),
        from_rev=from_rev,
        to_rev=to_rev,
        objects=facts.get("objects", 1),
        time_ms=1_777_863_721_000,
        prev_chain=ZERO,
        pre_state=ZERO,
        post_state=bytes.fromhex(HASH),
    )


def next_segment(chain: Chain, path: Path, *, kind: Kind, records: list[Record]) -> Segment:
    """Cut a segment with made-up records that is the next link of the chain."""
    head = chain.head
    to_rev = max((record.revision for record in records), default=head.rev)
    made = Header(
        kind=kind,
        hub_id=head.hub_id,
        epoch=head.epoch,
        from_seq=head.seq,
        seq=head.last_seq + 1,
        from_rev=head.rev if kind is Kind.DELTA else 0,
        to_rev=to_rev,
        objects=1,
        time_ms=0,
        prev_chain=bytes.fromhex(head.chain),
        pre_state=bytes.fromhex(head.state_hash),
        post_state=hashlib.blake2b(str(to_rev).encode(), digest_size=32).digest(),
    )
    return _written(chain, path, made, records)


def checkpoint(chain: Chain, path: Path, *, records: list[Record]) -> Segment:
    """Cut a full with made-up records that hangs at HEAD's position."""
    head = chain.head
    made = Header(
        kind=Kind.FULL,
        hub_id=head.hub_id,
        epoch=head.epoch,
        from_seq=head.seq,
        seq=head.seq,
        from_rev=0,
        to_rev=head.rev,
        objects=head.objects,
        time_ms=0,
        prev_chain=bytes.fromhex(head.chain),
        end_chain=bytes.fromhex(head.chain),
        pre_state=bytes.fromhex(head.state_hash),
        post_state=bytes.fromhex(head.state_hash),
    )
    return _written(chain, path, made, records)


def _written(chain: Chain, path: Path, made: Header, records: list[Record]) -> Segment:
    preamble = Preamble({}, b"keys") if made.kind is Kind.FULL else Preamble({}, b"")
    return write_segment(
        path, made, records=records, key=chain.key, token=chain.clock.token, preamble=preamble
    )


def record(name: str, revision: int, raw: bytes | None = b"value") -> Record:
    return Record(Key(b"pods\0ns\0" + name.encode()), Revision(revision), raw)


def full_ref(rev: int, *, seq: int = 1, size: int = 100, time_ms: int = 0) -> SegmentRef:
    """A full that is the link to position `seq`."""
    return SegmentRef(
        name=f"e00000001/full/{rev}-{seq}-11111111.hs",
        level="full",
        from_seq=seq - 1,
        seq=seq,
        from_rev=0,
        to_rev=rev,
        hash=HASH,
        size=size,
        time_ms=time_ms,
    )


def ref(
    from_rev: int,
    to_rev: int,
    *,
    seq: int,
    from_seq: int | None = None,
    level: Level = "d0",
    size: int = 100,
    time_ms: int = 0,
) -> SegmentRef:
    """A delta that leads to position `seq`, by default from the one before."""
    return SegmentRef(
        name=f"e00000001/{level}/{from_rev}-{to_rev}-11111111.hs",
        level=level,
        from_seq=seq - 1 if from_seq is None else from_seq,
        seq=seq,
        from_rev=from_rev,
        to_rev=to_rev,
        hash=HASH,
        size=size,
        time_ms=time_ms,
    )


def head(*, full: SegmentRef | None, tail: tuple[SegmentRef, ...] = (), **facts: object) -> Head:
    segments = (full, *tail) if full else ()
    values: dict[str, object] = {
        "hub_id": HUB_ID,
        "epoch": 1,
        "writer": writer(),
        "nonce": "aa" * 12,
        "seq": segments[-1].seq if segments else 0,
        "last_seq": facts.get("seq", segments[-1].seq if segments else 0),
        "rev": segments[-1].to_rev if segments else 0,
        "chain": HASH,
        "state_hash": HASH,
        "objects": 1,
        "full": full,
        "tail": tail,
        "reserved_rev": 1000,
        "key": KEY.fingerprint,
        "time": "2026-05-04T03:02:01.000Z",
        "released": False,
        "fork": None,
    }
    return Head(**{**values, **facts})  # type: ignore[arg-type]  # a test's overrides, checked by use


def write(op: Op, name: str, text: str = "", *, expect: int | None = None) -> Write:
    """A write of a small document under pods/ns/<name>."""
    tail = b'"},"text":"' + text.encode() + b'"}'
    return Write(
        op,
        encode_key("pods", "ns", name),
        Draft(b'{"metadata":{"resourceVersion":"', tail),
        Index(b""),
        expect=None if expect is None else Revision(expect),
        sealed=name.startswith("secret"),
    )


def contents(store: Store) -> dict[Key, bytes]:
    """Everything durable in a store, decoded."""
    page = store.scan(b"")
    return {entry.key: store.read(entry) for entry in page.entries}
