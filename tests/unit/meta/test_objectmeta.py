"""Types of the parts that every object has."""

import re

import pytest

from hub.meta import Obj
from hub.meta.body import decode_body
from hub.meta.codec.json import encode
from hub.meta.errors import ApiError
from hub.meta.objectmeta import check_types


@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"metadata": None},
        {"apiVersion": "v1", "kind": "K", "metadata": {}},
        {
            "metadata": {
                "name": "n",
                "generation": 1,
                "creationTimestamp": None,
                "labels": {"a": "b"},
                "annotations": None,
                "finalizers": ["f"],
                "ownerReferences": [{}],
                "managedFields": [],
                "unknown": 1,
            },
            "spec": [],
        },
    ],
)
def test_right_types_and_nulls_pass(obj: Obj) -> None:
    check_types(obj)


@pytest.mark.parametrize(
    ("obj", "problem"),
    [
        ({"kind": 1}, "number into Go struct field kind of type string"),
        ({"apiVersion": []}, "array into Go struct field apiVersion of type string"),
        ({"metadata": "x"}, "string into Go struct field metadata of type object"),
        ({"metadata": {"name": 1}}, "number into Go struct field ObjectMeta.metadata.name of type"),
        ({"metadata": {"generation": "1"}}, "string into Go struct field ObjectMeta.metadata.gen"),
        ({"metadata": {"generation": True}}, "bool into Go struct field ObjectMeta.metadata.gen"),
        ({"metadata": {"labels": []}}, "array into Go struct field ObjectMeta.metadata.labels of"),
        ({"metadata": {"labels": {"a": 1}}}, "number into Go struct field ObjectMeta.metadata.la"),
        ({"metadata": {"annotations": {"a": None}}}, "null into Go struct field ObjectMeta.metad"),
        ({"metadata": {"finalizers": {}}}, "object into Go struct field ObjectMeta.metadata.fin"),
        ({"metadata": {"finalizers": [1]}}, "number into Go struct field ObjectMeta.metadata.fi"),
        ({"metadata": {"ownerReferences": [""]}}, "string into Go struct field ObjectMeta.metada"),
    ],
)
def test_a_wrong_type_is_a_400_in_gos_words(obj: Obj, problem: str) -> None:
    with pytest.raises(ApiError, match=re.escape(f"json: cannot unmarshal {problem}")) as caught:
        decode_body(None, encode(obj), accepts_protobuf=False)
    assert caught.value.code == 400
