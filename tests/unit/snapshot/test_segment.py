"""Segments: what goes in comes out, and nothing else ever does."""

import gc
import os
import tracemalloc
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hub.store import Key, Record, Revision
from snapshot import seal
from snapshot.errors import KeyMismatch, SegmentCorrupt, SnapshotError, UnsupportedFormat
from snapshot.header import HEADER_BYTES, Header, Kind
from snapshot.segment import (
    NO_PREAMBLE,
    Preamble,
    Segment,
    check_hash,
    open_segment,
    write_segment,
)
from tests.unit.snapshot.support import KEY, OTHER_KEY, StillClock, header, record

DELTA = [record("b", 3), record("a", 5, None), record("c", 9, bytes(500))]
FULL = [record("a", 3), record("b", 9, b"x" * 300), record("c", 1, b"")]


def cut(
    path: Path,
    records: list[Record] | Iterator[Record],
    *,
    made: Header | None = None,
    preamble: Preamble = NO_PREAMBLE,
) -> Segment:
    return write_segment(
        path,
        made or header(),
        records=records,
        key=KEY,
        token=StillClock().token,
        preamble=preamble,
    )


def read(path: Path) -> list[Record]:
    with open_segment(path, KEY) as reader:
        return list(reader.records())


def test_a_delta_reads_back_as_written(tmp_path: Path) -> None:
    segment = cut(tmp_path / "s.hs", DELTA)
    with open_segment(segment.path, KEY) as reader:
        assert list(reader.records()) == DELTA
        assert reader.header == segment.header == replace(header(), count=3)
        assert reader.preamble == NO_PREAMBLE
    assert segment.size == segment.path.stat().st_size
    assert check_hash(segment.path, name="s") == segment.hash


def test_a_full_carries_what_a_store_needs(tmp_path: Path) -> None:
    preamble = Preamble({1: b"\0dictionary", 7: b"\0x"}, b"wrapped keys")
    segment = cut(tmp_path / "s.hs", FULL, made=header(kind=Kind.FULL), preamble=preamble)
    with open_segment(segment.path, KEY) as reader:
        assert reader.preamble == preamble
        assert list(reader.records()) == FULL


def test_a_segment_without_records_is_whole(tmp_path: Path) -> None:
    assert read(cut(tmp_path / "s.hs", []).path) == []


def test_a_body_of_many_frames_reads_back(tmp_path: Path) -> None:
    records = [record(f"{n:04d}", n + 1, os.urandom(40_000)) for n in range(80)]
    segment = cut(tmp_path / "s.hs", records, made=header(to_rev=80))
    assert segment.size > 3 * seal.FRAME_BYTES
    assert read(segment.path) == records


def test_a_value_larger_than_a_frame_reads_back(tmp_path: Path) -> None:
    records = [record("big", 1, os.urandom(3 * seal.FRAME_BYTES + 5)), record("z", 2)]
    assert read(cut(tmp_path / "s.hs", records).path) == records


@pytest.mark.parametrize(
    "length", [0, 1, seal.FRAME_BYTES - 1, seal.FRAME_BYTES, seal.FRAME_BYTES + 1]
)
def test_frames_of_any_length_come_back(length: int) -> None:
    sealed = bytearray()
    plain = os.urandom(length)
    writer = seal.FrameWriter(sealed.extend, bytes(32))
    writer.write(plain)
    writer.close()
    source = memoryview(sealed)

    def take(count: int) -> bytes:
        nonlocal source
        piece, source = bytes(source[:count]), source[count:]
        return piece

    reader = seal.FrameReader(take, bytes(32), name="x")
    found = b"".join(iter(lambda: reader.read(70_000), b""))
    assert found == plain
    assert not source


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.dictionaries(
        st.binary(min_size=1, max_size=600), st.none() | st.binary(max_size=2000), max_size=12
    )
)
def test_any_records_read_back(tmp_path: Path, values: dict[bytes, bytes | None]) -> None:
    records = [
        Record(Key(key), Revision(at), raw) for at, (key, raw) in enumerate(values.items(), start=1)
    ]
    path = tmp_path / "s.hs"
    path.unlink(missing_ok=True)
    assert read(cut(path, records, made=header(to_rev=12)).path) == records


def test_every_flipped_byte_is_an_error_and_never_other_data(tmp_path: Path) -> None:
    segment = cut(tmp_path / "s.hs", DELTA)
    whole = segment.path.read_bytes()
    damaged = tmp_path / "d.hs"
    for at in range(len(whole)):
        damaged.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
        got: list[Record] = []
        with pytest.raises(SnapshotError), open_segment(damaged, KEY) as reader:
            got.extend(reader.records())
        assert got == DELTA[: len(got)]
        with pytest.raises(SegmentCorrupt):
            check_hash(damaged, name="d")


def test_every_truncation_is_an_error_and_never_other_data(tmp_path: Path) -> None:
    segment = cut(tmp_path / "s.hs", DELTA)
    whole = segment.path.read_bytes()
    damaged = tmp_path / "d.hs"
    for length in range(len(whole)):
        damaged.write_bytes(whole[:length])
        got: list[Record] = []
        with pytest.raises(SegmentCorrupt), open_segment(damaged, KEY) as reader:
            got.extend(reader.records())
        assert got == DELTA[: len(got)]


