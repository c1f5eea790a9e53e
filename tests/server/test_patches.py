"""PATCH by its three media types: what they change, their preconditions and their refusals."""

import asyncio
import base64

import pytest

from hub.meta import Obj
from hub.meta.codec.json import encode
from hub.meta.patch import APPLY_PATCHES, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from tests.hubs import Answer, InProcess
from tests.server.support import CLUSTERS, RBAC, REQUESTS, anonymous, config_maps, named, token_for

pytestmark = pytest.mark.asyncio(loop_scope="module")
RECORDED_REFUSAL = "the server rejected our request due to an error in our request"


async def send(hub: InProcess, path: str, patch: object, content_type: str) -> Answer:
    body = patch if isinstance(patch, bytes) else encode(patch)
    return await hub.admin.call("PATCH", path, body, content_type=content_type)


async def patched(hub: InProcess, path: str, patch: object, content_type: str) -> Obj:
    answer = await send(hub, path, patch, content_type)
    assert answer.status == 200, answer.body
    return answer.obj()


def setting(field: str, value: str) -> dict[str, object]:
    """Patches of each type that set a field of metadata."""
    return {
        JSON_PATCH: [{"op": "add", "path": f"/metadata/{field}", "value": value}],
        MERGE_PATCH: {"metadata": {field: value}},
        STRATEGIC_PATCH: {"metadata": {field: value}},
    }


# ------------------------------------------------------------------ JSON patch


