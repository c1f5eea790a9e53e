"""A look at what lies in the bucket, without reading it.

Owns the comparison of names and sizes with what HEAD and the manifests name: it finds what somebody
else deleted (a lifecycle rule, a hand) long before a restore would.
"""

from dataclasses import dataclass

from snapshot.catalog import Catalog, load_catalog, salvage_catalog
from snapshot.errors import IntegrityError
from snapshot.head import Head
from snapshot.remote import Remote
from snapshot.seal import HubKey


@dataclass(frozen=True, slots=True)
class Listing:
    """What was compared; `problem` "" when all of it is there.

    `is_head_hurt`: the newest state itself is touched.
    """

    segments: int
    size: int
    problem: str = ""
    is_head_hurt: bool = False


def check_listing(remote: Remote, head: Head, key: HubKey) -> Listing:
    """Compare names and sizes; a manifest that is lost or altered is a problem as well.

    Raises `RemoteError`.
    """
    found, _ = examine(remote, head, key)
    return found


def examine(remote: Remote, head: Head, key: HubKey) -> tuple[Listing, Catalog]:
    """Compare as `check_listing` does; return the catalog compared with, too."""
    problems = []
    try:
        catalog = load_catalog(remote, head, key)
    except IntegrityError as error:
        catalog = salvage_catalog(remote, head, key)
        problems.append(str(error))
    sizes = {entry.name: entry.size for entry in remote.list()}
    wrong = [ref for ref in catalog.segments if sizes.get(ref.name) != ref.size]
    if wrong:
        first, found = wrong[0], sizes.get(wrong[0].name)
        what = "missing" if found is None else f"{found} bytes long, not {first.size}"
        problems.append(
            f"{len(wrong)} segments are not as they were put, first {first.name}: {what}"
        )
    listing = Listing(
        len(catalog.segments),
        sum(ref.size for ref in catalog.segments),
        "; ".join(problems),
        is_head_hurt=any(ref in head.segments for ref in wrong),
    )
    return listing, catalog
