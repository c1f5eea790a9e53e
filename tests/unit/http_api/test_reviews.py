"""Reviews: who am I, and may I."""

import datetime as dt

import pytest

from hub.auth.rbac import Authorizer
from hub.auth.user import User
from hub.http.reviews import review_access, review_self
from hub.meta import Obj
from hub.meta.errors import ApiError

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def test_a_self_review_shows_what_is_there_and_leaves_out_what_is_not() -> None:
    whole = User("u", ("g",), uid="7", extra={"k": ("v", "w")})
    found = review_self({"kind": "SelfSubjectReview"}, whole, NOW)
    assert found["metadata"] == {"creationTimestamp": "2026-01-01T00:00:00Z"}
    assert found["status"]["userInfo"] == {
        "username": "u",
        "uid": "7",
        "groups": ["g"],
        "extra": {"k": ["v", "w"]},
    }
    assert review_self({}, User("u", ()), NOW)["status"]["userInfo"] == {"username": "u"}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"path": "/"}},
    ],
)
def test_a_review_asks_about_one_thing(spec: Obj) -> None:
    with pytest.raises(ApiError) as refused:
        review_access(
            {"kind": "SelfSubjectAccessReview", "spec": spec}, User("u", ()), Authorizer()
        )
    assert refused.value.code == 422


def test_a_review_of_another_uses_that_ones_groups() -> None:
    spec: Obj = {"user": "x", "groups": ["system:masters"], "resourceAttributes": {"verb": "get"}}
    asked = {"kind": "SubjectAccessReview", "spec": spec}
    assert review_access(asked, User("u", ()), Authorizer())["status"]["allowed"] is True
    own = {**asked, "kind": "SelfSubjectAccessReview"}
    assert review_access(own, User("u", ()), Authorizer())["status"]["allowed"] is False
