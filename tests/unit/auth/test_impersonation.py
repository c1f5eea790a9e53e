"""Whom a request may act as: the parts that the wire tests do not reach."""

import pytest

from hub.auth.impersonation import impersonate, is_impersonating
from hub.auth.rbac import Authorizer
from hub.auth.user import User
from hub.meta.errors import ApiError

ROOT = User("root", ("system:masters",), uid="1", extra={"own": ("x",)})


def act(**headers: str) -> User:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return impersonate(ROOT, {"accept": "*/*", **named}, Authorizer())


def test_only_impersonation_headers_count() -> None:
    assert not is_impersonating({"accept": "*/*", "x-impersonate-user": "x"})
    assert is_impersonating({"impersonate-group": "x"})
    assert is_impersonating({"impersonate-anything": "x"})


def test_headers_that_ask_for_nothing_change_nothing() -> None:
    assert act() is ROOT
    assert act(impersonate_user="") is ROOT
    assert act(impersonate_anything="x") is ROOT


@pytest.mark.parametrize(
    ("groups", "found"),
    [
        ("", ("", "system:authenticated")),
        ("system:authenticated", ("system:authenticated",)),
        ("a\nsystem:unauthenticated", ("a", "system:unauthenticated")),
        ("a\nb, c", ("a", "b, c", "system:authenticated")),
    ],
)
def test_groups_are_kept_apart(groups: str, found: tuple[str, ...]) -> None:
    assert act(impersonate_user="u", impersonate_group=groups).groups == found


def test_anonymous_is_never_authenticated() -> None:
    assert act(impersonate_user="system:anonymous").groups == ("system:unauthenticated",)
    groups = "system:unauthenticated"
    assert act(impersonate_user="system:anonymous", impersonate_group=groups).groups == (groups,)


@pytest.mark.parametrize(
    ("name", "is_account"),
    [
        ("system:serviceaccount:ns:a.b", True),
        ("system:serviceaccount:ns:", False),
        ("system:serviceaccount::a", False),
        ("system:serviceaccount:ns:a:b", False),
        ("system:serviceaccount:ns:A", False),
        ("system:serviceaccount:n.s:a", False),
        ("system:serviceaccounts:ns:a", False),
    ],
)
def test_only_well_formed_names_are_service_accounts(name: str, is_account: bool) -> None:
    found = act(impersonate_user=name)
    assert found.name == name
    assert ("system:serviceaccounts" in found.groups) is is_account
    with pytest.raises(ApiError) as refused:
        impersonate(User("u"), {"impersonate-user": name}, Authorizer())
    wanted = "serviceaccounts" if is_account else "users"
    assert refused.value.resource is not None
    assert refused.value.resource.resource == wanted


def test_extra_keys_are_decoded_and_values_collected() -> None:
    headers = {
        "impersonate-user": "u",
        "impersonate-extra-a%2fb": "x\ny",
        "impersonate-extra-%zz": "z",
    }
    found = impersonate(ROOT, headers, Authorizer())
    assert found.extra == {"a/b": ("x", "y"), "%zz": ("z",)}
    assert (found.uid, found.name) == ("", "u")


def test_text_that_is_no_utf8_is_told_apart_from_text_that_is() -> None:
    assert act(impersonate_user="ž".encode().decode("latin-1")).name == "ž"
    assert act(impersonate_user="\xff").name == "\N{REPLACEMENT CHARACTER}"
