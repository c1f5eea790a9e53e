"""The hub's own API: read by who may, written by nobody, never stale; what it does when asked."""

import asyncio
import datetime as dt
import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from hub.backup import objects, parts, runner
from hub.backup.report import Report
from hub.backup.runner import Backup
from hub.backup.status import SnapshotPoint
from hub.clock import SystemClock
from hub.meta import Obj
from hub.store import Store, Write, decode_key
from snapshot.head import Head, decode_head
from snapshot.layout import HEAD
from snapshot.local import claim_on, save_claim
from snapshot.pins import put_pin
from snapshot.points import Point
from snapshot.remote import open_remote
from snapshot.ship import ship
from tests.hubs import MERGE, Answer, InProcess, running_hub
from tests.server.support import PARTIAL, PARTIAL_LIST, RBAC, TABLE, config_maps, named
from tools.restore import cli

GROUP = "/apis/hublet.io/v1alpha1"
HUBS, HUB, SNAPSHOTS = f"{GROUP}/hubs", f"{GROUP}/hubs/hub", f"{GROUP}/hubsnapshots"
RELEASE, SNAPSHOT = f"{HUB}/release", f"{HUB}/snapshot"
NEW_HUB = {"apiVersion": "hublet.io/v1alpha1", "kind": "Hub", "metadata": {"name": "other"}}
AGENT = ("system:open-cluster-management:c1:a1", "system:open-cluster-management:c1")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often: what is tested here is not how often."""
    monkeypatch.setattr(objects, "LOOK_EVERY_S", 0.1)
    monkeypatch.setattr(objects, "LEAST_PAUSE_S", 0.05)


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> list[SnapshotPoint]:
    """The points that the hubs of a test have, to be changed while they run."""
    found: list[SnapshotPoint] = []
    monkeypatch.setattr(Report, "points", lambda _: found)
    return found


def point(seq: int) -> SnapshotPoint:
    at = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    return SnapshotPoint("d0", 1, seq, seq * 10, at, 2048, f"e00000001/d0/{seq}.hs")


def head_of(url: str) -> Head:
    remote = open_remote(url)
    try:
        return decode_head(remote.get(HEAD).data)
    finally:
        remote.close()


def condition(hub: Obj, type_: str) -> tuple[str, str]:
    found = next(each for each in hub["status"]["conditions"] if each["type"] == type_)
    return found["status"], found["reason"]


async def until(hub: InProcess, path: str, holds: Callable[[Obj], bool]) -> Obj:
    """Watch a kind until an object is as wanted; return it."""
    async with hub.admin.watch(f"{path}?watch=1") as watch:
        while True:
            found: Obj = (await watch.next(20))["object"]
            if holds(found):
                return found


def is_healthy(hub: Obj) -> bool:
    return condition(hub, "BackupHealthy")[0] == "True"


def is_gathered(role: Obj) -> bool:
    """Whether a role is `view` and has what it gathers, which follows a moment after the start."""
    groups = [group for rule in role.get("rules") or [] for group in rule.get("apiGroups") or []]
    return role["metadata"]["name"] == "view" and "hublet.io" in groups


# ------------------------------------------------------------------ reading


@pytest.mark.asyncio(loop_scope="module")
async def test_a_hub_without_an_object_store_says_that_nothing_is_shipped(hub: InProcess) -> None:
    found = await hub.admin.get(HUB)
    assert (found["kind"], found["metadata"]["uid"]) == (
        "Hub",
        found["status"]["identity"]["hubID"],
    )
    assert found["status"]["identity"]["url"] == hub.url
    assert found["status"]["start"]["kind"] == "local"
    assert found["status"]["fencing"] == {"level": 0}
    assert condition(found, "BackupHealthy") == ("False", "NoObjectStore")
    assert condition(found, "FencingEnforced") == ("False", "NoObjectStore")
    events = (await hub.admin.get("/api/v1/namespaces/default/events"))["items"]
    about = [e for e in events if e["involvedObject"]["uid"] == found["metadata"]["uid"]]
    assert {(e["type"], e["reason"]) for e in about} == {("Warning", "NoObjectStore")}
    assert len(about) == 2


@pytest.mark.asyncio(loop_scope="module")
async def test_it_is_discovered_as_what_can_be_read_released_and_snapshotted(
    hub: InProcess,
) -> None:
    found = {each["name"]: each for each in (await hub.admin.get(GROUP))["resources"]}
    assert set(found) == {"hubs", "hubs/release", "hubs/snapshot", "hubsnapshots"}
    assert found["hubs"]["verbs"] == found["hubsnapshots"]["verbs"] == ["get", "list", "watch"]
    assert found["hubs/release"]["verbs"] == found["hubs/snapshot"]["verbs"] == ["create"]
    assert found["hubsnapshots"]["shortNames"] == ["hsnap"]


@pytest.mark.asyncio(loop_scope="module")
async def test_openapi_has_its_fields_and_no_way_to_write(hub: InProcess) -> None:
    document = await hub.admin.get("/openapi/v3/apis/hublet.io/v1alpha1")
    schema = document["components"]["schemas"]["io.hublet.v1alpha1.Hub"]
    assert schema["properties"]["status"]["properties"]["lag"]["description"]
    methods = {
        path: {method for method in item if method != "parameters"}
        for path, item in document["paths"].items()
    }
    assert methods.pop(f"{HUBS}/{{name}}/release") == {"post"}
    assert methods.pop(f"{HUBS}/{{name}}/snapshot") == {"post"}
    assert methods
    assert {method for found in methods.values() for method in found} == {"get"}
    old = await hub.admin.get("/openapi/v2")
    assert "status" in old["definitions"]["io.hublet.v1alpha1.Hub"]["properties"]


@pytest.mark.asyncio(loop_scope="module")
async def test_it_is_shown_as_a_table_and_as_metadata(hub: InProcess) -> None:
    table = (await hub.admin.call("GET", HUBS, accept=TABLE)).obj()
    names = [each["name"] for each in table["columnDefinitions"]]
    row = dict(zip(names, table["rows"][0]["cells"], strict=True))
    assert (row["Name"], row["Epoch"], row["Backup"], row["Settled"]) == ("hub", 0, "False", "True")
    assert row["URL"] == hub.url
    one = (await hub.admin.call("GET", HUB, accept=PARTIAL)).obj()
    assert (one["kind"], one["metadata"]["name"]) == ("PartialObjectMetadata", "hub")
    several = (await hub.admin.call("GET", HUBS, accept=PARTIAL_LIST)).obj()
    assert [each["metadata"]["name"] for each in several["items"]] == ["hub"]
    assert "status" not in several["items"][0]


# ------------------------------------------------------------------ who may what


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("method", "path", "verb"),
    [
        ("POST", HUBS, "create"),
        ("PUT", HUB, "update"),
        ("PATCH", HUB, "patch"),
        ("DELETE", HUB, "delete"),
        ("DELETE", HUBS, "deletecollection"),
    ],
)
async def test_nobody_writes_it(hub: InProcess, method: str, path: str, verb: str) -> None:
    before = await hub.admin.get(HUB)
    body = None if method == "DELETE" else NEW_HUB
    kind = MERGE if method == "PATCH" else "application/json"
    answer = await hub.admin.call(method, path, body, content_type=kind)
    status = answer.obj()
    assert (answer.status, status["reason"]) == (405, "MethodNotAllowed")
    assert status["message"] == (
        f'{verb} is not supported on resources of kind "hubs.hublet.io": '
        "the hub keeps it and clients can only read it"
    )
    listed = (await hub.admin.get(HUBS))["items"]
    assert [each["metadata"]["uid"] for each in listed] == [before["metadata"]["uid"]]


@pytest.mark.asyncio(loop_scope="module")
async def test_there_is_no_status_to_write_and_an_action_cannot_be_read(hub: InProcess) -> None:
    assert (await hub.admin.call("PUT", f"{HUB}/status", NEW_HUB)).status == 404
    for path in (RELEASE, SNAPSHOT):
        answer = await hub.admin.call("GET", path)
        assert (answer.status, answer.obj()["reason"]) == (405, "MethodNotAllowed")
        assert "keeps" not in answer.obj()["message"]


@pytest.mark.asyncio(loop_scope="module")
async def test_who_is_bound_to_view_reads_it_and_asks_it_for_nothing(hub: InProcess) -> None:
    binding = named(
        "viewers",
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        subjects=[{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "vera"}],
    )
    await until(hub, f"{RBAC}/clusterroles", is_gathered)
    await hub.admin.create(f"{RBAC}/clusterrolebindings", binding)
    vera = hub.admin.acting_as("vera")
    assert (await vera.get(HUB))["metadata"]["name"] == "hub"
    assert (await vera.get(SNAPSHOTS))["items"] == []
    for path in (RELEASE, SNAPSHOT):
        answer = await vera.call("POST", path)
        assert (answer.status, answer.obj()["reason"]) == (403, "Forbidden")


@pytest.mark.asyncio(loop_scope="module")
async def test_agents_neither_read_it_nor_ask_it_for_anything(hub: InProcess) -> None:
    agent = hub.admin.acting_as(*AGENT)
    for method, path in (
        ("GET", HUB),
        ("GET", SNAPSHOTS),
        ("POST", RELEASE),
        ("POST", SNAPSHOT),
    ):
        answer = await agent.call(method, path)
        assert (answer.status, answer.obj()["reason"]) == (403, "Forbidden")


# ------------------------------------------------------------------ watching


@pytest.mark.asyncio(loop_scope="module")
async def test_a_watch_from_a_list_sees_the_state_move(hub: InProcess, ns: str) -> None:
    listed = await hub.admin.get(HUBS)
    query = f"{HUBS}?watch=1&resourceVersion={listed['metadata']['resourceVersion']}"
    async with hub.admin.watch(query) as watch:
        made = await hub.admin.create(config_maps(ns), named("a"))
        revision = 0
        while revision < int(made["metadata"]["resourceVersion"]):
            event = await watch.next()
            assert event["type"] == "MODIFIED"
            revision = event["object"]["status"]["position"]["revision"]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_watch_begins_with_the_state_and_a_bookmark(hub: InProcess) -> None:
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1"
    async with hub.admin.watch(f"{HUBS}?{query}") as watch:
        assert (await watch.next())["type"] == "ADDED"
        event = await watch.next()
        while event["type"] == "MODIFIED":  # what earlier tests wrote is told of meanwhile
            event = await watch.next()
    assert event["type"] == "BOOKMARK"
    assert event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"


async def test_snapshots_come_and_go_and_no_watch_misses_one_that_went(
    tmp_path: Path, points: list[SnapshotPoint]
) -> None:
    points[:] = [point(1), point(2)]
    async with running_hub(tmp_path / "data") as hub:
        listed = await hub.admin.get(SNAPSHOTS)
        names = [each["metadata"]["name"] for each in listed["items"]]
        assert names == ["0000000001-d0", "0000000002-d0"]
        old = listed["metadata"]["resourceVersion"]
        async with hub.admin.watch(f"{SNAPSHOTS}?watch=1&resourceVersion={old}") as watch:
            points[:] = [point(2)]
            event = await watch.next()
            assert (event["type"], event["object"]["metadata"]["name"]) == ("DELETED", names[0])
            points.append(point(3))
            assert (await watch.next())["type"] == "ADDED"
        async with hub.admin.watch(f"{SNAPSHOTS}?watch=1&resourceVersion={old}") as watch:
            event = await watch.next()
            assert (event["type"], event["object"]["reason"]) == ("ERROR", "Expired")
        gone = event["object"]["message"]
        assert gone.startswith(f"too old resource version: {old} (")
        fresh = (await hub.admin.get(SNAPSHOTS))["metadata"]["resourceVersion"]
        async with hub.admin.watch(f"{SNAPSHOTS}?watch=1&resourceVersion={fresh}") as watch:
            points.append(point(4))
            event = await watch.next()
            assert event["object"]["metadata"]["name"] == "0000000004-d0"


async def test_a_watch_from_before_a_restart_lists_again(
    tmp_path: Path, points: list[SnapshotPoint]
) -> None:
    points[:] = [point(1)]
    async with running_hub(tmp_path / "data") as hub:
        old = (await hub.admin.get(HUB))["metadata"]["resourceVersion"]
    points.clear()
    async with running_hub(tmp_path / "data") as hub:
        assert (await hub.admin.get(SNAPSHOTS))["items"] == []
        async with hub.admin.watch(f"{SNAPSHOTS}?watch=1&resourceVersion={old}") as watch:
            assert (await watch.next())["object"]["reason"] == "Expired"


# ------------------------------------------------------------------ never stale, never shipped


async def test_what_it_shows_after_a_start_is_of_this_start(tmp_path: Path) -> None:
    url = (tmp_path / "bucket").as_uri()
    async with running_hub(tmp_path / "data", object_store=url) as hub:
        first = await until(hub, HUBS, is_healthy)
        await until(hub, SNAPSHOTS, lambda found: found["status"]["kind"] == "full")
    async with running_hub(tmp_path / "data", object_store=url) as hub:
        second = await hub.admin.get(HUB)
    assert second["metadata"]["uid"] == first["metadata"]["uid"]
    assert second["status"]["start"]["kind"] == "continue"
    assert (first["status"]["epoch"], second["status"]["epoch"]) == (1, 2)


async def test_a_restored_hub_tells_of_its_restore_and_nothing_of_the_old_one(
    tmp_path: Path,
) -> None:
    url, key = (tmp_path / "bucket").as_uri(), tmp_path / "key"
    async with running_hub(tmp_path / "old", object_store=url, key_file=key) as hub:
        old = await until(hub, HUBS, is_healthy)
    flags = ["--from", url, "--key-file", str(key), "--into", str(tmp_path / "new")]
    done = CliRunner().invoke(cli, ["restore", *flags])
    assert done.exit_code == 0, done.output
    async with running_hub(tmp_path / "new", object_store=url, key_file=key) as hub:
        new = await hub.admin.get(HUB)
        events = (await hub.admin.get("/api/v1/namespaces/default/events"))["items"]
    assert new["metadata"]["uid"] == old["metadata"]["uid"]
    assert new["status"]["start"]["kind"] == "restored"
    assert new["status"]["start"]["restoredFrom"] == url
    assert new["status"]["start"]["restoredRevision"] >= old["status"]["position"]["revision"]
    assert condition(new, "Settled") == ("False", "HeldAfterRestore")
    assert condition(new, "RecoveryKeyProven") == ("True", "RestoredWithIt")
    assert "HeldAfterRestore" in {each["reason"] for each in events}


async def test_an_adopted_copy_is_not_told_as_restored(tmp_path: Path) -> None:
    url, key = (tmp_path / "bucket").as_uri(), tmp_path / "key"
    async with running_hub(tmp_path / "old", object_store=url, key_file=key) as hub:
        await until(hub, HUBS, is_healthy)
    shutil.copytree(tmp_path / "old", tmp_path / "copy")
    claim = claim_on(head_of(url), None, object_store=url, clock=SystemClock(), adopted=True)
    save_claim(tmp_path / "copy", claim)
    async with running_hub(tmp_path / "copy", object_store=url, key_file=key) as hub:
        found = await hub.admin.get(HUB)
    assert found["status"]["start"]["kind"] == "adopted"
    assert not {"restoredFrom", "restoredRevision"} & set(found["status"]["start"])
    assert condition(found, "RecoveryKeyProven") == ("Unknown", "NotProven")


async def test_no_segment_is_cut_for_what_the_hub_says_of_itself(
    tmp_path: Path, points: list[SnapshotPoint]
) -> None:
    url = (tmp_path / "bucket").as_uri()
    async with running_hub(tmp_path / "data", object_store=url) as hub:
        await until(hub, HUBS, is_healthy)
        calm = await until(hub, HUBS, lambda found: found["status"]["lag"]["revisions"] == 0)
        before = head_of(url)
        for seq in range(1, 4):
            points.append(point(seq))
            name = f"{seq:010}-d0"
            await until(hub, SNAPSHOTS, lambda found, n=name: found["metadata"]["name"] == n)  # type: ignore[misc]  # this round's
        after = await hub.admin.get(HUB)
        assert head_of(url).seq == before.seq
    assert after["status"]["position"] == calm["status"]["position"]
    assert head_of(url).seq == before.seq


# ------------------------------------------------------------------ handing over


async def test_a_released_hub_answers_ships_the_rest_and_ends(tmp_path: Path) -> None:
    url, log = (tmp_path / "bucket").as_uri(), tmp_path / "audit.log"
    async with running_hub(tmp_path / "data", object_store=url, audit_log=str(log)) as hub:
        uid = (await hub.admin.get(HUB))["metadata"]["uid"]
        made = await hub.admin.create(config_maps("default"), named("last"))
        answer = await hub.admin.call("POST", RELEASE)
        await asyncio.wait([hub.run], timeout=20)
        assert hub.run.done()
        assert hub.run.exception() is None
    status = answer.obj()
    assert (answer.status, status["status"], status["code"]) == (202, "Success", 202)
    assert status["details"] == {"name": "hub", "group": "hublet.io", "kind": "hubs", "uid": uid}
    head = head_of(url)
    assert head.released
    assert head.rev >= int(made["metadata"]["resourceVersion"])
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert [e["user"]["username"] for e in entries if e["requestURI"] == RELEASE] == ["admin"]


async def test_a_write_that_is_under_way_when_a_hub_is_released_is_answered_and_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, is_held, is_free = Store.commit, asyncio.Event(), asyncio.Event()

    async def slow(self: Store, *writes: Write, **rest: object) -> object:
        if any(decode_key(write.key)[2] == "late" for write in writes):
            is_held.set()
            await is_free.wait()
        return await commit(self, *writes, **rest)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr(Store, "commit", slow)
    url = (tmp_path / "bucket").as_uri()
    async with running_hub(tmp_path / "data", object_store=url) as hub:
        asking: asyncio.Future[Answer] = asyncio.ensure_future(
            hub.admin.call("POST", config_maps("default"), named("late"))
        )
        await is_held.wait()
        released = await hub.admin.call("POST", RELEASE)
        is_free.set()
        made = await asking
        await asyncio.wait([hub.run], timeout=20)
        assert hub.run.done()
    assert (released.status, made.status) == (202, 201)
    assert head_of(url).rev >= int(made.obj()["metadata"]["resourceVersion"])


async def test_a_dry_run_releases_nothing(tmp_path: Path) -> None:
    url = (tmp_path / "bucket").as_uri()
    async with running_hub(tmp_path / "data", object_store=url) as hub:
        assert (await hub.admin.call("POST", f"{RELEASE}?dryRun=All")).status == 202
        await hub.admin.create(config_maps("default"), named("after"))
        assert not head_of(url).released


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("what", ["release", "snapshot"])
async def test_what_has_no_prefix_neither_releases_it_nor_ships(hub: InProcess, what: str) -> None:
    answer = await hub.admin.call("POST", f"{HUB}/{what}")
    assert (answer.status, answer.obj()["reason"]) == (409, "Conflict")
    assert "no object store" in answer.obj()["message"]
    absent = await hub.admin.call("POST", f"{HUBS}/other/{what}")
    assert (absent.status, absent.obj()["reason"]) == (404, "NotFound")
    assert (await hub.admin.get(HUB))["metadata"]["name"] == "hub"


# ------------------------------------------------------------------ health


async def test_a_bucket_that_swallows_segments_is_told_and_never_stops_serving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No error is raised anywhere: that there is none must not look like health."""
    goes_on = threading.Event()
    goes_on.set()

    def slow(*args: object, **rest: object) -> object:
        assert goes_on.wait(60)
        return ship(*args, **rest)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr(runner, "ship", slow)
    monkeypatch.setattr(parts, "MOST_LAG_S", 0.3)
    async with running_hub(tmp_path / "data", object_store=(tmp_path / "bucket").as_uri()) as hub:
        await until(hub, HUBS, is_healthy)
        goes_on.clear()
        try:
            await hub.admin.create(config_maps("default"), named("kept-here"))
            wanted = ("False", "Lagging")
            await until(hub, HUBS, lambda found: condition(found, "BackupHealthy") == wanted)
            assert (await hub.admin.call("GET", "/readyz")).status == 200
            assert (await hub.admin.call("GET", "/healthz")).status == 200
            await hub.admin.create(config_maps("default"), named("served"))
        finally:
            goes_on.set()
        await until(hub, HUBS, is_healthy)


