"""Events: one object in two groups."""

import re
from urllib.parse import quote

import pytest

from hub.meta import Obj
from hub.meta.protobuf import encode_envelope
from tests.hubs import InProcess
from tests.server.support import PROTOBUF, TABLE

pytestmark = pytest.mark.asyncio(loop_scope="module")


def core(ns: str) -> str:
    return f"/api/v1/namespaces/{ns}/events"


def new(ns: str) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{ns}/events"


def old_event(ns: str, name: str = "e1") -> Obj:
    return {
        "metadata": {"name": name, "namespace": ns},
        "involvedObject": {"kind": "ConfigMap", "namespace": ns, "name": "a", "uid": "u"},
        "reason": "Done",
        "message": "it happened",
        "type": "Normal",
        "source": {"component": "tester", "host": "here"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 3,
        "reportingComponent": "tester.io/x",
        "reportingInstance": "x-1",
    }


async def test_a_core_event_shows_in_the_new_group(hub: InProcess, ns: str) -> None:
    sent = old_event(ns)
    await hub.admin.create(core(ns), sent)
    found = await hub.admin.get(f"{new(ns)}/e1")
    assert (found["apiVersion"], found["kind"]) == ("events.k8s.io/v1", "Event")
    assert found["note"] == sent["message"]
    assert found["regarding"] == sent["involvedObject"]
    assert found["deprecatedSource"] == sent["source"]
    assert found["deprecatedCount"] == 3
    assert found["deprecatedFirstTimestamp"] == sent["firstTimestamp"]
    assert found["deprecatedLastTimestamp"] == sent["lastTimestamp"]
    assert found["reportingController"] == "tester.io/x"
    assert found["reportingInstance"] == "x-1"
    for field in ("message", "involvedObject", "source", "count", "reportingComponent"):
        assert field not in found


async def test_a_new_event_shows_in_the_core_group_and_counts_up_by_patch(
    hub: InProcess, ns: str
) -> None:
    sent = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e2", "namespace": ns},
        "eventTime": "2026-01-01T00:00:00.123456Z",
        "action": "Testing",
        "reason": "Done",
        "note": "it happened",
        "type": "Normal",
        "regarding": {"kind": "ManagedCluster", "name": "a"},
        "reportingController": "tester.io/x",
        "reportingInstance": "x-1",
    }
    made = await hub.admin.call("POST", new(ns), encode_envelope(sent), content_type=PROTOBUF)
    assert made.status == 201
    found = await hub.admin.get(f"{core(ns)}/e2")
    assert (found["apiVersion"], found["message"]) == ("v1", "it happened")
    assert found["involvedObject"] == sent["regarding"]
    assert (found["action"], found["eventTime"]) == (sent["action"], sent["eventTime"])
    series = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}}
    patched = await hub.admin.patch(f"{new(ns)}/e2", {**series, "note": "again"})
    assert patched["note"] == "again"
    again = await hub.admin.get(f"{core(ns)}/e2")
    assert (again["series"], again["message"]) == (series["series"], "again")


async def test_events_are_found_by_what_they_are_about(hub: InProcess, ns: str) -> None:
    await hub.admin.create(core(ns), old_event(ns, "e3"))
    await hub.admin.create(
        core(ns), {**old_event(ns, "e4"), "involvedObject": {"kind": "Secret", "name": "b"}}
    )
    for query, expected in (
        ("involvedObject.name%3Da", ["e3"]),
        ("involvedObject.kind%3DSecret,reason%3DDone", ["e4"]),
        ("involvedObject.uid%3Du,type%3DNormal", ["e3"]),
        ("type%3DWarning", []),
        ("source%3Dtester", ["e3", "e4"]),
    ):
        listed = await hub.admin.get(f"{core(ns)}?fieldSelector={query}")
        assert [item["metadata"]["name"] for item in listed["items"]] == expected
    watched = f"{core(ns)}?watch=1&fieldSelector=involvedObject.name%3Da"
    async with hub.admin.watch(watched) as watch:
        assert (await watch.next())["object"]["metadata"]["name"] == "e3"
        await hub.admin.call("DELETE", f"{new(ns)}/e3")
        gone = await watch.next()
        assert (gone["type"], gone["object"]["apiVersion"]) == ("DELETED", "v1")


async def test_an_event_is_printed_as_the_api_server_prints_it(hub: InProcess, ns: str) -> None:
    sent = old_event(ns, "e5") | {"message": " it happened\n", "reportingInstance": ""}
    sent["involvedObject"]["fieldPath"] = "data.x"
    await hub.admin.create(core(ns), sent)
    for path in (core(ns), new(ns)):
        table = (await hub.admin.call("GET", f"{path}/e5", accept=TABLE)).obj()
        columns = [(c["name"], c["format"], c["priority"]) for c in table["columnDefinitions"]]
        assert columns == [
            ("Last Seen", "", 0),
            ("Type", "", 0),
            ("Reason", "", 0),
            ("Object", "", 0),
            ("Subobject", "", 1),
            ("Source", "", 1),
            ("Message", "", 0),
            ("First Seen", "", 1),
            ("Count", "", 1),
            ("Name", "name", 1),
        ]
        last, *cells = table["rows"][0]["cells"]
        first = cells.pop(6)
        assert re.fullmatch(r"\d+[dy](\d+d)?", last)
        assert last == first
        about = ["Normal", "Done", "configmap/a", "data.x", "tester, here", "it happened", 3, "e5"]
        assert cells == about


async def test_an_event_shows_the_fields_that_go_never_omits(hub: InProcess, ns: str) -> None:
    bare = {"metadata": {"name": "e6"}, "involvedObject": {"kind": "ConfigMap", "namespace": ns}}
    await hub.admin.create(core(ns), bare)
    found = await hub.admin.get(f"{core(ns)}/e6")
    shown = {k: found[k] for k in ("eventTime", "reportingComponent", "reportingInstance")}
    assert shown == {"eventTime": None, "reportingComponent": "", "reportingInstance": ""}
    renamed = await hub.admin.get(f"{new(ns)}/e6")
    assert renamed["eventTime"] is None
    assert "reportingController" not in renamed


async def test_each_group_selects_by_its_own_names_of_fields(hub: InProcess, ns: str) -> None:
    await hub.admin.create(core(ns), old_event(ns))
    for path, ours, theirs in (
        (core(ns), "involvedObject.name=a", "regarding.name=a"),
        (core(ns), "reportingComponent=tester.io/x", "reportingController=tester.io/x"),
        (core(ns), "source=tester", "regarding.kind=ConfigMap"),
        (new(ns), "regarding.name=a", "involvedObject.name=a"),
        (new(ns), "reportingController=tester.io/x,reason=Done", "reportingComponent=tester.io/x"),
        (new(ns), "regarding.kind!=Pod,type=Normal", "source=tester"),
    ):
        found = await hub.admin.get(f"{path}?fieldSelector={quote(ours)}")
        assert [each["metadata"]["name"] for each in found["items"]] == ["e1"], ours
        refused = await hub.admin.call("GET", f"{path}?fieldSelector={quote(theirs)}")
        assert refused.status == 400
        field = theirs.partition("=")[0]
        assert refused.obj()["message"] == f"field label not supported: {field}"
