"""Schemas are read whole, and what cannot be read is refused in Go's words."""

import pytest

from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.meta.schema.gotext import number, quote
from hub.meta.schema.structural import EMPTY, parse


def test_a_node_keeps_every_keyword() -> None:
    raw = {
        "type": "array",
        "nullable": True,
        "default": [1],
        "items": {"type": "integer", "format": "int32", "minimum": 1, "exclusiveMinimum": True},
        "minItems": 1,
        "x-kubernetes-list-type": "set",
        "x-kubernetes-validations": [{"rule": "true"}],
    }
    node = parse(raw)
    assert node.items is not None
    assert (node.type, node.nullable, node.default) == ("array", True, [1])
    assert (node.items.rules.format, node.items.rules.minimum) == ("int32", 1)
    assert node.items.rules.exclusive_minimum
    assert node.traits.list_type == "set"
    assert node.has_cel
    assert parse({}) == EMPTY


@pytest.mark.parametrize(
    ("raw", "field", "got", "wanted"),
    [
        ({"type": 1}, "type", "number", "string"),
        ({"nullable": "x"}, "nullable", "string", "bool"),
        ({"maxLength": True}, "maxLength", "bool", "int64"),
        ({"properties": {"a": {"minimum": "x"}}}, "properties.minimum", "string", "float64"),
        ({"items": 3}, "items", "number", "JSONSchemaProps"),
        ({"allOf": [1]}, "allOf", "number", "JSONSchemaProps"),
    ],
)
def test_a_keyword_of_a_wrong_type_is_refused(raw: Obj, field: str, got: str, wanted: str) -> None:
    with pytest.raises(ApiError) as caught:
        parse(raw)
    prefix = "Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema"
    assert caught.value.message == (
        f"json: cannot unmarshal {got} into {prefix}.{field} of type {wanted}"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e5, "100000"),
        (1e6, "1e+06"),
        (123456789.125, "1.23456789125e+08"),
        (1e21, "1e+21"),
        (1e-4, "0.0001"),
        (1e-5, "1e-05"),
        (2**63 - 1, "9223372036854775807"),
        (2**63, "9.223372036854776e+18"),
        (-3.0, "-3"),
    ],
)
def test_a_number_is_printed_as_in_go(value: float, text: str) -> None:
    assert number(value) == text


def test_a_text_is_quoted_as_in_go() -> None:
    text = "é\u200b\x7f\u00a0\u3000\U0001f600\ue000\u00ad"
    assert quote(text) == '"é\\u200b\\x7f\\u00a0\\u3000😀\\ue000\\u00ad"'
