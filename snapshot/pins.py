"""Pins: points that retention never lets go.

Owns ``pins/<name>.json``. A pin keeps the segments that lead to its position, for as long as the
object is there; who can write the bucket can pin, so a pin is not sealed and can only keep.
"""

import re

import msgspec

from hub.clock import Clock
from snapshot.errors import IntegrityError, ObjectExists, ObjectMissing, PinInvalid
from snapshot.layout import PINS
from snapshot.points import Point
from snapshot.remote import Remote

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """A point that is kept, and why."""

    format: int = 1
    name: str
    seq: int
    rev: int
    time_ms: int
    note: str = ""
    created: str


def put_pin(remote: Remote, name: str, point: Point, *, clock: Clock, note: str = "") -> Pin:
    """Keep a point under a new name. Raises `PinInvalid`: the name is taken, or is none."""
    if not _NAME.fullmatch(name):
        raise PinInvalid(
            f"{name!r} is no name for a pin", op="pin", hint="use a-z, 0-9, - and . (63 at most)"
        )
    pin = Pin(
        name=name,
        seq=point.seq,
        rev=point.rev,
        time_ms=point.time_ms,
        note=note,
        created=clock.now().isoformat(timespec="seconds").replace("+00:00", "Z"),
    )
    try:
        remote.put_if_absent(f"{PINS}{name}.json", msgspec.json.encode(pin))
    except ObjectExists as error:
        raise PinInvalid(
            "there is a pin of this name", op="pin", object=name, hint="unpin it, or name another"
        ) from error
    return pin


def remove_pin(remote: Remote, name: str) -> None:
    """Let a point go. Raises `PinInvalid` when there is no such pin."""
    find_pin(remote, name)
    remote.delete(f"{PINS}{name}.json")


def find_pin(remote: Remote, name: str) -> None:
    """Raise `PinInvalid` when there is no such pin."""
    try:
        remote.head(f"{PINS}{name}.json")
    except ObjectMissing as error:
        raise PinInvalid(
            "there is no such pin", op="unpin", object=name, hint="hub-restore list shows them"
        ) from error


def list_pins(remote: Remote) -> list[Pin]:
    """Return every pin, by name. Raises `IntegrityError` for one that does not parse."""
    found = []
    for entry in remote.list(PINS):
        try:
            found.append(msgspec.json.decode(remote.get(entry.name).data, type=Pin))
        except ObjectMissing:
            continue
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise IntegrityError(
                f"does not parse: {error}",
                op="list",
                object=entry.name,
                hint="delete it, or put it back from a copy",
            ) from error
    return found
