"""Owners, dependents and the three ways to delete, over the wire."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from hub.clock import SystemClock
from hub.meta import Obj
from hub.store import create_hub_key
from tests.hubs import MERGE, InProcess, Watch, running_hub
from tests.server.support import CLUSTERS, config_maps, named
from tools.restore import cli

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def make(
    hub: InProcess, ns: str, name: str, *owners: Obj, blocks: bool = False, **meta: object
) -> Obj:
    references = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": blocks,
        }
        for owner in owners
    ]
    body = {"metadata": {"name": name, "ownerReferences": references, **meta}}
    return await hub.admin.create(config_maps(ns), body)


async def seen(watch: Watch, *wanted: tuple[str, str]) -> None:
    """Wait until these events have come, in whatever order, others aside."""
    missing = set(wanted)
    while missing:
        event = await watch.next()
        missing.discard((event["type"], event["object"]["metadata"]["name"]))


async def names(hub: InProcess, ns: str) -> Sequence[str]:
    items = (await hub.admin.get(config_maps(ns)))["items"]
    return [item["metadata"]["name"] for item in items if len(item["metadata"]["name"]) == 1]


async def test_dependents_go_after_their_owner(hub: InProcess, ns: str) -> None:
    owner = await make(hub, ns, "a")
    middle = await make(hub, ns, "b", owner)
    last = await make(hub, ns, "c", middle)
    await make(hub, ns, "d")
    start = last["metadata"]["resourceVersion"]
    async with hub.admin.watch(f"{config_maps(ns)}?watch=1&resourceVersion={start}") as watch:
        answer = await hub.admin.call("DELETE", f"{config_maps(ns)}/a")
        assert answer.obj()["status"] == "Success"
        await seen(watch, *(("DELETED", name) for name in "abc"))
    assert await names(hub, ns) == ["d"]


async def test_in_the_foreground_the_owner_is_answered_and_goes_last(
    hub: InProcess, ns: str
) -> None:
    owner = await make(hub, ns, "a")
    last = await make(hub, ns, "b", owner, blocks=True, finalizers=["example.com/x"])
    start = last["metadata"]["resourceVersion"]
    path = f"{config_maps(ns)}?watch=1&resourceVersion={start}"
    async with hub.admin.watch(path) as watch:
        options = {"propagationPolicy": "Foreground"}
        answer = await hub.admin.call("DELETE", f"{config_maps(ns)}/a", options)
        assert answer.status == 200
        assert answer.obj()["metadata"]["finalizers"] == ["foregroundDeletion"]
        assert "deletionTimestamp" in answer.obj()["metadata"]
        await seen(watch, ("MODIFIED", "a"), ("MODIFIED", "b"))
        await hub.admin.patch(f"{config_maps(ns)}/b", {"metadata": {"finalizers": None}})
        order = [(await watch.next()) for _ in range(2)]
        assert [(e["type"], e["object"]["metadata"]["name"]) for e in order] == [
            ("DELETED", "b"),
            ("DELETED", "a"),
        ]


async def test_in_the_foreground_without_dependents_the_object_goes_by_itself(
    hub: InProcess, ns: str
) -> None:
    made = await make(hub, ns, "a")
    start = made["metadata"]["resourceVersion"]
    async with hub.admin.watch(f"{config_maps(ns)}?watch=1&resourceVersion={start}") as watch:
        path = f"{config_maps(ns)}/a?propagationPolicy=Foreground"
        assert (await hub.admin.call("DELETE", path)).obj()["kind"] == "ConfigMap"
        await seen(watch, ("DELETED", "a"))


@pytest.mark.parametrize("options", [{"propagationPolicy": "Orphan"}, {"orphanDependents": True}])
async def test_orphans_stay(hub: InProcess, ns: str, options: Obj) -> None:
    owner = await make(hub, ns, "a")
    last = await make(hub, ns, "b", owner)
    start = last["metadata"]["resourceVersion"]
    async with hub.admin.watch(f"{config_maps(ns)}?watch=1&resourceVersion={start}") as watch:
        answer = await hub.admin.call("DELETE", f"{config_maps(ns)}/a", options)
        assert answer.status == 200
        assert answer.obj()["metadata"]["finalizers"] == ["orphan"]
        await seen(watch, ("DELETED", "a"))
    kept = await hub.admin.get(f"{config_maps(ns)}/b")
    assert "ownerReferences" not in kept["metadata"]


async def test_the_older_way_to_ask_for_a_cascade_is_accepted(hub: InProcess, ns: str) -> None:
    await make(hub, ns, "a", finalizers=["example.com/x"])
    path = f"{config_maps(ns)}/a"
    answer = await hub.admin.call("DELETE", path, {"orphanDependents": False})
    assert answer.status == 202
    assert answer.obj()["metadata"]["finalizers"] == ["example.com/x"]
    assert (await hub.admin.call("DELETE", path)).status == 200
    await hub.admin.patch(path, {"metadata": {"finalizers": None}})


async def test_a_dependent_in_a_namespace_follows_a_cluster_scoped_owner(
    hub: InProcess, ns: str, name: str
) -> None:
    owner = await hub.admin.create(CLUSTERS, named(f"{name}-owner"))
    last = await make(hub, ns, "a", owner)
    start = last["metadata"]["resourceVersion"]
    async with hub.admin.watch(f"{config_maps(ns)}?watch=1&resourceVersion={start}") as watch:
        await hub.admin.call("DELETE", f"{CLUSTERS}/{name}-owner")
        await seen(watch, ("DELETED", "a"))


async def test_an_owner_that_is_not_there_is_found_out(hub: InProcess, ns: str) -> None:
    owner = await make(hub, ns, "a")
    await hub.admin.call("DELETE", f"{config_maps(ns)}/a")
    async with hub.admin.watch(f"{config_maps(ns)}?watch=1") as watch:
        await make(hub, ns, "b", owner)
        await seen(watch, ("ADDED", "b"), ("DELETED", "b"))


async def test_references_that_mean_nothing_are_refused(hub: InProcess, ns: str) -> None:
    await make(hub, ns, "a")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": ""}
    patch = {"metadata": {"ownerReferences": [reference]}}
    answer = await hub.admin.call("PATCH", f"{config_maps(ns)}/a", patch, content_type=MERGE)
    assert answer.status == 422
    assert answer.obj()["message"] == (
        'ConfigMap "a" is invalid: metadata.ownerReferences.uid: Invalid value: "": '
        "uid must not be empty"
    )
    assert answer.obj()["details"]["causes"][0]["field"] == "metadata.ownerReferences.uid"
    both = {"metadata": {"finalizers": ["orphan", "foregroundDeletion"]}}
    answer = await hub.admin.call("PATCH", f"{config_maps(ns)}/a", both, content_type=MERGE)
    assert answer.status == 422


@pytest.mark.parametrize("is_restored", [False, True])
async def test_only_a_restored_hub_holds_still_at_first(tmp_path: Path, is_restored: bool) -> None:
    bucket, key = (tmp_path / "bucket").as_uri(), tmp_path / "key"
    create_hub_key(key, token=SystemClock().token)
    async with running_hub(tmp_path / "one", object_store=bucket, key_file=key) as hub:
        assert hub.start_kind == "empty"
        await hub.admin.create("/api/v1/namespaces", named("t"))
    data = tmp_path / "one"
    if is_restored:
        data = tmp_path / "two"
        flags = ["--from", bucket, "--key-file", str(key), "--into", str(data)]
        done = CliRunner().invoke(cli, ["restore", *flags])
        assert done.exit_code == 0, done.output
    async with running_hub(data, object_store=bucket, key_file=key) as hub:
        assert hub.start_kind == ("restored" if is_restored else "continue")
        absent = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "uid": "u"}}
        start = (await make(hub, "t", "a", absent))["metadata"]["resourceVersion"]
        path = f"{config_maps('t')}?watch=1&resourceVersion={start}"
        async with hub.admin.watch(path) as watch:
            if not is_restored:
                await seen(watch, ("DELETED", "a"))
                return
            # long enough for the other hub to have collected it many times over
            await asyncio.gather(*(make(hub, "t", f"n{n}") for n in range(200)))
            await seen(watch, *(("ADDED", f"n{n}") for n in range(200)))
        assert await names(hub, "t") == ["a"]
