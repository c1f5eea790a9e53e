"""Watches: every change once and in order, from wherever the client says."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from hub import server
from hub.clock import Clock
from hub.http import listing, watching
from hub.http.client import ConnectionLost
from hub.meta import Obj
from hub.registry.catalog import Catalog
from hub.registry.engine import Engine
from hub.store import Store
from tests.hubs import InProcess, Watch, running_hub
from tests.server.support import CLUSTERS, PARTIAL, ROOT_CA, TABLE, config_maps, named

pytestmark = pytest.mark.asyncio(loop_scope="module")
WATCH_LIST = (
    "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
)


def brief(event: Obj) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"].get("name", "")


async def take(watch: Watch, count: int) -> list[tuple[str, str]]:
    return [brief(await watch.next()) for _ in range(count)]


async def test_a_watch_without_a_revision_begins_with_what_is_there(
    hub: InProcess, ns: str
) -> None:
    path = config_maps(ns)
    for name in "ab":
        await hub.admin.create(path, named(name))
    for query in ("watch=1", "watch=true&resourceVersion=0", "watch"):
        async with hub.admin.watch(f"{path}?{query}") as watch:
            start = [("ADDED", "a"), ("ADDED", "b"), ("ADDED", ROOT_CA)]
            assert await take(watch, 3) == start
    async with hub.admin.watch(f"{path}?watch=1") as watch:
        await take(watch, 3)
        await hub.admin.create(path, named("c"))
        await hub.admin.patch(f"{path}/c", {"data": {"x": "1"}})
        await hub.admin.call("DELETE", f"{path}/c")
        assert await take(watch, 3) == [("ADDED", "c"), ("MODIFIED", "c"), ("DELETED", "c")]


async def test_a_watch_from_a_revision_shows_everything_after_it_once(
    hub: InProcess, ns: str
) -> None:
    path = config_maps(ns)
    first = await hub.admin.create(path, named("a"))
    start = first["metadata"]["resourceVersion"]
    await hub.admin.patch(f"{path}/a", {"data": {"x": "1"}})
    await hub.admin.create(path, named("b"))
    gone = await hub.admin.create(path, named("c"))
    await hub.admin.call("DELETE", f"{path}/c")
    async with hub.admin.watch(f"{path}?watch=1&resourceVersion={start}") as watch:
        seen = [await watch.next() for _ in range(4)]
        assert [brief(e) for e in seen] == [
            ("MODIFIED", "a"),
            ("ADDED", "b"),
            ("ADDED", "c"),
            ("DELETED", "c"),
        ]
        revisions = [int(e["object"]["metadata"]["resourceVersion"]) for e in seen]
        assert revisions == sorted(set(revisions))
        assert revisions[-1] > int(gone["metadata"]["resourceVersion"])
        await hub.admin.create(path, named("d"))
        assert await take(watch, 1) == [("ADDED", "d")]
    resumed = revisions[1]
    async with hub.admin.watch(f"{path}?watch=1&resourceVersion={resumed}") as watch:
        assert await take(watch, 3) == [("ADDED", "c"), ("DELETED", "c"), ("ADDED", "d")]


async def test_a_watch_list_ends_its_start_with_a_bookmark(hub: InProcess, ns: str) -> None:
    path = config_maps(ns)
    for name in "ab":
        made = await hub.admin.create(path, named(name))
    async with hub.admin.watch(f"{path}?{WATCH_LIST}") as watch:
        start = [("ADDED", "a"), ("ADDED", "b"), ("ADDED", ROOT_CA)]
        assert await take(watch, 3) == start
        end = await watch.next()
        assert (end["type"], end["object"]["kind"], end["object"]["apiVersion"]) == (
            "BOOKMARK",
            "ConfigMap",
            "v1",
        )
        meta = end["object"]["metadata"]
        assert meta["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert set(meta) == {"annotations", "resourceVersion"}
        assert int(meta["resourceVersion"]) >= int(made["metadata"]["resourceVersion"])
        await hub.admin.create(path, named("c"))
        assert await take(watch, 1) == [("ADDED", "c")]


async def test_a_watch_without_initial_events_begins_now(hub: InProcess, ns: str) -> None:
    path = config_maps(ns)
    await hub.admin.create(path, named("a"))
    query = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
    async with hub.admin.watch(f"{path}?{query}") as watch:
        await hub.admin.create(path, named("b"))
        assert await take(watch, 1) == [("ADDED", "b")]


@pytest.mark.parametrize("accept", [TABLE, PARTIAL])
async def test_the_end_of_the_start_is_marked_in_every_form(
    hub: InProcess, ns: str, accept: str
) -> None:
    await hub.admin.create(config_maps(ns), named("a"))
    path = f"{config_maps(ns)}?{WATCH_LIST}"
    async with hub.admin._client.stream("GET", path, [("accept", accept)]) as stream:
        watch = Watch(stream.status, aiter(stream))
        added, _, end = [await watch.next() for _ in range(3)]
    assert (added["type"], end["type"]) == ("ADDED", "BOOKMARK")
    found = end["object"]
    if accept == TABLE:
        assert (added["object"]["kind"], found["kind"]) == ("Table", "Table")
        assert added["object"]["rows"][0]["cells"][0] == "a"
        found = found["rows"][0]["object"]
    assert found["kind"] == "PartialObjectMetadata"
    assert found["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_objects_enter_and_leave_a_selection(hub: InProcess, ns: str) -> None:
    path = config_maps(ns)
    made = await hub.admin.create(path, named("a", data={"x": "0"}))
    start = made["metadata"]["resourceVersion"]
    for query in ("labelSelector=on%3Dyes", "labelSelector=on"):
        async with hub.admin.watch(f"{path}?watch=1&resourceVersion={start}&{query}") as watch:
            entered = await hub.admin.patch(f"{path}/a", {"metadata": {"labels": {"on": "yes"}}})
            await hub.admin.patch(f"{path}/a", {"data": {"x": "1"}})
            left = await hub.admin.patch(f"{path}/a", {"metadata": {"labels": None}})
            await hub.admin.patch(f"{path}/a", {"data": {"x": "0"}})
            seen = [await watch.next() for _ in range(3)]
            assert [e["type"] for e in seen] == ["ADDED", "MODIFIED", "DELETED"]
            assert seen[0]["object"] == entered
            # as it was when it matched, at the revision at which it left
            gone = seen[2]["object"]
            assert gone["metadata"]["labels"] == {"on": "yes"}
            revision = left["metadata"]["resourceVersion"]
            assert gone["metadata"]["resourceVersion"] == revision
            start = (await hub.admin.get(f"{path}/a"))["metadata"]["resourceVersion"]
    first = made["metadata"]["resourceVersion"]
    query = f"watch=1&resourceVersion={first}&labelSelector=on%3Dyes"
    async with hub.admin.watch(f"{path}?{query}") as watch:
        types = [(await watch.next())["type"] for _ in range(6)]
    assert types == ["ADDED", "MODIFIED", "DELETED"] * 2


async def test_a_watch_of_one_name_shows_that_name_only(hub: InProcess, ns: str) -> None:
    path = config_maps(ns)
    for query in (f"{path}?watch=1&fieldSelector=metadata.name%3Db", watch_path(path) + "/b"):
        async with hub.admin.watch(query) as watch:
            await hub.admin.create(path, named("a"))
            await hub.admin.create(path, named("b"))
            assert await take(watch, 1) == [("ADDED", "b")]
            for name in "ab":
                await hub.admin.call("DELETE", f"{path}/{name}")
            assert await take(watch, 1) == [("DELETED", "b")]


def watch_path(path: str) -> str:
    return path.replace("/api/v1/", "/api/v1/watch/").replace("/v1/managed", "/v1/watch/managed")


async def test_the_old_watch_paths_bind_a_cluster_scoped_name(hub: InProcess, name: str) -> None:
    async with hub.admin.watch(f"{watch_path(CLUSTERS)}/{name}") as watch:
        await hub.admin.create(CLUSTERS, named(f"{name}-other"))
        await hub.admin.create(CLUSTERS, named(name))
        seen = await watch.next()
        assert brief(seen) == ("ADDED", name)
    async with hub.admin.watch(f"/api/v1/watch/namespaces/{name}") as watch:
        await hub.admin.create("/api/v1/namespaces", named(name))
        assert await take(watch, 1) == [("ADDED", name)]


async def test_a_watch_over_all_namespaces_sees_each(hub: InProcess, ns: str) -> None:
    now = (await hub.admin.get("/api/v1/configmaps"))["metadata"]["resourceVersion"]
    async with hub.admin.watch(f"/api/v1/configmaps?watch=1&resourceVersion={now}") as watch:
        await hub.admin.create(config_maps(ns), named("here"))
        await hub.admin.create(config_maps("default"), named(f"{ns}-there"))
        assert await take(watch, 2) == [("ADDED", "here"), ("ADDED", f"{ns}-there")]


async def test_a_watch_ends_cleanly_at_its_timeout_after_a_bookmark(
    hub: InProcess, ns: str
) -> None:
    path = config_maps(ns)
    made = await hub.admin.create(path, named("a"))
    query = "watch=1&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion="
    async with hub.admin.watch(f"{path}?{query}{made['metadata']['resourceVersion']}") as watch:
        mark = await watch.next()
        assert mark["type"] == "BOOKMARK"
        assert int(mark["object"]["metadata"]["resourceVersion"]) >= int(
            made["metadata"]["resourceVersion"]
        )
        with pytest.raises(StopAsyncIteration):
            await watch.next()


async def test_a_future_revision_is_504(
    hub: InProcess, ns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_WAIT_FOR_REVISION_S", 0.1)
    answer = await hub.admin.call("GET", f"{config_maps(ns)}?watch=1&resourceVersion=999999999")
    assert (answer.status, answer.obj()["reason"]) == (504, "Timeout")


async def test_the_head_of_a_watch_arrives_before_any_event(hub: InProcess, ns: str) -> None:
    path = f"{config_maps(ns)}?watch=1"
    async with asyncio.timeout(5), hub.admin._client.stream("GET", path, []) as stream:
        assert stream.status == 200
        assert stream.headers["content-type"] == "application/json"


async def test_a_watch_goes_on_after_a_restart_of_the_hub(tmp_path: Path) -> None:
    path = config_maps("default")
    async with running_hub(tmp_path / "data") as first:
        made = await first.admin.create(path, named("a"))
        await first.admin.create(path, named("b"))
        await first.admin.call("DELETE", f"{path}/b")
    async with running_hub(tmp_path / "data") as second:
        query = f"watch=1&resourceVersion={made['metadata']['resourceVersion']}"
        async with second.admin.watch(f"{path}?{query}") as watch:
            assert await take(watch, 2) == [("ADDED", "b"), ("DELETED", "b")]
            await second.admin.create(path, named("c"))
            assert await take(watch, 1) == [("ADDED", "c")]


async def test_a_watch_from_before_the_log_gets_one_error_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines: list[Engine] = []

    class Seen(Engine):
        def __init__(
            self, store: Store, catalog: Catalog, clock: Clock, *, sealed: Iterable[str] = ()
        ) -> None:
            super().__init__(store, catalog, clock, sealed=sealed)
            engines.append(self)

    monkeypatch.setattr(server, "Engine", Seen)
    async with running_hub(tmp_path / "data") as hub:
        path = config_maps("default")
        old = (await hub.admin.create(path, named("a")))["metadata"]["resourceVersion"]
        for position in range(5):
            await hub.admin.patch(f"{path}/a", {"data": {"x": str(position)}})
        store = engines[0].store
        await store.compact_log(store.revision)
        query = f"{path}?watch=1&allowWatchBookmarks=true&resourceVersion={old}"
        async with hub.admin.watch(query) as watch:
            assert watch.status == 200
            event = await watch.next()
            assert event["type"] == "ERROR"
            found = event["object"]
            assert (found["kind"], found["code"], found["reason"]) == ("Status", 410, "Expired")
            assert found["message"].startswith(f"too old resource version: {old} (")
            with pytest.raises(StopAsyncIteration):
                await watch.next()


@pytest.mark.parametrize("is_history", [True, False])
async def test_a_reader_that_is_too_slow_is_cut_and_others_are_not(
    hub: InProcess, ns: str, monkeypatch: pytest.MonkeyPatch, *, is_history: bool
) -> None:
    monkeypatch.setattr(watching, "_MAX_QUEUED_BYTES", 64 * 1024)
    path = config_maps(ns)
    query = "watch=1"
    if is_history:  # the start of the watch alone is more than the client takes
        for position in range(12):
            await hub.admin.create(path, named(f"a{position}", data={"x": "y" * 90_000}))
    now = (await hub.admin.get(path))["metadata"]["resourceVersion"]
    async with (
        hub.admin.watch(f"{path}?watch=1&resourceVersion={now}") as brisk,
        hub.admin.watch(f"{path}?{query}") as stalled,
    ):
        for position in range(12):
            await hub.admin.create(path, named(f"n{position}", data={"x": "y" * 90_000}))
            assert await take(brisk, 1) == [("ADDED", f"n{position}")]
        with pytest.raises(ConnectionLost):
            await take(stalled, 25)
        await hub.admin.call("DELETE", f"{path}/n1")
        assert await take(brisk, 1) == [("DELETED", "n1")]


async def test_a_closed_watch_is_forgotten(hub: InProcess, ns: str) -> None:
    async def open_watches() -> int:
        metrics = (await hub.admin.call("GET", "/metrics")).body.decode()
        return int(float(metrics.split("hublet_watch_count ")[-1].split()[0]))

    before = await open_watches()
    async with hub.admin.watch(f"{config_maps(ns)}?watch=1"):
        assert await open_watches() == before + 1
    async with asyncio.timeout(5):
        while await open_watches() != before:
            pass
