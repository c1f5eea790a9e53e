"""hub-restore list, plan, restore to a point, drill, keycheck: what they print and end with."""

from pathlib import Path

import pytest

from hub.store import has_store
from snapshot.layout import HEAD
from snapshot.points import render_time
from snapshot.remote import Remote
from snapshot.ship import ship_full
from tests.unit.snapshot.cli import Command, key_file
from tests.unit.snapshot.hub import serve
from tests.unit.snapshot.support import OTHER_KEY
from tools.hubrestore.cli import cli


@pytest.fixture
def run(tmp_path: Path) -> Command:
    return Command(tmp_path)


@pytest.fixture
async def prefix(tmp_path: Path, bucket: Remote) -> None:
    """Positions 1 to 4: a base full and three deltas, at revisions 2, 3, 4 and 5."""
    async with serve(tmp_path / "old", bucket) as hub:
        await hub.put("a", "b")
        hub.ship()
        for name in ("c", "d", "e"):
            await hub.put(name)
            hub.ship()


@pytest.mark.usefixtures("prefix")
def test_with_the_key_the_list_has_the_history_newest_first(run: Command) -> None:
    listed = [line.split() for line in run("list").splitlines()[2:]]
    assert [words[:3] for words in listed[1:5]] == [
        ["delta", "@4", "5"],
        ["delta", "@3", "4"],
        ["delta", "@2", "3"],
        ["full", "@1", "2"],
    ]
    found = run.json("list")
    assert [each["seq"] for each in found["segments"]] == [1, 2, 3, 4]
    assert all(each["is_on_line"] for each in found["segments"])
    assert found["size"] == sum(each["size"] for each in found["segments"])


async def test_a_long_list_is_cut_unless_all_is_asked_for(
    tmp_path: Path, bucket: Remote, run: Command
) -> None:
    async with serve(tmp_path / "old", bucket) as hub:
        for count in range(35):
            await hub.put(f"a{count}")
            hub.ship()
    assert "35 segments of " in run("list")
    assert "5 of them not shown (--all shows them)" in run("list")
    assert len(run("list", "--all").splitlines()) == len(run("list").splitlines()) + 5


@pytest.mark.usefixtures("prefix")
def test_a_pin_shows_in_the_list_and_goes_with_unpin(run: Command) -> None:
    assert "release keeps revision 3" in run("pin", "release", "--to", "3", "--note", "before 2.0")
    assert "pin release keeps @2, revision 3: before 2.0" in run("list")
    assert "pinned" in next(line for line in run("list").splitlines() if " @2 " in line)
    assert run.json("list")["pins"][0]["note"] == "before 2.0"
    assert run.json("pin", "release", code=2)["error"]["kind"] == "PinInvalid"
    assert run.bare("unpin", "release", "--from", run.bucket).exit_code == 0
    assert run.json("list")["pins"] == []
    result = run.bare("unpin", "release", "--from", run.bucket)
    assert result.exit_code == 2
    assert "there is no such pin" in result.output


@pytest.mark.usefixtures("prefix")
def test_a_dry_pin_and_unpin_change_nothing(run: Command) -> None:
    assert "nothing has been changed" in run("pin", "one", "--dry-run")
    assert run.json("list")["pins"] == []
    run("pin", "one")
    result = run.bare("unpin", "one", "--dry-run", "--from", run.bucket)
    assert "nothing has been changed" in result.output
    assert "pin one would go" in result.output
    assert len(run.json("list")["pins"]) == 1
    assert run.bare("unpin", "two", "--dry-run", "--from", run.bucket).exit_code == 2


@pytest.mark.usefixtures("prefix")
def test_a_point_that_is_not_there_is_answered_with_where_to_look(run: Command) -> None:
    for point in ("1", "@99", "2001-01-01T00:00:00Z"):
        error = run.json("plan", "--to", point, code=3)["error"]
        assert "hub-restore list" in error["hint"]


@pytest.mark.usefixtures("prefix")
def test_a_point_in_json_has_its_time_in_words_too(run: Command) -> None:
    point = run.json("plan")["point"]
    assert point["time"] == render_time(point["time_ms"])


