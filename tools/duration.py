"""Spans of time as the flags of every command take them."""

import re

import click

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def parse_duration(text: str) -> float:
    """Return the seconds of a span as Go writes it, with days too; a bare number is of seconds.

    >>> parse_duration("1m30s")
    90.0
    """
    if _NUMBER.fullmatch(text):
        return float(text)
    parts: list[tuple[str, str]] = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} must be like 60s, 5m, 1h30m or 1d")
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts)


def duration(text: str) -> float:
    """Return the seconds of a flag's value, or end as click does, saying how it is written."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
