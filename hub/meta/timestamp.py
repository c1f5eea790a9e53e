"""RFC 3339 times as Kubernetes writes them, and the short durations of kubectl's AGE column.

Owns the text forms of ``metav1.Time`` (whole seconds) and ``metav1.MicroTime`` (six digits), both
always in UTC with a ``Z``. Reading the clock is the caller's business. Mirrors apimachinery's
``pkg/apis/meta/v1/{time,micro_time}.go`` and ``pkg/util/duration``.
"""

import datetime as dt
import re

_RFC3339 = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)T(?P<clock>\d\d:\d\d:\d\d)(?:\.(?P<fraction>\d+))?"
    r"(?P<zone>Z|[+-]\d\d:\d\d)",
    re.ASCII,
)
_MINUTE_S, _HOUR_S = 60, 3600
_YEAR_H = 24 * 365


def format_time(moment: dt.datetime) -> str:
    """Return `moment` (aware) as ``2026-11-30T18:00:00Z``; fractions of a second are cut off."""
    return f"{_utc(moment).isoformat(timespec='seconds')}Z"


def format_micro_time(moment: dt.datetime) -> str:
    """Return `moment` (aware) as ``2026-11-30T18:00:00.275774Z``: always six digits."""
    return f"{_utc(moment).isoformat(timespec='microseconds')}Z"


def parse_time(text: str) -> dt.datetime:
    """Return the aware moment of an RFC 3339 text; fraction digits beyond six are cut off.

    As Go's time.Parse, which takes no lower-case ``t`` and ``z``. Raises ValueError, its message
    naming the text and the form wanted.
    """
    found = _RFC3339.fullmatch(text)
    if found is None:
        raise ValueError(f"time {text!r} is not RFC 3339, write it like 2006-01-02T15:04:05Z")
    fraction = (found["fraction"] or "")[:6].ljust(6, "0")
    zone = "+00:00" if found["zone"] == "Z" else found["zone"]
    try:
        moment = dt.datetime.fromisoformat(f"{found['date']}T{found['clock']}.{fraction}{zone}")
        return moment.astimezone(dt.UTC)
    except (ValueError, OverflowError) as e:
        raise ValueError(f"time {text!r} does not exist: {e}") from e


def human_duration(seconds: float) -> str:
    """Return an age as kubectl prints it: two or three significant figures.

    >>> [human_duration(s) for s in (5, 200, 600, 19800, 183600, 2592000, 94608000)]
    ['5s', '3m20s', '10m', '5h30m', '2d3h', '30d', '3y']
    """
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 2 * _MINUTE_S:
        return f"{max(whole, 0)}s"
    minutes, hours = whole // _MINUTE_S, whole // _HOUR_S
    if minutes < 10:
        return _pair(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 24 * 8:
        return _pair(hours // 24, "d", hours % 24, "h")
    if hours < 2 * _YEAR_H:
        return f"{hours // 24}d"
    if hours < 8 * _YEAR_H:
        return _pair(hours // _YEAR_H, "y", hours // 24 % 365, "d")
    return f"{hours // _YEAR_H}y"


def _pair(big: int, big_unit: str, small: int, small_unit: str) -> str:
    return f"{big}{big_unit}{small}{small_unit}" if small else f"{big}{big_unit}"


def _utc(moment: dt.datetime) -> dt.datetime:
    if moment.tzinfo is None:
        raise ValueError("time has no zone, pass an aware datetime")
    return moment.astimezone(dt.UTC).replace(tzinfo=None)
