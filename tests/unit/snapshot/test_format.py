"""The documents: the worked example decoded from the page alone, golden files, error codes."""

import asyncio
import doctest
import hashlib
import importlib
import json
import re
import shutil
import struct
from pathlib import Path
from types import ModuleType

import pytest
import zstandard
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from hub.store import Key, Record, Revision, load_hub_key
from snapshot import errors
from snapshot.catalog import load_catalog
from snapshot.head import Head, SegmentRef, open_head
from snapshot.header import chain_hash
from snapshot.pins import list_pins
from snapshot.points import AtPosition, AtRevision, AtTime, resolve
from snapshot.remote import Remote, open_remote
from snapshot.restore import restore
from snapshot.segment import check_hash, open_segment
from snapshot.ship import ship_full
from snapshot.verify import verify
from tests.unit.snapshot.golden import Expected, contents_of, merge, render
from tests.unit.snapshot.hub import serve
from tests.unit.snapshot.support import HUB_ID, KEY, StillClock

ROOT = Path(__file__).parents[3]
GOLDEN_1 = ROOT / "tests" / "golden" / "snapshot" / "format-1"
GOLDEN_2 = ROOT / "tests" / "golden" / "snapshot" / "format-2"
SEALED_2 = (GOLDEN_2 / "prefix" / "HEAD", *sorted((GOLDEN_2 / "prefix" / "manifest").iterdir()))


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
    fields = struct.unpack(">8sHBBI16sQQQQQQQQ32s32s32s32s8s60s32s", data[:324])
    assert fields[:5] == (b"\x89HUBSEG\n", 2, 2, 1, 324)
    assert fields[5].hex() == HUB_ID.replace("-", "")
    assert fields[6:13] == (3, 11, 12, 40, 42, 2, 7)
    assert fields[14:18] == (b"\xa1" * 32, bytes(32), b"\xb2" * 32, b"\xc3" * 32)
    hub_key = bytes(range(32))
    person = b"hublet-key-1"
    assert fields[18] == hashlib.blake2b(hub_key, digest_size=8, person=person).digest()
    wrapped = fields[19]
    wrapping = AESGCM(derive(hub_key, b"hublet/seg/wrap"))
    data_key = wrapping.decrypt(wrapped[:12], wrapped[12:], b"hublet segment key 1")
    mac_key = derive(data_key, b"hublet/seg/mac")
    assert hashlib.blake2b(data[:292], digest_size=32, key=mac_key).digest() == fields[20]
    (word,) = struct.unpack(">I", data[324:328])
    assert word >> 31 == 1
    sealed = data[328 : 328 + (word & 0x7FFFFFFF)]
    assert 328 + len(sealed) == len(data) - 32
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
        facts = reader.header
        assert (facts.from_seq, facts.seq, facts.count, facts.objects) == (11, 12, 2, 7)
        assert facts.chain_after(example()[-32:]) == chain_hash(b"\xa1" * 32, example()[-32:])
        assert list(reader.records()) == [
            Record(Key(b"configmaps\0default\0one"), Revision(41), b"value one"),
            Record(Key(b"configmaps\0default\0two"), Revision(42), None),
        ]
    assert check_hash(path, name="example") == example()[-32:]


@pytest.mark.parametrize("path", [GOLDEN_1 / "prefix" / "HEAD", *SEALED_2], ids=str)
def test_seals_are_what_the_page_says(path: Path) -> None:
    wire = json.loads(path.read_bytes())
    seal, wire["seal"] = wire["seal"], ""
    plain = json.dumps(wire, separators=(",", ":")).encode()
    key = derive(bytes(range(32)), b"hublet/head/mac")
    assert hashlib.blake2b(plain, digest_size=32, key=key).hexdigest() == seal


def test_the_fields_of_head_and_references_are_those_of_the_page() -> None:
    page = (ROOT / "docs" / "snapshot-format.md").read_text()
    six = page.split("## 6. HEAD")[1].split("## 7.")[0]
    table, rest = six.split("A *reference*:")
    told = {
        name
        for row in re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
        for name in re.findall(r"\w+", row)
    }
    assert told == set(Head.__struct_fields__)
    told = set(re.findall(r"`(\w+)`", rest.partition("The seal")[0])) - {"full", "d0", "d1", "d2"}
    assert told == set(SegmentRef.__struct_fields__)


def test_the_example_of_version_1_is_read(tmp_path: Path) -> None:
    """By the offsets that section 11 gives: the golden files' first delta."""
    data = next((GOLDEN_1 / "prefix").rglob("d0/5-8-*.hs")).read_bytes()
    at = dict(zip(("epoch", "seq", "from", "to"), struct.unpack(">QQQQ", data[32:64]), strict=True))
    assert at == {"epoch": 1, "seq": 2, "from": 5, "to": 8}
    path = tmp_path / "one.hs"
    path.write_bytes(data)
    with open_segment(path, KEY) as reader:
        facts = reader.header
        assert (facts.from_seq, facts.seq, facts.from_rev, facts.to_rev) == (1, 2, 5, 8)
        assert (facts.prev_chain, facts.end_chain) == (data[88:120], bytes(32))
        assert len(list(reader.records())) == facts.count


# ---------------------------------------------------------------- golden prefixes


@pytest.fixture
def golden_1(tmp_path: Path) -> Remote:
    """A copy of the prefix of format 1, to be written to."""
    shutil.copytree(GOLDEN_1 / "prefix", tmp_path / "prefix")
    return open_remote((tmp_path / "prefix").as_uri())


@pytest.fixture
def golden_2(tmp_path: Path) -> Remote:
    shutil.copytree(GOLDEN_2 / "prefix", tmp_path / "prefix")
    return open_remote((tmp_path / "prefix").as_uri())