@pytest.mark.usefixtures("prefix")
def test_a_prefix_that_lost_its_head_is_told_from_an_empty_one(
    tmp_path: Path, bucket: Remote, run: Command
) -> None:
    bucket.delete(HEAD)
    assert "no HEAD" in run.json("list", code=3)["error"]["message"]
    empty = (tmp_path / "empty").as_uri()
    result = run.bare("list", "--from", empty)
    assert "there is no hub here" in result.output
    assert not (tmp_path / "empty").exists(), "looking makes nothing"


async def test_without_a_manifest_list_and_plan_show_what_is_left(
    tmp_path: Path, bucket: Remote, run: Command
) -> None:
    async with serve(tmp_path / "old", bucket) as hub:
        for name in ("a", "b", "c"):
            await hub.put(name)
            hub.ship()
            ship_full(hub.store, hub.chain, hub.spool)
    lost = min(each.name for each in bucket.list("manifest/"))
    bucket.delete(lost)
    assert f"damaged: {lost}" in run("list")
    assert run.json("list")["damaged"] == [lost]
    assert lost in run.json("plan")["damaged"]
    error = run.json("plan", "--to", "@1", code=4)["error"]
    assert "--to-last-consistent" in error["hint"]
    assert run.json("plan", "--to", "@2", "--to-last-consistent")["damaged"] == [lost]


@pytest.mark.usefixtures("prefix")
def test_a_plan_names_the_segments_and_what_would_be_left_behind(run: Command) -> None:
    said = run("plan", "--to", "@2")
    assert "revision 3 of" in said
    assert "2 positions after it would be left behind as a branch" in said
    assert "2 segments, " in said
    found = run.json("plan", "--to", "3")
    assert [each["level"] for each in found["segments"]] == ["full", "d0"]
    assert (found["left_behind"], found["damaged"]) == (2, [])


@pytest.mark.usefixtures("prefix")
def test_a_plan_for_a_point_that_never_was_ends_with_3(run: Command) -> None:
    error = run.json("plan", "--to", "1", code=3)["error"]
    assert "the oldest is revision 2" in error["message"]
    assert run.json("plan", "--to", "@99", code=3)["error"]["exit_code"] == 3
    assert run.json("plan", "--to", "someday", code=2)["error"]["kind"] == "TargetUnclear"


@pytest.mark.usefixtures("prefix")
def test_a_plan_sees_without_reading_that_a_segment_is_gone(tmp_path: Path, run: Command) -> None:
    gone = next((tmp_path / "bucket").rglob("d0/3-4-*.hs"))
    gone.unlink()
    error = run.json("plan", code=4)["error"]
    assert error["kind"] == "Unreachable"
    assert "revision 3 of" in error["message"]
    assert "--to-last-consistent" in error["hint"]
    found = run.json("plan", "--to-last-consistent")
    assert found["point"]["rev"] == 3
    assert [name.rpartition("/")[2] for name in found["damaged"]] == [gone.name]
    assert run.json("plan", "--to", "3")["point"]["rev"] == 3


@pytest.mark.usefixtures("prefix")
def test_a_plan_sees_a_segment_that_was_cut_short(tmp_path: Path, run: Command) -> None:
    cut = next((tmp_path / "bucket").rglob("d0/4-5-*.hs"))
    cut.write_bytes(cut.read_bytes()[:-1])
    assert run.json("plan", code=4)["error"]["kind"] == "Unreachable"


@pytest.mark.usefixtures("prefix")
def test_restore_goes_back_to_a_point_and_says_so(tmp_path: Path, run: Command) -> None:
    said = run("restore", "--into", str(tmp_path / "new"), "--to", "@3")
    assert "at revision 4 into" in said
    assert "note: 1 position after it would be left behind" in said
    found = run.json("restore", "--into", str(tmp_path / "new"), "--to", "@2")
    assert (found["revision"], found["left_behind"]) == (3, 2)
    assert found["replaced"].startswith("store.old-")


@pytest.mark.usefixtures("prefix")
async def test_a_restore_to_the_past_leaves_a_branch_that_the_list_shows(
    tmp_path: Path, bucket: Remote, run: Command
) -> None:
    run("restore", "--into", str(tmp_path / "new"), "--to", "@2")
    async with serve(tmp_path / "new", bucket, seed="2") as hub:
        await hub.put("z")
        hub.ship()
    said = run("list")
    assert "branch: epoch 1 was left at @4, revision 5; the hub went on from @2" in said
    marked = [line.split()[1] for line in said.splitlines() if line.endswith("branch")]
    assert marked == ["@4", "@3"]
    found = run.json("list")
    assert [each["is_on_line"] for each in found["segments"]] == [True, True, False, False, True]
    back = run("restore", "--into", str(tmp_path / "back"), "--to", "@4")
    assert "at revision 5 into" in back