async def test_a_json_patch_is_applied_as_a_whole_or_not_at_all(hub: InProcess, ns: str) -> None:
    path = f"{config_maps(ns)}/a"
    body = {"metadata": {"name": "a", "annotations": {"example.com/b": "2"}}, "data": {"x": "1"}}
    await hub.admin.create(config_maps(ns), body)
    steps = [
        {"op": "test", "path": "/data/x", "value": "1"},
        {"op": "move", "from": "/metadata/annotations/example.com~1b", "path": "/data/y"},
        {"op": "copy", "from": "/data/y", "path": "/data/z"},
        {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
        {"op": "replace", "path": "/data/x", "value": "3"},
    ]
    found = await patched(hub, path, steps, JSON_PATCH)
    assert found["data"] == {"x": "3", "y": "2", "z": "2"}
    assert found["metadata"]["labels"] == {"a": "b"}
    assert "annotations" not in found["metadata"]
    half = [{"op": "remove", "path": "/data/y"}, {"op": "remove", "path": "/data/none"}]
    refused = await send(hub, path, half, JSON_PATCH)
    assert refused.status == 422
    assert await hub.admin.get(path) == found


async def test_a_json_patch_that_does_not_apply_is_the_recorded_422(
    hub: InProcess, ns: str
) -> None:
    path = f"{config_maps(ns)}/a"
    await hub.admin.create(config_maps(ns), named("a", data={"x": "1"}))
    for step in (
        {"op": "test", "path": "/data/x", "value": "nope"},
        {"op": "remove", "path": "/data/y"},
        {"op": "add", "path": "/spec/x/y", "value": 1},
        {"op": "jump", "path": "/data/x"},
        {"op": "replace", "path": "", "value": []},
    ):
        answer = await send(hub, path, [step], JSON_PATCH)
        assert (answer.status, answer.obj()) == (
            422,
            {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": RECORDED_REFUSAL,
                "reason": "Invalid",
                "details": {},
                "code": 422,
            },
        )


async def test_the_limits_and_the_form_of_a_json_patch_are_held(hub: InProcess, ns: str) -> None:
    path = f"{config_maps(ns)}/a"
    await hub.admin.create(config_maps(ns), named("a", data={"x": "y" * 1000}))
    many = [{"op": "test", "path": "/data/x", "value": None}] * 10_001
    too_many = await send(hub, path, many, JSON_PATCH)
    assert (too_many.status, too_many.obj()["reason"]) == (413, "RequestEntityTooLarge")
    copies = [{"op": "copy", "from": "/data/x", "path": f"/data/x{n}"} for n in range(4000)]
    assert (await send(hub, path, copies, JSON_PATCH)).status == 422
    for malformed in (b"{", b"", b"{}", b"[1]", b'[{"op":1}]'):
        answer = await send(hub, path, malformed, JSON_PATCH)
        assert (answer.status, answer.obj()["reason"]) == (400, "BadRequest")
        assert answer.obj()["message"].startswith("error decoding patch: ")


async def test_a_test_of_the_revision_is_a_lock(hub: InProcess, ns: str) -> None:
    path = f"{config_maps(ns)}/counter"
    await hub.admin.create(config_maps(ns), named("counter", data={"n": "0"}))

    async def count() -> int:
        """Add one, reading again whenever the test fails; return the tries."""
        for tries in range(1, 100):
            seen = await hub.admin.get(path)
            lock = {"path": "/metadata/resourceVersion"}
            steps = [
                {"op": "test", "value": seen["metadata"]["resourceVersion"], **lock},
                {"op": "replace", "path": "/data/n", "value": str(int(seen["data"]["n"]) + 1)},
            ]
            answer = await send(hub, path, steps, JSON_PATCH)
            if answer.status == 200:
                return tries
            assert (answer.status, answer.obj()["message"]) == (422, RECORDED_REFUSAL)
        raise AssertionError("never got through")

    await asyncio.gather(*(count() for _ in range(8)))
    assert (await hub.admin.get(path))["data"] == {"n": "8"}


# ------------------------------------------------------------------ preconditions of each


@pytest.mark.parametrize("content_type", [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH])
async def test_a_revision_or_uid_in_any_patch_is_a_precondition(
    hub: InProcess, ns: str, content_type: str
) -> None:
    path = f"{config_maps(ns)}/a"
    made = await hub.admin.create(config_maps(ns), named("a"))
    old, uid = made["metadata"]["resourceVersion"], made["metadata"]["uid"]
    assert await patched(hub, path, setting("resourceVersion", old)[content_type], content_type)
    await hub.admin.patch(path, {"data": {"x": "1"}})
    late = await send(hub, path, setting("resourceVersion", old)[content_type], content_type)
    assert (late.status, late.obj()["reason"]) == (409, "Conflict")
    assert "the object has been modified" in late.obj()["message"]
    other = await send(hub, path, setting("uid", "other")[content_type], content_type)
    assert other.status == 409
    assert other.obj()["message"].endswith(
        f"Precondition failed: UID in precondition: other, UID in object meta: {uid}"
    )
    assert await patched(hub, path, setting("uid", uid)[content_type], content_type)


@pytest.mark.parametrize("content_type", [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH])
async def test_a_patch_cannot_make_another_object_of_it(
    hub: InProcess, ns: str, content_type: str
) -> None:
    path = f"{config_maps(ns)}/a"
    await hub.admin.create(config_maps(ns), named("a"))
    for field, text in (
        ("name", "the name of the object (other) does not match the name on the URL (a)"),
        ("namespace", "the namespace of the provided object does not match the namespace sent"),
    ):
        answer = await send(hub, path, setting(field, "other")[content_type], content_type)
        assert answer.status == 400
        assert text in answer.obj()["message"]
    kind: object = {"kind": "Secret"}
    if content_type == JSON_PATCH:
        kind = [{"op": "replace", "path": "/kind", "value": "Secret"}]
    assert (await send(hub, path, kind, content_type)).status == 400
    missing = await send(hub, f"{path}-none", setting("x", "y")[content_type], content_type)
    assert (missing.status, missing.obj()["reason"]) == (404, "NotFound")


@pytest.mark.parametrize("content_type", [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH])
async def test_a_result_whose_types_do_not_fit_is_422_as_a_field_of_the_patch(
    hub: InProcess, ns: str, content_type: str
) -> None:
    path = f"{config_maps(ns)}/a"
    await hub.admin.create(config_maps(ns), named("a"))
    for field, value in (("data", "x"), ("metadata", {"labels": [1]}), ("kind", 1)):
        patch: object = {field: value}
        if content_type == JSON_PATCH:
            patch = [{"op": "add", "path": f"/{field}", "value": value}]
        answer = await send(hub, path, patch, content_type)
        if field == "kind":
            assert answer.status == 400
            continue
        assert (answer.status, answer.obj()["reason"]) == (422, "Invalid")
        (cause,) = answer.obj()["details"]["causes"]
        assert (cause["field"], cause["reason"]) == ("patch", "FieldValueInvalid")
        assert "json: cannot unmarshal" in cause["message"]


@pytest.mark.parametrize("content_type", [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH])
async def test_a_patch_that_changes_nothing_keeps_the_revision(
    hub: InProcess, ns: str, content_type: str
) -> None:
    path = f"{config_maps(ns)}/a"
    made = await hub.admin.create(config_maps(ns), named("a", data={"x": "1"}))
    patch: object = {"data": {"x": "1"}}
    if content_type == JSON_PATCH:
        patch = [{"op": "replace", "path": "/data/x", "value": "1"}]
    assert await patched(hub, path, patch, content_type) == made
    dry: object = {"data": {"x": "2"}}
    if content_type == JSON_PATCH:
        dry = [{"op": "replace", "path": "/data/x", "value": "2"}]
    assert (await patched(hub, f"{path}?dryRun=All", dry, content_type))["data"] == {"x": "2"}
    assert await hub.admin.get(path) == made


# ------------------------------------------------------------------ strategic merge


async def test_a_strategic_patch_merges_an_accounts_secrets(hub: InProcess, ns: str) -> None:
    path = f"/api/v1/namespaces/{ns}/serviceaccounts"
    body = named("robot", secrets=[{"name": "s0"}], imagePullSecrets=[{"name": "p0"}])
    await hub.admin.create(path, body)
    patch = {"imagePullSecrets": [{"name": "pull"}], "secrets": [{"name": "s1"}]}
    found = await patched(hub, f"{path}/robot", patch, STRATEGIC_PATCH)
    assert found["secrets"] == [{"name": "s1"}, {"name": "s0"}]
    assert found["imagePullSecrets"] == [{"name": "pull"}]
    gone = {"secrets": [{"name": "s0", "$patch": "delete"}]}
    assert (await patched(hub, f"{path}/robot", gone, STRATEGIC_PATCH))["secrets"] == [
        {"name": "s1"}
    ]


async def test_a_strategic_patch_adds_and_takes_off_finalizers(hub: InProcess, ns: str) -> None:
    path = f"{config_maps(ns)}/a"
    body = {"metadata": {"name": "a", "finalizers": ["example.com/a"]}}
    await hub.admin.create(config_maps(ns), body)
    added = {"metadata": {"finalizers": ["example.com/b"]}}
    found = await patched(hub, path, added, STRATEGIC_PATCH)
    assert found["metadata"]["finalizers"] == ["example.com/b", "example.com/a"]
    taken = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}
    found = await patched(hub, path, taken, STRATEGIC_PATCH)
    assert found["metadata"]["finalizers"] == ["example.com/b"]
    last = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/b"]}}
    assert "finalizers" not in (await patched(hub, path, last, STRATEGIC_PATCH))["metadata"]


