"""The chain of one prefix, as its one writer sees it.

Owns the epoch and the commit: a segment is put first, create-only, and counts only once HEAD names
it, by compare-and-swap. HEAD is never deleted and, once it was there, never made again.

Lost answers: a put that got none may have landed, or land later. Every write has a nonce of its
own, and after a lost answer HEAD is read back: our nonce there means that it landed. A write of
ours that lands after we gave it up is met by the next one, which takes it when it says the same and
else raises `ChainMoved`, so that its caller cuts again. Anything else that moved HEAD is another
writer: `Fenced`.

One `Chain` belongs to one thread at a time.
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
from snapshot.head import Fork, Head, SegmentRef, Writer, check_seal, decode_head, encode_head
from snapshot.header import ZERO, Kind, chain_hash
from snapshot.layout import FORMAT, HEAD, segment_name
from snapshot.remote import Remote
from snapshot.seal import HubKey
from snapshot.segment import Segment, check_hash


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
        """Whether anything at all lies under the prefix."""
        return next(iter(self.remote.list()), None) is not None

    def take_epoch(
        self, expected: Head | None, *, hub_id: str, writer: Writer, reserved_rev: int
    ) -> Head:
        """Become the writer: create HEAD, or swap the `expected` one for the next epoch.

        `writer.session` must be on the local disk before. Raises `ChainMoved` when HEAD is not the
        expected one: decide again.
        """
        if expected is None:
            new = self._first(hub_id=hub_id, writer=writer, reserved_rev=reserved_rev)
            self._create(new)
        else:
            if self._held is None or self._held.head.nonce != expected.nonce:
                raise ChainMoved("HEAD is not the one decided on", op="take epoch", object=HEAD)
            new = msgspec.structs.replace(
                self._next(expected, reserved_rev=reserved_rev),
                epoch=expected.epoch + 1,
                writer=writer,
                released=False,
                fork=Fork(expected.epoch, expected.seq, expected.rev, expected.chain),
            )
            self._swap(new, op="take epoch")
        self._is_writer = True
        self._put_format()
        return self.head

    def commit_segment(self, segment: Segment, *, reserved_rev: int) -> Head:
        """Put a segment and make it the newest of the chain; return HEAD after it.

        The segment must have been cut against `head`. Raises `Fenced`, `HeadGone`, and `ChainMoved`
        (recoverable: cut again). After `RemoteUnavailable` the same call may be repeated.
        """
        ref = self._fit(segment)
        self._put_segment(ref.name, segment)
        header = segment.header
        is_full = header.kind is Kind.FULL
        new = msgspec.structs.replace(
            self._next(self.head, reserved_rev=max(reserved_rev, header.to_rev)),
            seq=header.seq,
            rev=header.to_rev,
            chain=chain_hash(header.prev_chain, segment.hash).hex(),
            state_hash=header.post_state.hex(),
            objects=header.objects,
            full=ref if is_full else self.head.full,
            tail=() if is_full else (*self.head.tail, ref),
        )
        return self._swap(new, op="commit")

    def confirm(self, *, reserved_rev: int = 0) -> Head:
        """Swap HEAD for itself: find out whether we are still the writer, and reserve revisions."""
        self._check_writer()
        return self._swap(self._next(self.head, reserved_rev=reserved_rev), op="confirm")

    def release(self, *, last_rev: int | None = None) -> Head:
        """Say in HEAD that this writer has ended; it may not write again without a new epoch.

        `last_rev`: no revision above it was handed out, so the rest of the reservation is given
        back and whoever comes next goes on right above it.
        """
        self._check_writer()
        new = msgspec.structs.replace(self._next(self.head, reserved_rev=0), released=True)
        if last_rev is not None:
            new = msgspec.structs.replace(new, reserved_rev=max(new.rev, last_rev))
        head = self._swap(new, op="release")
        self._is_writer = False
        return head

    def _first(self, *, hub_id: str, writer: Writer, reserved_rev: int) -> Head:
        return Head(
            hub_id=hub_id,
            epoch=1,
            writer=writer,
            nonce=self._nonce(),
            seq=0,
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
            etag = self.remote.put_if_match(HEAD, encode_head(new, self.key), etag=self._held.etag)
        except ObjectMissing as error:
            raise HeadGone("HEAD is gone", op=op, object=HEAD) from error
        except (PreconditionFailed, RemoteUnavailable) as error:
            self._given_up.add(new.nonce)
            self._held = self._resolve(new, error, op=op)
        else:
            self._held = _Held(new, etag)
        self._given_up.discard(new.nonce)
        return self._held.head

    def _resolve(
        self, new: Head, error: PreconditionFailed | RemoteUnavailable, *, op: str
    ) -> _Held:
        """Read HEAD back after a refusal or a lost answer, and say what became of `new`."""
        found = self._read()
        if found is None:
            raise HeadGone("HEAD is gone", op=op, object=HEAD) from error
        head = found.head
        is_ours = head.nonce in self._given_up
        if is_ours and _says_the_same(head, new):
            return found
        if is_ours:
            self._held = found
            raise ChainMoved("an earlier write had landed", op=op, object=HEAD) from error
        if self._held is not None and head.nonce == self._held.head.nonce:
            self._held = found  # the same HEAD under another etag, as after a copy of the bucket
            raise RemoteUnavailable("HEAD was not replaced", op=op, object=HEAD) from error
        if not self._is_writer:
            raise ChainMoved("HEAD has moved", op=op, object=HEAD) from error
        self._is_writer = False
        by = f"{head.writer.describe()}, epoch {head.epoch}"
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
        return _Held(check_seal(decode_head(blob.data), self.key), blob.etag)

    def _check_writer(self) -> None:
        if not self._is_writer:
            raise ValueError("this chain has not taken an epoch, or has lost or released it")

    def _fit(self, segment: Segment) -> SegmentRef:
        """Check that a segment continues the HEAD held, and return its reference."""
        self._check_writer()
        header, head = segment.header, self.head
        expected = (head.hub_id, head.epoch, head.seq + 1, head.chain, head.state_hash)
        found = (
            header.hub_id,
            header.epoch,
            header.seq,
            header.prev_chain.hex(),
            header.pre_state.hex(),
        )
        is_delta = header.kind is Kind.DELTA
        if found != expected or (is_delta and (header.from_rev != head.rev or not head.full)):
            raise ChainMoved("the segment does not continue HEAD", op="commit", object=HEAD)
        return SegmentRef(
            segment_name(segment),
            header.from_rev,
            header.to_rev,
            segment.hash.hex(),
            segment.size,
            header.time_ms,
        )

    def _put_segment(self, name: str, segment: Segment) -> None:
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
            if self.remote.get(FORMAT).data != note:
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
