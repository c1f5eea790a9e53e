"""Merging: the last write to each key wins, in the store's order."""

from hypothesis import given
from hypothesis import strategies as st

from hub.store import Key, Record, Revision, stored_key
from snapshot.merge import merge

Deltas = list[dict[bytes, bytes | None]]
KEYS = st.binary(min_size=1, max_size=3) | st.just(b"k" * 500 + b"1") | st.just(b"k" * 600)


@given(
    st.dictionaries(KEYS, st.binary(max_size=4), max_size=10),
    st.lists(st.dictionaries(KEYS, st.none() | st.binary(max_size=4), max_size=5), max_size=4),
)
def test_merging_is_applying_one_after_the_other(full: dict[bytes, bytes], deltas: Deltas) -> None:
    expected: dict[bytes, bytes | None] = dict(full)
    for delta in deltas:
        expected |= delta
    records = [_record(key, full[key]) for key in sorted(full, key=stored_key)]
    found = list(merge(records, [[_record(k, v) for k, v in delta.items()] for delta in deltas]))
    assert {record.key: record.raw for record in found} == {
        key: raw for key, raw in expected.items() if raw is not None
    }
    assert found == sorted(found, key=lambda record: stored_key(record.key))


def _record(key: bytes, raw: bytes | None) -> Record:
    return Record(Key(key), Revision(1), raw)
