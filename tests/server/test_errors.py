"""What goes wrong is told as kube-apiserver tells it: code, reason, message, details."""

import pytest

from hub.meta import Obj
from hub.meta.protobuf import encode_envelope
from tests.hubs import MERGE, InProcess
from tests.server.support import CLUSTER_GROUP, CLUSTERS, PROTOBUF, RBAC, config_maps, named

pytestmark = pytest.mark.asyncio(loop_scope="module")


def failure(code: int, reason: str, message: str, details: Obj | None = None) -> Obj:
    status: Obj = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
    }
    return {**status, **({} if details is None else {"details": details}), "code": code}


async def test_what_is_not_there_is_404(hub: InProcess, ns: str) -> None:
    answer = await hub.admin.call("GET", f"{config_maps(ns)}/nosuch")
    details = {"name": "nosuch", "kind": "configmaps"}
    assert answer.status == 404
    assert answer.obj() == failure(404, "NotFound", 'configmaps "nosuch" not found', details)
    answer = await hub.admin.call("GET", f"{CLUSTERS}/nosuch")
    message = f'managedclusters.{CLUSTER_GROUP} "nosuch" not found'
    details = {"name": "nosuch", "group": CLUSTER_GROUP, "kind": "managedclusters"}
    assert answer.obj() == failure(404, "NotFound", message, details)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/nosuch",
        "/apis/nosuch.io/v1/things",
        "/api/v1/namespaces/default/configmaps/a/status",
        "/api/v1/configmaps/a",
        "/apis/cluster.open-cluster-management.io/v1/namespaces/default/managedclusters",
        "/nosuch",
    ],
)
async def test_a_path_that_is_not_served_is_404(hub: InProcess, path: str) -> None:
    answer = await hub.admin.call("GET", path)
    message = "the server could not find the requested resource"
    assert answer.obj() == failure(404, "NotFound", message, {})


async def test_a_missing_namespace_is_404_on_create(hub: InProcess) -> None:
    answer = await hub.admin.call("POST", config_maps("nowhere"), named("a"))
    details = {"name": "nowhere", "kind": "namespaces"}
    assert answer.obj() == failure(404, "NotFound", 'namespaces "nowhere" not found', details)


async def test_a_taken_name_is_409(hub: InProcess, ns: str) -> None:
    await hub.admin.create(config_maps(ns), named("a"))
    answer = await hub.admin.call("POST", config_maps(ns), named("a"))
    details = {"name": "a", "kind": "configmaps"}
    assert answer.obj() == failure(409, "AlreadyExists", 'configmaps "a" already exists', details)


async def test_a_stale_revision_is_409(hub: InProcess, ns: str) -> None:
    old = await hub.admin.create(config_maps(ns), named("a"))
    await hub.admin.patch(f"{config_maps(ns)}/a", {"data": {"x": "1"}})
    answer = await hub.admin.call("PUT", f"{config_maps(ns)}/a", {**old, "data": {"x": "2"}})
    message = (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert answer.obj() == failure(409, "Conflict", message, {"name": "a", "kind": "configmaps"})


async def test_a_bad_name_is_422_with_its_cause(hub: InProcess, ns: str) -> None:
    answer = await hub.admin.call("POST", config_maps(ns), named("No_Name"))
    found = answer.obj()
    assert (answer.status, found["reason"]) == (422, "Invalid")
    assert found["message"].startswith(
        'ConfigMap "No_Name" is invalid: metadata.name: Invalid value: "No_Name": a lowercase RFC'
    )
    assert found["details"]["name"] == "No_Name"
    assert found["details"]["kind"] == "ConfigMap"
    (cause,) = found["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldValueInvalid", "metadata.name")


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"labels": {"bad key": "x"}}, "metadata.labels"),
        ({"labels": {"k": "not a value"}}, "metadata.labels"),
        ({"annotations": {"/x": "y"}}, "metadata.annotations"),
        ({"annotations": {"big": "x" * 300_000}}, "metadata.annotations"),
    ],
)
async def test_labels_and_annotations_are_validated(
    hub: InProcess, ns: str, metadata: Obj, field: str
) -> None:
    body = {"metadata": {"name": "a", **metadata}}
    answer = await hub.admin.call("POST", config_maps(ns), body)
    assert answer.status == 422
    assert {cause["field"] for cause in answer.obj()["details"]["causes"]} == {field}
    await hub.admin.create(config_maps(ns), named("a"))
    patched = await hub.admin.call(
        "PATCH", f"{config_maps(ns)}/a", {"metadata": metadata}, content_type=MERGE
    )
    assert patched.status == 422


