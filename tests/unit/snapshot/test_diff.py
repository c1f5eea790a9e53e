"""hub-restore diff: names and counts of what two states do not share."""

from pathlib import Path

import pytest

from hub.store import DirectoryLock, Record, Revision, encode_key
from snapshot.diff import compare
from snapshot.remote import Remote
from tests.unit.snapshot.cli import Command
from tests.unit.snapshot.hub import serve


@pytest.fixture
def run(tmp_path: Path) -> Command:
    return Command(tmp_path)


def record(name: str, revision: int) -> Record:
    return Record(encode_key("pods", "ns", name), Revision(revision), b"v")


def names(result: dict[str, object]) -> list[tuple[str, str]]:
    objects = result["objects"]
    assert isinstance(objects, list)
    return [(each["side"], each["name"]) for each in objects]


def test_two_empty_sides_do_not_differ() -> None:
    assert list(compare([], [])) == []
    assert [each.side for each in compare([record("a", 1)], [])] == ["left"]
    assert [each.side for each in compare([], [record("a", 1)])] == ["right"]


def test_long_names_are_compared_by_their_stored_order() -> None:
    long = [record("x" * 600 + end, 1) for end in ("a", "b")]
    ordered = sorted(long, key=lambda each: each.key)
    for left in (ordered, ordered[::-1]):
        assert {each.name for each in compare(left[:1], left[1:])} == {
            "x" * 600 + "a",
            "x" * 600 + "b",
        }


async def test_what_a_directory_has_and_the_bucket_lacks_is_listed(
    tmp_path: Path, bucket: Remote, run: Command
) -> None:
    async with serve(tmp_path / "old", bucket) as hub:
        await hub.put("a", "b", "secret-gone")
        hub.ship()
        await hub.put("b", "secret-new", text="PLANTED")
        await hub.drop("secret-gone")
    found = run.json("diff", "--dir", str(tmp_path / "old"))
    assert names(found) == [("changed", "b"), ("right", "secret-gone"), ("left", "secret-new")]
    assert found["resources"] == {"pods": {"changed": 1, "left": 1, "right": 1}}
    assert (found["left"]["revision"], found["right"]["revision"]) == (6, 3)
    said = run("diff", "--dir", str(tmp_path / "old"))
    assert "< pods ns/secret-new (5)" in said
    assert "! pods ns/b (2 -> 4)" in said.replace("(4 -> 2)", "(2 -> 4)")
    assert "3 differences" in said
    assert "PLANTED" not in said


async def test_two_points_of_one_prefix_are_compared(
    tmp_path: Path, bucket: Remote, run: Command
) -> None:
    async with serve(tmp_path / "old", bucket) as hub:
        await hub.put("a")
        hub.ship()
        await hub.put("b", "c", "d")
        hub.ship()
    found = run.json("diff", "--to", "@1", "--and-to", "latest")
    assert names(found) == [("right", "b"), ("right", "c"), ("right", "d")]
    cut = run("diff", "--to", "@1", "--and-to", "latest", "--limit", "1")
    assert "... and 2 more (--limit 0 lists all)" in cut
    assert "pods: 3 only right" in cut
    assert "no differences" in run("diff", "--and", run.bucket)


async def test_two_directories_are_compared(tmp_path: Path, bucket: Remote, run: Command) -> None:
    async with serve(tmp_path / "old", bucket) as hub:
        await hub.put("a")
        hub.ship()
    run("restore", "--into", str(tmp_path / "new"))
    dirs = ("--dir", str(tmp_path / "old"), "--dir", str(tmp_path / "new"))
    result = run.bare("diff", *dirs, "--key-file", run.key)
    assert result.exit_code == 0, result.output
    assert "no differences" in result.output


async def test_a_directory_in_use_is_refused_and_left_alone(
    tmp_path: Path, bucket: Remote, run: Command
) -> None:
    async with serve(tmp_path / "old", bucket) as hub:
        await hub.put("a")
        hub.ship()
        error = run.json("diff", "--dir", str(tmp_path / "old"), code=9)["error"]
        assert error["kind"] == "TargetBusy"
    lock = DirectoryLock(tmp_path / "old")  # of a hub that has not opened its store yet
    error = run.json("diff", "--dir", str(tmp_path / "old"), code=9)["error"]
    lock.close()
    assert error["kind"] == "TargetBusy"
    before = (tmp_path / "old" / "store" / "data.mdb").read_bytes()
    run("diff", "--dir", str(tmp_path / "old"))
    assert (tmp_path / "old" / "store" / "data.mdb").read_bytes() == before


async def test_a_diff_needs_two_sides(tmp_path: Path, bucket: Remote, run: Command) -> None:
    async with serve(tmp_path / "old", bucket) as hub:
        await hub.put("a")
        hub.ship()
    assert run.json("diff", code=2)["error"]["kind"] == "UsageError"
    assert "two sides" in run("diff", "--dir", "a", "--and", "b", code=2)
    assert run.json("diff", "--dir", str(tmp_path / "none"), code=3)["error"]["exit_code"] == 3
