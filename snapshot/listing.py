"""A look at what lies in the bucket, without reading it.

Owns the comparison of names and sizes with what HEAD and the manifests name: it finds what somebody
else deleted (a lifecycle rule, a hand) long before a restore would.
"""

from dataclasses import dataclass

from snapshot.catalog import Catalog
from snapshot.remote import Remote


@dataclass(frozen=True, slots=True)
class Listing:
    """What was compared; `problem` "" when all of it is there.

    `is_head_hurt`: the newest state itself is touched.
    """

    segments: int
    size: int
    problem: str = ""
    is_head_hurt: bool = False


def check_listing(remote: Remote, catalog: Catalog) -> Listing:
    """Compare names and sizes. Raises `RemoteError`."""
    sizes = {entry.name: entry.size for entry in remote.list()}
    wrong = [ref for ref in catalog.segments if sizes.get(ref.name) != ref.size]
    total = sum(ref.size for ref in catalog.segments)
    if not wrong:
        return Listing(len(catalog.segments), total)
    first = wrong[0]
    found = sizes.get(first.name)
    what = "missing" if found is None else f"{found} bytes long, not {first.size}"
    return Listing(
        len(catalog.segments),
        total,
        f"{len(wrong)} segments are not as they were put, first {first.name}: {what}",
        is_head_hurt=any(ref in catalog.head.segments for ref in wrong),
    )
