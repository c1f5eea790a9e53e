"""The chain of one prefix, as its one writer sees it.

Owns the epoch and the commit: a segment is put first, create-only, and counts only once HEAD names
it, by compare-and-swap. What a new HEAD names no more is written into a manifest before. HEAD is
never deleted and, once it was there, never made again.

Lost answers: a put that got none may have landed, or land later. Every write has a nonce of its
own, and after a lost answer HEAD is read back: our nonce there means that it landed. A write of
ours that lands after we gave it up is met by the next one, which takes it when it says the same and
else raises `ChainMoved`, so that its caller cuts again. Anything else that moved HEAD is another
writer: `Fenced`.

One `Chain` belongs to one thread at a time, but for `put_segment`, which any thread may call.
"""

import json
from dataclasses import dataclass

import msgspec

from hub.clock import Clock
from snapshot.errors import (
    ChainMoved,
    Fenced,
    ForeignPrefix,
    HeadGone,
    ObjectExists,
    ObjectMissing,
    PreconditionFailed,
    RemoteUnavailable,
    SegmentCorrupt,
)
from snapshot.head import FORMAT as HEAD_FORMAT
from snapshot.head import Fork, Head, Level, ObjectRef, SegmentRef, Writer, encode_head, open_head
from snapshot.header import ZERO, Kind
from snapshot.layout import (
    FORMAT,
    HEAD,
    PROBES,
    delta_name,
    full_name,
    is_note_of_another,
)
from snapshot.manifest import Manifest, encode_manifest
from snapshot.remote import Remote
from snapshot.seal import HubKey
from snapshot.segment import Segment, check_hash

_MAX_BRANCHES = 1024
"""Bounds HEAD. What a forgotten fork left behind stands among the points of a time again, as long
as it is kept: so nobody may get there within a retention."""


