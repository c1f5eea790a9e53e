"""What the operating system refused, in the words of the flags.

Owns the way from an OSError back to the setting whose file, directory or address it is about: a
person knows what they wrote, not what was opened for it.
"""

import errno
import os
import socket
from collections.abc import Mapping
from pathlib import Path

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
FILES = frozenset({"key-file", "audit-log"})
"""Settings that name a file; the others name directories."""


def explain_os_error(
    error: OSError, places: Mapping[str, Path], *, address: str = ""
) -> tuple[str, str]:
    """Return what went wrong and what to do ("" when the message says it).

    `places`: the path of each setting (``data-dir``) that has one; `address`: that of ``listen``.
    """
    for each in (error, error.__cause__):
        if isinstance(each, socket.gaierror):
            what = f"listen: the host of {address} cannot be resolved: {each.strerror}"
            return what, "give an address or a name of this machine: --listen ADDRESS:PORT"
    if error.filename is None:
        return error.strerror or str(error), ""
    setting = _setting_of(Path(os.fsdecode(error.filename)), places)
    if setting is None:
        return str(error), ""
    if obstacle := _obstacle(places[setting], is_file=setting in FILES):
        return f"{setting}: {obstacle}", f"name another place with --{setting}"
    advice = f"see that it can be made and used by this user, or name another with --{setting}"
    if error.errno in _FULL:
        advice = "free some space on that volume"
    return f"{setting}: {os.fsdecode(error.filename)}: {error.strerror}", advice


def _setting_of(refused: Path, places: Mapping[str, Path]) -> str | None:
    """Return the setting that a path is of: the place, in it, or on the way to it."""
    path = refused.absolute()
    absolute = {setting: place.absolute() for setting, place in places.items()}
    for setting, place in absolute.items():
        if path.is_relative_to(place):
            return setting
    return next((s for s, place in absolute.items() if place.is_relative_to(path)), None)


def _obstacle(place: Path, *, is_file: bool) -> str:
    """Return what of another kind lies at a place or on the way to it, "" when nothing does."""
    if is_file and place.is_dir():
        return f"{place} is a directory, not a file"
    way = place.absolute().parents if is_file else (place, *place.absolute().parents)
    nearest = next((each for each in way if each.exists()), None)
    if nearest is None or nearest.is_dir():
        return ""
    return f"{nearest} is a file, not a directory"
