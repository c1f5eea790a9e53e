"""Merging in the bucket: many deltas become one that says the same.

Owns the way of a merge: its parts are fetched, which proves that they can be, checked as the
stretch of chain that they are, and written as one segment with the last write to each key. Memory
holds what changed in them, which the policy bounds.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from hub.store import Record
from snapshot.errors import ChainBroken
from snapshot.head import SegmentRef
from snapshot.header import Header, Kind
from snapshot.merge import last_writes
from snapshot.plan import Fetched, check_links, fetch
from snapshot.remote import Remote
from snapshot.seal import HubKey
from snapshot.segment import Segment, open_segment, write_segment


def write_merge(
    remote: Remote,
    key: HubKey,
    parts: tuple[SegmentRef, ...],
    directory: Path,
    *,
    epoch: int,
    token: Callable[[int], bytes],
) -> Segment:
    """Write the merge of `parts`, neighbours in order, into an empty `directory`.

    Raises `ChainBroken` or `SegmentCorrupt` for a part that is missing or altered.
    """
    fetched = fetch(remote, parts, directory)
    headers = check_links(fetched, key)
    first, last = headers[0], headers[-1]
    if any(header.kind is Kind.FULL for header in headers):
        raise ChainBroken("a full is among the deltas", op="merge", object=parts[0].name)
    header = Header(
        kind=Kind.MERGE,
        hub_id=last.hub_id,
        epoch=epoch,
        from_seq=first.from_seq,
        seq=last.seq,
        from_rev=first.from_rev,
        to_rev=last.to_rev,
        objects=last.objects,
        time_ms=last.time_ms,
        prev_chain=first.prev_chain,
        end_chain=last.chain_after(bytes.fromhex(parts[-1].hash)),
        pre_state=first.pre_state,
        post_state=last.post_state,
    )
    records = _last_writes(fetched, key)
    return write_segment(directory / "merge.hs", header, records=records, key=key, token=token)


def _last_writes(fetched: list[Fetched], key: HubKey) -> list[Record]:
    """Return the last write to each key, in order of stored key, deletions too."""
    changed = last_writes(_records(each, key) for each in fetched)
    return [changed[at] for at in sorted(changed)]


def _records(each: Fetched, key: HubKey) -> Iterator[Record]:
    with open_segment(each.path, key, name=each.ref.name) as reader:
        yield from reader.records()
