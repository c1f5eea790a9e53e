"""Obtaining a state: the segments that lead to a point, fetched, and checked as one chain.

Owns the checks that come before anything is built: size and hash of every segment, header seals,
and that each continues the one before it, up to exactly what HEAD says when the point is HEAD's.
Where a segment is missing or altered another way is looked for among all that the manifests name:
a merge for its parts, its parts for a merge, an earlier full; never past a hole. Restore, verify
and merges share it.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from snapshot.catalog import Catalog, head_only, load_catalog, salvage_catalog
from snapshot.chain import Base
from snapshot.errors import (
    ChainBroken,
    IntegrityError,
    NothingToRestore,
    ObjectMissing,
    SegmentCorrupt,
    Unreachable,
)
from snapshot.head import Head, SegmentRef
from snapshot.header import Header, Kind
from snapshot.points import AtPosition, Latest, Point, Target, find_path, newest_point, resolve
from snapshot.remote import Remote
from snapshot.seal import HubKey
from snapshot.segment import check_hash, open_segment

FETCHERS = 8
"""Segments under way at once: hides the latency of a bucket."""


class Progress(Protocol):
    """Told how far a long operation is, from one thread."""

    def phase(self, name: str, total: int) -> None:
        """Begin a phase that has `total` units (bytes, objects)."""
        ...

    def advance(self, units: int) -> None:
        """Count so many more as done."""
        ...


class Quiet:
    """A `Progress` that nobody looks at."""

    def phase(self, name: str, total: int) -> None:
        """Ignore it."""

    def advance(self, units: int) -> None:
        """Ignore it."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A segment as a local file, its bytes checked against its reference."""

    ref: SegmentRef
    path: Path


@dataclass(frozen=True, slots=True)
class Obtained:
    """A state ready to be built: its point, its segments in order, and what was found damaged."""

    head: Head
    point: Point
    fetched: list[Fetched]
    base: Base
    damaged: tuple[str, ...]

    @property
    def size(self) -> int:
        """The bytes of the segments."""
        return sum(each.ref.size for each in self.fetched)


def require_full(head: Head | None, remote: Remote) -> Head:
    """Return HEAD if there is a full to begin with, else raise `NothingToRestore`."""
    if head is None:
        raise NothingToRestore("there is no hub here", op="restore", object=remote.url)
    if head.full is None:
        raise NothingToRestore(
            f"hub {head.hub_id} has not shipped its first full yet", op="restore", object=remote.url
        )
    return head


def find_point(
    remote: Remote, key: HubKey, head: Head, target: Target, *, is_last_consistent: bool = False
) -> tuple[Catalog, Point, tuple[SegmentRef, ...]]:
    """Return what a target means and the segments that a restore of it reads, without damage.

    `is_last_consistent`: go on without manifests that are damaged, though the newest point before
    the target may be in one.
    """
    if isinstance(target, Latest):
        return head_only(head), newest_point(head), head.segments
    catalog = _load(remote, key, head, is_last_consistent=is_last_consistent)
    point = resolve(catalog, target)
    try:
        return catalog, point, find_path(catalog, point.seq)
    except Unreachable as error:
        if not catalog.damaged or error.newest is None:
            raise
        point = resolve(catalog, AtPosition(error.newest))
        return catalog, point, find_path(catalog, point.seq)


def _load(remote: Remote, key: HubKey, head: Head, *, is_last_consistent: bool) -> Catalog:
    try:
        return load_catalog(remote, head, key)
    except IntegrityError:
        if not is_last_consistent:
            raise
        return salvage_catalog(remote, head, key)


def obtain(
    remote: Remote,
    key: HubKey,
    head: Head,
    directory: Path,
    *,
    target: Target,
    is_last_consistent: bool = False,
    progress: Progress | None = None,
) -> Obtained:
    """Bring the segments of a point into `directory`, around those that are damaged.

    `is_last_consistent`: when the point cannot be reached, take the newest before it that can.
    Raises `Unreachable`, `NothingToRestore`, `KeyMismatch`, `RemoteError`.
    """
    catalog, point, path = find_point(
        remote, key, head, target, is_last_consistent=is_last_consistent
    )
    bad: dict[str, IntegrityError] = {}
    have: dict[str, Fetched] = {}
    while True:
        try:
            base = _fetch_path(remote, key, head, path, directory, have=have, progress=progress)
        except (SegmentCorrupt, ChainBroken) as error:
            if error.object in bad or error.object not in {ref.name for ref in path}:
                raise
            bad[error.object] = error
        else:
            fetched = [have[ref.name] for ref in path]
            damaged = tuple(sorted({*bad, *catalog.damaged}))
            return Obtained(head, point, fetched, base, damaged)
        if catalog.manifests == ():
            catalog = _load(remote, key, head, is_last_consistent=is_last_consistent)
        try:
            path = find_path(catalog, point.seq, bad=frozenset(bad))
        except Unreachable as error:
            if not is_last_consistent or error.newest is None:
                raise error from next(iter(bad.values()))
            point = resolve(catalog, AtPosition(error.newest))
            path = find_path(catalog, point.seq, bad=frozenset(bad))


