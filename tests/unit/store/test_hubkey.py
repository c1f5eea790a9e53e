"""The hub key file and the ring of data keys."""

import stat
from pathlib import Path

import pytest

from hub.store.errors import Corrupt, KeyMismatch
from hub.store.hubkey import (
    DataKeys,
    create_hub_key,
    load_hub_key,
    new_data_keys,
    unwrap_data_keys,
    wrap_data_keys,
)
from tests.unit.store.given import CLOCK


def test_a_key_file_loads_as_created(tmp_path: Path) -> None:
    created = create_hub_key(tmp_path / "key", token=CLOCK.token)
    assert load_hub_key(tmp_path / "key") == created
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert (tmp_path / "key").read_text().startswith("hublet-key-1:")
    assert (tmp_path / "key").read_text().count("\n") == 1


def test_a_key_file_is_never_overwritten(tmp_path: Path) -> None:
    created = create_hub_key(tmp_path / "key", token=CLOCK.token)
    with pytest.raises(KeyMismatch, match="exists already"):
        create_hub_key(tmp_path / "key", token=CLOCK.token)
    assert load_hub_key(tmp_path / "key") == created


def test_a_key_inside_the_data_directory_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    key = create_hub_key(data / "key", token=CLOCK.token)
    assert key.path == data / "key"
    link = tmp_path / "link"
    link.symlink_to(data / "key")
    for path in (data / "key", link, data / "deeper" / ".." / "key"):
        with pytest.raises(KeyMismatch, match="move it out"):
            load_hub_key(path, outside=data)
    with pytest.raises(KeyMismatch, match="inside the data directory"):
        create_hub_key(data / "second", token=CLOCK.token, outside=data)
    create_hub_key(tmp_path / "data.key", token=CLOCK.token, outside=data)


def test_a_missing_key_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(KeyMismatch, match="put the key of this hub there"):
        load_hub_key(tmp_path / "none")


@pytest.mark.parametrize(
    "text",
    ["", "hublet-key-2:AAAA", "hublet-key-1:AAAA", "hublet-key-1:!" + "A" * 43, "é", "A" * 44],
)
def test_a_file_that_is_no_key_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "key").write_text(text)
    with pytest.raises(KeyMismatch, match="is not a hub key"):
        load_hub_key(tmp_path / "key")


def test_the_secret_is_not_in_the_repr(tmp_path: Path) -> None:
    key = create_hub_key(tmp_path / "key", token=CLOCK.token)
    assert repr(key.secret) not in repr(key)
    assert "keys" not in repr(DataKeys({1: b"s" * 32}))


def test_the_ring_opens_with_its_hub_key_only(tmp_path: Path) -> None:
    mine = create_hub_key(tmp_path / "mine", token=CLOCK.token)
    other = create_hub_key(tmp_path / "other", token=CLOCK.token)
    ring = DataKeys({1: b"a" * 32, 2: b"b" * 32})
    wrapped = wrap_data_keys(ring, mine, token=CLOCK.token)
    assert unwrap_data_keys(wrapped, mine) == ring
    with pytest.raises(KeyMismatch, match=mine.fingerprint):
        unwrap_data_keys(wrapped, other)


@pytest.mark.parametrize("at", [0, 10, 25, -1])
def test_a_damaged_ring_is_corrupt(tmp_path: Path, at: int) -> None:
    mine = create_hub_key(tmp_path / "mine", token=CLOCK.token)
    wrapped = bytearray(wrap_data_keys(new_data_keys(CLOCK.token), mine, token=CLOCK.token))
    wrapped[at] ^= 1
    with pytest.raises(Corrupt, match="data keys"):
        unwrap_data_keys(bytes(wrapped), mine)


def test_a_ring_cut_short_is_corrupt(tmp_path: Path) -> None:
    mine = create_hub_key(tmp_path / "mine", token=CLOCK.token)
    wrapped = wrap_data_keys(new_data_keys(CLOCK.token), mine, token=CLOCK.token)
    with pytest.raises(Corrupt):
        unwrap_data_keys(wrapped[:15], mine)
