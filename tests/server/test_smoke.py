"""A whole hub on this loop: the shortest way through every layer."""

from pathlib import Path

from tests.hubs import running_hub


async def test_an_object_can_be_created_watched_and_deleted(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        base = "/api/v1/namespaces/default/configmaps"
        async with hub.admin.watch(f"{base}?watch=1&fieldSelector=metadata.name%3Da") as watch:
            await hub.admin.create(base, {"metadata": {"name": "a"}, "data": {"x": "1"}})
            added = await watch.next()
            assert (added["type"], added["object"]["data"]) == ("ADDED", {"x": "1"})
            await hub.admin.patch(f"{base}/a", {"data": {"x": "2"}})
            assert (await watch.next())["type"] == "MODIFIED"
            answer = await hub.admin.call("DELETE", f"{base}/a")
            assert answer.obj()["status"] == "Success"
            assert (await watch.next())["type"] == "DELETED"


async def test_a_hub_started_again_goes_on_with_its_state(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        made = await hub.admin.create("/api/v1/namespaces", {"metadata": {"name": "kept"}})
    async with running_hub(tmp_path / "data") as hub:
        found = await hub.admin.get("/api/v1/namespaces/kept")
        assert found["metadata"]["uid"] == made["metadata"]["uid"]
