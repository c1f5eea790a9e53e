"""CustomResourceDefinitions over the wire: from creation to the last object's end."""

import asyncio

import pytest
import pytest_asyncio

from hub.meta import Obj
from hub.meta.protobuf.envelope import encode_envelope
from tests.hubs import InProcess
from tests.server.support import PROTOBUF, TABLE, named
from tests.server.widgets import (
    DEFINITIONS,
    condition,
    define,
    schema_of,
    until,
    until_gone,
    version_of,
    widget,
    widget_definition,
    widgets,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
OWN = f"{DEFINITIONS}/managedclusters.cluster.open-cluster-management.io"


@pytest.fixture
def definition(name: str) -> Obj:
    """The widget's, in a group that no other test uses."""
    return widget_definition(f"{name}.example.com")


@pytest_asyncio.fixture(loop_scope="module")
async def defined(hub: InProcess, definition: Obj) -> Obj:
    return await define(hub.admin, definition)


def path_of(definition: Obj) -> str:
    return f"{DEFINITIONS}/{definition['metadata']['name']}"


async def refusal(hub: InProcess, definition: Obj) -> list[tuple[str, str]]:
    """The causes for which a definition is refused."""
    answer = await hub.admin.call("POST", DEFINITIONS, definition)
    assert answer.status == 422, answer.body
    return [(c["field"], c["message"]) for c in answer.obj()["details"]["causes"]]


async def test_a_new_definition_is_answered_before_its_names_are_accepted(
    hub: InProcess, definition: Obj
) -> None:
    made = await hub.admin.create(DEFINITIONS, definition)
    assert made["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }
    assert made["spec"]["names"]["listKind"] == "WidgetList"
    assert made["spec"]["conversion"] == {"strategy": "None"}
    assert made["metadata"]["generation"] == 1
    assert "finalizers" not in made["metadata"]


async def test_a_definition_is_established_under_its_names(defined: Obj) -> None:
    assert condition(defined, "NamesAccepted") == {
        "type": "NamesAccepted",
        "status": "True",
        "reason": "NoConflicts",
        "message": "no conflicts found",
    }
    assert condition(defined, "Established") == {
        "type": "Established",
        "status": "True",
        "reason": "InitialNamesAccepted",
        "message": "the initial names have been accepted",
    }
    assert [c["type"] for c in defined["status"]["conditions"]] == ["NamesAccepted", "Established"]
    assert defined["status"]["acceptedNames"] == defined["spec"]["names"]


async def test_a_kind_is_discovered_before_it_is_established(
    hub: InProcess, definition: Obj
) -> None:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    before = await hub.admin.call("GET", "/apis", accept=accept)
    await define(hub.admin, definition)
    group = definition["spec"]["group"]
    after = await hub.admin.call("GET", "/apis", accept=accept)
    assert after.headers["etag"] != before.headers["etag"]
    found = next(g for g in after.obj()["items"] if g["metadata"]["name"] == group)
    resource = found["versions"][0]["resources"][0]
    assert (resource["resource"], resource["shortNames"], resource["categories"]) == (
        "widgets",
        ["wd"],
        ["all"],
    )
    scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert {s["subresource"]: s["responseKind"] for s in resource["subresources"]}["scale"] == scale
    groups = await hub.admin.get("/apis")
    assert group in [g["name"] for g in groups["groups"]]
    listed = await hub.admin.get(f"/apis/{group}/v1")
    assert [r["name"] for r in listed["resources"]] == [
        "widgets",
        "widgets/scale",
        "widgets/status",
    ]
    document = await hub.admin.get(f"/openapi/v3/apis/{group}/v1")
    kinds = [
        s["x-kubernetes-group-version-kind"][0]["kind"]
        for s in document["components"]["schemas"].values()
        if "x-kubernetes-group-version-kind" in s
    ]
    assert "Widget" in kinds


async def test_deleting_a_definition_deletes_its_objects_first(
    hub: InProcess, definition: Obj, ns: str
) -> None:
    defined = await define(hub.admin, definition)
    base, path = widgets(defined, ns), path_of(defined)
    name = defined["metadata"]["name"]
    held = widget("held")
    held["metadata"]["finalizers"] = ["example.com/held"]
    await hub.admin.create(base, held)
    await hub.admin.create(base, widget("free"))
    answer = await hub.admin.call("DELETE", path, {"propagationPolicy": "Background"})
    assert answer.status == 200
    deleting = answer.obj()
    assert deleting["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert deleting["metadata"]["generation"] == 1
    assert condition(deleting, "Terminating") == {
        "type": "Terminating",
        "status": "True",
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will"
        " begin soon",
    }
    await until_gone(hub.admin, f"{base}/free")
    refused = await hub.admin.call("POST", base, widget("late"))
    assert (refused.status, refused.obj()["message"]) == (
        403,
        (
            f'{name} "late" is forbidden: create not allowed while custom resource definition is'
            " terminating"
        ),
    )
    again = await hub.admin.call("POST", DEFINITIONS, definition)
    assert (again.status, again.obj()["message"]) == (
        409,
        (
            "object is being deleted: customresourcedefinitions.apiextensions.k8s.io"
            f' "{name}" already exists'
        ),
    )
    (told,) = (await hub.admin.get(base.split("/namespaces")[0]))["resources"][:1]
    assert "create" not in told["verbs"]
    at_work = await hub.admin.get(path)
    assert condition(at_work, "Terminating")["reason"] == "InstanceDeletionInProgress"
    # a definition is gone for readers when that is committed, its kind once the change is shown
    async with hub.admin.watch(f"{base}?watch=1") as watch:
        assert (await watch.next())["type"] == "ADDED"
        await hub.admin.patch(f"{base}/held", {"metadata": {"finalizers": None}})
        assert (await watch.next())["type"] == "DELETED"
        with pytest.raises(StopAsyncIteration):
            await watch.next()
    assert (await hub.admin.call("GET", path)).status == 404
    assert (await hub.admin.call("GET", base)).status == 404
    group = defined["spec"]["group"]
    assert (await hub.admin.call("GET", f"/apis/{group}/v1")).status == 404
    assert (await hub.admin.call("GET", f"/openapi/v3/apis/{group}/v1")).status == 404
    assert group not in [g["name"] for g in (await hub.admin.get("/apis"))["groups"]]


async def test_a_definition_made_again_begins_without_objects(
    hub: InProcess, definition: Obj, ns: str
) -> None:
    for _ in range(2):
        made = await define(hub.admin, definition)
        base = widgets(made, ns)
        assert (await hub.admin.get(base))["items"] == []
        await hub.admin.create(base, widget("a"))
        await hub.admin.call("DELETE", path_of(made))
        await until_gone(hub.admin, path_of(made))


async def test_the_watches_of_a_kind_end_with_it(hub: InProcess, defined: Obj, ns: str) -> None:
    async with hub.admin.watch(f"{widgets(defined, ns)}?watch=1") as watch:
        await hub.admin.create(widgets(defined, ns), widget("a"))
        assert (await watch.next())["type"] == "ADDED"
        await hub.admin.call("DELETE", path_of(defined))
        assert (await watch.next())["type"] == "DELETED"
        with pytest.raises(StopAsyncIteration):
            await watch.next()


async def test_two_definitions_do_not_share_a_name_in_a_group(
    hub: InProcess, defined: Obj, ns: str
) -> None:
    second = widget_definition(defined["spec"]["group"])
    second["metadata"]["name"] = f"gadgets.{defined['spec']['group']}"
    second["spec"]["names"] = {"plural": "gadgets", "kind": "Widget", "shortNames": ["wd"]}
    await hub.admin.create(DEFINITIONS, second)
    path = path_of(second)
    waiting = await until(hub.admin, path, lambda obj: bool(condition(obj, "Established")))
    assert condition(waiting, "Established") == {
        "type": "Established",
        "status": "False",
        "reason": "NotAccepted",
        "message": "not all names are accepted",
    }
    assert condition(waiting, "NamesAccepted")["message"] == '"WidgetList" is already in use'
    assert waiting["status"]["acceptedNames"] == {"plural": "gadgets", "kind": ""}
    gadgets = widgets(defined, ns).replace("widgets", "gadgets")
    assert (await hub.admin.call("GET", gadgets)).status == 404
    await hub.admin.call("DELETE", path_of(defined))
    await until(hub.admin, path, lambda obj: condition(obj, "Established").get("status") == "True")
    assert (await hub.admin.get(gadgets))["kind"] == "WidgetList"


async def test_a_name_of_a_built_in_kind_is_not_accepted(hub: InProcess, name: str) -> None:
    taken = widget_definition("coordination.k8s.io")
    taken["metadata"] = {
        "name": "leases.coordination.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
    }
    taken["spec"]["names"] = {"plural": "leases", "kind": "Lease"}
    await hub.admin.create(DEFINITIONS, taken)
    path = path_of(taken)
    waiting = await until(hub.admin, path, lambda obj: bool(condition(obj, "Established")))
    assert condition(waiting, "Established")["status"] == "False"
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    await hub.admin.create(leases, named(name, spec={"holderIdentity": "a"}))
    await hub.admin.call("DELETE", path)
    await until_gone(hub.admin, path)
    assert (await hub.admin.get(f"{leases}/{name}"))["spec"]["holderIdentity"] == "a"


async def test_nor_is_one_of_a_second_group_in_which_it_is_served(hub: InProcess) -> None:
    taken = widget_definition("events.k8s.io")
    taken["metadata"] = {
        "name": "events.events.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
    }
    taken["spec"]["names"] = {"plural": "events", "kind": "Event"}
    await hub.admin.create(DEFINITIONS, taken)
    path = path_of(taken)
    waiting = await until(hub.admin, path, lambda obj: bool(condition(obj, "Established")))
    assert condition(waiting, "Established")["status"] == "False"
    await hub.admin.call("DELETE", path)
    await until_gone(hub.admin, path)
    assert (await hub.admin.get("/apis/events.k8s.io/v1/events"))["kind"] == "EventList"


async def test_what_a_definition_lacks_is_told(hub: InProcess, definition: Obj) -> None:
    definition["metadata"]["name"] = "gadgets.example.com"
    assert await refusal(hub, definition) == [
        (
            "metadata.name",
            'Invalid value: "gadgets.example.com": must be spec.names.plural+"."+spec.group',
        )
    ]
    assert await refusal(
        hub, {"metadata": {"name": "a.b"}, "spec": {"group": "b", "versions": []}}
    ) == [
        ("metadata.name", 'Invalid value: "a.b": must be spec.names.plural+"."+spec.group'),
        ("spec.group", 'Invalid value: "b": should be a domain with at least one dot'),
        ("spec.scope", "Required value"),
        (
            "spec.versions",
            "Invalid value: []: must have exactly one version marked as storage version",
        ),
        ("spec.names.plural", "Required value"),
        ("spec.names.singular", "Required value"),
        ("spec.names.kind", "Required value"),
        ("spec.names.listKind", "Required value"),
    ]


async def test_exactly_one_version_is_stored(hub: InProcess, definition: Obj) -> None:
    version_of(definition)["storage"] = False
    assert await refusal(hub, definition) == [
        (
            "spec.versions",
            'Invalid value: ["v1"]: must have exactly one version marked as storage version',
        )
    ]


async def test_a_schema_must_be_structural(hub: InProcess, definition: Obj) -> None:
    version_of(definition).pop("selectableFields")
    schema_of(definition)["properties"]["color"].pop("type")
    assert await refusal(hub, definition) == [
        (
            "spec.validation.openAPIV3Schema.properties[spec].properties[color].type",
            "Required value: must not be empty for specified object fields",
        )
    ]
    version_of(definition).pop("schema")
    assert ("spec.validation.openAPIV3Schema", "Required value: schemas are required") in (
        await refusal(hub, definition)
    )


async def test_columns_scale_and_selectable_fields_are_checked(
    hub: InProcess, definition: Obj
) -> None:
    version = version_of(definition)
    version["additionalPrinterColumns"] = [{"name": "A", "type": "text", "jsonPath": ".spec["}]
    version["subresources"]["scale"]["specReplicasPath"] = ".status.replicas"
    version["selectableFields"] = [{"jsonPath": ".spec.parts"}, {"jsonPath": ".spec.missing"}]
    causes = await refusal(hub, definition)
    assert [field for field, _ in causes] == [
        "spec.subresources.scale.specReplicasPath",
        "spec.additionalPrinterColumns[0].type",
        "spec.additionalPrinterColumns[0].JSONPath",
        "spec.selectableFields[0].jsonPath",
        "spec.selectableFields[1].jsonPath",
    ]
    assert causes[0][1] == ('Invalid value: ".status.replicas": should be a json path under .spec')
    assert causes[4][1].endswith("is an invalid path: does not refer to a valid field")


async def test_unknown_fields_of_a_definition_are_dropped_or_refused(
    hub: InProcess, definition: Obj
) -> None:
    definition["spec"]["colour"] = "x"
    schema_of(definition)["minimun"] = 1
    strict = await hub.admin.call("POST", f"{DEFINITIONS}?fieldValidation=Strict", definition)
    assert strict.status == 400
    assert strict.obj()["message"].endswith(
        'strict decoding error: unknown field "spec.versions[0].schema.openAPIV3Schema.properties'
        '.spec.minimun", unknown field "spec.colour"'
    )
    made = await hub.admin.create(DEFINITIONS, definition)
    assert "colour" not in made["spec"]
    assert "minimun" not in schema_of(made)


async def test_scope_group_and_names_stay(hub: InProcess, defined: Obj) -> None:
    for change, field in (
        ({"scope": "Cluster"}, "spec.scope"),
        ({"names": {"kind": "Gadget"}}, "spec.names.kind"),
    ):
        answer = await hub.admin.call(
            "PATCH", path_of(defined), {"spec": change}, content_type="application/merge-patch+json"
        )
        assert answer.status == 422
        causes = answer.obj()["details"]["causes"]
        assert [(c["field"], c["message"].split(": ")[-1]) for c in causes] == [
            (field, "field is immutable")
        ]


async def test_conversion_by_webhook_is_refused_where_it_would_be_needed(
    hub: InProcess, definition: Obj
) -> None:
    definition["spec"]["conversion"] = {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://a.b"}},
    }
    definition["spec"]["versions"].append(
        {**version_of(definition), "name": "v2", "storage": False}
    )
    causes = await refusal(hub, definition)
    assert [field for field, _ in causes] == ["spec.conversion.strategy"]
    definition["spec"]["versions"].pop()
    await define(hub.admin, definition)


async def test_a_changed_definition_counts_generations_and_changes_columns(
    hub: InProcess, defined: Obj, ns: str
) -> None:
    base = widgets(defined, ns)
    await hub.admin.create(base, widget("a"))
    versions = [version_of(defined)]
    versions[0]["additionalPrinterColumns"] = [
        {"name": "Color", "type": "string", "jsonPath": ".spec.color"}
    ]
    changed = await hub.admin.patch(path_of(defined), {"spec": {"versions": versions}})
    assert changed["metadata"]["generation"] == 2
    answer = await hub.admin.call("GET", base, accept=TABLE)
    assert [c["name"] for c in answer.obj()["columnDefinitions"]] == ["Name", "Color"]


async def test_the_hubs_own_kinds_have_definitions_that_stay(hub: InProcess) -> None:
    own = await hub.admin.get(OWN)
    assert condition(own, "Established")["status"] == "True"
    assert own["spec"]["names"]["shortNames"] == ["mcl", "mcls"]
    assert [c["name"] for c in version_of(own)["additionalPrinterColumns"]][:1] == ["Hub Accepted"]
    answer = await hub.admin.call("DELETE", OWN)
    assert (answer.status, answer.obj()["reason"]) == (403, "Forbidden")
    assert answer.obj()["message"].endswith(
        "this kind is built into the hub, its definition cannot be deleted"
    )
    everything = await hub.admin.call("DELETE", f"{DEFINITIONS}?labelSelector=no%3Dsuch")
    assert everything.status == 200
    assert (await hub.admin.get(OWN))["metadata"]["uid"] == own["metadata"]["uid"]


async def test_changing_an_own_kinds_definition_changes_nothing_that_is_served(
    hub: InProcess,
) -> None:
    path = f"{DEFINITIONS}/managedclusteraddons.addon.open-cluster-management.io"
    own = await hub.admin.get(path)
    own["spec"]["versions"][0]["additionalPrinterColumns"] = []
    own["spec"]["names"]["shortNames"] = ["zz"]
    answer = await hub.admin.call("PUT", path, own)
    assert answer.status == 200
    listed = await hub.admin.get("/apis/addon.open-cluster-management.io/v1alpha1")
    names = {r["name"]: r.get("shortNames") for r in listed["resources"]}
    assert names["managedclusteraddons"] == ["mca", "mcas"]


async def test_the_cluster_manager_is_an_ordinary_kind(hub: InProcess) -> None:
    base = "/apis/operator.open-cluster-management.io/v1/clustermanagers"
    made = await hub.admin.create(base, named("cluster-manager", spec={"anything": 1}))
    assert made["spec"] == {"anything": 1}
    assert (await hub.admin.call("DELETE", f"{base}/cluster-manager")).status == 200


async def test_a_definition_may_be_sent_as_protobuf(hub: InProcess, definition: Obj) -> None:
    body = encode_envelope(definition)
    answer = await hub.admin.call(
        "POST", f"{DEFINITIONS}?fieldValidation=Strict", body, content_type=PROTOBUF
    )
    assert answer.status == 201, answer.body
    made = answer.obj()
    assert schema_of(made) == schema_of(definition)
    await until(
        hub.admin,
        path_of(made),
        lambda obj: condition(obj, "Established").get("status") == "True",
    )


async def test_definitions_print_as_a_table(hub: InProcess) -> None:
    answer = await hub.admin.call("GET", OWN, accept=TABLE)
    assert [c["name"] for c in answer.obj()["columnDefinitions"]] == ["Name", "Created At"]


async def test_many_definitions_at_once_are_all_established(hub: InProcess, name: str) -> None:
    definitions = [widget_definition(f"{name}-{n}.example.com") for n in range(8)]
    made = await asyncio.gather(*(define(hub.admin, d) for d in definitions))
    assert [condition(d, "Established")["status"] for d in made] == ["True"] * 8


async def test_of_two_definitions_made_at_once_one_gets_the_kind(
    hub: InProcess, definition: Obj
) -> None:
    group = definition["spec"]["group"]
    rivals = []
    for plural in ("firsts", "seconds", "thirds"):
        rival = widget_definition(group)
        rival["metadata"]["name"] = f"{plural}.{group}"
        rival["spec"]["names"] = {"plural": plural, "singular": plural[:-1], "kind": "Widget"}
        rivals.append(rival)
    await asyncio.gather(*(hub.admin.create(DEFINITIONS, r) for r in rivals))
    found = [
        await until(hub.admin, path_of(r), lambda obj: bool(condition(obj, "Established")))
        for r in rivals
    ]
    states = sorted(condition(obj, "Established")["status"] for obj in found)
    assert states == ["False", "False", "True"]
