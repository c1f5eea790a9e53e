"""What /metrics tells of requests, connections and watches of a whole hub."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from hub.http import app
from tests.hubs import Api, InProcess, running_hub
from tests.server.support import anonymous, config_maps, named, token_for
from tests.server.widgets import define, widget_definition, widgets

MAPS = config_maps("default")


async def read(api: Api) -> dict[str, float]:
    """Return the samples of the metrics page, each under its name and labels as written."""
    page = (await api.call("GET", "/metrics")).body.decode()
    return {
        found[1]: float(found[2]) for found in re.finditer(r"^([^#\s]+) (\S+)$", page, re.MULTILINE)
    }


def count(metrics: Mapping[str, float], verb: str, group: str, code: int) -> float:
    labels = f'code="{code}",group="{group}",verb="{verb}"'
    return metrics.get(f"hublet_requests_total{{{labels}}}", 0)


async def test_requests_are_counted_by_verb_group_and_code(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        api = hub.admin
        before = await read(api)
        await api.create(MAPS, named("a"))
        assert (await api.call("POST", MAPS, named("a"))).status == 409
        await api.patch(f"{MAPS}/a", {"data": {"x": "1"}})
        for _ in range(3):
            await api.get(f"{MAPS}/a")
        await api.get("/apis/cluster.open-cluster-management.io/v1/managedclusters")
        assert (await api.call("GET", "/nosuch")).status == 404
        assert (await api.call("GET", "/apis/no.such.group/v1/things")).status == 404
        assert (await api.call("DELETE", f"{MAPS}/a")).status == 200
        assert (await api.call("BREW", f"{MAPS}/a")).status == 405
        async with api.watch(f"{MAPS}?watch=1"):
            pass
        after = await read(api)
        expected = {
            ("create", "core", 201): 1,
            ("create", "core", 409): 1,
            ("patch", "core", 200): 1,
            ("get", "core", 200): 3,
            ("list", "cluster.open-cluster-management.io", 200): 1,
            ("get", "none", 404): 1,
            ("list", "other", 404): 1,
            ("delete", "core", 200): 1,
            ("other", "core", 405): 1,
            ("watch", "core", 200): 1,
        }
        grown = {key: count(after, *key) - count(before, *key) for key in expected}
        assert grown == expected
        timed = 'hublet_request_seconds_count{verb="create"}'
        assert after[timed] - before[timed] == 2
        assert 'hublet_request_seconds_count{verb="watch"}' not in after
        assert after["hublet_request_count"] == 0
        assert after["hublet_connections_total"] == after["hublet_connection_count"] == 1


async def test_a_group_that_comes_with_a_definition_gets_no_series_of_its_own(
    tmp_path: Path,
) -> None:
    definition = widget_definition("metrics.example.com")
    async with running_hub(tmp_path / "data") as hub:
        await define(hub.admin, definition)
        await hub.admin.get(widgets(definition, "default"))
        metrics = await read(hub.admin)
        assert count(metrics, "list", "other", 200) == 1
        assert not [name for name in metrics if "metrics.example.com" in name]
    async with running_hub(tmp_path / "data") as hub:  # the definition is there at its start
        await hub.admin.get(widgets(definition, "default"))
        again = await read(hub.admin)
        assert count(again, "list", "other", 200) == 1
        assert not [name for name in again if "metrics.example.com" in name]


async def test_refusals_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_hub(tmp_path / "data") as hub:
        token = await token_for(hub, "default", "robot")
        robot, nobody = anonymous(hub, token=token), anonymous(hub, token="no.such.token")
        try:
            assert (await nobody.call("GET", MAPS)).status == 401
            assert (await nobody.call("GET", MAPS)).status == 401
            monkeypatch.setattr(app, "MAX_UNDER_WAY", 0)
            review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
            assert (await robot.call("POST", review, {})).status == 429
        finally:
            await robot.close()
            await nobody.close()
        metrics = await read(hub.admin)
        assert metrics['hublet_authentication_failures_total{credential="token"}'] == 2
        assert metrics['hublet_authentication_failures_total{credential="certificate"}'] == 0
        assert count(metrics, "other", "none", 401) == 2
        assert count(metrics, "create", "authentication.k8s.io", 429) == 1


async def test_watch_events_are_counted_for_each_watch_that_they_concern(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        first = await hub.admin.create(MAPS, named("a"))
        since = f"?watch=1&resourceVersion={first['metadata']['resourceVersion']}"
        before = await read(hub.admin)
        async with (
            hub.admin.watch(MAPS + since) as all_of_them,
            hub.admin.watch(f"{MAPS}{since}&fieldSelector=metadata.name%3Db") as one,
            hub.admin.watch(f"{MAPS}{since}&fieldSelector=metadata.name%3Dz") as other,
        ):
            await hub.admin.create(MAPS, named("b"))
            await hub.admin.create(MAPS, named("c"))
            for _ in range(2):
                await all_of_them.next()
            await one.next()
            assert other.status == 200
            after = await read(hub.admin)
            assert after["hublet_watch_events_total"] - before["hublet_watch_events_total"] == 3
            assert after["hublet_watch_count"] == 3
            assert after["hublet_stream_count"] == 4


async def test_commits_and_the_process_are_told(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        before = await read(hub.admin)
        await write_some(hub)
        after = await read(hub.admin)
    grown = {name: after[name] - before[name] for name in after if name in before}
    assert grown["hublet_store_commits_total"] >= 3
    assert grown["hublet_store_commit_seconds_total"] > 0
    assert after["hublet_store_failed_commits_total"] == after["hublet_store_trouble"] == 0
    assert after["hublet_store_used_bytes"] <= after["hublet_store_file_bytes"]
    assert after["hublet_process_resident_memory_bytes"] > 20e6
    assert 5 < after["hublet_process_open_fds"] < after["hublet_process_max_fds"]
    assert after['hublet_build_info{kubernetes="1.35",version="0.1.0"}'] == 1


async def write_some(hub: InProcess) -> None:
    for name in ("a", "b", "c"):
        await hub.admin.create(MAPS, named(name))
