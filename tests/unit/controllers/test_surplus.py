"""Which requests of a group go: never the one that is waited for, never too late."""

import datetime as dt
import random

from hub.controllers.surplus import KEPT, THRESHOLD, Request, surplus

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def request(
    name: str, age_s: float, *, agent: str = "a1", decided_s: float | None = None
) -> Request:
    """One request, made `age_s` ago and decided `decided_s` ago."""
    return Request(
        name=name,
        identity=("u", "s", agent),
        created=NOW - dt.timedelta(seconds=age_s),
        decided=None if decided_s is None else NOW - dt.timedelta(seconds=decided_s),
        is_finished=decided_s is not None,
    )


def test_few_requests_stay_whatever_they_are() -> None:
    group = [request(str(n), 9000 - n, decided_s=8000) for n in range(KEPT)]
    assert surplus(group, NOW) == []


def test_superseded_requests_go_first_and_oldest_first() -> None:
    group = [request(str(n), 100 - n) for n in range(8)]
    assert surplus(group, NOW) == ["0", "1", "2"]


def test_the_newest_of_each_identity_outlasts_older_ones_of_others() -> None:
    group = [request("old", 5000, agent="a0"), *(request(str(n), 100 - n) for n in range(6))]
    assert surplus(group, NOW) == ["0", "1"]


def test_an_issued_request_is_kept_until_its_agent_has_had_time_to_fetch_it() -> None:
    group = [request(str(n), 100 - n, agent=str(n), decided_s=90) for n in range(7)]
    assert surplus(group, NOW) == []
    assert surplus(group, NOW + dt.timedelta(seconds=600)) == ["0", "1"]


def test_open_requests_of_many_identities_go_only_before_the_threshold_is_met() -> None:
    group = [request(str(n), 100 - n, agent=str(n)) for n in range(7)]
    assert surplus(group, NOW) == []
    crowd = [request(f"{n:02}", 100 - n, agent=str(n)) for n in range(30)]
    assert surplus(crowd, NOW) == [f"{n:02}" for n in range(23)]


def test_of_two_made_in_one_second_the_undecided_is_the_newer() -> None:
    group = [request("open", 50), request("denied", 50, decided_s=49)]
    group += [request(str(n), 100) for n in range(5)]
    assert "open" not in surplus(group, NOW)


def test_whatever_the_group_the_newest_stays_and_the_agent_is_never_stopped() -> None:
    draw = random.Random(11)
    for _ in range(2000):
        ages = draw.sample(range(100_000), draw.randrange(40))
        group = [
            request(
                str(n),
                age,
                agent=str(draw.randrange(6)),
                decided_s=draw.choice((None, draw.randrange(age + 1))),
            )
            for n, age in enumerate(ages)
        ]
        going = surplus(group, NOW)
        assert len(going) == len(set(going))
        assert len(group) - len(going) < THRESHOLD - 1
        assert len(group) - len(going) >= min(KEPT, len(group))
        newest = sorted(group, key=lambda r: r.created)[-3:]
        latest = {r.identity: r.name for r in sorted(group, key=lambda r: r.created)}
        assert not {r.name for r in newest if latest[r.identity] == r.name} & set(going)
