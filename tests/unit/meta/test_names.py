"""Names and labels in apimachinery's words; generated names."""

import itertools
import random
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.meta.names import (
    annotation_causes,
    generate_name,
    label_causes,
    label_key_errors,
    label_name_errors,
    label_value_errors,
    namespace_errors,
    path_segment_errors,
    subdomain_errors,
)


@pytest.mark.parametrize("name", ["a", "a-b", "0a", "a" * 63])
def test_a_dns_label_names_a_namespace(name: str) -> None:
    assert namespace_errors(name) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.b", "must not contain dots"),
        ("a" * 64, "must be no more than 63 bytes"),
        (
            "A",
            (
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters"
                " or '-', and must start and end with an alphanumeric character"
                " (e.g. 'my-name',  or '123-abc', regex used for validation is"
                " '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            ),
        ),
    ],
)
def test_a_bad_dns_label_is_explained(name: str, message: str) -> None:
    assert label_name_errors(name) == [message]


@pytest.mark.parametrize("name", ["", "-", "a-", "a\n", "é", "a..b", ".a", "a_b"])
def test_what_is_no_dns_name_is_refused_in_both_forms(name: str) -> None:
    assert label_name_errors(name)
    assert subdomain_errors(name)


def test_a_subdomain_may_have_dots_and_253_bytes() -> None:
    assert subdomain_errors(".".join(["a" * 62] * 4)) == []
    assert subdomain_errors("a" * 254) == ["must be no more than 253 bytes"]
    assert subdomain_errors("A") == [
        (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters,"
            " '-' or '.', and must start and end with an alphanumeric character"
            " (e.g. 'example.com', regex used for validation is"
            r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        )
    ]


def test_a_generate_name_may_end_with_a_dash() -> None:
    assert label_name_errors("cluster-", prefix=True) == []
    assert subdomain_errors("a.b-", prefix=True) == []
    assert subdomain_errors("-", prefix=True)
    assert path_segment_errors("..", prefix=True) == []


def test_an_rbac_name_only_has_to_fit_into_a_path() -> None:
    assert path_segment_errors("system:Node Proxier é") == []
    assert path_segment_errors("..") == ["may not be '..'"]
    assert path_segment_errors("a/b%") == ["may not contain '/'", "may not contain '%'"]


@pytest.mark.parametrize("key", ["a", "A_b.c-9", "example.com/Name", "a" * 63])
def test_a_good_label_key_passes(key: str) -> None:
    assert label_key_errors(key) == []


@pytest.mark.parametrize(
    ("key", "starts"),
    [
        ("a/b/c", ["a valid label key must consist of"]),
        ("/a", ["prefix part must be non-empty"]),
        ("A/a", ["prefix part a lowercase RFC 1123 subdomain must"]),
        ("a/", ["name part must be non-empty", "name part must consist of alphanumeric"]),
        ("a" * 64, ["name part must be no more than 63 bytes"]),
        ("-a", ["name part must consist of alphanumeric"]),
    ],
)
def test_a_bad_label_key_is_explained(key: str, starts: list[str]) -> None:
    errors = label_key_errors(key)
    assert len(errors) == len(starts)
    assert all(e.startswith(s) for e, s in zip(errors, starts, strict=True))


def test_a_label_value_is_empty_or_a_name() -> None:
    assert label_value_errors("") == []
    assert label_value_errors("A.b_c-9") == []
    assert label_value_errors("-") == [
        (
            "a valid label must be an empty string or consist of alphanumeric characters,"
            " '-', '_' or '.', and must start and end with an alphanumeric character (e.g."
            " 'MyValue',  or"
            " 'my_value',  or '12345', regex used for validation is"
            " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
        )
    ]
    assert label_value_errors("a" * 64) == ["must be no more than 63 bytes"]


def test_causes_name_the_field_and_the_value() -> None:
    key, value = label_causes({"-a": "b/"}, "metadata.labels")
    assert (key.reason, key.field) == ("FieldValueInvalid", "metadata.labels")
    assert key.message.startswith('Invalid value: "-a": name part must')
    assert value.message.startswith('Invalid value: "b/": a valid label must')
    assert label_causes({"a": "b"}, "metadata.labels") == []


def test_annotations_may_be_large_but_not_without_bound() -> None:
    assert annotation_causes({"Example.com/A": "any text\n"}, "metadata.annotations") == []
    (cause,) = annotation_causes({"a": "x" * 262144}, "metadata.annotations")
    assert cause.reason == "FieldValueTooLong"


def test_a_generated_name_has_five_letters_without_vowels() -> None:
    source = random.Random(7)
    name = generate_name("cluster-", source.randbytes)
    assert re.fullmatch("cluster-[bcdfghjklmnpqrstvwxz2456789]{5}", name)


@given(st.text(alphabet="ab-", max_size=80))
def test_a_generated_name_fits_a_label(base: str) -> None:
    name = generate_name(base, random.Random(1).randbytes)
    assert len(name) == min(len(base), 58) + 5
    assert name.startswith(base[:58])


def test_every_letter_of_a_generated_name_is_equally_likely() -> None:
    # all byte values equally often in, so all letters equally often out
    endless = itertools.cycle(range(256))
    names = [
        generate_name("", lambda n: bytes(next(endless) for _ in range(n))) for _ in range(243)
    ]
    assert set(Counter("".join(names)).values()) == {45}
