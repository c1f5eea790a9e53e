"""The log's index against a plain list of what was logged."""

import doctest

from hypothesis import given
from hypothesis import strategies as st

from hub.store import Key, Revision, logindex
from hub.store.logindex import LogIndex

_PART = st.sampled_from(["", "a", "ab", "b"])
_KEYS = st.builds(
    lambda resource, space, name: Key(f"{resource}\0{space}\0{name}".encode()),
    st.sampled_from(["r", "rs"]),
    _PART,
    st.sampled_from(["n", "nm", "o"]),
)
_PREFIXES = st.sampled_from([b"r\0", b"rs\0", b"r\0a\0", b"r\0\0", b"rs\0ab\0", b"r\0a\0n", b"x\0"])


@given(keys=st.lists(_KEYS, max_size=40), prefix=_PREFIXES, data=st.data())
def test_the_index_finds_what_a_walk_over_the_log_finds(
    keys: list[Key], prefix: bytes, data: st.DataObject
) -> None:
    index = LogIndex()
    log = [(Revision(3 * at + 1), key) for at, key in enumerate(keys)]
    for revision, key in log:
        index.add(revision, key)
    cut = data.draw(st.integers(0, 3 * len(keys) + 2))
    index.cut(Revision(cut))
    start = data.draw(st.integers(0, 130))
    window = range(start, data.draw(st.integers(start, 140)))
    walked = [r for r, key in log if r > cut and r in window and key.startswith(prefix)]
    assert list(index.find(prefix, window)) == walked
    keys_of = dict(log)
    firsts = {keys_of[r]: r for r in reversed(walked)}
    assert index.first(prefix, window) == firsts


def test_the_example_in_the_module_holds() -> None:
    assert doctest.testmod(logindex).failed == 0
