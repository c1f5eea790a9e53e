"""The documents: the worked example decoded from the page alone, golden files, error codes."""

import base64
import doctest
import hashlib
import importlib
import json
import re
import struct
from pathlib import Path
from types import ModuleType

import pytest
import zstandard
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from hub.store import Key, Record, Revision, Store, load_hub_key
from snapshot import errors
from snapshot.header import chain_hash
from snapshot.remote import open_remote
from snapshot.restore import restore
from snapshot.segment import check_hash, open_segment
from snapshot.verify import verify
from tests.unit.snapshot.support import HUB_ID, KEY, StillClock, contents

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "snapshot" / "format-1"


def example() -> bytes:
    """The bytes of the worked example, from the document."""
    page = (ROOT / "docs" / "snapshot-format.md").read_text()
    block = page.split("<!-- example:")[1].split("```")[1]
    return bytes.fromhex("".join(line[6:] for line in block.strip().splitlines()))


def derive(key: bytes, purpose: bytes) -> bytes:
    return hashlib.blake2b(digest_size=32, key=key, person=purpose).digest()


def test_the_example_decodes_by_what_the_page_says() -> None:
    """Written from the page's sections 2 to 5, with nothing of the product's code."""
    data = example()
    assert hashlib.blake2b(data[:-32], digest_size=32).digest() == data[-32:]
    fields = struct.unpack(">8sHBBI16sQQQQQQQ32s32s32s8s60s32s", data[:284])
    assert fields[:5] == (b"\x89HUBSEG\n", 1, 2, 1, 284)
    assert fields[5].hex() == HUB_ID.replace("-", "")
    assert fields[6:12] == (3, 12, 40, 42, 2, 7)
    assert fields[13:16] == (b"\xa1" * 32, b"\xb2" * 32, b"\xc3" * 32)
    hub_key = bytes(range(32))
    person = b"hublet-key-1"
    assert fields[16] == hashlib.blake2b(hub_key, digest_size=8, person=person).digest()
    wrapped = fields[17]
    wrapping = AESGCM(derive(hub_key, b"hublet/seg/wrap"))
    data_key = wrapping.decrypt(wrapped[:12], wrapped[12:], b"hublet segment key 1")
    mac_key = derive(data_key, b"hublet/seg/mac")
    assert hashlib.blake2b(data[:252], digest_size=32, key=mac_key).digest() == fields[18]
    (word,) = struct.unpack(">I", data[284:288])
    assert word >> 31 == 1
    sealed = data[288 : 288 + (word & 0x7FFFFFFF)]
    assert 288 + len(sealed) == len(data) - 32
    cipher = AESGCM(derive(data_key, b"hublet/seg/frame"))
    body = cipher.decrypt(struct.pack(">QI", 0, 1), sealed, None)
    items = zstandard.ZstdDecompressor().decompressobj().decompress(body)
    one, two = b"configmaps\0default\0one", b"configmaps\0default\0two"
    assert items == b"".join(
        (
            struct.pack(">BIQH", 1, 41, 41, 22) + one + b"value one",
            struct.pack(">BIQH", 2, 32, 42, 22) + two,
            struct.pack(">BIQ", 0, 8, 2),
        )
    )
    page = (ROOT / "docs" / "snapshot-format.md").read_text()
    chain = hashlib.blake2b(b"\xa1" * 32 + data[-32:], digest_size=32, person=b"hublet/chain/1")
    assert chain.hexdigest() in page
    assert chain.digest() == chain_hash(b"\xa1" * 32, data[-32:])


def test_the_example_reads_as_a_segment(tmp_path: Path) -> None:
    path = tmp_path / "example.hs"
    path.write_bytes(example())
    with open_segment(path, KEY) as reader:
        assert (reader.header.seq, reader.header.count, reader.header.objects) == (12, 2, 7)
        assert list(reader.records()) == [
            Record(Key(b"configmaps\0default\0one"), Revision(41), b"value one"),
            Record(Key(b"configmaps\0default\0two"), Revision(42), None),
        ]
    assert check_hash(path, name="example") == example()[-32:]


def test_the_seal_of_head_is_what_the_page_says() -> None:
    head = json.loads((GOLDEN / "prefix" / "HEAD").read_bytes())
    seal, head["seal"] = head["seal"], ""
    plain = json.dumps(head, separators=(",", ":")).encode()
    key = derive(bytes(range(32)), b"hublet/head/mac")
    assert hashlib.blake2b(plain, digest_size=32, key=key).hexdigest() == seal


def test_a_prefix_of_format_1_verifies_and_restores(tmp_path: Path) -> None:
    remote = open_remote((GOLDEN / "prefix").as_uri())
    key = load_hub_key(GOLDEN / "hub-key.txt")
    expected = json.loads((GOLDEN / "expected.json").read_text())
    assert verify(remote, key, clock=StillClock(), scratch=tmp_path, deep=True).segments == 3
    done = restore(remote, key, tmp_path / "new", clock=StillClock())
    assert (done.revision, done.objects) == (expected["revision"], expected["objects"])
    assert done.state_hash == expected["state_hash"]
    store = Store.open(
        tmp_path / "new" / "store", hub_key=key, clock=StillClock(), can_create=False
    )
    try:
        found = {
            base64.b64encode(key).decode(): value.decode() for key, value in contents(store).items()
        }
    finally:
        store.close_offline()
    assert found == expected["contents"]


def test_every_error_and_its_exit_code_is_in_the_document() -> None:
    page = (ROOT / "docs" / "errors.md").read_text().partition("## hublet serve")[0]
    rows = re.findall(r"^\| (\d+) \| `(\w+)`", page, flags=re.MULTILINE)
    classes = {
        name: found.exit_code
        for name, found in vars(errors).items()
        if isinstance(found, type) and issubclass(found, errors.SnapshotError)
    }
    assert {name: int(code) for code, name in rows} == classes


def test_the_tree_in_the_docstring_is_the_tree_of_the_classes() -> None:
    drawn = re.findall(r"(\w+) +exit (\d+)", errors.__doc__ or "")
    for name, code in drawn:
        assert getattr(errors, name).exit_code == int(code)
    assert len(drawn) == sum(
        isinstance(found, type) and issubclass(found, errors.SnapshotError)
        for found in vars(errors).values()
    )


@pytest.mark.parametrize("name", ["header", "layout", "merge", "remote.api"])
def test_worked_examples_hold(name: str) -> None:
    module: ModuleType = importlib.import_module(f"snapshot.{name}")
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
