"""Times as Kubernetes writes them and ages as kubectl prints them."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.meta.timestamp import (
    format_micro_time,
    format_time,
    human_duration,
    parse_time,
)

MOMENT = dt.datetime(2026, 11, 30, 18, 0, 0, 275774, tzinfo=dt.UTC)


def test_a_time_has_seconds_and_a_micro_time_six_digits() -> None:
    assert format_time(MOMENT) == "2026-11-30T18:00:00Z"
    assert format_micro_time(MOMENT) == "2026-11-30T18:00:00.275774Z"
    assert format_micro_time(MOMENT.replace(microsecond=0)) == "2026-11-30T18:00:00.000000Z"


def test_a_time_is_written_in_utc_with_four_digits_of_year() -> None:
    east = dt.timezone(dt.timedelta(hours=2))
    assert format_time(MOMENT.astimezone(east)) == "2026-11-30T18:00:00Z"
    assert format_time(dt.datetime(1, 1, 1, tzinfo=dt.UTC)) == "0001-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "micro"),
    [
        ("2026-11-30T18:00:00Z", 0),
        ("2026-11-30T18:00:00.275774Z", 275774),
        ("2026-11-30T18:00:00.5Z", 500000),
        ("2026-11-30T18:00:00.123456789Z", 123456),
        ("2026-11-30T20:00:00+02:00", 0),
    ],
)
def test_every_rfc_3339_form_is_read(text: str, micro: int) -> None:
    assert parse_time(text) == MOMENT.replace(microsecond=micro)


@pytest.mark.parametrize(
    "text",
    ["", "now", "2026-11-30", "2026-11-30T18:00:00", "2026-11-30 18:00:00Z", "2026-1-1T0:0:0Z",
     "2026-11-30T18:00Z", "2026-11-30T18:00:00.Z", "2026-13-30T18:00:00Z", "2026-02-30T18:00:00Z",
     "2026-11-30T25:00:00Z", "0001-01-01T00:00:00+01:00", "٢026-11-30T18:00:00Z",
     "2026-11-30t18:00:00Z", "2026-11-30T18:00:00z"],
)  # fmt: skip
def test_what_is_not_a_time_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match=r"^time '"):
        parse_time(text)


def test_a_naive_datetime_is_refused() -> None:
    with pytest.raises(ValueError, match="pass an aware datetime"):
        format_time(dt.datetime(2026, 1, 1))  # noqa: DTZ001 - the mistake under test


@given(st.datetimes(timezones=st.just(dt.UTC)))
def test_a_micro_time_reads_back_as_written(moment: dt.datetime) -> None:
    assert parse_time(format_micro_time(moment)) == moment
    assert parse_time(format_time(moment)) == moment.replace(microsecond=0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2.5, "<invalid>"),
        (-1.5, "0s"),
        (-0.5, "0s"),
        (0, "0s"),
        (5.9, "5s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (599, "9m59s"),
        (600, "10m"),
        (179 * 60 + 59, "179m"),
        (3 * 3600, "3h"),
        (5 * 3600 + 30 * 60, "5h30m"),
        (8 * 3600 - 1, "7h59m"),
        (8 * 3600, "8h"),
        (48 * 3600 - 1, "47h"),
        (48 * 3600, "2d"),
        (51 * 3600, "2d3h"),
        (8 * 86400 - 1, "7d23h"),
        (8 * 86400, "8d"),
        (30 * 86400, "30d"),
        (730 * 86400 - 1, "729d"),
        (730 * 86400, "2y"),
        (800 * 86400, "2y70d"),
        (8 * 365 * 86400, "8y"),
        (20.5 * 365 * 86400, "20y"),
    ],
)
def test_an_age_is_printed_as_kubectl_does(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text
