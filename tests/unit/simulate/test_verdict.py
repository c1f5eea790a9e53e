"""What an agent makes of a status code."""

import pytest

from tools.simulate.verdict import Verdict, judge

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
