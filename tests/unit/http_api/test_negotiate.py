"""Which form an answer takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.http.negotiate import Form, choose_form, parse_accept
from hub.meta.errors import ApiError

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
KUBECTL = f"{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "is_list", "form"),
    [
        (None, False, Form.OBJECT),
        ("", True, Form.OBJECT),
        ("*/*", True, Form.OBJECT),
        ("application/*", False, Form.OBJECT),
        ("application/json", False, Form.OBJECT),
        ("APPLICATION/JSON", False, Form.OBJECT),
        ("application/json;charset=utf-8", False, Form.OBJECT),
        ("application/vnd.kubernetes.protobuf, application/json", False, Form.OBJECT),
        (KUBECTL, True, Form.TABLE),
        (f"application/json;as=Table;v=v1beta1;g=meta.k8s.io,{TABLE}", True, Form.TABLE),
        (f"application/json;q=0.1,{TABLE};q=0.9", True, Form.TABLE),
        (f"{TABLE};q=0.1,application/json", True, Form.OBJECT),
        (PARTIAL, False, Form.METADATA),
        (LIST, True, Form.METADATA),
        (f"{PARTIAL},application/json", True, Form.OBJECT),
        (
            f"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList,{LIST}",
            True,
            Form.METADATA,
        ),
    ],
)
def test_the_first_form_that_can_be_written_is_taken(
    accept: str | None, *, is_list: bool, form: Form
) -> None:
    assert choose_form(accept, is_list=is_list) is form


@pytest.mark.parametrize(
    ("accept", "is_list"),
    [
        ("text/html", False),
        ("application/yaml", False),
        ("application/vnd.kubernetes.protobuf", True),
        (PARTIAL, True),
        (LIST, False),
        ("application/json;as=Table;v=v1;g=other", True),
        ("application/json;as=Chair;v=v1;g=meta.k8s.io", True),
    ],
)
def test_what_can_not_be_written_is_406(accept: str, *, is_list: bool) -> None:
    with pytest.raises(ApiError) as refused:
        choose_form(accept, is_list=is_list)
    assert refused.value.code == 406


def test_preferences_order_and_equals_keep_their_place() -> None:
    header = 'a/b;q=0.2, c/d ;x="1";q=0.9,e/f,g/h;q=nonsense,'
    found = [(a.type_, a.parameters) for a in parse_accept(header)]
    assert found == [("e/f", {}), ("c/d", {"x": "1"}), ("a/b", {}), ("g/h", {})]


@given(st.text(max_size=80))
def test_no_header_breaks_the_parser(header: str) -> None:
    for accepted in parse_accept(header):
        assert accepted.type_
