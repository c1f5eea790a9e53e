"""The catalog: every segment that was committed under a prefix and not cleaned up.

Owns the way from HEAD through the manifests. The manifests are one list, newest first; it ends at
HEAD's horizon, before which only what retention kept is left. They are fetched side by side and
believed only where the one after (or HEAD) names their hash.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from snapshot.errors import ChainBroken, IntegrityError, ObjectMissing, UnsupportedFormat
from snapshot.head import Fork, Head, ObjectRef, SegmentRef
from snapshot.layout import MANIFESTS, is_manifest_name
from snapshot.manifest import Manifest, decode_manifest, manifest_hash
from snapshot.remote import Remote
from snapshot.seal import HubKey

_FETCHERS = 8


@dataclass(frozen=True, slots=True)
class Catalog:
    """What HEAD and its manifests name.

    `segments` by position reached, fulls before what leads there; `manifests` newest first, `kept`
    (a part of `segments`) is what retention carried over the horizon. `damaged`: manifests that
    are lost or altered, in a catalog that goes on without them.
    """

    head: Head
    segments: tuple[SegmentRef, ...]
    manifests: tuple[tuple[ObjectRef, Manifest], ...]
    kept: tuple[SegmentRef, ...] = ()
    damaged: tuple[str, ...] = ()

    @property
    def branches(self) -> tuple[Fork, ...]:
        """The forks that left positions behind, oldest first."""
        return self.head.branches

    def names(self) -> frozenset[str]:
        """Return the name of every object that is in use, HEAD and the segments included."""
        manifests = {ref.name for ref, _ in self.manifests}
        kept = {self.head.kept.name} if self.head.kept else set()
        return frozenset({ref.name for ref in self.segments} | manifests | kept)


def load_catalog(remote: Remote, head: Head, key: HubKey) -> Catalog:
    """Read every manifest that HEAD leads to.

    Raises `ChainBroken` for one that is missing, `SegmentCorrupt` for one that is altered.
    """
    read = _Reader(remote, key)
    manifests = tuple(_walk(head, read)) if head.manifest else ()
    kept = read(head.kept).segments if head.kept else ()
    return _catalog(head, manifests, kept)


def salvage_catalog(remote: Remote, head: Head, key: HubKey) -> Catalog:
    """Read what manifests there are, though some are lost or altered: `Catalog.damaged`.

    Those that nothing whole leads to are believed by their seal. Whatever they name was committed
    once, and is checked as every segment is.
    """
    read = _Reader(remote, key)
    read.fetch_ahead()
    found: dict[ObjectRef, Manifest] = {}
    damaged: set[str] = set()
    for ref in read.listed():
        is_wanted = ref == head.kept or _seq_of(ref) > head.horizon
        try:
            if is_wanted and (manifest := read(ref)).hub_id == head.hub_id:
                found[ref] = manifest
        except (IntegrityError, UnsupportedFormat):
            damaged.add(ref.name)
    led_to = [head.manifest, *(manifest.prev for manifest in found.values())]
    named = [ref for ref in led_to if ref and _seq_of(ref) > head.horizon]
    named += [head.kept] if head.kept else []
    damaged |= {ref.name for ref in named if ref not in found}
    kept = found.pop(head.kept).segments if head.kept in found else ()
    newest_first = sorted(found.items(), key=lambda item: item[1].seq, reverse=True)
    return _catalog(head, tuple(newest_first), kept, damaged=tuple(sorted(damaged)))


def _catalog(
    head: Head,
    manifests: tuple[tuple[ObjectRef, Manifest], ...],
    kept: tuple[SegmentRef, ...],
    *,
    damaged: tuple[str, ...] = (),
) -> Catalog:
    found = {ref.name: ref for _, manifest in manifests for ref in manifest.segments}
    found = {ref.name: ref for ref in kept} | found
    found |= {ref.name: ref for ref in head.segments}
    ordered = sorted(found.values(), key=lambda ref: (ref.seq, ref.is_delta, -ref.from_seq))
    return Catalog(head, tuple(ordered), manifests, kept, damaged)


def head_only(head: Head) -> Catalog:
    """Return the catalog of what HEAD itself names: enough for its newest state."""
    return Catalog(head, head.segments, ())


class _Reader:
    """Reads manifests; those listed are fetched ahead, side by side."""

    def __init__(self, remote: Remote, key: HubKey) -> None:
        self._remote, self._key = remote, key
        self._ahead: dict[str, bytes] | None = None

    def __call__(self, ref: ObjectRef) -> Manifest:
        """Return the manifest `ref` names."""
        data = self._ahead.get(ref.name) if self._ahead is not None else None
        return decode_manifest(data or self._get(ref.name), ref, self._key)

    def fetch_ahead(self) -> None:
        """Fetch every manifest there is; one deleted meanwhile is met when it is needed."""
        names = [e.name for e in self._remote.list(MANIFESTS) if is_manifest_name(e.name)]
        with ThreadPoolExecutor(_FETCHERS) as pool:
            bodies = pool.map(self._get_if_there, names)
            self._ahead = {
                name: data for name, data in zip(names, bodies, strict=True) if data is not None
            }

    def listed(self) -> list[ObjectRef]:
        """Return what was fetched ahead, each by the hash of its bytes."""
        return [ObjectRef(name, manifest_hash(data)) for name, data in (self._ahead or {}).items()]

    def _get_if_there(self, name: str) -> bytes | None:
        try:
            return self._remote.get(name).data
        except ObjectMissing:
            return None

    def _get(self, name: str) -> bytes:
        try:
            return self._remote.get(name).data
        except ObjectMissing as error:
            raise ChainBroken(
                "a manifest is missing",
                op="read",
                object=name,
                hint="put it back from a copy, or plan and restore with what the others name: "
                "--to-last-consistent; look for lifecycle rules on the bucket",
            ) from error


def _walk(head: Head, read: _Reader) -> Iterator[tuple[ObjectRef, Manifest]]:
    ref = head.manifest
    read.fetch_ahead()
    while ref is not None and _seq_of(ref) > head.horizon:  # else cleaned up, or about to be
        manifest = read(ref)
        yield ref, manifest
        ref = manifest.prev


def _seq_of(ref: ObjectRef) -> int:
    return int(ref.name.removeprefix(MANIFESTS).partition("-")[0])