async def test_a_custom_object_updated_without_a_revision_is_422(hub: InProcess, name: str) -> None:
    await hub.admin.create(CLUSTERS, named(name))
    answer = await hub.admin.call("PUT", f"{CLUSTERS}/{name}", named(name))
    text = "Invalid value: 0: must be specified for an update"
    field = "metadata.resourceVersion"
    message = f'managedclusters.{CLUSTER_GROUP} "{name}" is invalid: {field}: {text}'
    details = {
        "name": name,
        "group": CLUSTER_GROUP,
        "kind": "managedclusters",
        "causes": [{"reason": "FieldValueInvalid", "message": text, "field": field}],
    }
    assert answer.obj() == failure(422, "Invalid", message, details)


async def test_a_wrong_type_in_a_custom_object_is_422_and_in_a_built_in_400(
    hub: InProcess, ns: str, name: str
) -> None:
    body = named(name, spec={"hubAcceptsClient": "yes"})
    answer = await hub.admin.call("POST", CLUSTERS, body)
    assert answer.obj()["message"] == (
        f'ManagedCluster.{CLUSTER_GROUP} "{name}" is invalid: spec.hubAcceptsClient: Invalid '
        'value: "string": spec.hubAcceptsClient in body must be of type boolean: "string"'
    )
    answer = await hub.admin.call("POST", config_maps(ns), named("a", data={"x": 1}))
    assert (answer.status, answer.obj()["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "couldn't get version/kind; json parse error:"),
        (b"[]", "couldn't get version/kind; json parse error:"),
        (b'{"metadata":[]}', "json: cannot unmarshal array into Go struct field metadata"),
        (b'{"kind":"Secret","metadata":{"name":"a"}}', "the kind in the data (Secret)"),
        (b'{"apiVersion":"v2","metadata":{"name":"a"}}', "the API version in the data (v2)"),
        (b'{"metadata":{"name":"a","namespace":"other"}}', "the namespace of the provided object"),
        (b'{"metadata":{"name":"a","resourceVersion":"1"}}', "resourceVersion should not be set"),
    ],
)
async def test_a_body_that_does_not_fit_is_400(
    hub: InProcess, ns: str, body: bytes, message: str
) -> None:
    answer = await hub.admin.call("POST", config_maps(ns), body)
    assert (answer.status, answer.obj()["reason"]) == (400, "BadRequest")
    assert answer.obj()["message"].startswith(message)


async def test_a_name_that_is_not_the_one_in_the_url_is_400(hub: InProcess, ns: str) -> None:
    made = await hub.admin.create(config_maps(ns), named("a"))
    made["metadata"]["name"] = "b"
    expected = "the name of the object (b) does not match the name on the URL (a)"
    answer = await hub.admin.call("PUT", f"{config_maps(ns)}/a", made)
    assert answer.obj() == failure(400, "BadRequest", expected)
    answer = await hub.admin.call(
        "PATCH", f"{config_maps(ns)}/a", {"metadata": {"name": "b"}}, content_type=MERGE
    )
    assert answer.obj() == failure(400, "BadRequest", expected)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/api/v1/configmaps"),
        ("DELETE", "/api/v1/namespaces"),
        ("PUT", "/api/v1/namespaces/default/serviceaccounts/a/token"),
        ("GET", "/api/v1/namespaces/default/serviceaccounts/a/token"),
        ("DELETE", f"{CLUSTERS}/a/status"),
        ("GET", "/apis/authentication.k8s.io/v1/selfsubjectreviews"),
        ("POST", "/version"),
    ],
)
async def test_a_verb_that_a_path_does_not_know_is_405(
    hub: InProcess, method: str, path: str
) -> None:
    answer = await hub.admin.call(method, path, {} if method in ("PUT", "POST") else None)
    assert (answer.status, answer.obj()["reason"]) == (405, "MethodNotAllowed")


async def test_deleting_the_status_of_an_object_leaves_it_there(hub: InProcess, name: str) -> None:
    await hub.admin.create(CLUSTERS, named(name))
    assert (await hub.admin.call("DELETE", f"{CLUSTERS}/{name}/status")).status == 405
    await hub.admin.get(f"{CLUSTERS}/{name}")


