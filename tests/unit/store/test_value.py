"""Values: header, compression, seal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.store.api import Index, Key, Revision
from hub.store.dictionary import BUILTIN, Dictionaries, builtin_dictionary, encode_dictionary
from hub.store.errors import Corrupt
from hub.store.hubkey import DataKeys
from hub.store.key import stored_key
from hub.store.value import (
    LONG_KEY,
    SEALED,
    ZSTD,
    Codecs,
    ValueCodec,
    full_key,
    header_of,
    is_sealed,
    revision_of,
    stored,
)
from tests.unit.store.given import CLOCK, key

KEYS = DataKeys({1: b"\x01" * 32})
DICTIONARIES = Dictionaries({BUILTIN: encode_dictionary(builtin_dictionary())})
LONG = key("x" * 600)
DOCUMENT = b'{"apiVersion":"v1","kind":"Secret","metadata":{"resourceVersion":"7"}}'

PINNED = bytes.fromhex(
    "0000000000000007 01 0000 00000005 3100610062 28b52ffd24021100007b7d d194f27a"
)
PAYLOAD_AT = 20


def codec(*, keys: DataKeys = KEYS, dictionaries: Dictionaries = DICTIONARIES) -> ValueCodec:
    return ValueCodec(dictionaries, keys, token=CLOCK.token)


def encode(at: Key, *, sealed: bool = False, document: bytes = DOCUMENT) -> bytes:
    return codec().encode(
        at, Revision(7), index=Index(b"1\0a\0b"), document=document, sealed=sealed
    )


@given(st.binary(max_size=3000), st.binary(max_size=50), st.booleans(), st.integers(0, 2**64 - 1))
def test_a_value_decodes_to_its_document(
    document: bytes, index: bytes, is_secret: bool, revision: int
) -> None:
    for at in (key("a"), LONG):
        raw = codec().encode(
            at, Revision(revision), index=Index(index), document=document, sealed=is_secret
        )
        assert codec().decode(at, raw) == document
        entry = stored(stored_key(at), raw)
        assert (entry.key, entry.revision, entry.index) == (at, revision, index)
        assert revision_of(raw) == revision
        assert is_sealed(raw) is is_secret


def test_the_header_says_what_the_payload_is() -> None:
    header = header_of(encode(LONG, sealed=True))
    assert header.flags == ZSTD | SEALED | LONG_KEY
    assert (header.dictionary, header.long_key, header.index) == (BUILTIN, LONG, b"1\0a\0b")


def test_the_layout_of_a_plain_value_is_pinned() -> None:
    header = header_of(PINNED)
    assert (header.revision, header.flags, header.dictionary) == (7, ZSTD, 0)
    assert codec().decode(key("a"), PINNED) == b"{}"


def test_a_document_without_compression_is_read_too() -> None:
    raw = PINNED[:8] + b"\x00" + PINNED[9:PAYLOAD_AT] + b"{}"
    assert codec().decode(key("a"), raw) == b"{}"


def test_a_sealed_value_shows_nothing_of_the_document() -> None:
    raw = encode(key("a"), sealed=True, document=b"correct horse battery staple")
    assert b"horse" not in raw
    assert raw != encode(key("a"), sealed=True, document=b"correct horse battery staple")


@pytest.mark.parametrize("at", [0, 3, 8, 13, -1, -20])
def test_an_altered_sealed_value_does_not_open(at: int) -> None:
    raw = bytearray(encode(key("a"), sealed=True))
    raw[at] ^= 1
    with pytest.raises(Corrupt):
        codec().decode(key("a"), bytes(raw))


def test_a_sealed_value_opens_at_its_own_key_only() -> None:
    raw = encode(key("a"), sealed=True)
    with pytest.raises(Corrupt, match="altered"):
        codec().decode(key("b"), raw)


def test_a_flipped_bit_in_a_plain_value_is_found() -> None:
    raw = bytearray(encode(key("a"), document=b"0123456789abcdefghijklmnopqrstuvwxyz"))
    raw[-10] ^= 1
    with pytest.raises(Corrupt, match="damaged"):
        codec().decode(key("a"), bytes(raw))


@pytest.mark.parametrize("size", [0, 5, 14, 16])
def test_a_value_cut_short_is_refused(size: int) -> None:
    raw = encode(LONG)[:size]
    with pytest.raises(Corrupt):
        codec().decode(LONG, raw)


def test_unknown_flags_are_refused() -> None:
    raw = PINNED[:8] + b"\x81" + PINNED[9:]
    with pytest.raises(Corrupt, match="flags 0x81"):
        codec().decode(key("a"), raw)


def test_an_absurd_size_is_refused_before_memory_is_taken() -> None:
    frame = bytes.fromhex("28b52ffd e0") + (1 << 60).to_bytes(8, "little") + b"\x01\x00\x00"
    with pytest.raises(Corrupt, match="absurd"):
        codec().decode(key("a"), PINNED[:PAYLOAD_AT] + frame)


def test_a_dictionary_that_is_not_held_is_named() -> None:
    raw = encode(key("a"))
    with pytest.raises(Corrupt, match="dictionary 1"):
        codec(dictionaries=Dictionaries({})).decode(key("a"), raw)


def test_a_data_key_that_is_not_held_is_refused() -> None:
    raw = encode(key("a"), sealed=True)
    with pytest.raises(Corrupt, match="data key"):
        codec(keys=DataKeys({2: b"\x02" * 32})).decode(key("a"), raw)


def test_an_older_data_key_of_the_ring_still_opens() -> None:
    raw = encode(key("a"), sealed=True)
    ring = DataKeys({1: b"\x01" * 32, 2: b"\x02" * 32})
    assert codec(keys=ring).decode(key("a"), raw) == DOCUMENT
    fresh = codec(keys=ring).encode(
        key("a"), Revision(8), index=Index(b""), document=DOCUMENT, sealed=True
    )
    with pytest.raises(Corrupt):
        codec().decode(key("a"), fresh)


def test_a_long_stored_key_without_its_key_is_refused() -> None:
    with pytest.raises(Corrupt, match="lacks its long key"):
        full_key(stored_key(LONG), PINNED)


def test_each_thread_has_its_codec() -> None:
    codecs = Codecs(DICTIONARIES, KEYS, token=CLOCK.token)
    assert codecs.here() is codecs.here()


def test_the_builtin_dictionary_pays() -> None:
    plain = codec(dictionaries=Dictionaries({}))
    small = len(encode(key("a")))
    large = len(
        plain.encode(
            key("a"), Revision(7), index=Index(b"1\0a\0b"), document=DOCUMENT, sealed=False
        )
    )
    assert small < large
