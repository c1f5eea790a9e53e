"""HEAD: its size, its seal, and what it refuses to say."""

import json
from pathlib import Path

import msgspec
import pytest

from hub.store import load_hub_key
from snapshot.chain import Chain
from snapshot.errors import HeadCorrupt, KeyMismatch, UnsupportedFormat
from snapshot.head import Fork, Head, SegmentRef, decode_head, encode_head, open_head
from snapshot.remote import Remote
from snapshot.sealed import is_sealed_by
from tests.unit.snapshot.support import (
    HASH,
    KEY,
    OTHER_KEY,
    StillClock,
    full_ref,
    head,
    ref,
    writer,
)

FULL, ONE, TWO = full_ref(10), ref(10, 12, seq=2), ref(12, 20, seq=3)
MERGED = ref(10, 20, seq=3, from_seq=1, level="d1")
FORK = Fork(epoch=1, seq=2, rev=12, chain=HASH, base_seq=1, time_ms=5)
GOLDEN_1 = Path(__file__).parents[2] / "golden" / "snapshot" / "format-1"


def changed(ref: SegmentRef, **facts: object) -> SegmentRef:
    return msgspec.structs.replace(ref, **facts)


def test_head_reads_back_as_written() -> None:
    made = head(full=FULL, tail=(ONE, TWO), fork=FORK, branches=(FORK,), released=True, horizon=1)
    data = encode_head(made, KEY)
    assert decode_head(data).seal
    assert open_head(data, KEY) == made


def test_a_merge_stands_for_its_deltas() -> None:
    made = head(full=FULL, tail=(MERGED,))
    assert (made.seq, made.rev) == (3, 20)
    assert open_head(encode_head(made, KEY), KEY) == made


def test_head_without_a_tail_is_below_two_kibibytes() -> None:
    long = full_ref(2**50, seq=10**9)
    fork = Fork(epoch=9, seq=10**6, rev=2**50, chain=HASH, base_seq=10**6, time_ms=2**41)
    made = head(full=long, fork=fork, reserved_rev=2**51)
    names = msgspec.structs.replace(writer(), dir=made.hub_id, session="a" * 24, host="hublet-0")
    assert len(encode_head(msgspec.structs.replace(made, writer=names), KEY)) < 2048


def test_a_prefix_whose_first_full_is_missing_has_a_head() -> None:
    assert decode_head(encode_head(head(full=None), KEY)).segments == ()


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (head(full=FULL, tail=(TWO,)), "does not follow"),
        (head(full=FULL, tail=(changed(ONE, from_seq=0),)), "does not follow"),
        (head(full=FULL, tail=(ONE, changed(TWO, from_rev=13))), "does not follow"),
        (head(full=FULL, tail=(changed(ONE, seq=1),), seq=1), "does not follow"),
        (head(full=FULL, tail=(ONE,), rev=11), "end at @2, 12; it claims @2, 11"),
        (head(full=FULL, tail=(ref(10, 9, seq=2),), rev=9), "does not follow"),
        (head(full=None, tail=(ONE,), seq=2, rev=12), "no full"),
        (head(full=ONE), "a delta for the full"),
        (head(full=FULL, tail=(full_ref(12, seq=2),)), "a full stands among the deltas"),
        (head(full=None, seq=3), "do not make position 3"),
        (head(full=None, rev=3), "at revision 3"),
        (head(full=FULL, tail=(ONE,), seq=1), "end at @2, 12; it claims @1, 12"),
        (head(full=FULL, tail=(ONE,), last_seq=1), "do not make position 2"),
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
    with pytest.raises(HeadCorrupt, match="seal"):
        open_head(json.dumps(wire, separators=(",", ":")).encode(), KEY)


def test_a_head_that_was_written_anew_breaks_its_seal_even_if_it_says_the_same() -> None:
    wire = json.loads(encode_head(head(full=FULL), KEY))
    for rewritten in (json.dumps(wire), json.dumps(wire, separators=(",", ":"), sort_keys=True)):
        with pytest.raises(HeadCorrupt, match="seal"):
            open_head(rewritten.encode(), KEY)


def test_another_hubs_key_is_named() -> None:
    with pytest.raises(KeyMismatch, match=KEY.fingerprint):
        open_head(encode_head(head(full=FULL), KEY), OTHER_KEY)


@pytest.mark.parametrize("version", [0, 3, 99])
def test_a_format_of_another_release_is_named_whatever_else_it_holds(version: int) -> None:
    with pytest.raises(UnsupportedFormat, match=f"format {version}, this release reads up to 2"):
        decode_head(json.dumps({"format": version, "everything": "else"}).encode())


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b'{"format":1}', b'{"format":2}', b'{"format":"1"}', b"\xff"],
)
def test_anything_else_is_corrupt(data: bytes) -> None:
    with pytest.raises(HeadCorrupt):
        decode_head(data)