async def test_an_answer_that_cannot_be_written_is_406_and_nothing_is_stored(
    hub: InProcess, ns: str
) -> None:
    answer = await hub.admin.call("POST", config_maps(ns), named("a"), accept="text/html")
    assert (answer.status, answer.obj()["reason"]) == (406, "NotAcceptable")
    assert (await hub.admin.call("GET", f"{config_maps(ns)}/a")).status == 404


async def test_a_table_of_a_review_is_406(hub: InProcess) -> None:
    answer = await hub.admin.call(
        "POST",
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        {},
        accept="application/json;as=Table;v=v1;g=meta.k8s.io",
    )
    assert answer.status == 406


@pytest.mark.parametrize(
    ("method", "content_type"),
    [
        ("POST", "text/plain"),
        ("PATCH", "application/json"),
    ],
)
async def test_a_body_of_an_unknown_type_is_415(
    hub: InProcess, ns: str, method: str, content_type: str
) -> None:
    path = config_maps(ns) + ("/a" if method == "PATCH" else "")
    answer = await hub.admin.call(method, path, named("a"), content_type=content_type)
    assert (answer.status, answer.obj()["reason"]) == (415, "UnsupportedMediaType")
    assert answer.obj()["message"].startswith(
        "the body of the request was in an unknown format - accepted media types include: "
    )


async def test_protobuf_is_415_for_custom_kinds_and_read_for_built_in_ones(
    hub: InProcess, ns: str
) -> None:
    body = encode_envelope({"apiVersion": "v1", "kind": "ConfigMap", **named("a")})
    refused = await hub.admin.call("POST", CLUSTERS, body, content_type=PROTOBUF)
    assert refused.status == 415
    taken = await hub.admin.call("POST", config_maps(ns), body, content_type=PROTOBUF)
    assert taken.status == 201


async def test_a_body_over_three_mebibytes_is_413(hub: InProcess, ns: str) -> None:
    body = named("a", data={"x": "y" * (3 << 20)})
    answer = await hub.admin.call("POST", config_maps(ns), body)
    assert (answer.status, answer.obj()["reason"]) == (413, "RequestEntityTooLarge")


async def test_data_over_a_mebibyte_is_422(hub: InProcess, ns: str) -> None:
    answer = await hub.admin.call("POST", config_maps(ns), named("a", data={"x": "y" * (1 << 21)}))
    assert answer.status == 422
    assert answer.obj()["details"]["causes"][0]["reason"] == "FieldValueTooLong"


async def test_protected_namespaces_are_not_deleted(hub: InProcess) -> None:
    for each in ("default", "kube-system", "kube-public"):
        answer = await hub.admin.call("DELETE", f"/api/v1/namespaces/{each}")
        message = f'namespaces "{each}" is forbidden: this namespace may not be deleted'
        details = {"name": each, "kind": "namespaces"}
        assert answer.obj() == failure(403, "Forbidden", message, details)


async def test_nothing_new_begins_in_a_namespace_that_ends(hub: InProcess, ns: str) -> None:
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    await hub.admin.create(config_maps(ns), held)
    deleted = (await hub.admin.call("DELETE", f"/api/v1/namespaces/{ns}")).obj()
    assert deleted["status"] == {"phase": "Terminating"}
    assert "deletionGracePeriodSeconds" not in deleted["metadata"]
    answer = await hub.admin.call("POST", config_maps(ns), named("a"))
    assert answer.status == 403
    found = answer.obj()
    assert found["message"] == (
        f'configmaps "a" is forbidden: unable to create new content in namespace {ns} because it '
        "is being terminated"
    )
    assert found["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {ns} is being terminated",
            "field": "metadata.namespace",
        }
    ]
    await hub.admin.patch(f"{config_maps(ns)}/held", {"metadata": {"finalizers": None}})


async def test_a_role_binding_keeps_its_role(hub: InProcess, name: str) -> None:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "x"}
    await hub.admin.create(f"{RBAC}/clusterrolebindings", named(name, roleRef=role))
    answer = await hub.admin.call(
        "PATCH",
        f"{RBAC}/clusterrolebindings/{name}",
        {"roleRef": {"name": "cluster-admin"}},
        content_type=MERGE,
    )
    assert answer.status == 422
    assert "cannot change roleRef" in answer.obj()["message"]