# ------------------------------------------------------------------ what the bucket holds


async def test_a_new_process_lists_what_manifests_name_and_what_is_pinned(tmp_path: Path) -> None:
    url = (tmp_path / "bucket").as_uri()
    async with running_hub(tmp_path / "data", object_store=url) as hub:
        await until(hub, HUBS, is_healthy)
        for name in ("a", "b"):
            made = await hub.admin.create(config_maps("default"), named(name))
            revision = int(made["metadata"]["resourceVersion"])
            assert (await hub.admin.call("POST", SNAPSHOT)).status == 202
            await until(hub, SNAPSHOTS, lambda found, r=revision: is_full(found, r))  # type: ignore[misc]  # this round's
        listed = (await hub.admin.get(SNAPSHOTS))["items"]
    fulls = [each["status"] for each in listed if each["status"]["kind"] == "full"]
    first = fulls[0]
    assert len(fulls) == 3
    assert len([each for each in head_of(url).segments if each.level == "full"]) == 1
    pin(url, Point(first["seq"], first["revision"], 0))
    async with running_hub(tmp_path / "data", object_store=url) as hub:
        awaited = {each["metadata"]["name"] for each in listed}

        def is_whole(found: Obj) -> bool:
            awaited.discard(found["metadata"]["name"])
            return not awaited

        await until(hub, SNAPSHOTS, is_whole)
        await until(hub, SNAPSHOTS, lambda found: found["status"]["pinned"])
        again = (await hub.admin.get(SNAPSHOTS))["items"]
    assert [each["status"]["seq"] for each in again if each["status"]["pinned"]] == [first["seq"]]


