"""The media type of a body decides how it is read."""

import pytest

from hub.meta.body import decode_body
from hub.meta.errors import ApiError
from hub.meta.protobuf import encode_envelope

NAMESPACE = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "n"}}


@pytest.mark.parametrize(
    ("content_type", "data"),
    [
        (None, b'{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"n"}}'),
        ("", b'{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"n"}}'),
        ("application/json", b'{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"n"}}'),
        (
            "Application/JSON; charset=utf-8",
            b'{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"n"}}',
        ),
        ("application/yaml", b"kind: Namespace\napiVersion: v1\nmetadata: {name: 'n'}"),
    ],
)
def test_json_and_yaml_are_read_by_their_media_type(content_type: str | None, data: bytes) -> None:
    assert decode_body(content_type, data, accepts_protobuf=False) == NAMESPACE


def test_an_unquoted_n_is_false_in_yaml_as_go_reads_it() -> None:
    assert decode_body("application/yaml", b"a: n", accepts_protobuf=False) == {"a": False}


def test_protobuf_is_read_where_it_is_accepted() -> None:
    media_type = "application/vnd.kubernetes.protobuf"
    data = encode_envelope(NAMESPACE)
    read = decode_body(media_type, data, accepts_protobuf=True)
    assert read["metadata"] == {"name": "n"}
    with pytest.raises(ApiError) as caught:
        decode_body(media_type, data, accepts_protobuf=False)
    assert caught.value.code == 415
    assert caught.value.message == (
        "the body of the request was in an unknown format - accepted media types include:"
        " application/json, application/yaml"
    )


def test_another_media_type_is_told_what_is_read() -> None:
    with pytest.raises(ApiError) as caught:
        decode_body("text/plain", b"{}", accepts_protobuf=True)
    assert caught.value.reason == "UnsupportedMediaType"
    assert caught.value.message.endswith(
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )
