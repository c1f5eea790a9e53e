"""Deleting whole selections, and the options of a deletion, over the wire."""

import asyncio

import pytest

from hub.meta import Obj
from hub.meta.protobuf import encode_envelope
from tests.hubs import Answer, InProcess
from tests.server.support import (
    CLUSTERS,
    PARTIAL_LIST,
    PROTOBUF,
    ROOT_CA,
    TABLE,
    anonymous,
    config_maps,
    named,
    token_for,
    untyped,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def fill(hub: InProcess, ns: str, names: str) -> list[Obj]:
    made = []
    for name in names:
        labels = {"even": "yes" if ord(name) % 2 == 0 else "no"}
        body = {"metadata": {"name": name, "labels": labels}}
        made.append(await hub.admin.create(config_maps(ns), body))
    return made


async def left(hub: InProcess, ns: str) -> str:
    found = (await hub.admin.get(config_maps(ns)))["items"]
    return "".join(o["metadata"]["name"] for o in found if o["metadata"]["name"] != ROOT_CA)


def names_in(answer: Answer) -> list[str]:
    return [item["metadata"]["name"] for item in answer.obj()["items"]]


async def test_what_is_selected_goes_and_is_shown_as_it_was(hub: InProcess, ns: str) -> None:
    made = await fill(hub, ns, "abcde")
    answer = await hub.admin.call("DELETE", f"{config_maps(ns)}?labelSelector=even%3Dno")
    assert answer.status == 200
    assert list(answer.obj()) == ["kind", "apiVersion", "metadata", "items"]
    assert (answer.obj()["kind"], answer.obj()["apiVersion"]) == ("ConfigMapList", "v1")
    assert answer.obj()["items"] == [untyped(made[at]) for at in (0, 2, 4)]
    assert await left(hub, ns) == "bd"
    by_field = await hub.admin.call("DELETE", f"{config_maps(ns)}?fieldSelector=metadata.name%3Dd")
    assert names_in(by_field) == ["d"]
    assert await left(hub, ns) == "b"


async def test_events_are_shown_as_they_were_though_no_log_knows_them(
    hub: InProcess, ns: str
) -> None:
    events = f"/api/v1/namespaces/{ns}/events"
    about = {"kind": "ConfigMap", "namespace": ns, "name": "one"}
    for n in range(25):
        await hub.admin.create(events, {**named(f"e{n:02}"), "involvedObject": about})
    answer = await hub.admin.call("DELETE", events)
    assert names_in(answer) == [f"e{n:02}" for n in range(25)]
    assert (await hub.admin.get(events))["items"] == []


async def test_without_a_selector_a_namespace_is_emptied_of_a_kind(hub: InProcess, ns: str) -> None:
    secrets = f"/api/v1/namespaces/{ns}/secrets"
    for n in range(150):
        await hub.admin.create(secrets, named(f"s{n:03}"))
    await fill(hub, ns, "a")
    answer = await hub.admin.call("DELETE", secrets)
    assert len(answer.obj()["items"]) == 150
    assert (await hub.admin.get(secrets))["items"] == []
    assert await left(hub, ns) == "a"
    again = await hub.admin.call("DELETE", secrets)
    assert (again.status, again.obj()["items"]) == (200, [])


async def test_every_deletion_is_watched(hub: InProcess, ns: str) -> None:
    made = await fill(hub, ns, "abc")
    start = made[-1]["metadata"]["resourceVersion"]
    path = f"{config_maps(ns)}?watch=1&resourceVersion={start}"
    async with hub.admin.watch(path) as watch:
        await hub.admin.call("DELETE", f"{config_maps(ns)}?labelSelector=even")
        seen = [await watch.next() for _ in range(3)]
    assert {(e["type"], e["object"]["metadata"]["name"]) for e in seen} == {
        ("DELETED", name) for name in "abc"
    }


async def test_a_limit_deletes_a_page_and_tells_how_to_go_on(hub: InProcess, ns: str) -> None:
    await fill(hub, ns, "abcde")
    answer = await hub.admin.call("DELETE", f"{config_maps(ns)}?labelSelector=even&limit=2")
    assert names_in(answer) == ["a", "b"]
    assert await left(hub, ns) == "cde"
    assert answer.obj()["metadata"]["continue"]


async def test_a_rehearsal_deletes_nothing(hub: InProcess, ns: str) -> None:
    await fill(hub, ns, "ab")
    path = f"{config_maps(ns)}?labelSelector=even"
    for query, body in (("&dryRun=All", None), ("", {"dryRun": ["All"]})):
        answer = await hub.admin.call("DELETE", path + query, body)
        assert names_in(answer) == ["a", "b"]
    assert await left(hub, ns) == "ab"


async def test_a_precondition_is_asked_of_each_object(hub: InProcess, ns: str) -> None:
    made = await fill(hub, ns, "ab")
    path = f"{config_maps(ns)}?labelSelector=even"
    options = {"preconditions": {"uid": made[0]["metadata"]["uid"]}}
    answer = await hub.admin.call("DELETE", path, options)
    assert (answer.status, answer.obj()["reason"]) == (409, "Conflict")
    assert "Precondition failed: UID in precondition" in answer.obj()["message"]
    assert await left(hub, ns) == "b"


async def test_what_finalizers_hold_is_marked(hub: InProcess, ns: str) -> None:
    await fill(hub, ns, "a")
    held = {"metadata": {"name": "b", "labels": {"even": "no"}, "finalizers": ["example.com/x"]}}
    await hub.admin.create(config_maps(ns), held)
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
    answer = await hub.admin.call(
        "DELETE",
        f"{config_maps(ns)}?labelSelector=even",
        encode_envelope(options),
        content_type=PROTOBUF,
    )
    assert names_in(answer) == ["a", "b"]
    assert await left(hub, ns) == "b"
    assert "deletionTimestamp" in (await hub.admin.get(f"{config_maps(ns)}/b"))["metadata"]
    await hub.admin.patch(f"{config_maps(ns)}/b", {"metadata": {"finalizers": None}})


async def test_the_answer_comes_in_every_form(hub: InProcess, ns: str) -> None:
    await fill(hub, ns, "abcd")
    table = await hub.admin.call(
        "DELETE", f"{config_maps(ns)}?labelSelector=even%3Dno", accept=TABLE
    )
    assert table.obj()["kind"] == "Table"
    assert [row["cells"][0] for row in table.obj()["rows"]] == ["a", "c"]
    rest = await hub.admin.call(
        "DELETE", f"{config_maps(ns)}?labelSelector=even", accept=PARTIAL_LIST
    )
    assert rest.obj()["kind"] == "PartialObjectMetadataList"
    assert names_in(rest) == ["b", "d"]


async def test_custom_kinds_and_cluster_scoped_ones_know_it_too(hub: InProcess, name: str) -> None:
    for suffix in "ab":
        await hub.admin.create(CLUSTERS, named(f"{name}{suffix}") | _label(name, suffix))
    answer = await hub.admin.call("DELETE", f"{CLUSTERS}?labelSelector=group%3D{name}")
    assert answer.obj()["kind"] == "ManagedClusterList"
    assert names_in(answer) == [f"{name}a", f"{name}b"]


def _label(group: str, suffix: str) -> Obj:
    return {"metadata": {"name": f"{group}{suffix}", "labels": {"group": group}}}


async def test_it_takes_a_right_of_its_own(hub: InProcess, ns: str) -> None:
    token = await token_for(hub, ns, "robot")
    robot = anonymous(hub, token=token)
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}"
    verbs = ["delete", "list", "get"]
    rules: list[Obj] = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]
    await hub.admin.create(f"{rbac}/roles", named("r", rules=rules))
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": ns}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    await hub.admin.create(f"{rbac}/rolebindings", named("b", subjects=[subject], roleRef=role))
    await fill(hub, ns, "a")
    path = f"{config_maps(ns)}?labelSelector=even"
    refused = await robot.call("DELETE", path)
    assert refused.status == 403
    assert 'cannot deletecollection resource "configmaps"' in refused.obj()["message"]
    rules[0]["verbs"] = [*verbs, "deletecollection"]
    await hub.admin.patch(f"{rbac}/roles/r", {"rules": rules})
    assert names_in(await robot.call("DELETE", path)) == ["a"]
    await robot.close()


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("labelSelector=%3D", 400),
        ("fieldSelector=spec.x%3D1", 400),
        ("limit=x", 400),
        ("dryRun=Some", 422),
        ("propagationPolicy=Sideways", 422),
        ("resourceVersionMatch=Exact", 422),
    ],
)
async def test_options_that_mean_nothing_delete_nothing(
    hub: InProcess, ns: str, query: str, code: int
) -> None:
    await fill(hub, ns, "a")
    assert (await hub.admin.call("DELETE", f"{config_maps(ns)}?{query}")).status == code
    assert await left(hub, ns) == "a"


