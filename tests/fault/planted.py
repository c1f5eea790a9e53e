"""Looking for a planted string wherever a hub keeps, ships or says something.

Owns the forms a string may hide in (`forms`) and what bytes hold once they are decompressed or, of
a segment, opened with the hub key. What is sealed stays sealed: opening a value with its data key
is for proving that the right one was looked at (`unsealed`).
"""

import base64
import itertools
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import zstandard
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from hub.clock import SystemClock
from hub.meta import Obj
from hub.meta.codec.json import decode
from hub.registry.keeping import IDENTITY
from hub.store import HubKey
from hub.store.dictionary import Dictionaries
from hub.store.hubkey import unwrap_data_keys
from hub.store.lmdb_env import NAME_DATA_KEYS, Environment, read_dictionaries, read_name
from hub.store.log import decode_entry
from hub.store.value import SEALED, ZSTD, Codecs, full_key, header_of
from snapshot.segment import open_segment

_STARTS = re.compile(rb"\x28\xb5\x2f\xfd|\x1f\x8b\x08|\x78[\x01\x5e\x9c\xda]")
_ZSTD = b"\x28\xb5\x2f\xfd"
_PIECE, _MOST = 4 << 10, 4 << 20
_PEM = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----\n?", re.DOTALL
)


def forms(secret: bytes) -> frozenset[bytes]:
    """Return every form of a string: plain, hex, base64 wherever it begins, and base64 of that.

    >>> base64.b64encode(b"user:hunter2-hunter2")[7:27] in forms(b"hunter2-hunter2")
    True
    """
    once = {secret, *_base64(secret)}
    twice = {each for form in once for each in _base64(form)}
    return frozenset({*once, *twice, secret.hex().encode(), secret.hex().upper().encode()})


