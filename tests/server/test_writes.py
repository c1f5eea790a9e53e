"""Create, update, patch and delete: what a write may touch, and what it leaves alone."""

import asyncio
import base64
import re

import pytest

from hub.meta import Obj
from hub.meta.protobuf import encode_envelope
from tests.hubs import MERGE, InProcess, Watch
from tests.server.agents import Wish
from tests.server.support import CLUSTERS, PROTOBUF, REQUESTS, config_maps, named, over_http1

FIELDS = (
    *("spec", "status", "data", "stringData", "binaryData", "rules", "subjects", "roleRef"),
    *("involvedObject", "regarding", "source", "series", "type", "secrets"),
)
NESTED: tuple[object, ...] = (
    {"taints": ["x"]},
    {"taints": [None]},
    {"workload": {"manifests": ["x"]}},
    {"workload": "x"},
    {"workload": {"manifests": [{"kind": "A", "apiVersion": "v1", "metadata": "x"}]}},
    {"workload": {"manifests": [{"kind": 1, "apiVersion": [], "metadata": {"name": {}}}]}},
    {"manifestConfigs": [{"updateStrategy": {"serverSideApply": {"ignoreFields": [1]}}}]},
    {"clusterSelector": {"labelSelector": {"matchLabels": {"a": 1}}}},
    {"clusterSelector": {"labelSelector": {"matchLabels": {"!": "!"}}}},
    {"registrations": [1], "configReferences": [{"desiredConfig": "x"}]},
    {"renewTime": "yesterday", "leaseDurationSeconds": "1"},
    {"renewTime": "yesterday"},
    {"request": "!!", "usages": "x", "expirationSeconds": "x", "extra": 3},
    {"conditions": ["x"]},
)
VALID: dict[str, Obj] = {
    "certificatesigningrequests": {
        "spec": {
            "request": base64.b64encode(b"-----BEGIN CERTIFICATE REQUEST-----").decode(),
            "signerName": "example.com/x",
            "usages": ["client auth"],
        }
    },
    "rolebindings": {"roleRef": {"kind": "Role", "name": "reader"}},
    "manifestworks": {
        "spec": {
            "workload": {
                "manifests": [{"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}}]
            }
        }
    },
    "namespaces": {},
}
pytestmark = pytest.mark.asyncio(loop_scope="module")


def revision(obj: Obj) -> int:
    return int(obj["metadata"]["resourceVersion"])


async def test_the_server_fills_the_metadata_of_a_new_object(hub: InProcess, ns: str) -> None:
    sent = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {
            "name": "a",
            "uid": "mine",
            "creationTimestamp": None,
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "generation": 7,
            "labels": {},
        },
    }
    meta = (await hub.admin.create(config_maps(ns), sent))["metadata"]
    assert set(meta) == {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-.{12}", meta["uid"]
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta["creationTimestamp"])
    assert re.fullmatch(r"[1-9]\d*", meta["resourceVersion"])


async def test_a_generated_name_has_five_characters_without_vowels(hub: InProcess, ns: str) -> None:
    body = {"metadata": {"generateName": "work-"}}
    names = {(await hub.admin.create(config_maps(ns), body))["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20
    assert all(re.fullmatch(r"work-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)
    long = await hub.admin.create(config_maps(ns), {"metadata": {"generateName": "x" * 70}})
    assert len(long["metadata"]["name"]) == 63


async def test_a_dry_run_goes_through_everything_and_stores_nothing(
    hub: InProcess, ns: str
) -> None:
    path = config_maps(ns)
    kept = await hub.admin.create(path, named("kept", data={"x": "1"}))
    async with hub.admin.watch(f"{path}?watch=1&resourceVersion={revision(kept)}") as watch:
        made = await hub.admin.call("POST", f"{path}?dryRun=All", named("a"))
        assert (made.status, bool(made.obj()["metadata"]["uid"])) == (201, True)
        assert (await hub.admin.call("POST", f"{path}?dryRun=All", named("kept"))).status == 409
        changed = await hub.admin.call(
            "PATCH", f"{path}/kept?dryRun=All", {"data": {"x": "2"}}, content_type=MERGE
        )
        assert changed.obj()["data"] == {"x": "2"}
        by_query = await hub.admin.call("DELETE", f"{path}/kept?dryRun=All")
        by_body = await hub.admin.call("DELETE", f"{path}/kept", {"dryRun": ["All"]})
        assert (by_query.status, by_body.status) == (200, 200)
        assert await hub.admin.get(f"{path}/kept") == kept
        refused = await hub.admin.call("POST", f"{path}?dryRun=Some", named("a"))
        assert refused.obj()["message"] == (
            'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: '
            'supported values: "All"'
        )
        await hub.admin.create(path, named("z"))
        assert (await watch.next())["object"]["metadata"]["name"] == "z"


async def test_a_uid_that_is_not_the_objects_is_409(hub: InProcess, ns: str) -> None:
    path = f"{config_maps(ns)}/a"
    made = await hub.admin.create(config_maps(ns), named("a"))
    uid = made["metadata"]["uid"]
    other = "00000000-0000-4000-8000-000000000000"
    text = f"Precondition failed: UID in precondition: {other}, UID in object meta: {uid}"
    body = named("a", data={"x": "1"})
    body["metadata"]["uid"] = other
    by_put = await hub.admin.call("PUT", path, body)
    by_patch = await hub.admin.call("PATCH", path, {"metadata": {"uid": other}}, content_type=MERGE)
    by_delete = await hub.admin.call("DELETE", path, {"preconditions": {"uid": other}})
    for answer in (by_put, by_patch, by_delete):
        assert answer.status == 409
        assert answer.obj()["message"].endswith(text)
    good = await hub.admin.call("DELETE", path, {"preconditions": {"uid": uid}})
    assert good.obj()["details"]["uid"] == uid


async def test_a_revision_is_a_precondition_of_patches_and_deletions(
    hub: InProcess, ns: str
) -> None:
    path = f"{config_maps(ns)}/a"
    old = await hub.admin.create(config_maps(ns), named("a"))
    stale = {"resourceVersion": old["metadata"]["resourceVersion"]}
    fresh = await hub.admin.patch(path, {"metadata": dict(stale), "data": {"x": "1"}})
    late = await hub.admin.call(
        "PATCH", path, {"metadata": dict(stale), "data": {"x": "2"}}, content_type=MERGE
    )
    assert late.status == 409
    for options, status in ((stale, 409), ({"resourceVersion": str(revision(fresh))}, 200)):
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": options}
        answer = await hub.admin.call("DELETE", path, encode_envelope(body), content_type=PROTOBUF)
        assert answer.status == status


async def test_options_that_do_not_fit_are_400(hub: InProcess, ns: str) -> None:
    await hub.admin.create(config_maps(ns), named("a"))
    for body in ({"preconditions": "x"}, {"kind": "ConfigMap"}, {"dryRun": "All"}):
        assert (await hub.admin.call("DELETE", f"{config_maps(ns)}/a", body)).status == 400


async def next_name(watch: Watch) -> str:
    found = (await watch.next())["object"]["metadata"]["name"]
    assert isinstance(found, str)
    return found


async def test_a_write_that_changes_nothing_keeps_the_revision_and_is_not_shown(
    hub: InProcess, ns: str
) -> None:
    path = config_maps(ns)
    made = await hub.admin.create(path, named("a", data={"x": "1"}))
    async with hub.admin.watch(f"{path}?watch=1&resourceVersion={revision(made)}") as watch:
        for _ in range(3):
            answer = await hub.admin.call("PUT", f"{path}/a", made)
            assert (answer.status, answer.obj()) == (200, made)
        patched = await hub.admin.patch(f"{path}/a", {"data": {"x": "1"}, "metadata": {}})
        assert patched == made
        await hub.admin.create(path, named("b"))
        assert await next_name(watch) == "b"


async def test_generation_counts_changes_of_the_spec_alone(hub: InProcess, name: str) -> None:
    path = f"{CLUSTERS}/{name}"
    made = await hub.admin.create(CLUSTERS, named(name))
    assert made["metadata"]["generation"] == 1
    before = (await hub.admin.get(path))["metadata"]["generation"]
    labelled = await hub.admin.patch(path, {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["generation"] in (before, before + 1)  # the taint controller's
    base = labelled["metadata"]["generation"]
    changed = await hub.admin.patch(path, {"spec": {"leaseDurationSeconds": 61}})
    assert changed["metadata"]["generation"] > base
    sent = {"metadata": {"generation": 99, "annotations": {"x": "y"}}}
    assert (await hub.admin.patch(path, sent))["metadata"]["generation"] < 99


async def test_status_and_spec_are_written_apart(hub: InProcess, name: str) -> None:
    path = f"{CLUSTERS}/{name}"
    body = named(name, status={"version": {"kubernetes": "v0"}})
    assert "status" not in await hub.admin.create(CLUSTERS, body)
    patch: Obj = {
        "metadata": {"labels": {"x": "y"}},
        "spec": {"leaseDurationSeconds": 7},
        "status": {"version": {"kubernetes": "v1"}},
    }
    by_status = await hub.admin.patch(f"{path}/status", patch)
    assert by_status["status"]["version"] == {"kubernetes": "v1"}
    assert by_status["spec"]["leaseDurationSeconds"] == 60
    assert "x" not in by_status["metadata"]["labels"]
    generation = by_status["metadata"]["generation"]
    put = {**by_status, "status": {"version": {"kubernetes": "v2"}}}
    answer = await hub.admin.call("PUT", f"{path}/status", put)
    if answer.status == 200:  # 409 when the taint controller got in between
        assert answer.obj()["metadata"]["generation"] == generation
    patch["status"]["version"] = {"kubernetes": "v3"}
    by_main = await hub.admin.patch(path, patch)
    assert by_main["status"]["version"]["kubernetes"] in ("v1", "v2")
    assert by_main["spec"]["leaseDurationSeconds"] == 7


async def test_finalizers_hold_an_object_until_the_last_is_taken_off(
    hub: InProcess, ns: str
) -> None:
    path = config_maps(ns)
    body = {"metadata": {"name": "a", "finalizers": ["example.com/a", "example.com/b"]}}
    made = await hub.admin.create(path, body)
    async with hub.admin.watch(f"{path}?watch=1&resourceVersion={revision(made)}") as watch:
        first = (await hub.admin.call("DELETE", f"{path}/a")).obj()
        assert first["kind"] == "ConfigMap"
        assert first["metadata"]["deletionGracePeriodSeconds"] == 0
        marked = first["metadata"]["deletionTimestamp"]
        again = (await hub.admin.call("DELETE", f"{path}/a")).obj()
        assert again["metadata"] == first["metadata"]
        refused = await hub.admin.call(
            "PATCH",
            f"{path}/a",
            {"metadata": {"finalizers": ["example.com/a", "example.com/c"]}},
            content_type=MERGE,
        )
        assert refused.status == 422
        assert "no new finalizers can be added if the object is being deleted" in str(refused.body)
        kept = await hub.admin.patch(
            f"{path}/a", {"metadata": {"finalizers": ["example.com/b"], "deletionTimestamp": None}}
        )
        assert kept["metadata"]["deletionTimestamp"] == marked
        last = await hub.admin.patch(f"{path}/a", {"metadata": {"finalizers": None}})
        assert "finalizers" not in last["metadata"]
        assert (await hub.admin.call("GET", f"{path}/a")).status == 404
        types = [(await watch.next())["type"] for _ in range(3)]
        assert types == ["MODIFIED", "MODIFIED", "DELETED"]


async def test_a_namespace_waits_for_the_finalizers_of_others_too(hub: InProcess, ns: str) -> None:
    path = f"/api/v1/namespaces/{ns}"
    found = await hub.admin.get(path)
    assert found["spec"] == {"finalizers": ["kubernetes"]}
    found["spec"]["finalizers"].append("example.com/x")
    assert (await hub.admin.call("PUT", f"{path}/finalize", found)).status == 200
    await hub.admin.create(config_maps(ns), named("a"))
    query = f"/api/v1/namespaces?watch=1&fieldSelector=metadata.name%3D{ns}"
    async with hub.admin.watch(query) as watch:
        await watch.next()
        await hub.admin.call("DELETE", path)
        assert (await watch.next())["object"]["status"] == {"phase": "Terminating"}
        assert (await watch.next())["object"]["spec"] == found["spec"]  # conditions only
        ending = (await watch.next())["object"]
        assert ending["spec"] == {"finalizers": ["example.com/x"]}
        assert (await hub.admin.get(config_maps(ns)))["items"] == []
        ending["spec"] = {}
        await hub.admin.call("PUT", f"{path}/finalize", ending)
        assert (await watch.next())["type"] == "DELETED"


async def test_identity_and_creation_never_change(hub: InProcess, ns: str) -> None:
    made = await hub.admin.create(config_maps(ns), named("a"))
    patch: Obj = {
        "metadata": {"creationTimestamp": "2020-01-01T00:00:00Z", "selfLink": "/x"},
        "data": {"x": "1"},
    }
    changed = await hub.admin.patch(f"{config_maps(ns)}/a", patch)
    for field in ("uid", "creationTimestamp", "name", "namespace"):
        assert changed["metadata"][field] == made["metadata"][field]
    assert "selfLink" not in changed["metadata"]


async def test_an_immutable_configmap_stays_as_it_is(hub: InProcess, ns: str) -> None:
    path = f"{config_maps(ns)}/a"
    await hub.admin.create(config_maps(ns), named("a", data={"x": "1"}, immutable=True))
    for patch in ({"data": {"x": "2"}}, {"immutable": False}):
        answer = await hub.admin.call("PATCH", path, patch, content_type=MERGE)
        assert answer.status == 422
        assert "field is immutable when `immutable` is set" in answer.obj()["message"]
    await hub.admin.patch(path, {"metadata": {"labels": {"a": "b"}}})


async def test_string_data_of_a_secret_is_folded_in(hub: InProcess, ns: str) -> None:
    path = f"/api/v1/namespaces/{ns}/secrets"
    made = await hub.admin.create(path, named("s", stringData={"a": "b"}, data={"c": "ZA=="}))
    assert (made["data"], made["type"]) == ({"c": "ZA==", "a": "Yg=="}, "Opaque")
    assert "stringData" not in made
    answer = await hub.admin.call("POST", path, named("t", data={"x": "not base64!"}))
    assert answer.status == 400
    retyped = await hub.admin.call("PATCH", f"{path}/s", {"type": "other"}, content_type=MERGE)
    assert retyped.status == 422


async def test_base64_may_be_wrapped_as_for_go(hub: InProcess, ns: str) -> None:
    """Line ends within it mean nothing; anything else that is not base64 is refused."""
    path = f"/api/v1/namespaces/{ns}"
    value = base64.encodebytes(b"x" * 100).decode().replace("\n", "\r\n")
    made = await hub.admin.create(f"{path}/secrets", named("wrapped", data={"a": value}))
    assert base64.b64decode(made["data"]["a"]) == b"x" * 100
    await hub.admin.create(f"{path}/configmaps", named("wrapped", binaryData={"a": value}))
    for bad in ("eHg", "eH g=", "é"):
        answer = await hub.admin.call("POST", f"{path}/secrets", named("bad", data={"a": bad}))
        assert answer.status == 400, bad
    request = Wish("wrapped").as_obj()
    pem = base64.b64decode(request["spec"]["request"])
    request["spec"]["request"] = base64.encodebytes(pem).decode()
    assert (await hub.admin.create(REQUESTS, request))["spec"]["usages"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/{ns}/configmaps",
        "/api/v1/namespaces/{ns}/secrets",
        "/api/v1/namespaces/{ns}/serviceaccounts",
        "/api/v1/namespaces/{ns}/events",
        "/apis/events.k8s.io/v1/namespaces/{ns}/events",
        "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        CLUSTERS,
        "/apis/cluster.open-cluster-management.io/v1beta2/managedclustersets",
        "/apis/work.open-cluster-management.io/v1/namespaces/{ns}/manifestworks",
        "/apis/addon.open-cluster-management.io/v1alpha1/namespaces/{ns}/managedclusteraddons",
        "/apis/addon.open-cluster-management.io/v1beta1/namespaces/{ns}/managedclusteraddons",
        "/api/v1/namespaces",
    ],
)
async def test_no_malformed_body_is_an_internal_error(hub: InProcess, ns: str, path: str) -> None:
    path = path.format(ns=ns)
    base: Obj = {"metadata": {"name": "fuzz", "labels": None}, **VALID.get(path.split("/")[-1], {})}
    await hub.admin.create(path, base)

    async def probe(change: Obj) -> None:
        body = {**base, **change, "metadata": {"generateName": "fuzz-", "labels": None}}
        calls = [hub.admin.call("POST", f"{path}?dryRun=All", body)]
        calls += [
            hub.admin.call("PATCH", f"{path}/fuzz{sub}?dryRun=All", change, content_type=MERGE)
            for sub in ("", "/status")
        ]
        for answer in await asyncio.gather(*calls):
            assert answer.status in (200, 201, 400, 404, 422), (change, answer.body)

    scalars: tuple[object, ...] = (None, "x", 1, [], {}, ["x"], [None], {"x": 1})
    changes = [{field: value} for field in FIELDS for value in scalars]
    changes += [{field: value} for field in ("spec", "status") for value in NESTED]
    for start in range(0, len(changes), 30):
        await asyncio.gather(*(probe(change) for change in changes[start : start + 30]))
    await hub.admin.call("DELETE", f"{path}/fuzz")


async def test_both_http_versions_carry_the_same_answers(hub: InProcess, ns: str) -> None:
    path = config_maps(ns)
    old = over_http1(hub)
    try:
        made = await old.create(path, named("a"))
        assert await hub.admin.get(f"{path}/a") == made
        async with (
            old.watch(f"{path}?watch=1&resourceVersion={revision(made)}") as first,
            hub.admin.watch(f"{path}?watch=1&resourceVersion={revision(made)}") as second,
        ):
            await old.patch(f"{path}/a", {"data": {"x": "1"}})
            assert await first.next() == await second.next()
        missing = await old.call("GET", f"{path}/b")
        assert missing.obj() == (await hub.admin.call("GET", f"{path}/b")).obj()
    finally:
        await old.close()
