"""fieldValidation: fields that stand twice or that a kind does not have, told in kube's words."""

import pytest

from hub.meta import Obj
from tests.hubs import Answer, InProcess
from tests.server.support import CLUSTERS, config_maps, named

pytestmark = pytest.mark.asyncio(loop_scope="module")
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def warnings(answer: Answer) -> list[str]:
    """The texts of the Warning headers, in order."""
    joined = answer.headers.get("warning", "")
    parts = [part for part in joined.split("299 - ") if part]
    return [part.rstrip(", ")[1:-1].replace('\\"', '"').replace("\\\\", "\\") for part in parts]


async def send(
    hub: InProcess, method: str, path: str, body: bytes, content_type: str = "application/json"
) -> Answer:
    return await hub.admin.call(method, path, body, content_type=content_type)


OWNER = '{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u","who":1}'


def unknown(name: str) -> bytes:
    """What kubectl sent when it was recorded."""
    text = '{"apiVersion":"v1","datum":{"a":"b"},"kind":"ConfigMap","metadata":{"name":"%s"}}\n'
    return (text % name).encode()


async def test_strict_refuses_an_unknown_field_as_recorded(
    hub: InProcess, ns: str, name: str
) -> None:
    path = f"{config_maps(ns)}?fieldManager=kubectl-create&fieldValidation=Strict"
    answer = await send(hub, "POST", path, unknown(name))
    assert (answer.status, answer.obj()) == (
        400,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding'
            ' error: unknown field "datum"',
            "reason": "BadRequest",
            "code": 400,
        },
    )
    assert (await hub.admin.call("GET", f"{config_maps(ns)}/{name}")).status == 404


@pytest.mark.parametrize("query", ["", "?fieldValidation=Warn", "?fieldValidation="])
async def test_an_unknown_field_is_dropped_with_a_warning_as_recorded(
    hub: InProcess, ns: str, name: str, query: str
) -> None:
    answer = await send(hub, "POST", f"{config_maps(ns)}{query}", unknown(name))
    assert answer.status == 201
    assert answer.headers["warning"] == '299 - "unknown field \\"datum\\""'
    assert set(answer.obj()) == {"kind", "apiVersion", "metadata"}
    assert set(await hub.admin.get(f"{config_maps(ns)}/{name}")) == set(answer.obj())


async def test_ignored_fields_are_dropped_without_a_word(
    hub: InProcess, ns: str, name: str
) -> None:
    path = f"{config_maps(ns)}?fieldValidation=Ignore"
    answer = await send(hub, "POST", path, unknown(name))
    assert (answer.status, warnings(answer)) == (201, [])
    assert "datum" not in answer.obj()


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ('{"metadata":{"name":"N"},"data":{"a":"1","a":"2"}}', ['duplicate field "data.a"']),
        ('{"metadata":{"name":"N","name":"N"}}', ['duplicate field "metadata.name"']),
        (
            '{"metadata":{"name":"N","x":{"y":1,"y":2}},"data":{"a":"1"},"data":{"a":"2"},"z":0}',
            ['unknown field "metadata.x"', 'duplicate field "data"', 'unknown field "z"'],
        ),
        (
            '{"metadata" : {"name" : "N"}, "data" : {"\\u0061" : "1", "a" : "2"}}',
            ['duplicate field "data.a"'],
        ),
        (
            f'{{"metadata":{{"name":"N","ownerReferences":[{OWNER}]}}}}',
            ['unknown field "metadata.ownerReferences[0].who"'],
        ),
        ('{"metadata":{"name":"N"},"data":{"a":"\\u0022"}}', []),
        ('{"metadata":{"name":"N"},"data":{"a":"\\"b\\":","c":"{\\"d\\":1,\\"d\\":2}"}}', []),
    ],
)
async def test_faults_are_told_in_the_order_of_the_text(
    hub: InProcess, ns: str, name: str, body: str, faults: list[str]
) -> None:
    data = body.replace("N", name).encode()
    strict = await send(hub, "POST", f"{config_maps(ns)}?fieldValidation=Strict&dryRun=All", data)
    if faults:
        text = f"strict decoding error: {', '.join(faults)}"
        head = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
        assert (strict.status, strict.obj()["message"]) == (400, head + text)
    else:
        assert strict.status == 201
    warned = await send(hub, "POST", config_maps(ns), data)
    assert (warned.status, warnings(warned)) == (201, faults)


async def test_yaml_names_the_lines_of_keys_that_stand_twice(
    hub: InProcess, ns: str, name: str
) -> None:
    text = f"metadata:\n  name: {name}\ndata:\n  a: x\n  b: y\n  a: z\n  b: z\ndatum: 1\n".encode()
    path, media_type = config_maps(ns), "application/yaml"
    strict = await send(hub, "POST", f"{path}?fieldValidation=Strict", text, media_type)
    assert strict.status == 400
    assert strict.obj()["message"] == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        'yaml: unmarshal errors:\n  line 6: key "a" already set in map\n'
        '  line 7: key "b" already set in map, unknown field "datum"'
    )
    warned = await send(hub, "POST", path, text, media_type)
    assert (warned.status, warned.obj()["data"]) == (201, {"a": "z", "b": "z"})
    assert warnings(warned) == [
        'line 6: key "a" already set in map',
        'line 7: key "b" already set in map',
        'unknown field "datum"',
    ]


