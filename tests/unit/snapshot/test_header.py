"""Headers: what each kind says, what none may say, and both formats."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.store import Record
from snapshot.errors import SegmentCorrupt, SnapshotError, UnsupportedFormat
from snapshot.header import (
    HEADER_BYTES,
    HEADER_BYTES_1,
    Header,
    Kind,
    check_mac,
    decode,
    encode,
    header_bytes,
)
from snapshot.segment import open_segment, write_segment
from tests.unit.snapshot.support import HUB_ID, KEY, StillClock, header, record

NUMBER = st.integers(0, 2**64 - 1)
DIGEST = st.binary(min_size=32, max_size=32)
MAC_KEY = bytes(32)
WRAPPED = bytes(range(60))
KEY_ID = bytes(range(8))


def encoded(made: Header) -> bytes:
    return encode(made, key_id=KEY_ID, wrapped_key=WRAPPED, mac_key=MAC_KEY)


@st.composite
def headers(draw: st.DrawFn) -> Header:
    kind = draw(st.sampled_from(Kind))
    low, high = sorted((draw(NUMBER), draw(NUMBER)))
    first, last = sorted((draw(NUMBER), draw(NUMBER)))
    if first == last and kind is not Kind.FULL:
        first, last = 0, 1
    return Header(
        kind=kind,
        hub_id=HUB_ID,
        epoch=draw(NUMBER),
        from_seq=first,
        seq=last,
        from_rev=0 if kind is Kind.FULL else low,
        to_rev=high,
        objects=draw(NUMBER),
        time_ms=draw(NUMBER),
        prev_chain=draw(DIGEST),
        pre_state=draw(DIGEST),
        post_state=draw(DIGEST),
        end_chain=draw(DIGEST),
        count=draw(NUMBER),
    )


@given(headers())
def test_every_header_reads_back_as_written(made: Header) -> None:
    data = encoded(made)
    found = decode(data)
    assert len(data) == HEADER_BYTES == header_bytes(data[:16]) == 324
    assert (found.header, found.key_id, found.wrapped_key) == (made, KEY_ID, WRAPPED)
    assert check_mac(found, MAC_KEY) == made


@given(headers(), st.integers(0, 323), st.integers(1, 255))
def test_no_altered_header_is_believed(made: Header, at: int, flip: int) -> None:
    data = bytearray(encoded(made))
    data[at] ^= flip
    with pytest.raises(SnapshotError):
        check_mac(decode(bytes(data)), MAC_KEY)


@pytest.mark.parametrize("length", [0, 7, 8, 15, 16, 100, 323])
def test_a_header_that_is_cut_short_is_told(length: int) -> None:
    with pytest.raises(SegmentCorrupt):
        decode(encoded(header())[:length])


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (header(from_seq=1, seq=1), "DELTA from position 1 to 1"),
        (header(from_seq=2, seq=1), "DELTA from position 2 to 1"),
        (header(kind=Kind.MERGE, from_seq=1, seq=1), "MERGE from position 1 to 1"),
        (header(kind=Kind.FULL, from_seq=2, seq=1), "FULL from position 2 to 1"),
        (header(from_rev=10, to_rev=9), "DELTA from revision 10 to 9"),
        (header(kind=Kind.FULL, from_rev=1), "FULL from revision 1 to 9"),
    ],
)
def test_a_header_that_contradicts_itself_is_refused(made: Header, says: str) -> None:
    with pytest.raises(SegmentCorrupt, match=says):
        decode(encoded(made))


@pytest.mark.parametrize(
    ("version", "kind", "codec", "length"),
    [
        (2, 0, 1, HEADER_BYTES),
        (2, 4, 1, HEADER_BYTES),
        (1, 3, 1, HEADER_BYTES_1),
        (2, 1, 2, HEADER_BYTES),
        (2, 1, 1, HEADER_BYTES_1),
        (1, 1, 1, HEADER_BYTES),
    ],
)
def test_an_unknown_kind_codec_or_length_is_refused(
    version: int, kind: int, codec: int, length: int
) -> None:
    prefix = struct.pack(">8sHBBI", b"\x89HUBSEG\n", version, kind, codec, length)
    with pytest.raises(SegmentCorrupt, match="is unknown"):
        decode(prefix + bytes(400))


@pytest.mark.parametrize("version", [0, 3, 65535])
def test_another_format_is_named(version: int) -> None:
    prefix = struct.pack(">8sHBBI", b"\x89HUBSEG\n", version, 1, 1, 9)
    with pytest.raises(UnsupportedFormat, match=f"format {version}, this release reads up to 2"):
        decode(prefix + bytes(400))


# ---------------------------------------------------------------- merges as files

MERGED = header(kind=Kind.MERGE, from_rev=2, to_rev=9, from_seq=1, seq=4)


def write(path: Path, records: list[Record], *, made: Header = MERGED) -> Path:
    token = StillClock().token
    return write_segment(path, made, records=records, key=KEY, token=token).path


def test_a_merge_reads_back_in_order_of_key_with_its_deletions(tmp_path: Path) -> None:
    records = [record("a", 9, None), record("b", 3), record("c", 5, b"")]
    with open_segment(write(tmp_path / "m.hs", records), KEY) as reader:
        assert reader.header.kind is Kind.MERGE
        assert list(reader.records()) == records


@pytest.mark.parametrize(
    "records",
    [
        [record("b", 3), record("a", 4)],
        [record("a", 3), record("a", 4)],
        [record("a", 2)],
        [record("a", 10)],
    ],
)
def test_a_merge_out_of_order_or_bounds_is_not_written(
    tmp_path: Path, records: list[Record]
) -> None:
    with pytest.raises(ValueError, match="out of order"):
        write(tmp_path / "m.hs", records)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("records", [[record("b", 3), record("a", 4)], [record("a", 4, None)]])
def test_a_reader_checks_the_order_that_its_kind_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: list[Record]
) -> None:
    """A writer of ours would not write them: the check is the reader's own."""
    monkeypatch.setattr("snapshot.segment._ordered", lambda _header, given: iter(given))
    kind = Kind.FULL if records[0].raw is None else Kind.MERGE
    made = header(kind=kind, from_rev=0, to_rev=9, from_seq=1, seq=4)
    path = write(tmp_path / "m.hs", records, made=made)
    with open_segment(path, KEY) as reader, pytest.raises(SegmentCorrupt, match="out of place"):
        list(reader.records())
    path = write(tmp_path / "d.hs", records, made=header(to_rev=9))
    with open_segment(path, KEY) as reader:
        assert list(reader.records()) == records
