"""The look at the bucket: names and sizes, without reading a segment."""

from pathlib import Path

import pytest

from snapshot.head import Head
from snapshot.listing import Listing, check_listing
from snapshot.remote import Remote
from snapshot.ship import ship_full
from tests.unit.snapshot.hub import serve
from tests.unit.snapshot.support import KEY


@pytest.fixture
async def before_and_after(tmp_path: Path, bucket: Remote) -> tuple[Head, Head]:
    """HEAD with a base and a delta, and after a checkpoint and another delta."""
    async with serve(tmp_path / "d", bucket) as hub:
        await hub.put("a")
        hub.ship()
        await hub.put("b")
        hub.ship()
        before = hub.chain.head
        ship_full(hub.store, hub.chain, hub.spool)
        await hub.put("c")
        hub.ship()
        return before, hub.chain.head


def test_a_whole_bucket_is_told_with_its_size(
    bucket: Remote, before_and_after: tuple[Head, Head]
) -> None:
    _, head = before_and_after
    sizes = [entry.size for entry in bucket.list() if entry.name.endswith(".hs")]
    assert check_listing(bucket, head, KEY) == Listing(4, sum(sizes))


@pytest.mark.parametrize("is_in_head", [False, True])
@pytest.mark.parametrize(("damage", "says"), [("missing", "missing"), ("short", "3 bytes long")])
def test_what_is_missing_or_of_another_size_is_named(
    bucket: Remote, before_and_after: tuple[Head, Head], is_in_head: bool, damage: str, says: str
) -> None:
    before, head = before_and_after
    victim = (head if is_in_head else before).segments[0]
    bucket.delete(victim.name)
    if damage == "short":
        bucket.put_if_absent(victim.name, b"xyz")
    found = check_listing(bucket, head, KEY)
    assert found.is_head_hurt is is_in_head
    assert found.problem.startswith("1 segments are not as they were put")
    assert victim.name in found.problem
    assert says in found.problem


def test_what_nothing_names_is_no_damage(
    bucket: Remote, before_and_after: tuple[Head, Head]
) -> None:
    _, head = before_and_after
    bucket.put_if_absent("e00000001/d0/7-9-00000000.hs", b"an orphan")
    assert check_listing(bucket, head, KEY).problem == ""


def test_a_manifest_that_is_lost_is_told(
    bucket: Remote, before_and_after: tuple[Head, Head]
) -> None:
    _, head = before_and_after
    assert head.manifest is not None
    bucket.delete(head.manifest.name)
    found = check_listing(bucket, head, KEY)
    assert "a manifest is missing" in found.problem
    assert not found.is_head_hurt
