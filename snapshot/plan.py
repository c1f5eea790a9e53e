"""The plan: every segment that HEAD names, fetched, and checked as one chain.

Owns the checks that come before anything is built: size and hash of every segment, header seals,
and that each continues the one before it up to exactly what HEAD says. Restore and verify share it.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from snapshot.errors import ChainBroken, NothingToRestore, ObjectMissing, SegmentCorrupt
from snapshot.head import Head, SegmentRef
from snapshot.header import Header, Kind, chain_hash
from snapshot.remote import Remote
from snapshot.seal import HubKey
from snapshot.segment import check_hash, open_segment

FETCHERS = 8
"""Segments under way at once: hides the latency of a bucket."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A segment as a local file, its bytes checked against HEAD."""

    ref: SegmentRef
    path: Path


def require_full(head: Head | None, remote: Remote) -> Head:
    """Return HEAD if there is a full to begin with, else raise `NothingToRestore`."""
    if head is None:
        raise NothingToRestore("there is no hub here", op="restore", object=remote.url)
    if head.full is None:
        raise NothingToRestore(
            f"hub {head.hub_id} has not shipped its first full yet", op="restore", object=remote.url
        )
    return head


def fetch(
    remote: Remote, head: Head, directory: Path, *, on_fetched: Callable[[Fetched], None]
) -> list[Fetched]:
    """Bring every segment of HEAD into `directory`, checking size and hash; in chain order.

    `on_fetched` is called for each, from this thread. Raises `ChainBroken` for a missing segment,
    `SegmentCorrupt` for an altered one.
    """

    def one(numbered: tuple[int, SegmentRef]) -> Fetched:
        number, ref = numbered
        return _fetch_one(remote, ref, directory / f"{number:05d}.hs")

    fetched: list[Fetched] = []
    with ThreadPoolExecutor(FETCHERS) as pool:
        try:
            for each in pool.map(one, enumerate(head.segments)):
                on_fetched(each)
                fetched.append(each)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return fetched


def check_chain(head: Head, fetched: list[Fetched], key: HubKey) -> None:
    """Check that the segments are one chain that ends in HEAD; reads their headers only."""
    before: Header | None = None
    chain = b""
    for each in fetched:
        with open_segment(each.path, key, name=each.ref.name) as reader:
            header = reader.header
        _check_place(head, each.ref, header, before=before, chain=chain)
        chain = chain_hash(header.prev_chain, bytes.fromhex(each.ref.hash))
        before = header
    if before is None:
        raise ChainBroken("there are no segments", op="check", object="HEAD")
    end = (before.seq, before.to_rev, before.post_state.hex(), before.objects, chain.hex())
    if end != (head.seq, head.rev, head.state_hash, head.objects, head.chain):
        raise ChainBroken(
            f"the segments end at segment {before.seq}, revision {before.to_rev}; HEAD claims "
            f"segment {head.seq}, revision {head.rev}, or another history",
            op="check",
            object="HEAD",
        )


def _fetch_one(remote: Remote, ref: SegmentRef, path: Path) -> Fetched:
    try:
        size = remote.get_to_file(ref.name, path)
    except ObjectMissing as error:
        raise ChainBroken(
            "a segment that HEAD names is missing",
            op="fetch",
            object=ref.name,
            position=f"revision {ref.to_rev}",
        ) from error
    if size != ref.size:
        raise SegmentCorrupt(
            f"{size} bytes long, HEAD says {ref.size}", op="fetch", object=ref.name
        )
    if check_hash(path, name=ref.name).hex() != ref.hash:
        raise SegmentCorrupt("this is not the segment HEAD names", op="fetch", object=ref.name)
    return Fetched(ref, path)


def _check_place(
    head: Head, ref: SegmentRef, header: Header, *, before: Header | None, chain: bytes
) -> None:
    kind = Kind.FULL if before is None else Kind.DELTA
    says = (header.kind, header.hub_id, header.from_rev, header.to_rev)
    problem = ""
    if says != (kind, head.hub_id, ref.from_rev, ref.to_rev) or header.epoch > head.epoch:
        problem = "its header does not say what HEAD says"
    elif before is not None and (
        header.seq != before.seq + 1
        or header.prev_chain != chain
        or header.pre_state != before.post_state
        or header.from_rev != before.to_rev
        or header.epoch < before.epoch
    ):
        problem = "it does not continue the segment before it"
    if problem:
        position = f"revision {ref.to_rev}"
        raise ChainBroken(problem, op="check", object=ref.name, position=position)
