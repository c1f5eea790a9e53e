"""Compression dictionaries: the built-in one, and those a store holds.

A value names its dictionary by number, and a store holds every dictionary its values name, so that
a store and a full snapshot can be read without the package that wrote them. Number 0 means none,
number 1 is the built-in dictionary, copied into a store when it is created.

Stored form in the `dicts` database: u16 number -> u8 flags, dictionary. (Flags are 0 today; a
dictionary trained on a fleet's own values will be sealed as they are.)
"""

import importlib.resources
from collections.abc import Mapping

import zstandard

from hub.store.errors import Corrupt

NONE = 0
BUILTIN = 1
LEVEL = 3
"""The zstd level of values: measured the best of ratio for time with a dictionary."""

_PLAIN = b"\0"


def builtin_dictionary() -> bytes:
    """Return the dictionary shipped with the package (`tools/train_dictionary.py` makes it)."""
    package = importlib.resources.files("hub.store")
    return package.joinpath("_generated", "builtin-1.zdict").read_bytes()


def encode_dictionary(dictionary: bytes) -> bytes:
    """Return the stored form."""
    return _PLAIN + dictionary


class Dictionaries:
    """The dictionaries of one store, ready for compressors of any thread.

    Digested once here: the objects are read-only afterwards, so that the per-thread compressors
    share them.
    """

    __slots__ = ("current", "digested")

    def __init__(self, stored: Mapping[int, bytes]) -> None:
        """Take the `dicts` database as number -> stored form; the highest number compresses."""
        self.digested = {number: _digest(number, raw) for number, raw in stored.items()}
        self.current = max(self.digested, default=NONE)


def _digest(number: int, raw: bytes) -> zstandard.ZstdCompressionDict:
    if raw[:1] != _PLAIN:
        raise Corrupt(f"dictionary {number} is damaged or of a newer version of hublet")
    digested = zstandard.ZstdCompressionDict(raw[1:])
    digested.precompute_compress(level=LEVEL)
    zstandard.ZstdDecompressor(dict_data=digested)
    return digested