def fetch(
    remote: Remote,
    refs: Iterable[SegmentRef],
    directory: Path,
    *,
    on_fetched: Callable[[Fetched], None] | None = None,
) -> list[Fetched]:
    """Bring segments into `directory`, checking size and hash; in the order given.

    `on_fetched` is called for each, from this thread. Raises `ChainBroken` for a missing segment,
    `SegmentCorrupt` for an altered one.
    """
    fetched: list[Fetched] = []
    with ThreadPoolExecutor(FETCHERS) as pool:
        try:
            for each in pool.map(lambda ref: _fetch_one(remote, ref, directory), refs):
                if on_fetched is not None:
                    on_fetched(each)
                fetched.append(each)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return fetched


def check_links(fetched: list[Fetched], key: HubKey) -> list[Header]:
    """Check that segments are one stretch of a chain; return their headers. Reads only those."""
    headers: list[Header] = []
    chain = b""
    for each in fetched:
        with open_segment(each.path, key, name=each.ref.name) as reader:
            header = reader.header
        _check_place(each.ref, header, before=headers[-1] if headers else None, chain=chain)
        chain = header.chain_after(bytes.fromhex(each.ref.hash))
        headers.append(header)
    if not headers:
        raise ChainBroken("there are no segments", op="check", object="HEAD")
    return headers


def check_chain(head: Head, fetched: list[Fetched], key: HubKey) -> Base:
    """Check that segments are one chain from a full on, and end as HEAD says if they end there.

    Returns where they end.
    """
    headers = check_links(fetched, key)
    end = headers[-1]
    refs = tuple(each.ref for each in fetched)
    base = Base(
        seq=end.seq,
        rev=end.to_rev,
        chain=end.chain_after(bytes.fromhex(refs[-1].hash)).hex(),
        state_hash=end.post_state.hex(),
        objects=end.objects,
        full=refs[0],
        tail=refs[1:],
    )
    if headers[0].kind is not Kind.FULL:
        raise ChainBroken("the first segment is no full", op="check", object=refs[0].name)
    if any(header.hub_id != head.hub_id or header.epoch > head.epoch for header in headers):
        raise ChainBroken("a segment is not of this hub", op="check", object=refs[0].name)
    found = (base.rev, base.chain, base.state_hash, base.objects)
    if end.seq == head.seq and found != (head.rev, head.chain, head.state_hash, head.objects):
        raise ChainBroken(
            f"the segments end at position {end.seq}, revision {end.to_rev}; HEAD claims "
            f"revision {head.rev}, or another history",
            op="check",
            object=refs[-1].name,
        )
    return base


def _fetch_path(
    remote: Remote,
    key: HubKey,
    head: Head,
    path: tuple[SegmentRef, ...],
    directory: Path,
    *,
    have: dict[str, Fetched],
    progress: Progress | None,
) -> Base:
    """Fetch what is not there yet and check the whole path."""
    told = progress or Quiet()
    missing = [ref for ref in path if ref.name not in have]
    told.phase("fetch", sum(ref.size for ref in missing))

    def note(each: Fetched) -> None:
        have[each.ref.name] = each
        told.advance(each.ref.size)

    fetch(remote, missing, directory, on_fetched=note)
    return check_chain(head, [have[ref.name] for ref in path], key)


def _fetch_one(remote: Remote, ref: SegmentRef, directory: Path) -> Fetched:
    path = directory / ref.name.replace("/", "-")
    path.unlink(missing_ok=True)
    try:
        size = remote.get_to_file(ref.name, path)
    except ObjectMissing as error:
        raise ChainBroken(
            "a segment that HEAD or a manifest names is missing",
            op="fetch",
            object=ref.name,
            position=f"revision {ref.to_rev}",
        ) from error
    if size != ref.size:
        raise SegmentCorrupt(
            f"{size} bytes long, it was put with {ref.size}", op="fetch", object=ref.name
        )
    if check_hash(path, name=ref.name).hex() != ref.hash:
        raise SegmentCorrupt("this is not the segment that was put", op="fetch", object=ref.name)
    return Fetched(ref, path)


def _check_place(ref: SegmentRef, header: Header, *, before: Header | None, chain: bytes) -> None:
    says = (header.from_seq, header.seq, header.from_rev, header.to_rev)
    problem = ""
    if says != (ref.from_seq, ref.seq, ref.from_rev, ref.to_rev):
        problem = "its header does not say what names it"
    elif before is not None and (
        header.kind is Kind.FULL
        or header.from_seq != before.seq
        or header.prev_chain != chain
        or header.pre_state != before.post_state
        or header.from_rev != before.to_rev
    ):
        problem = "it does not continue the segment before it"
    if problem:
        position = f"revision {ref.to_rev}"
        raise ChainBroken(problem, op="check", object=ref.name, position=position)
