"""hub-restore adopt, takeover and release: who may write a prefix next."""

import shutil
from pathlib import Path

import pytest

from snapshot.arbiter import Adopt, CatchUp, Continue, Restore
from snapshot.chain import Chain
from snapshot.errors import CatchUpNeeded, Fenced, StartRefused
from snapshot.local import load_claim, load_state
from snapshot.remote import Remote
from snapshot.start import arbitrate, remember_fenced
from tests.unit.snapshot.cli import Command
from tests.unit.snapshot.hub import TestHub, serve
from tests.unit.snapshot.support import KEY, StillClock


@pytest.fixture
def run(tmp_path: Path) -> Command:
    return Command(tmp_path)


async def test_a_copy_of_the_directory_is_adopted_and_goes_on_with_all_it_holds(
    tmp_path: Path, bucket: Remote, run: Command
) -> None:
    async with serve(tmp_path / "old", bucket) as hub:
        await hub.put("a")
        hub.ship()
        await hub.put("b")
    shutil.copytree(tmp_path / "old", tmp_path / "copy")
    with pytest.raises(StartRefused):
        async with serve(tmp_path / "copy", bucket, seed="2"):
            pass
    into = ("adopt", "--into", str(tmp_path / "copy"))
    dry = run(*into, "--dry-run")
    assert "it holds changes that the bucket lacks; the bucket has nothing" in dry
    assert load_claim(tmp_path / "copy") is None
    said = run(*into)
    assert "goes on with all that it holds" in said
    assert "if it still runs: that start ends it" in said
    async with serve(tmp_path / "copy", bucket, seed="2") as hub:
        assert isinstance(hub.begun.decision, Adopt)
        assert len(hub.contents()) == 2
        hub.ship()
    assert run.json("plan")["point"]["rev"] == 2


async def fork(tmp_path: Path, bucket: Remote, run: Command, *names: str) -> None:
    """Ship "a"; put `names` here unshipped; another hub takes over and ships "theirs"."""
    async with serve(tmp_path / "old", bucket) as hub:
        await hub.put("a")
        hub.ship()
        if names:
            await hub.put(*names)
    run("restore", "--into", str(tmp_path / "new"))
    async with serve(tmp_path / "new", bucket, seed="2") as hub:
        await hub.put("theirs")
        hub.ship()
    remember_fenced(tmp_path / "old", "the new hub")


async def test_a_fenced_directory_with_nothing_of_its_own_catches_up(
    tmp_path: Path, bucket: Remote, run: Command
) -> None:
    await fork(tmp_path, bucket, run)
    found = run.json("adopt", "--into", str(tmp_path / "old"))["found"]
    assert (found["has_unshipped"], found["behind"], found["fenced_by"]) == (
        False,
        1,
        "the new hub",
    )
    with pytest.raises(CatchUpNeeded):
        async with serve(tmp_path / "old", bucket, seed="3"):
            pass


async def test_where_both_have_changes_a_human_must_say_which_go(
    tmp_path: Path, bucket: Remote, run: Command
) -> None:
    await fork(tmp_path, bucket, run, "mine")
    into = ("adopt", "--into", str(tmp_path / "old"))
    error = run.json(*into, code=8)["error"]
    assert error["kind"] == "Refused"
    assert "--discard-unshipped" in error["hint"]
    assert run.json(*into, "--dry-run", code=8)["error"] == error, "a dry run does not promise more"
    assert load_claim(tmp_path / "old") is None
    assert "from the bucket's newest state" in run(*into, "--discard-unshipped")
    with pytest.raises(CatchUpNeeded):
        async with serve(tmp_path / "old", bucket, seed="3"):
            pass


async def test_an_older_copy_whose_changes_were_shipped_since_loses_nothing(
    tmp_path: Path, bucket: Remote, run: Command
) -> None:
    async with serve(tmp_path / "old", bucket) as hub:
        await hub.put("a")
        hub.ship()
        await hub.put("b")
        shutil.copytree(tmp_path / "old", tmp_path / "copy")
        await hub.put("c")
        hub.ship()
    found = run.json("adopt", "--into", str(tmp_path / "copy"))["found"]
    assert (found["has_unshipped"], found["behind"]) == (False, 1)


