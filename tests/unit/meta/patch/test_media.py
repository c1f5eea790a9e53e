"""Media types of patches: which are taken by which kinds, and how the others are refused."""

import pytest

from hub.meta.errors import ApiError
from hub.meta.patch import PatchSchema, find_schema, parse_patch

BUILT_IN = find_schema("v1", "ConfigMap")
JSON, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
UNKNOWN = "the body of the request was in an unknown format - accepted media types include: "


@pytest.mark.parametrize("schema", [BUILT_IN, None])
def test_json_and_merge_patches_are_for_all_kinds(schema: PatchSchema | None) -> None:
    target = {"a": 1}
    added = parse_patch(JSON, b'[{"op":"add","path":"/b","value":2}]', schema)
    assert added(target) == {"a": 1, "b": 2}
    merged = parse_patch(f"{MERGE.upper()}; charset=utf-8", b'{"a":null,"c":[1]}', schema)
    assert merged(target) == {"c": [1]}
    assert target == {"a": 1}


def test_strategic_patches_are_for_built_in_kinds() -> None:
    target = {"metadata": {"finalizers": ["a"]}}
    patch = parse_patch(STRATEGIC, b'{"metadata":{"finalizers":["b"]}}', BUILT_IN)
    assert patch(target) == {"metadata": {"finalizers": ["b", "a"]}}
    assert refused(STRATEGIC, None) == (
        415,
        UNKNOWN + f"{JSON}, {MERGE}, application/apply-patch+yaml",
    )


def refused(
    content_type: str | None, schema: PatchSchema | None, data: bytes = b"{}"
) -> tuple[int, str]:
    with pytest.raises(ApiError) as caught:
        parse_patch(content_type, data, schema)
    return caught.value.code, caught.value.message


@pytest.mark.parametrize("content_type", [None, "", "application/json", "text/plain"])
def test_other_types_are_415_in_kubes_words(content_type: str | None) -> None:
    everything = f"{JSON}, {MERGE}, {STRATEGIC}, application/apply-patch+yaml"
    assert refused(content_type, BUILT_IN) == (415, UNKNOWN + everything)


@pytest.mark.parametrize("form", ["yaml", "cbor"])
def test_server_side_apply_is_415_and_says_so(form: str) -> None:
    reason = "server-side apply is not served yet: " + UNKNOWN
    apply = f"application/apply-patch+{form}"
    assert refused(apply, BUILT_IN) == (415, f"{reason}{JSON}, {MERGE}, {STRATEGIC}")
    assert refused(apply, None) == (415, f"{reason}{JSON}, {MERGE}")


@pytest.mark.parametrize("content_type", [JSON, MERGE, STRATEGIC])
@pytest.mark.parametrize("data", [b"", b"{", b"a: b", b"[" * 3000 + b"]" * 3000])
def test_bytes_that_are_no_json_are_400(content_type: str, data: bytes) -> None:
    code, message = refused(content_type, BUILT_IN, data)
    assert code == 400
    assert message.startswith("error decoding patch: ")
    assert "version/kind" not in message
