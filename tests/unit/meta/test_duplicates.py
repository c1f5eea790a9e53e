"""Duplicate fields: that they are noticed, always, and told as Go's strict decoder tells them."""

import doctest
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.meta import duplicates, knownfields
from hub.meta.codec.json import decode_value
from hub.meta.duplicates import MAX_FAULTS, faults, has_duplicates, patch_faults
from hub.meta.protobuf.tables import MESSAGES


class Members(list[tuple[str, object]]):
    """An object whose names may repeat."""


TEXT = st.text('ab"\\:{}, \u00e4\u2028\n', max_size=4)
SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | TEXT


def objects(below: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    members = st.lists(st.tuples(TEXT, below), max_size=4).map(Members)
    return members | st.lists(below, max_size=3)


TREES = st.recursive(SCALARS, objects, max_leaves=12)


def write(value: object, *, gap: str, ascii_only: bool) -> str:
    if isinstance(value, Members):
        inside = (
            f"{write(k, gap=gap, ascii_only=ascii_only)}{gap}:{gap}"
            f"{write(v, gap=gap, ascii_only=ascii_only)}"
            for k, v in value
        )
        return f"{{{gap}{f'{gap},'.join(inside)}{gap}}}"
    if isinstance(value, list):
        return f"[{','.join(write(v, gap=gap, ascii_only=ascii_only) for v in value)}]"
    return json.dumps(value, ensure_ascii=ascii_only)


def repeats(value: object) -> bool:
    if isinstance(value, Members):
        names = [name for name, _ in value]
        return len(set(names)) < len(names) or any(repeats(below) for _, below in value)
    return isinstance(value, list) and any(repeats(below) for below in value)


@given(tree=TREES, gap=st.sampled_from(["", " ", "\n\t"]), ascii_only=st.booleans())
def test_duplicates_are_seen_exactly_when_there_are_any(
    tree: object, gap: str, *, ascii_only: bool
) -> None:
    data = write(tree, gap=gap, ascii_only=ascii_only).encode()
    assert has_duplicates(data, decode_value(data)) is repeats(tree)
    assert bool(faults(data)) is repeats(tree)


@pytest.mark.parametrize("data", [b'{"\\u0061":1,"a":2}', b'{"a\\u0022":1,"a\\"":2,"b":"\\u0022"}'])
def test_other_spellings_of_a_name_hide_nothing(data: bytes) -> None:
    assert has_duplicates(data, decode_value(data))
    assert len(faults(data)) == 1


def test_a_mark_that_is_spelled_out_is_looked_at_again() -> None:
    data = b'{"a":"\\u0022"}'
    assert has_duplicates(data, decode_value(data))
    assert faults(data) == []


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'{"data":{"a.b":"1","a.b":"2"}}', ['duplicate field "data.a.b"']),
        (b'{"x":{"y":1,"y":2},"x":1}', ['unknown field "x"']),
        (b'{"kind":"A","kind":"B"}', ['duplicate field "kind"']),
        (b'{"metadata":{"labels":{"a":"1","a":"2"}}}', ['duplicate field "metadata.labels.a"']),
        (
            b'{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{},"f:a":{}},"time":{"a":1,"a":2}}]}}',
            [],
        ),
        (
            b'{"metadata":{"ownerReferences":[{"uid":"a"},{"uid":"a","uid":"b","z":1}]}}',
            [
                'duplicate field "metadata.ownerReferences[1].uid"',
                'unknown field "metadata.ownerReferences[1].z"',
            ],
        ),
    ],
)
def test_a_built_in_kind_is_read_as_its_struct(data: bytes, found: list[str]) -> None:
    assert faults(data, MESSAGES["ConfigMap"]) == found


def test_faults_are_told_once_and_up_to_a_bound() -> None:
    many = ",".join(f'"a{number}":1,"a{number}":2,"a{number}":3' for number in range(200))
    found = faults(f"{{{many}}}".encode())
    assert found == [f'duplicate field "a{number}"' for number in range(MAX_FAULTS)]


def test_a_json_patch_that_is_none_has_no_faults_of_its_own() -> None:
    assert patch_faults(b'{"op":"x","unknown":1}', is_json_patch=True) == []
    assert patch_faults(b"[1,[{}]]", is_json_patch=True) == []


@pytest.mark.parametrize("module", [duplicates, knownfields])
def test_the_examples_in_the_modules_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]  # modules have no type of their own in parametrize
