import copy

from hub.meta import Obj
from hub.registry.crd.custom import custom_kind
from tests.server.widgets import schema_of, version_of, widget_definition


def established(*, generation: int = 1, versions: int = 1) -> Obj:
    obj = widget_definition()
    obj["metadata"]["generation"] = generation
    obj["status"] = {"acceptedNames": {**obj["spec"]["names"], "listKind": "WidgetList"}}
    if versions == 2:
        second = {**copy.deepcopy(version_of(obj)), "name": "v2", "storage": False}
        second.pop("subresources")
        obj["spec"]["versions"].append(second)
        schema_of(obj, 1)["properties"]["note"] = {"type": "string", "default": "none"}
    return obj


def test_each_version_has_the_subresources_it_declares() -> None:
    custom = custom_kind(established(versions=2))
    assert [s.view.version for s in custom.served] == ["v1", "v2"]
    assert [s.kind.subresources for s in custom.served] == [("status", "scale"), ()]
    assert {s.kind.id for s in custom.served} == {"widgets.demo.example.com"}
    assert {s.kind.storage.version for s in custom.served} == {"v1"}


def test_an_object_goes_into_store_under_the_stored_version_and_comes_back() -> None:
    second = custom_kind(established(versions=2)).served[1].view
    sent = {"apiVersion": "demo.example.com/v2", "spec": {"color": "red"}}
    stored = second.to_storage(sent)
    assert stored["apiVersion"] == "demo.example.com/v1"
    assert stored["spec"] == {"color": "red", "replicas": 1, "note": "none"}
    assert sent["spec"] == {"color": "red"}
    assert second.from_storage(stored)["apiVersion"] == "demo.example.com/v2"


def test_a_version_that_is_not_served_is_not_there() -> None:
    obj = established(versions=2)
    version_of(obj)["served"] = False
    custom = custom_kind(obj)
    assert [s.view.version for s in custom.served] == ["v2"]
    assert custom.kind.storage.version == "v1"


def test_what_was_written_under_the_first_schema_is_read_as_it_is() -> None:
    assert not custom_kind(established()).kind.storage.is_read_through
    later = custom_kind(established(generation=2)).kind.storage
    assert later.is_read_through
    old = {"apiVersion": "demo.example.com/v1", "spec": {"color": "red", "gone": 1}}
    assert later.from_storage(old)["spec"] == {"color": "red", "replicas": 1}


def test_nothing_is_created_while_the_definition_goes() -> None:
    obj = established()
    obj["status"]["conditions"] = [{"type": "Terminating", "status": "True"}]
    kind = custom_kind(obj).kind
    verbs = kind.offered_verbs
    assert "create" not in verbs
    assert "terminating" in kind.strategy.creation_refusal()
    assert "patch" in verbs


def test_objects_are_indexed_by_the_selectable_fields_of_all_versions() -> None:
    obj = established(versions=2)
    version_of(obj, 1)["selectableFields"] = [{"jsonPath": ".spec.replicas"}]
    first = custom_kind(obj).kind.strategy
    assert first.fields({"spec": {"color": "red", "replicas": 3}}) == {
        "spec.color": "red",
        "spec.replicas": "3",
    }
    assert first.selectable() == ("spec.color",)