class Base(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A position in the past from which an epoch goes on, and the segments that lead there."""

    seq: int
    rev: int
    chain: str
    state_hash: str
    objects: int
    full: SegmentRef
    tail: tuple[SegmentRef, ...]


@dataclass(frozen=True, slots=True)
class _Held:
    """HEAD as last seen, with the etag that replaces it."""

    head: Head
    etag: str


class Chain:
    """Reads and writes HEAD of one prefix. Every method may raise `RemoteError`."""

    def __init__(self, remote: Remote, key: HubKey, *, clock: Clock) -> None:
        self.remote, self.key, self.clock = remote, key, clock
        self._held: _Held | None = None
        self._given_up: set[str] = set()
        """Nonces of writes that stayed without an answer."""
        self._is_writer = False
        self.looks_first = False
        """Whether HEAD is read before each swap, for a bucket that does not honour conditions. Two
        who write at the same moment still overwrite one another, once; from then on one knows."""

    @property
    def head(self) -> Head:
        """HEAD as this writer last saw or wrote it; ValueError before the first."""
        if self._held is None:
            raise ValueError("HEAD has not been read")
        return self._held.head

    def read_head(self) -> Head | None:
        """Read HEAD and check its seal; None if there is none.

        Raises `KeyMismatch`, `HeadCorrupt`, `UnsupportedFormat`.
        """
        held = self._read()
        if held is not None and not self._is_writer:
            self._held = held
        return held.head if held else None

    def is_prefix_in_use(self) -> bool:
        """Whether anything lies under the prefix but what a killed probe left."""
        return any(not entry.name.startswith(PROBES) for entry in self.remote.list())

    def take_epoch(
        self,
        expected: Head | None,
        *,
        hub_id: str,
        writer: Writer,
        reserved_rev: int,
        base: Base | None = None,
    ) -> Head:
        """Become the writer: create HEAD, or swap the `expected` one for the next epoch.

        `writer.session` must be on the local disk before. `base`: go on from there and leave what
        came after it behind, as a branch. Raises `ChainMoved` when HEAD is not the expected one:
        decide again.
        """
        if expected is None:
            new = self._first(hub_id=hub_id, writer=writer, reserved_rev=reserved_rev)
            self._create(new)
        else:
            if self._held is None or self._held.head.nonce != expected.nonce:
                raise ChainMoved("HEAD is not the one decided on", op="take epoch", object=HEAD)
            fork = self._fork(expected, base)
            new = msgspec.structs.replace(
                self._next(expected, reserved_rev=reserved_rev),
                epoch=expected.epoch + 1,
                writer=writer,
                released=False,
                drained=False,
                moved="",
                fork=fork,
            )
            if base is not None and base.seq != expected.seq:
                new = self._branched(new, fork, base)
            self._swap(new, op="take epoch")
        self._is_writer = True
        self._put_format()
        return self.head

    def commit_segment(self, segment: Segment, *, reserved_rev: int) -> Head:
        """Put a link of the chain and make it the newest; return HEAD after it.

        The segment must have been cut against `head`. Raises `Fenced`, `HeadGone`, and `ChainMoved`
        (recoverable: cut again). After `RemoteUnavailable` the same call may be repeated.
        """
        self._check_fit(segment)
        header = segment.header
        is_full = header.kind is Kind.FULL
        ref = self.put_segment(segment, level="full" if is_full else "d0")
        new = msgspec.structs.replace(
            self._next(self.head, reserved_rev=max(reserved_rev, header.to_rev)),
            seq=header.seq,
            last_seq=header.seq,
            rev=header.to_rev,
            chain=header.chain_after(segment.hash).hex(),
            state_hash=header.post_state.hex(),
            objects=header.objects,
            full=ref if is_full else self.head.full,
            tail=() if is_full else (*self.head.tail, ref),
        )
        if is_full:
            new = self._dropping(new, self.head.segments)
        return self._swap(new, op="commit")

    def put_segment(self, segment: Segment, *, level: Level) -> SegmentRef:
        """Put a segment, which counts for nothing yet; return its reference."""
        header = segment.header
        if level == "full":
            name = full_name(
                epoch=header.epoch, rev=header.to_rev, seq=header.seq, digest=segment.hash
            )
        else:
            name = delta_name(
                epoch=header.epoch,
                level=level,
                from_rev=header.from_rev,
                to_rev=header.to_rev,
                digest=segment.hash,
            )
        self._put(name, segment)
        return SegmentRef(
            name=name,
            level=level,
            from_seq=header.from_seq,
            seq=header.seq,
            from_rev=header.from_rev,
            to_rev=header.to_rev,
            hash=segment.hash.hex(),
            size=segment.size,
            time_ms=header.time_ms,
        )

    def commit_full(self, ref: SegmentRef) -> Head:
        """Let restores begin at a full that hangs at a position of the tail; return HEAD.

        Raises as `commit_segment`; `ChainMoved` too when the position is not there any more.
        """
        self._check_writer()
        head = self.head
        if head.full is not None and head.full.name == ref.name:
            return head
        tail = tuple(each for each in head.tail if each.from_seq >= ref.seq)
        reached = tail[0].from_seq if tail else head.seq
        if reached != ref.seq or (head.full and head.full.seq > ref.seq):
            raise ChainMoved("no segment of HEAD ends there", op="commit", object=ref.name)
        dropped = tuple(each for each in head.segments if each not in tail)
        new = msgspec.structs.replace(self._next(head, reserved_rev=0), full=ref, tail=tail)
        return self._swap(self._dropping(new, dropped), op="commit")

    def commit_merge(self, ref: SegmentRef) -> Head:
        """Let a merge stand for the deltas of the tail that it holds; return HEAD.

        Raises as `commit_full`.
        """
        self._check_writer()
        head = self.head
        if ref in head.tail:
            return head
        inside = [e for e in head.tail if e.from_seq >= ref.from_seq and e.seq <= ref.seq]
        if not inside or (inside[0].from_seq, inside[-1].seq) != (ref.from_seq, ref.seq):
            raise ChainMoved("HEAD does not name what was merged", op="commit", object=ref.name)
        at = head.tail.index(inside[0])
        tail = (*head.tail[:at], ref, *head.tail[at + len(inside) :])
        new = msgspec.structs.replace(self._next(head, reserved_rev=0), tail=tail)
        return self._swap(self._dropping(new, tuple(inside)), op="commit")

    def commit_verified(self, name: str) -> Head:
        """Note in HEAD that its full of that name was read back whole."""
        self._check_writer()
        head = self.head
        if head.full is None or head.full.name != name or head.full.is_verified:
            return head
        full = msgspec.structs.replace(head.full, is_verified=True)
        new = msgspec.structs.replace(self._next(head, reserved_rev=0), full=full)
        return self._swap(new, op="commit")

    def commit_horizon(self, horizon: int, kept: tuple[SegmentRef, ...]) -> Head:
        """Name no manifest from `horizon` or before any more, but a new one with what is kept.

        The objects that nothing names afterwards may then be deleted. Raises as `commit_segment`.
        """
        head = self.head
        manifest = self._put_manifest(head, kept, prev=None)
        new = msgspec.structs.replace(
            self._next(head, reserved_rev=0), kept=manifest, horizon=max(horizon, head.horizon)
        )
        return self._swap(new, op="clean up")

    def confirm(self, *, reserved_rev: int = 0) -> Head:
        """Swap HEAD for itself: find out whether we are still the writer, and reserve revisions."""
        self._check_writer()
        return self._swap(self._next(self.head, reserved_rev=reserved_rev), op="confirm")

    def release(self, *, last_rev: int | None = None, is_drained: bool = False) -> Head:
        """Say in HEAD that this writer has ended; it may not write again without a new epoch.

        `last_rev`: no revision above it was handed out, so the rest of the reservation is given
        back and whoever comes next goes on right above it. `is_drained`: all that this writer
        acknowledged is in the bucket.
        """
        self._check_writer()
        new = msgspec.structs.replace(
            self._next(self.head, reserved_rev=0), released=True, drained=is_drained
        )
        if last_rev is not None:
            new = msgspec.structs.replace(new, reserved_rev=max(new.rev, last_rev))
        head = self._swap(new, op="release")
        self._is_writer = False
        return head

    def mark_moved(self, to: str) -> Head:
        """Let no hub start here any more but by force: it has been moved. Fences a live writer.

        Raises `ChainMoved` when HEAD changes meanwhile.
        """
        head = self.head
        new = msgspec.structs.replace(
            self._next(head, reserved_rev=0), epoch=head.epoch + 1, released=True, moved=to
        )
        return self._swap(new, op="move")

    def force_release(self) -> Head:
        """Let the next hub start here though its last writer did not release. Fences a live one.

        Raises `ChainMoved` when HEAD changes meanwhile.
        """
        head = self.head
        new = msgspec.structs.replace(
            self._next(head, reserved_rev=0), epoch=head.epoch + 1, released=True, drained=False
        )
        return self._swap(new, op="take over")

    def _fork(self, before: Head, base: Base | None) -> Fork:
        return Fork(
            epoch=before.epoch,
            seq=before.seq,
            rev=before.rev,
            chain=before.chain,
            base_seq=before.seq if base is None else base.seq,
            time_ms=int(self.clock.now().timestamp() * 1000),
        )

    def _branched(self, new: Head, fork: Fork, base: Base) -> Head:
        """Return `new` going on from `base`; what HEAD named so far goes into a manifest."""
        return self._dropping(
            msgspec.structs.replace(
                new,
                seq=base.seq,
                rev=base.rev,
                chain=base.chain,
                state_hash=base.state_hash,
                objects=base.objects,
                full=base.full,
                tail=base.tail,
                branches=(*new.branches, fork)[-_MAX_BRANCHES:],
            ),
            self.head.segments,
        )

    def _dropping(self, new: Head, dropped: tuple[SegmentRef, ...]) -> Head:
        """Return `new` leading to a manifest of what it names no more."""
        if not dropped:
            return new
        return msgspec.structs.replace(
            new, manifest=self._put_manifest(new, dropped, prev=new.manifest)
        )

    def _put_manifest(
        self, head: Head, segments: tuple[SegmentRef, ...], *, prev: ObjectRef | None
    ) -> ObjectRef:
        manifest = Manifest(
            hub_id=head.hub_id,
            epoch=head.epoch,
            seq=head.last_seq,
            time=self._time(),
            prev=prev,
            segments=segments,
        )
        ref, data = encode_manifest(manifest, self.key)
        try:
            self.remote.put_if_absent(ref.name, data)
        except ObjectExists as error:
            if self.remote.get(ref.name).data != data:
                raise SegmentCorrupt(
                    "another manifest has this name", op="put", object=ref.name
                ) from error
        return ref

    def _first(self, *, hub_id: str, writer: Writer, reserved_rev: int) -> Head:
        return Head(
            hub_id=hub_id,
            epoch=1,
            writer=writer,
            nonce=self._nonce(),
            seq=0,
            last_seq=0,
            rev=0,
            chain=ZERO.hex(),
            state_hash=ZERO.hex(),
            objects=0,
            full=None,
            tail=(),
            reserved_rev=reserved_rev,
            key=self.key.fingerprint,
            time=self._time(),
            released=False,
            fork=None,
        )

    def _next(self, head: Head, *, reserved_rev: int) -> Head:
        return msgspec.structs.replace(
            head,
            format=HEAD_FORMAT,
            nonce=self._nonce(),
            time=self._time(),
            reserved_rev=max(head.reserved_rev, reserved_rev),
        )

    def _create(self, new: Head) -> None:
        """Create HEAD; whoever loses the race decides again on what the winner wrote."""
        try:
            etag = self.remote.put_if_absent(HEAD, encode_head(new, self.key))
        except (ObjectExists, RemoteUnavailable) as error:
            found = self._read()
            if found is None and isinstance(error, RemoteUnavailable):
                raise
            if found is None or found.head.nonce != new.nonce:
                raise ChainMoved("somebody else made HEAD", op="create", object=HEAD) from error
            self._held = found
        else:
            self._held = _Held(new, etag)

    def _swap(self, new: Head, *, op: str) -> Head:
        """Replace the HEAD held by `new`, whatever happens to the answer."""
        if self._held is None:
            raise ValueError("HEAD has not been read")
        try:
            if self.looks_first:
                self._look(op)
            etag = self.remote.put_if_match(HEAD, encode_head(new, self.key), etag=self._held.etag)
        except ObjectMissing as error:
            raise HeadGone("HEAD is gone", op=op, object=HEAD) from error
        except (PreconditionFailed, RemoteUnavailable) as error:
            self._given_up.add(new.nonce)
            self._held = self._resolve(new, error, op=op)
        else:
            self._held = _Held(new, etag)
            self._given_up.clear()  # HEAD has moved: none of them can land any more
        return self._held.head

    def _look(self, op: str) -> None:
        """Find out what a bucket that honours conditions would say."""
        found = self._read()
        if found is None:
            raise ObjectMissing("HEAD is gone", op=op, object=HEAD)
        if found.head.nonce != self.head.nonce:
            raise PreconditionFailed("another HEAD is there", op=op, object=HEAD)

    def _resolve(
        self, new: Head, error: PreconditionFailed | RemoteUnavailable, *, op: str
    ) -> _Held:
        """Read HEAD back after a refusal or a lost answer, and say what became of `new`."""
        found = self._read()
        if found is None:
            raise HeadGone("HEAD is gone", op=op, object=HEAD) from error
        head = found.head
        if self._held is not None and head.nonce == self._held.head.nonce:
            self._held = found  # the same HEAD under another etag, as after a copy of the bucket
            raise RemoteUnavailable("HEAD was not replaced", op=op, object=HEAD) from error
        if head.nonce in self._given_up:
            self._held = found
            self._given_up.clear()  # HEAD has moved: none of them can land any more
            if _says_the_same(head, new):
                return found
            raise ChainMoved("an earlier write had landed", op=op, object=HEAD) from error
        if not self._is_writer:
            raise ChainMoved("HEAD has moved", op=op, object=HEAD) from error
        self._is_writer = False
        by = f"{head.writer.describe()}, epoch {head.epoch}"
        if head.moved:
            by = f"whoever moved this hub to {head.moved}"
        elif self._held is not None and head.writer == self._held.head.writer:
            by = f"whoever ran hub-restore takeover, epoch {head.epoch}"
        raise Fenced(
            f"{by}, has taken this prefix",
            by=by,
            op=op,
            object=HEAD,
            position=f"revision {head.rev}",
        ) from error

    def _read(self) -> _Held | None:
        try:
            blob = self.remote.get(HEAD)
        except ObjectMissing:
            return None
        return _Held(open_head(blob.data, self.key), blob.etag)

    def _check_writer(self) -> None:
        if not self._is_writer:
            raise ValueError("this chain has not taken an epoch, or has lost or released it")

    def _check_fit(self, segment: Segment) -> None:
        """Check that a segment is the link that continues the HEAD held."""
        self._check_writer()
        header, head = segment.header, self.head
        expected = (head.hub_id, head.epoch, head.last_seq + 1, head.chain, head.state_hash)
        found = (
            header.hub_id,
            header.epoch,
            header.seq,
            header.prev_chain.hex(),
            header.pre_state.hex(),
        )
        is_delta = header.kind is Kind.DELTA
        is_gap = header.from_seq != head.seq or (is_delta and header.from_rev != head.rev)
        if found != expected or is_gap or not header.is_link or (is_delta and not head.full):
            raise ChainMoved("the segment does not continue HEAD", op="commit", object=HEAD)

    def _put(self, name: str, segment: Segment) -> None:
        """Put a segment; one of its name that is there already must be the same, byte for byte."""
        try:
            self.remote.put_if_absent(name, segment.path)
        except ObjectExists as error:
            copy = segment.path.with_name(f"{segment.path.name}.back")
            try:
                self.remote.get_to_file(name, copy)
                if check_hash(copy, name=name) != segment.hash:
                    raise SegmentCorrupt(
                        "another segment has this name", op="put", object=name
                    ) from error
            finally:
                copy.unlink(missing_ok=True)

    def _put_format(self) -> None:
        """Leave a note at the root of what lies here; made once, for people and other tools."""
        hub_id = self.head.hub_id
        note = json.dumps({"product": "hublet", "format": 1, "hub_id": hub_id}).encode()
        try:
            self.remote.put_if_absent(FORMAT, note)
        except ObjectExists as error:
            if is_note_of_another(self.remote.get(FORMAT).data, hub_id):
                raise ForeignPrefix(
                    f"{FORMAT} was not written for hub {hub_id}, which HEAD names",
                    op="take epoch",
                    object=FORMAT,
                ) from error

    def _nonce(self) -> str:
        return self.clock.token(12).hex()

    def _time(self) -> str:
        return self.clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _says_the_same(found: Head, new: Head) -> bool:
    """Whether two versions of HEAD differ in nothing but when and by which try they came."""
    return new == msgspec.structs.replace(found, nonce=new.nonce, time=new.time)