async def test_directives_replace_and_delete_data_and_are_never_stored(
    hub: InProcess, ns: str
) -> None:
    path = f"{config_maps(ns)}/a"
    await hub.admin.create(config_maps(ns), named("a", data={"x": "1", "y": "2"}))
    replaced = {"data": {"$patch": "replace", "z": "3"}}
    assert (await patched(hub, path, replaced, STRATEGIC_PATCH))["data"] == {"z": "3"}
    kept = {"data": {"$retainKeys": ["n"], "n": "4"}}
    assert (await patched(hub, path, kept, STRATEGIC_PATCH))["data"] == {"n": "4"}
    deleted = {"data": {"$patch": "delete"}}
    assert "data" not in await patched(hub, path, deleted, STRATEGIC_PATCH)
    fresh = {"data": {"$retainKeys": ["x"], "x": "1"}, "$setElementOrder/none": []}
    assert (await patched(hub, path, fresh, STRATEGIC_PATCH))["data"] == {"x": "1"}
    bad = await send(hub, path, {"data": {"$patch": "merge"}}, STRATEGIC_PATCH)
    assert (bad.status, bad.obj()["reason"]) == (400, "BadRequest")
    assert "unknown patch type: merge" in bad.obj()["message"]


async def test_the_rules_of_a_role_are_replaced(hub: InProcess, ns: str) -> None:
    path = f"{RBAC}/namespaces/{ns}/roles"
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    await hub.admin.create(path, named("r", rules=[rule]))
    other = {**rule, "verbs": ["list"]}
    found = await patched(hub, f"{path}/r", {"rules": [other]}, STRATEGIC_PATCH)
    assert found["rules"] == [other]