async def test_updates_are_read_as_strictly(hub: InProcess, ns: str, name: str) -> None:
    await hub.admin.create(config_maps(ns), named(name))
    path = f"{config_maps(ns)}/{name}"
    strict = await send(hub, "PUT", f"{path}?fieldValidation=Strict", unknown(name))
    assert (strict.status, strict.obj()["reason"]) == (400, "BadRequest")
    warned = await send(hub, "PUT", path, unknown(name))
    assert (warned.status, warnings(warned)) == (200, ['unknown field "datum"'])


PATCHES = [
    (MERGE, b'{"datum":1}', ['unknown field "datum"']),
    (MERGE, b'{"data":{"a":"1","a":"2"}}', ['duplicate field "data.a"']),
    (
        STRATEGIC,
        b'{"datum":1,"data":{"a":"1","a":"2"}}',
        ['duplicate field "data.a"', 'unknown field "datum"'],
    ),
    (
        JSON_PATCH,
        b'[{"op":"add","path":"/datum","value":1,"where":2}]',
        ['json patch unknown field "[0].where"', 'unknown field "datum"'],
    ),
    (
        JSON_PATCH,
        b'[{"op":"add","path":"/data","value":{"a":"1","a":"2"},"path":"/data"}]',
        [
            'json patch duplicate field "[0].value.a"',
            'json patch duplicate field "[0].path"',
        ],
    ),
]


@pytest.mark.parametrize("case", PATCHES)
async def test_patches_are_read_as_strictly_with_what_they_make(
    hub: InProcess, ns: str, name: str, case: tuple[str, bytes, list[str]]
) -> None:
    media_type, patch, faults = case
    await hub.admin.create(config_maps(ns), named(name))
    path = f"{config_maps(ns)}/{name}"
    strict = await send(hub, "PATCH", f"{path}?fieldValidation=Strict", patch, media_type)
    found = strict.obj()
    assert (strict.status, found["reason"]) == (422, "Invalid")
    (cause,) = found["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldValueInvalid", "patch")
    assert cause["message"].endswith(f": strict decoding error: {', '.join(faults)}")
    assert found["message"] == f' "" is invalid: patch: {cause["message"]}'
    warned = await send(hub, "PATCH", path, patch, media_type)
    assert (warned.status, warnings(warned)) == (200, faults)
    assert "datum" not in await hub.admin.get(path)
    ignored = await send(hub, "PATCH", f"{path}?fieldValidation=Ignore", patch, media_type)
    assert (ignored.status, warnings(ignored)) == (200, [])


async def test_custom_kinds_are_told_of_duplicates(hub: InProcess, name: str) -> None:
    body = b'{"metadata":{"name":"%b"},"spec":{"hubAcceptsClient":true,"hubAcceptsClient":false}}'
    data = body % name.encode()
    strict = await send(hub, "POST", f"{CLUSTERS}?fieldValidation=Strict", data)
    assert strict.status == 400
    assert strict.obj()["message"] == (
        'ManagedCluster in version "v1" cannot be handled as a ManagedCluster: strict decoding'
        ' error: duplicate field "spec.hubAcceptsClient"'
    )
    warned = await send(hub, "POST", CLUSTERS, data)
    assert warnings(warned) == ['duplicate field "spec.hubAcceptsClient"']
    assert warned.obj()["spec"]["hubAcceptsClient"] is False


async def test_warnings_come_with_refusals_too(hub: InProcess, ns: str, name: str) -> None:
    await hub.admin.create(config_maps(ns), named(name))
    taken = await send(hub, "POST", config_maps(ns), unknown(name))
    assert (taken.status, warnings(taken)) == (409, ['unknown field "datum"'])


@pytest.mark.parametrize(("method", "kind"), [("POST", "CreateOptions"), ("PUT", "UpdateOptions")])
async def test_another_directive_is_422(
    hub: InProcess, ns: str, name: str, method: str, kind: str
) -> None:
    await hub.admin.create(config_maps(ns), named(f"{name}-0"))
    path = config_maps(ns) + (f"/{name}-0" if method == "PUT" else "")
    answer = await send(hub, method, f"{path}?fieldValidation=strict", unknown(name))
    found: Obj = answer.obj()
    assert answer.status == 422
    assert found["message"] == (
        f'{kind}.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "strict": '
        'supported values: "", "Ignore", "Strict", "Warn"'
    )


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
async def test_unknown_fields_of_fleet_kinds_are_told_in_every_version(
    hub: InProcess, ns: str, version: str
) -> None:
    kind = "ManagedClusterAddOn"
    path = f"/apis/addon.open-cluster-management.io/{version}/namespaces/{ns}/managedclusteraddons"
    body = named("a", spec={"nonsense": 1})
    refused = await hub.admin.call("POST", f"{path}?fieldValidation=Strict", body)
    assert (refused.status, refused.obj()["message"]) == (
        400,
        (
            f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding error:'
            ' unknown field "spec.nonsense"'
        ),
    )
    warned = await hub.admin.call("POST", path, body)
    assert (warned.status, warnings(warned)) == (201, ['unknown field "spec.nonsense"'])
    assert "nonsense" not in warned.obj().get("spec", {})
    silent = await hub.admin.call(
        "PUT", f"{path}/a?fieldValidation=Ignore", warned.obj() | {"other": 1}
    )
    assert (silent.status, warnings(silent)) == (200, [])