def test_a_prefix_of_format_1_verifies_and_restores(tmp_path: Path, golden_1: Remote) -> None:
    key = load_hub_key(GOLDEN_1 / "hub-key.txt")
    expected = json.loads((GOLDEN_1 / "expected.json").read_text())
    assert verify(golden_1, key, clock=StillClock(), scratch=tmp_path, deep=True).segments == 3
    done = restore(golden_1, key, tmp_path / "new", clock=StillClock())
    assert (done.revision, done.objects) == (expected["revision"], expected["objects"])
    assert done.state_hash == expected["state_hash"]
    assert render(contents_of(tmp_path / "new")) == expected["contents"]


@pytest.mark.parametrize("seq", [1, 2])
def test_the_ends_of_the_tail_of_format_1_are_points(
    tmp_path: Path, golden_1: Remote, seq: int
) -> None:
    done = restore(golden_1, KEY, tmp_path / "new", clock=StillClock(), to=AtPosition(seq))
    assert (done.point.seq, done.segments, done.left_behind) == (seq, seq, 3 - seq)
    assert len(contents_of(tmp_path / "new")) == done.objects


async def test_a_prefix_of_format_1_is_gone_on_with(tmp_path: Path, golden_1: Remote) -> None:
    restore(golden_1, KEY, tmp_path / "new", clock=StillClock("restore"))
    async with serve(tmp_path / "new", golden_1, seed="next") as hub:
        before = hub.contents()
        await hub.put("of-today")
        assert hub.ship() is not None
        assert verify(golden_1, KEY, clock=StillClock(), deep=True).segments == 4
        merge(hub)
        assert verify(golden_1, KEY, clock=StillClock(), deep=True).segments == 3
        full = ship_full(hub.store, hub.chain, hub.spool)
        assert full is not None
        await hub.drop("of-today")
        assert hub.ship() is not None
        head = hub.chain.head
    assert (head.format, head.seq, head.epoch) == (2, 5, 2)
    done = restore(golden_1, KEY, tmp_path / "again", clock=StillClock("again"))
    assert done.segments == 2
    found = await asyncio.to_thread(contents_of, tmp_path / "again")
    assert render(found) == render(before)
    for seq in range(1, 6):
        back = restore(golden_1, KEY, tmp_path / f"{seq}", clock=StillClock(), to=AtPosition(seq))
        found = await asyncio.to_thread(contents_of, tmp_path / f"{seq}")
        assert len(found) == back.objects


POINTS_2: list[Expected] = json.loads((GOLDEN_2 / "expected.json").read_text())["points"]


def test_the_prefix_of_format_2_has_one_of_each(golden_2: Remote) -> None:
    head = open_head(golden_2.get("HEAD").data, KEY)
    found = load_catalog(golden_2, head, KEY)
    assert {ref.level for ref in found.segments} == {"full", "d0", "d1"}
    assert len(found.manifests) == 3
    assert [(fork.seq, fork.base_seq) for fork in head.branches] == [(8, 6)]
    assert [point["seq"] for point in POINTS_2] == list(range(1, 11))
    assert [pin.name for pin in list_pins(golden_2)] == ["before-f"]
    assert {ref.name for ref in found.segments} == {
        entry.name for entry in golden_2.list() if entry.name.endswith(".hs")
    }


@pytest.mark.parametrize("expected", POINTS_2, ids=lambda point: f"@{point['seq']}")
def test_every_point_of_format_2_restores(
    tmp_path: Path, golden_2: Remote, expected: Expected
) -> None:
    to = AtPosition(expected["seq"])
    verify(golden_2, KEY, clock=StillClock(), scratch=tmp_path, deep=True, to=to)
    done = restore(golden_2, KEY, tmp_path / "new", clock=StillClock(), to=to)
    assert (done.revision, done.objects) == (expected["revision"], expected["objects"])
    assert done.state_hash == expected["state_hash"]
    assert done.damaged == ()
    assert render(contents_of(tmp_path / "new")) == expected["contents"]


@pytest.mark.parametrize("expected", POINTS_2, ids=lambda point: f"@{point['seq']}")
def test_the_points_of_format_2_are_found_by_revision_and_time_but_on_the_branch(
    golden_2: Remote, expected: Expected
) -> None:
    found = load_catalog(golden_2, open_head(golden_2.get("HEAD").data, KEY), KEY)
    seq = 6 if expected["seq"] in {7, 8} else expected["seq"]
    for target in (AtRevision(expected["revision"]), AtTime(expected["time_ms"])):
        point = resolve(found, target)
        assert point.seq == seq
        assert bool(point.note) is (seq != expected["seq"])


async def test_a_prefix_of_format_2_is_gone_on_with(tmp_path: Path, golden_2: Remote) -> None:
    restore(golden_2, KEY, tmp_path / "new", clock=StillClock("restore"))
    async with serve(tmp_path / "new", golden_2, seed="next") as hub:
        await hub.put("of-today")
        assert hub.ship() is not None
        assert (hub.chain.head.seq, hub.chain.head.epoch) == (11, 3)
        expected = hub.contents()
    restore(golden_2, KEY, tmp_path / "again", clock=StillClock("again"))
    found = await asyncio.to_thread(contents_of, tmp_path / "again")
    assert render(found) == render(expected)


# ---------------------------------------------------------------- errors and docstrings


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


@pytest.mark.parametrize("name", ["header", "layout", "merge", "points", "remote.api"])
def test_worked_examples_hold(name: str) -> None:
    module: ModuleType = importlib.import_module(f"snapshot.{name}")
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
