"""Quantiles, verdicts and the report."""

import dataclasses

import pytest

from tools.simulate.figures import quantile
from tools.simulate.report import Outcome, render_report, render_summary
from tools.simulate.tally import MAX_SAMPLES, Tally

_GOOD = Outcome(
    clusters=2,
    works_each=1,
    works_done=2,
    ready_after_s=[1.5, 0.5],
    steady_s=10.0,
    wanted_s=10.0,
    is_interrupted=False,
    seconds=12.0,
    cpu_s=1.0,
)


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 1), (0.5, 50), (0.95, 95), (0.99, 99), (1.0, 100)]
)
def test_a_quantile_is_the_value_that_the_share_does_not_exceed(
    share: float, expected: int
) -> None:
    assert quantile([float(n) for n in range(1, 101)], share) == expected


def test_a_run_with_nothing_wrong_passes() -> None:
    report = render_report(_GOOD, Tally())
    assert report["passed"]
    assert report["failures"] == []
    assert report["available_after_seconds"] == {"50%": 0.5, "95%": 1.5, "99%": 1.5, "100%": 1.5}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"ready_after_s": [1.0]}, "1 of 2 clusters did not become available"),
        ({"lapses": {"a": "Unknown"}}, "1 clusters were seen not available"),
        ({"unavailable_at_end": ["a"]}, "1 clusters are not available at the end"),
        ({"is_interrupted": True, "steady_s": 3.0}, "interrupted after 3.0 of 10.0"),
        ({"problem": "cannot create a token: 403"}, "cannot create a token: 403"),
    ],
)
def test_whatever_is_wrong_fails_the_run(change: dict[str, object], expected: str) -> None:
    outcome = dataclasses.replace(_GOOD, **change)  # type: ignore[arg-type]  # one field of each type
    report = render_report(outcome, Tally())
    assert not report["passed"]
    assert expected in report["failures"][0]
    assert expected in render_summary(report)


def test_one_protocol_error_fails_the_run_and_samples_are_bounded() -> None:
    tally = Tally()
    for number in range(MAX_SAMPLES + 5):
        tally.protocol_error(f"error {number}")
    report = render_report(_GOOD, tally)
    assert report["failures"] == [f"{MAX_SAMPLES + 5} protocol errors"]
    assert len(report["protocol_error_samples"]) == MAX_SAMPLES


def test_shares_that_were_never_reached_have_no_time() -> None:
    outcome = dataclasses.replace(_GOOD, clusters=4, ready_after_s=[2.0, 1.0])
    times = render_report(outcome, Tally())["available_after_seconds"]
    assert times == {"50%": 2.0, "95%": None, "99%": None, "100%": None}


def test_requests_are_counted_by_resource_verb_and_status() -> None:
    tally = Tally()
    tally.answered("get", "leases", 200, 0.002)
    tally.answered("get", "leases", 200, 0.004)
    tally.unanswered("get", "leases")
    report = render_report(_GOOD, tally)
    assert report["requests"] == {"leases": {"get": {"200": 2, "none": 1}}}
    assert report["latency_ms"]["get"] == {"count": 2, "p50": 2, "p95": 4, "p99": 4, "max": 4}


def test_a_share_that_was_never_reached_is_called_so() -> None:
    report = render_report(dataclasses.replace(_GOOD, ready_after_s=[0.5]), Tally())
    assert report["available_after_seconds"] == {"50%": 0.5, "95%": None, "99%": None, "100%": None}
    assert "times    50% after 0.5 s, 95% never, 99% never, 100% never;" in render_summary(report)


def test_works_beyond_those_asked_for_are_told_apart() -> None:
    report = render_report(dataclasses.replace(_GOOD, works_more=1), Tally())
    assert (report["works"], report["works_done"], report["works_more"]) == (2, 2, 1)
    said = render_summary(report).splitlines()
    assert "works    2/2 applied and available, and 1 more that were there" in said
    assert "more" not in render_summary(render_report(_GOOD, Tally()))
