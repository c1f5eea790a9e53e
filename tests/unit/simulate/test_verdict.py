"""What an agent makes of a status code."""

import pytest

from tools.simulate.verdict import Verdict, is_final, judge

_NONE: frozenset[int] = frozenset()


@pytest.mark.parametrize(
    ("status", "is_early", "verdict"),
    [
        (200, False, Verdict.FINE),
        (201, True, Verdict.FINE),
        (409, False, Verdict.CONFLICT),
        (429, False, Verdict.AWAY),
        (503, False, Verdict.AWAY),
        (504, False, Verdict.AWAY),
        (403, True, Verdict.EARLY),
        (404, True, Verdict.EARLY),
        (403, False, Verdict.ERROR),
        (404, False, Verdict.ERROR),
        (401, True, Verdict.ERROR),
        (415, True, Verdict.ERROR),
        (422, True, Verdict.ERROR),
        (410, False, Verdict.ERROR),
        (500, False, Verdict.ERROR),
    ],
)
def test_a_status_is_judged_by_when_it_comes(status: int, is_early: bool, verdict: Verdict) -> None:
    assert judge(status, expected=_NONE, is_early=is_early) is verdict


def test_what_the_caller_expects_is_no_error() -> None:
    assert judge(404, expected=frozenset({404}), is_early=False) is Verdict.EXPECTED


@pytest.mark.parametrize(
    ("status", "of_agent", "of_admin"),
    [
        (400, True, True),
        (401, True, True),
        (403, False, True),
        (404, False, False),
        (409, False, False),
        (422, True, True),
        (429, False, False),
        (500, False, False),
        (503, False, False),
    ],
)
def test_what_stays_refused_depends_on_who_asks(
    status: int, of_agent: bool, of_admin: bool
) -> None:
    assert is_final(status, is_admin=False) is of_agent
    assert is_final(status, is_admin=True) is of_admin