@pytest.mark.usefixtures("prefix")
def test_a_time_between_two_points_means_the_one_before_and_that_is_said(
    tmp_path: Path, run: Command
) -> None:
    said = run("restore", "--into", str(tmp_path / "new"), "--to", "2030-01-01")
    assert "note: 2030-01-01T00:00:00.000Z is after the newest: revision 5" in said


@pytest.mark.usefixtures("prefix")
def test_restore_takes_the_last_consistent_point_only_when_told(
    tmp_path: Path, run: Command
) -> None:
    next((tmp_path / "bucket").rglob("d0/3-4-*.hs")).unlink()
    into = ("restore", "--into", str(tmp_path / "new"))
    assert "--to-last-consistent" in run(*into, code=4)
    assert not (tmp_path / "new").exists()
    said = run(*into, "--to-last-consistent")
    assert "at revision 3 into" in said
    assert "damaged, gone around: e00000001/d0/3-4-" in said


@pytest.mark.usefixtures("prefix")
def test_a_dry_run_checks_the_target_and_writes_nothing(tmp_path: Path, run: Command) -> None:
    new = tmp_path / "new"
    said = run("restore", "--into", str(new), "--dry-run")
    assert "it holds no store" in said
    assert "nothing has been changed" in said
    assert not new.exists()
    run("restore", "--into", str(new))
    found = run.json("restore", "--into", str(new), "--dry-run")
    assert (found["replaces_store"], found["plan"]["point"]["rev"]) == (True, 5)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    error = run.json("restore", "--into", str(tmp_path / "full"), "--dry-run", code=9)["error"]
    assert error["kind"] == "TargetNotEmpty"


async def test_a_dry_run_refuses_a_directory_that_a_hub_works_on(
    tmp_path: Path, bucket: Remote, run: Command
) -> None:
    from hub.store import DirectoryLock

    async with serve(tmp_path / "old", bucket) as hub:
        await hub.put("a")
        hub.ship()
        lock = DirectoryLock(tmp_path / "old")
        error = run.json("restore", "--into", str(tmp_path / "old"), "--dry-run", code=9)["error"]
        lock.close()
    assert error["kind"] == "TargetBusy"
    assert has_store(tmp_path / "old" / "store")


@pytest.mark.usefixtures("prefix")
def test_a_drill_rebuilds_the_state_and_tells_how_fast(tmp_path: Path, run: Command) -> None:
    assert "equal by state hash" in run("drill", "--scratch", str(tmp_path))
    found = run.json("drill", "--to", "@2")
    assert (found["drill"]["objects"], found["drill"]["is_deep"]) == (3, True)
    assert found["objects_per_second"] > 0


@pytest.mark.usefixtures("prefix")
def test_keycheck_proves_the_key_and_never_shows_it(tmp_path: Path, run: Command) -> None:
    said = run("keycheck")
    secret = Path(run.key).read_text().strip().removeprefix("hublet-key-1:")
    assert "it opens e00000001/full/" in said
    assert secret not in said
    other = str(key_file(tmp_path / "other", OTHER_KEY))
    assert run.json("keycheck", "--key-file", other, code=7)["error"]["kind"] == "KeyMismatch"


@pytest.mark.usefixtures("prefix")
def test_a_usage_error_is_one_object_too(run: Command) -> None:
    error = run.json("restore", "--nonsense", code=2)["error"]
    assert (error["kind"], error["exit_code"]) == ("UsageError", 2)
    assert "--nonsense" in error["message"]
    assert "Usage:" in run("restore", "--nonsense", code=2)


def test_every_verb_of_the_contract_is_there_and_can_print_json() -> None:
    verbs = (
        "list plan restore verify diff copy pin unpin prune keycheck drill doctor adopt takeover"
    )
    assert sorted(cli.commands) == sorted([*verbs.split(), "release", "migrate"])
    for name, command in cli.commands.items():
        flags = {flag for option in command.params for flag in option.opts}
        assert {"--from", "--output"} <= flags, name


def test_flags_stand_for_the_s3_options(run: Command) -> None:
    error = run.json("list", "--s3-path-style", "perhaps", "--from", "s3://b/p", code=2)["error"]
    assert "path_style" in error["message"]