async def test_a_secret_takes_text_by_strategic_patch(hub: InProcess, ns: str) -> None:
    path = f"/api/v1/namespaces/{ns}/secrets"
    await hub.admin.create(path, named("s", data={"a": "YQ=="}))
    found = await patched(hub, f"{path}/s", {"stringData": {"b": "c"}}, STRATEGIC_PATCH)
    assert found["data"] == {"a": "YQ==", "b": base64.b64encode(b"c").decode()}
    assert "stringData" not in found


async def test_a_recorder_counts_a_series_by_strategic_patch(hub: InProcess, ns: str) -> None:
    """As client-go's recorders do: events.k8s.io by series, the core group by count."""
    core = f"/api/v1/namespaces/{ns}/events"
    new = f"/apis/events.k8s.io/v1/namespaces/{ns}/events"
    about = {"kind": "ManagedCluster", "name": "a", "namespace": ns}
    body = named("e", reason="Done", message="m", type="Normal", count=1, involvedObject=about)
    await hub.admin.create(core, body)
    counted = {"count": 2, "lastTimestamp": "2026-01-01T00:01:00Z", "message": "again"}
    assert (await patched(hub, f"{core}/e", counted, STRATEGIC_PATCH))["count"] == 2
    series = {"series": {"count": 3, "lastObservedTime": "2026-01-01T00:02:00.000000Z"}}
    found = await patched(hub, f"{new}/e", series, STRATEGIC_PATCH)
    assert (found["apiVersion"], found["note"], found["series"]["count"]) == (
        "events.k8s.io/v1",
        "again",
        3,
    )
    assert (await hub.admin.get(f"{core}/e"))["series"] == series["series"]


async def test_conditions_of_a_namespace_merge_through_status(hub: InProcess, ns: str) -> None:
    path = f"/api/v1/namespaces/{ns}/status"
    for kind in ("A", "B"):
        patch = {"status": {"conditions": [{"type": kind, "status": "True"}]}}
        found = await patched(hub, path, patch, STRATEGIC_PATCH)
    assert [c["type"] for c in found["status"]["conditions"]] == ["B", "A"]
    assert found["status"]["phase"] == "Active"


# ------------------------------------------------------------------ who takes what