async def test_collections_are_emptied_side_by_side(hub: InProcess, ns: str) -> None:
    await fill(hub, ns, "abcdefgh")
    path = f"{config_maps(ns)}?labelSelector=even"
    answers = await asyncio.gather(*(hub.admin.call("DELETE", path) for _ in range(4)))
    assert [answer.status for answer in answers] == [200] * 4
    assert await left(hub, ns) == ""


async def test_a_policy_that_is_none_is_refused_as_in_kubernetes(hub: InProcess, ns: str) -> None:
    await fill(hub, ns, "a")
    path = f"{config_maps(ns)}/a"
    strange = await hub.admin.call("DELETE", path, {"propagationPolicy": "Sideways"})
    assert strange.status == 422
    assert strange.obj()["message"] == (
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: '
        '"Sideways": supported values: "Foreground", "Background", "Orphan", "nil"'
    )
    both = await hub.admin.call(
        "DELETE", path, {"propagationPolicy": "Orphan", "orphanDependents": True}
    )
    assert both.status == 422
    assert "orphanDependents and deletionPropagation cannot be both set" in both.obj()["message"]
    assert await left(hub, ns) == "a"


async def test_a_deleted_service_account_is_the_answer(hub: InProcess, ns: str) -> None:
    path = f"/api/v1/namespaces/{ns}/serviceaccounts"
    made = await hub.admin.create(path, named("x"))
    answer = await hub.admin.call("DELETE", f"{path}/x")
    assert answer.status == 200
    assert answer.obj()["metadata"]["uid"] == made["metadata"]["uid"]
    assert answer.obj()["kind"] == "ServiceAccount"
