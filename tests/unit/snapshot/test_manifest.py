"""Manifests and the seal they share with HEAD."""

import hashlib
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.errors import IntegrityError, SegmentCorrupt, UnsupportedFormat
from snapshot.head import ObjectRef
from snapshot.layout import is_manifest_name
from snapshot.manifest import Manifest, decode_manifest, encode_manifest
from snapshot.sealed import encode_sealed, is_sealed_by
from tests.unit.snapshot.support import HASH, HUB_ID, KEY, OTHER_KEY, full_ref, ref

PREV = ObjectRef("manifest/3-0badcafe.json", HASH)
MADE = Manifest(
    hub_id=HUB_ID,
    epoch=2,
    seq=9,
    time="2026-05-04T03:02:01.000Z",
    prev=PREV,
    segments=(full_ref(10), ref(10, 12, seq=2), ref(10, 30, seq=4, from_seq=1, level="d1")),
)


def named(data: bytes) -> ObjectRef:
    """A reference that fits whatever the bytes are."""
    return ObjectRef("manifest/9-00000000.json", hashlib.blake2b(data, digest_size=32).hexdigest())


def test_a_manifest_reads_back_as_written() -> None:
    named_as, data = encode_manifest(MADE, KEY)
    assert is_manifest_name(named_as.name)
    assert named_as.name == f"manifest/9-{named_as.hash[:8]}.json"
    assert named_as.hash == hashlib.blake2b(data, digest_size=32).hexdigest()
    assert decode_manifest(data, named_as, KEY) == MADE


def test_only_the_manifest_that_was_named_is_read() -> None:
    named_as, _ = encode_manifest(MADE, KEY)
    _, other = encode_manifest(msgspec.structs.replace(MADE, epoch=3), KEY)
    with pytest.raises(SegmentCorrupt, match="not the manifest that is named") as caught:
        decode_manifest(other, named_as, KEY)
    assert caught.value.object == named_as.name


def test_a_manifest_of_another_key_is_refused_even_if_it_is_named() -> None:
    _, data = encode_manifest(MADE, OTHER_KEY)
    with pytest.raises(SegmentCorrupt, match="seal is broken"):
        decode_manifest(data, named(data), KEY)


@pytest.mark.parametrize(
    ("facts", "error", "says"),
    [
        ({"format": 2}, UnsupportedFormat, "manifest format 2"),
        ({"format": 0}, IntegrityError, "does not parse"),
        ({"later": 1}, IntegrityError, "does not parse"),
        ({"seq": "9"}, IntegrityError, "does not parse"),
        ({"segments": None}, IntegrityError, "does not parse"),
    ],
)
def test_what_a_key_has_sealed_must_still_be_a_manifest(
    facts: dict[str, object], error: type[Exception], says: str
) -> None:
    wire = json.loads(encode_manifest(MADE, KEY)[1]) | facts
    del wire["seal"]
    fields = msgspec.defstruct("Wire", [*wire, ("seal", str, "")])
    data = encode_sealed(fields(**wire), KEY)
    assert is_sealed_by(data, KEY)
    with pytest.raises(error, match=says):
        decode_manifest(data, named(data), KEY)


def test_every_truncation_and_flip_breaks_the_seal() -> None:
    _, whole = encode_manifest(MADE, KEY)
    assert is_sealed_by(whole, KEY)
    assert not is_sealed_by(whole, OTHER_KEY)
    for at in range(len(whole)):
        assert not is_sealed_by(whole[:at], KEY)
        assert not is_sealed_by(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], KEY)
    assert not is_sealed_by(whole + b"\n", KEY)


class Small(msgspec.Struct):
    """Anything that ends in a seal."""

    text: str
    seal: str = ""


@given(st.text())
def test_the_seal_covers_whatever_stands_before_it(text: str) -> None:
    data = encode_sealed(Small(text), KEY)
    assert is_sealed_by(data, KEY)
    assert msgspec.json.decode(data, type=Small).text == text
    assert not is_sealed_by(data.replace(b"{", b"{ ", 1), KEY)


@given(st.binary(max_size=200))
def test_bytes_that_nobody_sealed_are_not_sealed(data: bytes) -> None:
    assert not is_sealed_by(data, KEY)
    assert not is_sealed_by(b'{"text":"","seal":"' + data.hex().encode()[:64] + b'"}', KEY)