def _base64(data: bytes) -> Iterator[bytes]:
    """Yield what every base64 text with `data` in it has, however many bytes come before it."""
    for before in range(3):
        whole = -(-before * 8 // 6)
        text = base64.b64encode(bytes(before) + data)
        end = (before + len(data)) * 8 // 6
        yield text[whole:end]
        yield text[whole:end].translate(bytes.maketrans(b"+/", b"-_"))


def inflated(data: bytes, dictionaries: Dictionaries | None = None) -> Iterator[bytes]:
    """Yield what every zstd, zlib and gzip stream in some bytes holds, wherever it begins.

    A stream that breaks off gives what comes before; that is how freed pages are read.
    """
    digested = dictionaries.digested if dictionaries else {}
    for found in _STARTS.finditer(data):
        rest = data[found.start() : found.start() + _MOST]
        if found[0] == _ZSTD:
            for each in (*digested.values(), None):
                opened = zstandard.ZstdDecompressor(dict_data=each) if each else _PLAIN_ZSTD
                yield _drain(opened.decompressobj(), rest)
        else:
            yield _drain(zlib.decompressobj(wbits=47), rest)


_PLAIN_ZSTD = zstandard.ZstdDecompressor()


def _drain(stream: "zlib._Decompress | zstandard.ZstdDecompressionObj", data: bytes) -> bytes:
    held = []
    try:
        for at in range(0, len(data), _PIECE):
            held.append(stream.decompress(data[at : at + _PIECE]))
            if stream.unused_data:
                break
    except (zlib.error, zstandard.ZstdError):
        pass
    return b"".join(held)


def files_under(*places: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the bytes of every file in some directories, each under its path."""
    for place in places:
        for path in sorted(place.rglob("*")) if place.is_dir() else (place,):
            if path.is_file():
                yield str(path), path.read_bytes()


def plain_value(raw: bytes, dictionaries: Dictionaries) -> bytes:
    """Return a value with its payload decompressed, as far as that goes without a data key."""
    header = header_of(raw)
    payload = raw[header.payload_at :]
    if header.flags & ZSTD and not header.flags & SEALED:
        opened = zstandard.ZstdDecompressor(dict_data=dictionaries.digested[header.dictionary])
        return raw[: header.payload_at] + opened.decompress(payload)
    return raw + b"".join(inflated(payload, dictionaries))


class StoreFile:
    """The file of a store that no hub runs on, database by database."""

    def __init__(self, directory: Path, key: HubKey) -> None:
        env = Environment(directory, read_only=True)
        try:
            with env.read() as txn:
                self.dictionaries = Dictionaries(read_dictionaries(txn, env))
                self.values: dict[str, list[tuple[bytes, bytes]]] = {}
                for name in ("objects", "volatile", "renewals"):
                    with txn.cursor(getattr(env, name)) as cursor:
                        self.values[name] = list(cursor)
                with txn.cursor(env.log) as cursor:
                    entries = [decode_entry(at, raw) for at, raw in cursor]
                self.values["log"] = [
                    (entry.key, raw)
                    for entry in entries
                    for raw in (entry.new, entry.previous)
                    if raw
                ]
                self.other: dict[str, list[tuple[bytes, bytes]]] = {}
                for name in ("meta", "dicts"):
                    with txn.cursor(getattr(env, name)) as cursor:
                        self.other[name] = list(cursor)
                ring = read_name(txn, env, NAME_DATA_KEYS)
        finally:
            env.close()
        self.data_keys = unwrap_data_keys(ring, key)
        self._codecs = Codecs(self.dictionaries, self.data_keys, token=SystemClock().token)

    def shown(self) -> Iterator[tuple[str, bytes]]:
        """Yield all that the file holds, decompressed, each under where it lies."""
        for name, rows in self.values.items():
            for key, raw in rows:
                yield f"{name} {key!r}", key + plain_value(raw, self.dictionaries)
        for name, rows in self.other.items():
            for key, raw in rows:
                yield f"{name} {key!r}", key + raw + b"".join(inflated(raw, self.dictionaries))

    def unsealed(self, prefix: bytes, *, database: str = "objects") -> list[bytes]:
        """Return the sealed documents under a prefix, opened with their data keys."""
        return [
            self._codecs.decode(full_key(key, raw), raw)
            for key, raw in self.values[database]
            if key.startswith(prefix) and header_of(raw).flags & SEALED
        ]

    def identity(self) -> Obj:
        """Return the hub's own keys and certificates."""
        (document,) = self.unsealed(bytes(IDENTITY))
        return decode(document)


def segment_contents(
    path: Path, key: HubKey, dictionaries: Dictionaries
) -> Iterator[tuple[str, bytes]]:
    """Yield all that a segment holds once its frames are opened, values decompressed."""
    with open_segment(path, key) as reader:
        preamble = reader.preamble
        yield f"{path.name} data keys", preamble.data_keys
        for number, stored in preamble.dictionaries.items():
            yield f"{path.name} dictionary {number}", stored
        for record in reader.records():
            raw = b"" if record.raw is None else plain_value(record.raw, dictionaries)
            yield f"{path.name} {record.key!r}", bytes(record.key) + raw


def key_forms(pem: str) -> frozenset[bytes]:
    """Return what no copy of a private key is without: its number, or the lines of PEM with it."""
    key = serialization.load_pem_private_key(pem.encode(), None)
    assert isinstance(key, EllipticCurvePrivateKey)
    size = -(-key.key_size // 8)
    number = key.private_numbers().private_value.to_bytes(size, "big")
    lines = [line.encode() for line in pem.splitlines()[1:3]]  # what follows is the public key
    wrapped = [form for line in lines for form in _base64(line)]
    return frozenset({*forms(number), *lines, *wrapped})


def private_keys(obj: object) -> Iterator[str]:
    """Yield every private key in PEM in some JSON, however deep."""
    if isinstance(obj, str):
        yield from (found[0] for found in _PEM.finditer(obj))
    elif isinstance(obj, Mapping):
        yield from itertools.chain.from_iterable(map(private_keys, obj.values()))
    elif isinstance(obj, list):
        yield from itertools.chain.from_iterable(map(private_keys, obj))


def find(
    needles: Mapping[str, Iterable[bytes]], places: Iterable[tuple[str, bytes]]
) -> dict[str, set[str]]:
    """Return which secrets stand where: their names, by place."""
    found: dict[str, set[str]] = {}
    for place, data in places:
        names = {name for name, every in needles.items() if any(form in data for form in every)}
        if names:
            found[place] = names
    return found