def test_bytes_after_the_end_are_an_error(tmp_path: Path) -> None:
    segment = cut(tmp_path / "s.hs", DELTA)
    with segment.path.open("ab") as file:
        file.write(b"x")
    with pytest.raises(SegmentCorrupt, match="trailer"):
        read(segment.path)


def _frames(path: Path) -> tuple[bytes, list[bytes], bytes]:
    """Take a segment apart into header, frames and trailer."""
    data = path.read_bytes()
    at, frames = HEADER_BYTES, list[bytes]()
    while at < len(data) - 32:
        length = 4 + (int.from_bytes(data[at : at + 4], "big") & 0x7FFFFFFF)
        frames.append(data[at : at + length])
        at += length
    return data[:HEADER_BYTES], frames, data[at:]


@pytest.mark.parametrize("change", ["swapped", "dropped", "repeated", "last dropped", "foreign"])
def test_frames_cannot_be_rearranged(tmp_path: Path, change: str) -> None:
    records = [record(f"{n:04d}", n + 1, os.urandom(40_000)) for n in range(80)]
    segment = cut(tmp_path / "s.hs", records, made=header(to_rev=80))
    other = write_segment(
        tmp_path / "o.hs",
        header(to_rev=80),
        records=records,
        key=KEY,
        token=StillClock("other").token,
    )
    head, frames, trailer = _frames(segment.path)
    assert len(frames) > 3
    made = {
        "swapped": [frames[1], frames[0], *frames[2:]],
        "dropped": [frames[0], *frames[2:]],
        "repeated": [frames[0], frames[0], *frames[1:]],
        "last dropped": frames[:-1],
        "foreign": [frames[0], _frames(other.path)[1][1], *frames[2:]],
    }[change]
    segment.path.write_bytes(head + b"".join(made) + trailer)
    with pytest.raises(SegmentCorrupt):
        read(segment.path)


def test_a_header_of_another_segment_does_not_fit(tmp_path: Path) -> None:
    one = cut(tmp_path / "1.hs", DELTA)
    two = cut(tmp_path / "2.hs", DELTA[:1])
    two.path.write_bytes(
        one.path.read_bytes()[:HEADER_BYTES] + two.path.read_bytes()[HEADER_BYTES:]
    )
    with pytest.raises(SegmentCorrupt):
        read(two.path)


def test_another_hubs_key_is_named(tmp_path: Path) -> None:
    segment = cut(tmp_path / "s.hs", DELTA)
    with (
        pytest.raises(KeyMismatch, match=f"{KEY.fingerprint}.*{OTHER_KEY.fingerprint}"),
        open_segment(segment.path, OTHER_KEY),
    ):
        pass


def test_a_newer_format_is_named(tmp_path: Path) -> None:
    segment = cut(tmp_path / "s.hs", DELTA)
    data = segment.path.read_bytes()
    segment.path.write_bytes(data[:8] + b"\0\3" + data[10:])
    with pytest.raises(UnsupportedFormat, match="format 3, this release reads up to 2"):
        read(segment.path)


def test_any_other_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"PK\3\4" + bytes(1000))
    with pytest.raises(SegmentCorrupt, match="no segment"):
        read(tmp_path / "x")


@pytest.mark.parametrize(
    ("kind", "records"),
    [
        (Kind.DELTA, [record("a", 5), record("b", 4)]),
        (Kind.DELTA, [record("a", 5), record("b", 5)]),
        (Kind.DELTA, [record("a", 2)]),
        (Kind.DELTA, [record("a", 10)]),
        (Kind.FULL, [record("b", 1), record("a", 2)]),
        (Kind.FULL, [record("a", 1), record("a", 2)]),
        (Kind.FULL, [record("a", 10)]),
        (Kind.FULL, [record("a", 1, None)]),
    ],
)
def test_records_out_of_order_are_not_written_and_leave_no_file(
    tmp_path: Path, kind: Kind, records: list[Record]
) -> None:
    with pytest.raises(ValueError, match="out of order"):
        cut(tmp_path / "s.hs", records, made=header(kind=kind, from_rev=2))
    assert list(tmp_path.iterdir()) == []


def test_a_failing_source_leaves_no_file(tmp_path: Path) -> None:
    def failing() -> Iterator[Record]:
        yield record("a", 1)
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        cut(tmp_path / "s.hs", failing())
    assert list(tmp_path.iterdir()) == []


def test_memory_stays_at_a_few_frames_both_ways(tmp_path: Path) -> None:
    count, noise = 3000, os.urandom(8000)

    def many() -> Iterator[Record]:
        for n in range(count):
            yield record(f"{n:05d}", n + 1, noise[n % 97 :] + b"%d" % n)

    tracemalloc.start()
    try:
        segment = cut(tmp_path / "s.hs", many(), made=header(to_rev=count))
        with open_segment(segment.path, KEY) as reader:
            assert sum(1 for _ in reader.records()) == count
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * seal.FRAME_BYTES


def test_the_file_is_private(tmp_path: Path) -> None:
    assert cut(tmp_path / "s.hs", DELTA).path.stat().st_mode & 0o777 == 0o600


def test_a_reader_is_gone_when_it_is_let_go(tmp_path: Path) -> None:
    """A cycle through the decompressor would never be collected: half a megabyte a segment."""
    path = cut(tmp_path / "s.hs", DELTA).path
    with open_segment(path, KEY) as reader:
        list(reader.records())
        seen = weakref.ref(reader)
    del reader
    gc.collect()
    assert seen() is None
