from hub.meta import Obj
from hub.registry.crd.conditions import accept_names, is_true, note_names, set_condition

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def definition(**names: object) -> Obj:
    return {"spec": {"names": {"plural": "widgets", "kind": "Widget", **names}}}


def test_free_names_are_accepted_as_they_are() -> None:
    obj = definition(shortNames=["wd"], listKind="WidgetList", categories=["all"])
    naming = accept_names(obj, [{"plural": "gadgets", "kind": "Gadget"}])
    assert naming.conflict == ("", "")
    assert naming.accepted == obj["spec"]["names"]


def test_resources_and_kinds_do_not_stand_in_each_others_way() -> None:
    naming = accept_names(definition(), [{"plural": "Widget", "kind": "widgets"}])
    assert naming.conflict == ("", "")


def test_a_short_name_that_is_taken_keeps_the_others() -> None:
    naming = accept_names(definition(shortNames=["wd", "w"]), [{"plural": "wd"}])
    assert naming.conflict == ("ShortNamesConflict", '"wd" is already in use')
    assert naming.accepted == {"plural": "widgets", "kind": "Widget"}


def test_an_accepted_name_stays_while_its_successor_is_taken() -> None:
    obj = definition(kind="Gadget") | {"status": {"acceptedNames": {"kind": "Widget"}}}
    naming = accept_names(obj, [{"kind": "Gadget"}])
    assert naming.conflict[0] == "KindConflict"
    assert naming.accepted["kind"] == "Widget"


def test_a_definition_once_established_stays_so() -> None:
    obj = definition()
    note_names(obj, accept_names(obj, []), NOW)
    assert is_true(obj, "Established")
    obj["spec"]["names"]["shortNames"] = ["wd"]
    note_names(obj, accept_names(obj, [{"plural": "wd"}]), LATER)
    assert is_true(obj, "Established")
    assert not is_true(obj, "NamesAccepted")
    times = {c["type"]: c["lastTransitionTime"] for c in obj["status"]["conditions"]}
    assert times == {"NamesAccepted": LATER, "Established": NOW}


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    obj: Obj = {}
    set_condition(obj, NOW, "Terminating", status="True", reason="A", text="a")
    set_condition(obj, LATER, "Terminating", status="True", reason="B", text="b")
    assert obj["status"]["conditions"] == [
        {
            "type": "Terminating",
            "status": "True",
            "lastTransitionTime": NOW,
            "reason": "B",
            "message": "b",
        }
    ]
