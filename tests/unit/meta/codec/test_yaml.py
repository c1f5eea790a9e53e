"""YAML bodies read as go-yaml reads them, within limits."""

import textwrap
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.meta import Obj
from hub.meta.codec import json, yaml
from hub.meta.errors import ApiError


def test_a_manifest_is_read_as_its_json() -> None:
    manifest = """\
        # a comment
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: c1
          labels: {"a": b, m: '1'}
          creationTimestamp: 2026-11-30T18:00:00Z
        data:
          text: |
            two
            lines
          folded: >-
            one
            line
        list:
        - 1
        - [a, ~]
        """
    assert yaml.decode(textwrap.dedent(manifest).encode()) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "c1",
            "labels": {"a": "b", "m": "1"},
            "creationTimestamp": "2026-11-30T18:00:00Z",
        },
        "data": {"text": "two\nlines\n", "folded": "one line"},
        "list": [1, ["a", None]],
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("yes", True),
        ("y", True),
        ("off", False),
        ("True", True),
        ("tRUE", "tRUE"),
        ("0", 0),
        ("-1", -1),
        ("+7", 7),
        ("1_000", 1000),
        ("0x1F", 31),
        ("0b101", 5),
        ("-0b101", -5),
        ("0644", 420),
        ("0o17", 15),
        ("089", 89.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1.", 1.0),
        ("1.2.3", "1.2.3"),
        ("-", ["-"]),
        ("1:30", "1:30"),
        ("2026-11-30", "2026-11-30"),
        ("2026-11-30 18:00:00", "2026-11-30 18:00:00"),
        ("18446744073709551615", 18446744073709551615),
        ("18446744073709551616", 18446744073709551616.0),
        ("1e999", "1e999"),
        ("9" * 5000, "9" * 5000),
        ("'1'", "1"),
        ('"yes"', "yes"),
        ("!!str 1", "1"),
        ("!!int '1'", 1),
        ("!!float 1", 1),
        ("! 1", "1"),
        ("=", "="),
    ],
)
def test_a_word_means_what_it_means_to_go_yaml(text: str, value: object) -> None:
    if text == "-":
        text = "['-']"
    read = yaml.decode(b"a: " + text.encode())["a"]
    assert read == value
    assert type(read) is type(value)


def test_keys_become_text() -> None:
    assert yaml.decode(b"{1: a, true: b, 1.5: c}") == {"1": "a", "true": "b", "1.5": "c"}


def test_aliases_are_copies_and_merge_keys_are_merged_in() -> None:
    read = yaml.decode(
        b"a: &a {x: 1, y2: 2}\nb: *a\nc: {<<: *a, y2: 3}\n"
        b"d: {<<: [{z: 1, x: 9}, *a], w: &t hi}\ne: *t"
    )
    assert read["b"] == {"x": 1, "y2": 2}
    assert read["b"] is not read["a"]
    assert read["c"] == {"x": 1, "y2": 3}
    assert read["d"] == {"z": 1, "x": 9, "y2": 2, "w": "hi"}
    assert read["e"] == "hi"


@pytest.mark.parametrize(
    ("text", "value", "lines"),
    [
        ("a: 1\nb: 2\na: 3", {"a": 3, "b": 2}, [(3, "a")]),
        ("m:\n  a: 1\n  a: 2", {"m": {"a": 2}}, [(3, "a")]),
        ("1: a\n'1': b", {"1": "b"}, [(2, "1")]),
        ("a: 1\nb: {c: 1, c: 2}\na:\n  x: 1", {"a": {"x": 1}, "b": {"c": 2}}, [(2, "c"), (4, "a")]),
        ("a: 1\nb: {<<: {a: 1}, a: 2}", {"a": 1, "b": {"a": 2}}, []),
    ],
)
def test_of_a_key_that_stands_twice_the_last_counts_and_all_are_told(
    text: str, value: Obj, lines: list[tuple[int, str]]
) -> None:
    faults: list[str] = []
    assert yaml.decode(text.encode(), faults) == yaml.decode(text.encode()) == value
    told = "\n".join(f'  line {line}: key "{key}" already set in map' for line, key in lines)
    assert faults == ([f"yaml: unmarshal errors:\n{told}"] if lines else [])


BOMB = "a0: &a0 [x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 8)}]\n" for i in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the body must be an object, not null"),
        ("- a", "the body must be an object, not array"),
        ("just text", "the body must be an object, not string"),
        ("a: 1\nb: [", "line 3: did not find expected node content"),
        ("a: 1\n---\nb: 2", "line 2: only one document is expected"),
        ("a: .inf", "line 1: .inf has no JSON form"),
        ("a: -.Inf", "line 1: -.Inf has no JSON form"),
        ("a: .nan", "line 1: .nan has no JSON form"),
        ("a: !!binary aGk=", "cannot read 'aGk=' with the tag"),
        ("a: !!timestamp 2026-11-30", "cannot read '2026-11-30' with the tag"),
        ("a: !!int x", "cannot read 'x' with the tag"),
        ("a: !custom {b: 1}", "the tag !custom has no JSON form"),
        ("a: !!set {b}", "has no JSON form"),
        ("a: !!python/object/apply:os.system ['true']", "has no JSON form"),
        ("? [a]\n: b", "line 1: a key must be text, not array"),
        ("~: b", "line 1: a key must be text, not null"),
        ("a: *b", "unknown anchor 'b' referenced"),
        ("a: &a [*a]", "unknown anchor 'a' referenced"),
        ("a: {<<: 1}", "map merge requires map or sequence of maps as the value"),
        ("a: \x00", "control characters are not allowed"),
        ("{a: " * 260 + "1" + "}" * 260, "exceeded max depth"),
        ("[" * 3000, "exceeded maximum nesting depth"),
        (BOMB, f"more than {yaml.MAX_VALUES} values"),
    ],
)
def test_what_is_no_one_json_object_is_a_400_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(ApiError) as caught:
        yaml.decode(text.encode())
    assert caught.value.code == 400
    assert problem in caught.value.message
    assert caught.value.message.startswith("error converting YAML to JSON: yaml: ")


def test_bytes_that_are_not_utf8_are_a_400() -> None:
    with pytest.raises(ApiError, match="error converting YAML to JSON"):
        yaml.decode(b"a: \xff")


TEXT = st.text(alphabet="ab:-é\n\t\"\\{}[] #,1&*!|>'%@`\U0001f600", max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXT,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(TEXT, v, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_json_is_yaml(obj: Obj) -> None:
    assert yaml.decode(json.encode(obj)) == obj


@given(st.text(alphabet="ab:-[]{}&*!|>'\"#%<~1.\n ?", max_size=40))
def test_any_text_is_an_object_or_a_400(text: str) -> None:
    with suppress(ApiError):
        obj = yaml.decode(text.encode())
        assert json.decode(json.encode(obj)) == obj
