"""Quantiles, rates and latencies, apart for the time before all was in order and after it."""

from tools.simulate.figures import (
    deliveries,
    latencies,
    lease_puts,
    refusals,
    request_rates,
    spread,
)
from tools.simulate.report import Outcome, render_report, render_summary
from tools.simulate.tally import Tally


def tally() -> Tally:
    """Two renewals while joining, then three, one work delivered in each time."""
    made = Tally()
    for ms in (10, 30):
        made.answered("update", "leases", 200, ms / 1000)
    made.answered("get", "leases", 404, 0.001)
    made.deliveries_s.append(0.5)
    made.mark_steady()
    for ms in (1, 2, 3):
        made.answered("update", "leases", 200, ms / 1000)
    made.answered("update", "managedclusters", 409, 0.004)
    made.unanswered("get", "leases")
    made.deliveries_s.append(0.005)
    return made


def test_lease_puts_and_deliveries_are_told_apart_by_phase() -> None:
    puts = lease_puts(tally())
    assert puts["joining"] == {"count": 2, "p50": 10, "p95": 30, "p99": 30, "max": 30}
    assert puts["steady"] == {"count": 3, "p50": 2, "p95": 3, "p99": 3, "max": 3}
    assert deliveries(tally())["joining"]["p99"] == 500
    assert deliveries(tally())["steady"]["p99"] == 5


def test_a_run_that_never_was_steady_has_all_of_it_under_joining() -> None:
    made = Tally()
    made.answered("update", "leases", 200, 0.01)
    assert lease_puts(made)["joining"]["count"] == 1
    assert lease_puts(made)["steady"] == {"count": 0, "p50": 0, "p95": 0, "p99": 0, "max": 0}
    assert lease_puts(Tally())["joining"]["count"] == 0


def test_rates_are_by_resource_and_verb() -> None:
    rates = request_rates(tally(), joining_s=2.0, steady_s=10.0)
    assert rates["joining"] == {"leases": {"get": 0.5, "update": 1.0}}
    assert rates["steady"] == {
        "leases": {"get": 0.1, "update": 0.3},
        "managedclusters": {"update": 0.1},
    }
    assert request_rates(Tally(), joining_s=0.0, steady_s=0.0) == {"joining": {}, "steady": {}}


def test_a_verb_has_the_latencies_of_all_its_resources() -> None:
    assert latencies(tally())["update"]["count"] == 6
    assert latencies(tally())["update"]["max"] == 30


def test_what_was_no_success_is_counted_by_kind() -> None:
    assert refusals(tally().requests) == {
        "get leases 404": 1,
        "get leases none": 1,
        "update managedclusters 409": 1,
    }


def test_nothing_has_a_spread_of_nothing() -> None:
    assert spread([]) == {"count": 0, "p50": 0, "p95": 0, "p99": 0, "max": 0}


def test_the_summary_tells_of_all_that_was_measured() -> None:
    made = tally()
    made.outages_s.append(4.25)
    outcome = Outcome(
        clusters=1,
        joined=1,
        works_each=1,
        works_done=1,
        addons_each=2,
        addons_done=1,
        ready_after_s=[2.0],
        available_within_s=[1.5],
        steady_s=10.0,
        wanted_s=10.0,
        is_interrupted=False,
        seconds=12.0,
        cpu_s=1.0,
        unlabelled_at_end=["c1"],
    )
    report = render_report(outcome, made)
    assert report["failures"] == ["1 clusters lack an add-on's label at the end"]
    said = render_summary(report)
    for line in (
        "add-ons  1/2 available",
        "join     first request to Available p50 1.5 p95 1.5 p99 1.5 max 1.5 s (1)",
        "lease    PUT, steady p50 2.0 p95 3.0 p99 3.0 max 3.0 ms (3)",
        "deliver  new work, joining p50 500.0",
        "rate     joining: 1.5/s: 1.0 update leases, 0.5 get leases",
        "outage   until all watches are back p50 4.25 p95 4.25 p99 4.25 max 4.25 s (1)",
        "refused  get leases none: 1",
    ):
        assert line in said