@pytest.mark.parametrize("version", [1, 2])
def test_every_truncation_and_flip_is_refused(version: int) -> None:
    whole = encode_head(head(full=FULL, tail=(ONE, TWO), fork=FORK), KEY)
    if version == 1:
        whole = (GOLDEN_1 / "prefix" / "HEAD").read_bytes()
    for at in range(len(whole)):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
            with pytest.raises((HeadCorrupt, UnsupportedFormat, KeyMismatch)):
                open_head(damaged, KEY)


def test_unknown_fields_are_refused_so_that_no_writer_drops_them() -> None:
    wire = json.loads(encode_head(head(full=FULL), KEY)) | {"later": 1}
    with pytest.raises(HeadCorrupt, match="later"):
        decode_head(json.dumps(wire).encode())


# ---------------------------------------------------------------- format 1


def test_a_head_of_format_1_is_read_with_its_positions_counted_back() -> None:
    data = (GOLDEN_1 / "prefix" / "HEAD").read_bytes()
    wire = json.loads(data)
    found = open_head(data, load_hub_key(GOLDEN_1 / "hub-key.txt"))
    assert wire["format"] == 1
    assert [(each.from_seq, each.seq) for each in found.segments] == [(0, 1), (1, 2), (2, 3)]
    assert [each.level for each in found.segments] == ["full", "d0", "d0"]
    assert [each.name for each in found.segments] == [
        wire["full"]["name"],
        *(each["name"] for each in wire["tail"]),
    ]
    assert (found.seq, found.last_seq, found.rev) == (3, 3, wire["rev"])
    assert (found.manifest, found.kept, found.horizon, found.branches) == (None, None, 0, ())


def test_the_seal_of_format_1_is_checked_on_the_bytes_as_they_lie_there() -> None:
    data = (GOLDEN_1 / "prefix" / "HEAD").read_bytes()
    assert is_sealed_by(data, KEY)
    edited = data.replace(b'"released":true', b'"released":false')
    assert edited != data
    assert decode_head(edited).released is False
    with pytest.raises(HeadCorrupt, match="seal"):
        open_head(edited, KEY)


@pytest.mark.parametrize("is_forked", [False, True])
def test_the_first_epoch_on_a_prefix_of_format_1_writes_format_2(
    bucket: Remote, is_forked: bool
) -> None:
    data = (GOLDEN_1 / "prefix" / "HEAD").read_bytes()
    if is_forked:
        data = sealed_1(
            json.loads(data) | {"fork": {"epoch": 1, "seq": 2, "rev": 8, "chain": HASH}}
        )
    bucket.put_if_absent("HEAD", data)
    chain = Chain(bucket, KEY, clock=StillClock())
    before = chain.read_head()
    assert before is not None
    assert (before.fork is not None) is is_forked
    after = chain.take_epoch(before, hub_id=before.hub_id, writer=writer("b"), reserved_rev=0)
    wire = json.loads(bucket.get("HEAD").data)
    assert (wire["format"], wire["epoch"], wire["last_seq"]) == (2, before.epoch + 1, 3)
    assert (after.segments, after.rev, after.chain) == (before.segments, before.rev, before.chain)
    assert after.reserved_rev == before.reserved_rev
    assert after.fork is not None
    assert (after.fork.seq, after.fork.base_seq, after.branches) == (3, 3, ())


def sealed_1(wire: dict[str, object]) -> bytes:
    """Seal a HEAD of format 1, as the release that wrote them did."""
    from snapshot.seal import head_mac

    plain = json.dumps(wire | {"seal": ""}, separators=(",", ":")).encode()
    return plain[:-2] + head_mac(plain, KEY).encode() + plain[-2:]


def test_a_head_of_format_1_that_contradicts_itself_is_refused() -> None:
    wire = json.loads((GOLDEN_1 / "prefix" / "HEAD").read_bytes())
    for facts, says in (
        ({"full": None}, "no full"),
        ({"rev": wire["rev"] - 1}, "it claims"),
        ({"seq": 1}, "end at @2, 10; it claims @1, 10"),
        ({"tail": wire["tail"][1:]}, "does not follow"),
    ):
        with pytest.raises(HeadCorrupt, match=says):
            decode_head(sealed_1(wire | facts))
    with pytest.raises(HeadCorrupt, match="parse"):
        decode_head(sealed_1(wire | {"kept": None}))


def test_a_prefix_of_format_1_without_a_full_is_read() -> None:
    wire = json.loads((GOLDEN_1 / "prefix" / "HEAD").read_bytes())
    new = sealed_1(wire | {"full": None, "tail": [], "seq": 0, "rev": 0, "objects": 0})
    assert open_head(new, KEY).segments == ()
