"""HEAD: its size, its seal, and what it refuses to say."""

import json

import msgspec
import pytest

from snapshot.errors import HeadCorrupt, KeyMismatch, UnsupportedFormat
from snapshot.head import Fork, Head, check_seal, decode_head, encode_head
from tests.unit.snapshot.support import HASH, KEY, OTHER_KEY, head, ref, writer

FULL, ONE, TWO = ref(0, 10), ref(10, 12), ref(12, 20)


def test_head_reads_back_as_written() -> None:
    made = head(full=FULL, tail=(ONE, TWO), fork=Fork(1, 2, 12, HASH), released=True)
    found = decode_head(encode_head(made, KEY))
    assert found.seal
    assert check_seal(found, KEY) == made


def test_head_without_a_tail_is_below_one_kibibyte() -> None:
    long = ref(0, 2**50)
    made = head(full=long, fork=Fork(9, 10**6, 2**50, HASH), reserved_rev=2**51)
    names = msgspec.structs.replace(writer(), dir=made.hub_id, session="a" * 24, host="hublet-0")
    assert len(encode_head(msgspec.structs.replace(made, writer=names), KEY)) < 1024


def test_a_prefix_whose_first_full_is_missing_has_a_head() -> None:
    assert decode_head(encode_head(head(full=None), KEY)).segments == ()


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (head(full=FULL, tail=(TWO,)), "does not follow"),
        (head(full=FULL, tail=(ONE,), rev=11), "end at 12, it claims 11"),
        (head(full=FULL, tail=(ref(10, 9),), rev=9), "does not follow"),
        (head(full=None, tail=(ONE,), seq=1, rev=12), "no full"),
        (head(full=None, seq=3), "do not make sequence 3"),
        (head(full=FULL, tail=(ONE,), seq=1), "do not make sequence 1"),
        (head(full=FULL, reserved_rev=9), "above the 9 reserved"),
        (head(full=FULL, epoch=0), "epoch is zero"),
    ],
)
def test_a_head_that_contradicts_itself_is_refused(made: Head, says: str) -> None:
    with pytest.raises(HeadCorrupt, match=says):
        decode_head(encode_head(made, KEY))


def test_an_edited_head_breaks_its_seal() -> None:
    wire = json.loads(encode_head(head(full=FULL), KEY))
    wire["reserved_rev"] = 999
    edited = decode_head(json.dumps(wire).encode())
    with pytest.raises(HeadCorrupt, match="seal"):
        check_seal(edited, KEY)


def test_another_hubs_key_is_named() -> None:
    found = decode_head(encode_head(head(full=FULL), KEY))
    with pytest.raises(KeyMismatch, match=KEY.fingerprint):
        check_seal(found, OTHER_KEY)


def test_a_newer_format_is_named_whatever_else_it_holds() -> None:
    with pytest.raises(UnsupportedFormat, match="format 2, this release reads 1"):
        decode_head(b'{"format": 2, "everything": "else"}')


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b'{"format":1}', b'{"format":"1"}', b"\xff"]
)
def test_anything_else_is_corrupt(data: bytes) -> None:
    with pytest.raises(HeadCorrupt):
        decode_head(data)


def test_every_truncation_and_flip_is_refused() -> None:
    whole = encode_head(head(full=FULL, tail=(ONE,)), KEY)
    for at in range(len(whole)):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
            with pytest.raises((HeadCorrupt, UnsupportedFormat, KeyMismatch)):
                check_seal(decode_head(damaged), KEY)


def test_unknown_fields_are_refused_so_that_no_writer_drops_them() -> None:
    wire = json.loads(encode_head(head(full=FULL), KEY)) | {"later": 1}
    with pytest.raises(HeadCorrupt, match="later"):
        decode_head(json.dumps(wire).encode())