async def test_custom_kinds_take_json_and_merge_patches_only(hub: InProcess, name: str) -> None:
    path = f"{CLUSTERS}/{name}"
    await hub.admin.create(CLUSTERS, named(name))
    lease = [{"op": "add", "path": "/spec/leaseDurationSeconds", "value": 90}]
    found = await patched(hub, path, lease, JSON_PATCH)
    assert found["spec"]["leaseDurationSeconds"] == 90
    condition = {"type": "Tour", "status": "False", "reason": "Demo", "message": "m"}
    status = [{"op": "add", "path": "/status", "value": {"conditions": [condition]}}]
    found = await patched(hub, f"{path}/status", status, JSON_PATCH)
    assert found["status"]["conditions"] == [condition]
    refused = await send(hub, path, {"spec": {"leaseDurationSeconds": 91}}, STRATEGIC_PATCH)
    assert refused.status == 415
    assert refused.obj()["message"] == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )


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
        "/api/v1/namespaces",
    ],
)
async def test_no_malformed_patch_is_an_internal_error(
    hub: InProcess, ns: str, name: str, path: str
) -> None:
    path = path.format(ns=ns)
    target = f"{path}/{name}-x?dryRun=All"
    await hub.admin.create(path, named(f"{name}-x"))
    values: tuple[object, ...] = (None, "x", 1, [], {}, ["x"], [None], [[]], [{}], {"x": 1})
    fields = ["data", "secrets", "rules", "spec", "status", "series", "metadata", "kind"]
    fields += ["$patch", "$retainKeys", "$setElementOrder/secrets", "$deleteFromPrimitiveList/x"]
    inner = ["finalizers", "ownerReferences", "labels", "name", "uid", "resourceVersion"]
    inner += ["$setElementOrder/finalizers", "$deleteFromPrimitiveList/finalizers", "$patch"]
    patches: list[Obj] = [{field: value} for field in fields for value in values]
    patches += [{"metadata": {field: value}} for field in inner for value in values]
    steps = [
        [{"op": op, "path": f"/{field}", "from": "/metadata", "value": value}]
        for op in ("add", "copy", "move", "remove")
        for field in [*fields[:8], *(f"metadata/{i}" for i in inner)]
        for value in (values if op == "add" else (None,))
    ]
    requests = [(p, STRATEGIC_PATCH) for p in patches] + [(s, JSON_PATCH) for s in steps]
    for start in range(0, len(requests), 50):
        batch = requests[start : start + 50]
        answers = await asyncio.gather(*(send(hub, target, *request) for request in batch))
        for request, answer in zip(batch, answers, strict=True):
            assert answer.status in (200, 400, 409, 422), (request, answer.body)


@pytest.mark.parametrize("content_type", APPLY_PATCHES)
async def test_server_side_apply_is_refused_and_nothing_is_stored(
    hub: InProcess, ns: str, content_type: str
) -> None:
    path = f"{config_maps(ns)}/applied"
    answer = await send(hub, f"{path}?fieldManager=x", b"apiVersion: v1", content_type)
    assert (answer.status, answer.obj()["reason"]) == (415, "UnsupportedMediaType")
    assert answer.obj()["message"].startswith("server-side apply is not served yet: ")
    assert answer.obj()["message"].endswith(f"{JSON_PATCH}, {MERGE_PATCH}, {STRATEGIC_PATCH}")
    assert (await hub.admin.call("GET", path)).status == 404


async def test_a_patch_needs_the_verb_whatever_its_type(hub: InProcess, ns: str) -> None:
    await hub.admin.create(config_maps(ns), named("a"))
    api = anonymous(hub, token=await token_for(hub, ns, "reader"))
    try:
        for content_type, patch in setting("uid", "x").items():
            answer = await api.call(
                "PATCH", f"{config_maps(ns)}/a", encode(patch), content_type=content_type
            )
            assert (answer.status, answer.obj()["reason"]) == (403, "Forbidden")
    finally:
        await api.close()


async def test_an_approval_is_given_by_json_patch(hub: InProcess, name: str) -> None:
    request = base64.b64encode(b"-----BEGIN CERTIFICATE REQUEST-----").decode()
    spec = {"request": request, "signerName": "example.com/x", "usages": ["client auth"]}
    await hub.admin.create(REQUESTS, named(name, spec=spec))
    condition = {"type": "Approved", "status": "True", "reason": "Demo"}
    steps = [{"op": "add", "path": "/status", "value": {"conditions": [condition]}}]
    found = await patched(hub, f"{REQUESTS}/{name}/approval", steps, JSON_PATCH)
    (stored,) = found["status"]["conditions"]
    assert (stored["type"], stored["reason"]) == ("Approved", "Demo")
