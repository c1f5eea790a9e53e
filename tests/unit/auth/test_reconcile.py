"""Default roles and bindings get what they lack, and keep what an operator has added."""

from hub.auth.reconcile import complete, has_other_role, is_left_alone
from hub.meta import Obj
from tests.unit.auth.rbac_support import binding, role, rule, user_subject


def _named(obj: Obj, **meta: object) -> Obj:
    return {"metadata": {"name": "x", **meta}, **obj}


def test_missing_rules_are_added_and_others_kept() -> None:
    own, wanted = rule("get", "core", "pods"), rule("get list", "core", "pods secrets")
    present = _named(role(own))
    complete(present, _named(role(wanted)))
    assert present["rules"] == [
        own,
        {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]},
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["secrets"]},
    ]
    again = {**present}
    complete(again, _named(role(wanted)))
    assert again == present


def test_wider_rules_of_an_operator_are_enough() -> None:
    present = _named(role(rule("*", "*", "*"), rule("get", urls="*")))
    before = {**present}
    complete(present, _named(role(rule("get", "core", "pods"), rule("get", urls="/a"))))
    assert present == before


def test_rules_of_paths_come_back_too() -> None:
    present = _named({"rules": None})
    complete(present, _named(role(rule("get", urls="/a /b"))))
    assert present["rules"] == [
        {"verbs": ["get"], "nonResourceURLs": ["/a"]},
        {"verbs": ["get"], "nonResourceURLs": ["/b"]},
    ]


def test_missing_subjects_and_selectors_are_added() -> None:
    present = _named(binding("ClusterRole", "r", user_subject("own")))
    complete(present, _named(binding("ClusterRole", "r", user_subject("wanted"))))
    assert present["subjects"] == [user_subject("own"), user_subject("wanted")]
    wanted = _named({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}})
    gathering = _named({"rules": [rule("get", "core", "pods")]})
    complete(gathering, wanted)
    assert gathering["aggregationRule"] == wanted["aggregationRule"]
    assert gathering["rules"] == [rule("get", "core", "pods")]


def test_an_operators_labels_win() -> None:
    present = _named(role(), labels={"a": "own"})
    complete(present, _named(role(), labels={"a": "1", "b": "2"}, annotations={"c": "3"}))
    assert present["metadata"]["labels"] == {"a": "own", "b": "2"}
    assert present["metadata"]["annotations"] == {"c": "3"}


def test_what_is_marked_is_left_alone() -> None:
    mark = "rbac.authorization.kubernetes.io/autoupdate"
    assert is_left_alone(_named(role(), annotations={mark: "false"}))
    assert not is_left_alone(_named(role(), annotations={mark: "true"}))
    assert not is_left_alone(_named(role()))


def test_a_binding_to_another_role_is_to_be_made_anew() -> None:
    assert has_other_role(binding("ClusterRole", "a"), binding("ClusterRole", "b"))
    assert not has_other_role(binding("ClusterRole", "a"), binding("ClusterRole", "a"))
    assert not has_other_role(_named(role()), _named(role()))
