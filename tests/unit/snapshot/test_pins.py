"""Pins: a name is given once, and what does not parse is told."""

from collections.abc import Iterator

import pytest

from snapshot.errors import IntegrityError, ObjectMissing, PinInvalid
from snapshot.pins import Pin, list_pins, put_pin, remove_pin
from snapshot.points import Point
from snapshot.remote import Blob, Entry, Remote
from tests.unit.snapshot.support import FlakyRemote, StillClock

POINT = Point(7, 120, 1_777_863_721_000)


def test_a_pin_is_listed_until_it_is_removed(bucket: Remote, clock: StillClock) -> None:
    made = put_pin(bucket, "before-upgrade", POINT, clock=clock, note="why")
    assert made == Pin(
        name="before-upgrade",
        seq=7,
        rev=120,
        time_ms=POINT.time_ms,
        note="why",
        created="2026-05-04T03:02:01Z",
    )
    put_pin(bucket, "a.b", POINT, clock=clock)
    assert [pin.name for pin in list_pins(bucket)] == ["a.b", "before-upgrade"]
    assert made in list_pins(bucket)
    remove_pin(bucket, "before-upgrade")
    assert [pin.name for pin in list_pins(bucket)] == ["a.b"]


def test_a_name_that_is_taken_keeps_its_point(bucket: Remote, clock: StillClock) -> None:
    made = put_pin(bucket, "one", POINT, clock=clock)
    with pytest.raises(PinInvalid, match="there is a pin of this name") as caught:
        put_pin(bucket, "one", Point(8, 130, 0), clock=clock)
    assert caught.value.hint
    assert list_pins(bucket) == [made]


@pytest.mark.parametrize(
    "name", ["", "A", "a/b", "../x", "-a", "a-", ".a", "a b", "a\n", "ä", "a" * 64]
)
def test_what_is_no_name_is_refused(bucket: Remote, clock: StillClock, name: str) -> None:
    with pytest.raises(PinInvalid, match="is no name"):
        put_pin(bucket, name, POINT, clock=clock)
    assert list(bucket.list()) == []


@pytest.mark.parametrize("name", ["a", "9", "a-b.c", "a" * 63])
def test_what_is_a_name_is_taken(bucket: Remote, clock: StillClock, name: str) -> None:
    put_pin(bucket, name, POINT, clock=clock)
    assert [pin.name for pin in list_pins(bucket)] == [name]


def test_a_pin_that_is_not_there_cannot_be_removed(bucket: Remote) -> None:
    with pytest.raises(PinInvalid, match="no such pin"):
        remove_pin(bucket, "none")


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b'{"name":1}'])
def test_a_pin_that_does_not_parse_is_named(bucket: Remote, data: bytes) -> None:
    bucket.put_if_absent("pins/x.json", data)
    with pytest.raises(IntegrityError) as caught:
        list_pins(bucket)
    assert caught.value.object == "pins/x.json"


def test_a_pin_removed_while_they_are_listed_is_left_out(bucket: Remote, clock: StillClock) -> None:
    class Vanishing(FlakyRemote):
        def get(self, name: str) -> Blob:
            raise ObjectMissing("gone", op="get", object=name)

        def list(self, under: str = "") -> Iterator[Entry]:
            return iter([Entry("pins/x.json", 1, clock.now())])

    assert list_pins(Vanishing(bucket)) == []