def pin(url: str, point_: Point) -> None:
    remote = open_remote(url)
    try:
        put_pin(remote, "before", point_, clock=SystemClock())
    finally:
        remote.close()


async def test_a_lost_manifest_is_told_and_the_hub_goes_on(tmp_path: Path) -> None:
    url = (tmp_path / "bucket").as_uri()
    async with running_hub(tmp_path / "data", object_store=url) as hub:
        first = await until(hub, HUBS, is_healthy)
        made = await hub.admin.create(config_maps("default"), named("a"))
        assert (await hub.admin.call("POST", SNAPSHOT)).status == 202
        revision = int(made["metadata"]["resourceVersion"])
        await until(hub, SNAPSHOTS, lambda found: is_full(found, revision))
    (lost,) = (tmp_path / "bucket" / "manifest").glob("*.json")
    lost.unlink()
    async with running_hub(tmp_path / "data", object_store=url) as hub:
        wanted = ("False", "ObjectsAmiss")
        found = await until(hub, HUBS, lambda each: condition(each, "ChainVerified") == wanted)
        assert condition(found, "BackupHealthy")[0] == "True"
        assert found["metadata"]["uid"] == first["metadata"]["uid"]


# ------------------------------------------------------------------ a snapshot on demand


async def test_a_snapshot_that_is_asked_for_has_what_was_there_before(tmp_path: Path) -> None:
    url = (tmp_path / "bucket").as_uri()
    async with running_hub(tmp_path / "data", object_store=url) as hub:
        first = await until(hub, HUBS, is_healthy)
        made = await hub.admin.create(config_maps("default"), named("kept"))
        answer = await hub.admin.call("POST", SNAPSHOT)
        status, revision = answer.obj(), int(made["metadata"]["resourceVersion"])
        full = await until(hub, SNAPSHOTS, lambda found: is_full(found, revision))
        found = await until(hub, HUBS, lambda found: last_full(found) >= revision)
    assert (answer.status, status["status"], status["code"]) == (202, "Success", 202)
    uid = first["metadata"]["uid"]
    assert status["details"] == {"name": "hub", "group": "hublet.io", "kind": "hubs", "uid": uid}
    assert last_full(first) < revision <= last_full(found) == full["status"]["revision"]


def is_full(found: Obj, revision: int) -> bool:
    return bool(found["status"]["kind"] == "full" and found["status"]["revision"] >= revision)


def last_full(hub: Obj) -> int:
    return int(hub["status"]["lastFull"]["revision"])


async def test_a_dry_run_ships_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(Backup, "ask_full", lambda _: asked.append("full"))
    url = (tmp_path / "bucket").as_uri()
    async with running_hub(tmp_path / "data", object_store=url) as hub:
        assert (await hub.admin.call("POST", f"{SNAPSHOT}?dryRun=All")).status == 202
        assert asked == []
        assert (await hub.admin.call("POST", SNAPSHOT)).status == 202
        assert asked == ["full"]
