from collections.abc import Callable

import pytest

from hub.meta import Obj
from hub.registry.crd.definition import DefinitionStrategy
from hub.registry.crd.validate import change_causes, definition_causes
from tests.server.widgets import version_of, widget_definition


def filled(change: Callable[[Obj], object] = lambda _obj: None) -> Obj:
    obj = widget_definition()
    change(obj)
    strategy = DefinitionStrategy(())
    strategy.default(obj)
    obj["status"] = {"storedVersions": ["v1"]}
    return obj


def told(obj: Obj, *, is_own: bool = False) -> list[str]:
    return [f"{c.field}: {c.message}" for c in definition_causes(obj, is_own=is_own)]


def test_the_recorded_definition_is_valid() -> None:
    assert told(filled()) == []


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (
            ("scope",),
            "Galaxy",
            'spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"',
        ),
        (
            ("names", "listKind"),
            "Wid get",
            (
                'spec.names.listKind: Invalid value: "Wid get": may have mixed case, but should'
                " otherwise match: a DNS-1035 label must consist of lower case alphanumeric"
                " characters or '-', start with an alphabetic character, and end with an"
                " alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation"
                " is '[a-z]([-a-z0-9]*[a-z0-9])?')"
            ),
        ),
        (
            ("names", "listKind"),
            "Widget",
            'spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same',
        ),
        (
            ("preserveUnknownFields",),
            True,
            (
                "spec.preserveUnknownFields: Invalid value: true: must be false in order to use"
                " schemas; set x-kubernetes-preserve-unknown-fields"
            ),
        ),
    ],
)
def test_a_wrong_value_is_told(path: tuple[str, ...], value: object, text: str) -> None:
    def change(obj: Obj) -> None:
        below = obj["spec"]
        for key in path[:-1]:
            below = below[key]
        below[path[-1]] = value

    assert told(filled(change)) == [text]


def test_kubernetes_own_groups_ask_for_an_approval() -> None:
    def change(obj: Obj) -> None:
        obj["spec"]["group"] = "demo.k8s.io"
        obj["metadata"]["name"] = "widgets.demo.k8s.io"

    found = told(filled(change))
    assert len(found) == 1
    assert found[0].startswith("metadata.annotations[api-approved.kubernetes.io]: Required value")


def test_versions_have_names_of_their_own() -> None:
    def change(obj: Obj) -> None:
        obj["spec"]["versions"].append({**version_of(obj), "storage": False})

    assert told(filled(change)) == [
        'spec.versions: Invalid value: ["v1","v1"]: must contain unique version names'
    ]


def test_what_differs_between_versions_is_named_by_version() -> None:
    def change(obj: Obj) -> None:
        second = {**version_of(obj), "name": "v2", "storage": False}
        second["schema"] = {"openAPIV3Schema": {"type": "array", "items": {"type": "string"}}}
        second.pop("selectableFields")
        obj["spec"]["versions"].append(second)

    found = told(filled(change))
    assert (
        'spec.versions[1].schema.openAPIV3Schema.type: Invalid value: "array": must be object at'
        " the root"
    ) in found
    assert all("versions[1]" in text for text in found)


def test_an_own_definition_may_say_that_it_is_converted() -> None:
    def change(obj: Obj) -> None:
        obj["spec"]["conversion"] = {"strategy": "Webhook"}
        obj["spec"]["versions"].append({**version_of(obj), "name": "v2", "storage": False})

    obj = filled(change)
    assert [text.partition(":")[0] for text in told(obj)] == ["spec.conversion.strategy"]
    assert told(obj, is_own=True) == []


def test_scope_may_change_until_the_definition_is_established() -> None:
    old, new = filled(), filled(lambda obj: obj["spec"].update(scope="Cluster"))
    assert change_causes(new, old) == []
    old["status"]["conditions"] = [{"type": "Established", "status": "True"}]
    assert [c.field for c in change_causes(new, old)] == ["spec.scope"]


def test_the_stored_versions_are_versions() -> None:
    obj = filled()
    obj["status"]["storedVersions"] = ["v0"]
    assert told(obj) == [
        'status.storedVersions[0]: Invalid value: "v0": missing from spec.versions',
        'status.storedVersions: Invalid value: ["v0"]: must have the storage version v1',
    ]