async def test_nothing_is_adopted_that_is_in_use_foreign_or_no_store(
    tmp_path: Path, bucket: Remote, run: Command
) -> None:
    assert run.json("adopt", "--into", str(tmp_path / "none"), code=3)["error"]
    async with serve(tmp_path / "old", bucket) as hub:
        await hub.put("a")
        hub.ship()
        busy = run.json("adopt", "--into", str(tmp_path / "old"), code=9)["error"]
        assert busy["kind"] == "TargetBusy"
    state = load_state(tmp_path / "old")
    assert state is not None
    path = tmp_path / "old" / "snapshot-state.json"
    path.write_text(path.read_text().replace(state.hub_id, "another"))
    foreign = run.json("adopt", "--into", str(tmp_path / "old"), code=8)["error"]
    assert foreign["kind"] == "ForeignPrefix"


async def test_takeover_fences_a_hub_that_still_writes_and_frees_its_prefix(
    tmp_path: Path, bucket: Remote, run: Command
) -> None:
    chain = Chain(bucket, KEY, clock=StillClock("looker"))
    async with serve(tmp_path / "old", bucket) as hub:
        await hub.put("a")
        hub.ship()
        error = run.json("takeover", code=8)["error"]
        assert "it seems to run" in error["message"]
        assert "--i-have-stopped-the-old-hub" in error["hint"]
        said = run("takeover", "--dry-run")
        assert "nothing has been changed" in said
        assert "will need --i-have-stopped-the-old-hub" in said
        assert refuses_an_empty_directory(chain, tmp_path)
        taken = run.json("takeover", "--i-have-stopped-the-old-hub")
        assert (taken["taken"], taken["epoch"]) == (True, 2)
        with pytest.raises(Fenced, match="whoever ran hub-restore takeover, epoch 2"):
            await write(hub)
    assert not refuses_an_empty_directory(chain, tmp_path)
    again = run.json("takeover")
    assert (again["taken"], again["was_released"]) == (False, True)


async def write(hub: TestHub) -> None:
    await hub.put("late")
    hub.ship()


def refuses_an_empty_directory(chain: Chain, tmp_path: Path) -> bool:
    decision, _ = arbitrate(chain, tmp_path / "empty", dir_id="", position=None)
    assert not isinstance(decision, Adopt | CatchUp | Continue)
    return not isinstance(decision, Restore)


async def test_a_head_that_nobody_wrote_for_long_is_taken_without_a_word(
    tmp_path: Path, bucket: Remote, run: Command
) -> None:
    import os
    import time

    async with serve(tmp_path / "old", bucket) as hub:
        await hub.put("a")
        hub.ship()
    then = time.time() - 600
    os.utime(tmp_path / "bucket" / "HEAD", (then, then))
    assert "released under epoch 2" in run("takeover")


async def test_the_old_hub_may_go_on_after_a_takeover_that_nobody_followed(
    tmp_path: Path, bucket: Remote, run: Command
) -> None:
    async with serve(tmp_path / "old", bucket) as hub:
        await hub.put("a")
        hub.ship()
    run("takeover", "--i-have-stopped-the-old-hub")
    async with serve(tmp_path / "old", bucket, seed="2") as hub:
        assert isinstance(hub.begun.decision, Continue)
        assert hub.begun.head.epoch == 3


async def test_release_tells_how_the_prefix_stands_and_needs_no_key(
    tmp_path: Path, bucket: Remote, run: Command
) -> None:
    async with serve(tmp_path / "old", bucket) as hub:
        await hub.put("a")
        hub.ship()
        result = run.bare("release", "--from", run.bucket)
        assert result.exit_code == 8
        assert "hint: stop that hub with SIGTERM" in result.output
        hub.chain.release()
    result = run.bare("release", "--from", run.bucket)
    assert result.exit_code == 0
    assert "released by process" in result.output


@pytest.fixture
async def prefix(tmp_path: Path, bucket: Remote) -> None:
    async with serve(tmp_path / "old", bucket) as hub:
        await hub.put("a")
        hub.ship()


@pytest.mark.usefixtures("prefix")
def test_a_hub_that_does_not_answer_and_a_file_that_is_no_kubeconfig_are_told_apart(
    tmp_path: Path, run: Command
) -> None:
    (tmp_path / "config").write_text("hello: world")
    flags = ("release", "--from", run.bucket, "--kubeconfig", str(tmp_path / "config"))
    assert run.bare(*flags).exit_code == 2
    (tmp_path / "config").write_text(
        "current-context: x\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n"
        "clusters: [{name: x, cluster: {server: 'https://127.0.0.1:9'}}]\n"
        "users: [{name: x, user: {token: t}}]\n"
    )
    result = run.bare(*flags)
    assert result.exit_code == 6, result.output
    assert "hint: see that it runs" in result.output
