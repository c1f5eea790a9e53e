"""The ``timeout`` of a request: how long the client will wait for the answer.

Mirrors k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go: never more than a minute, and
nothing for watches, which have timeoutSeconds. Only a request that names a timeout pays for one;
nothing a request waits for in this hub is without a bound of its own.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hub.meta.errors import bad_request, timed_out

LONGEST_S = 60.0
_UNITS_S = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0}
_UNITS_S |= {"m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_LONGEST_TEXT = 64


def parse_duration(text: str) -> float:
    """Return the seconds of a Go duration such as ``1m30s``; ValueError for anything else.

    >>> parse_duration("1m1.5s"), parse_duration("-20ms"), parse_duration("0")
    (61.5, -0.02, 0.0)
    """
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    sign = -1.0 if text[:1] == "-" else 1.0
    if unsigned == "0":
        return 0.0
    parts = list(_PART.finditer(unsigned)) if len(unsigned) <= _LONGEST_TEXT else []
    if not parts or "".join(part[0] for part in parts) != unsigned:
        raise ValueError(f'time: invalid duration "{text[:_LONGEST_TEXT]}"')
    return sign * sum(float(part[1]) * _UNITS_S[part[2]] for part in parts)


def read_timeout(asked: str) -> float:
    """Return the seconds of a query parameter `timeout`; raises ApiError: 400 for no duration."""
    try:
        return parse_duration(asked)
    except ValueError as error:
        raise bad_request(f"invalid timeout specified in the request URL - {error}") from None


def bound_s(asked: str) -> float:
    """Return how long the query parameter `timeout` lets a request take; raises ApiError: 400."""
    seconds = read_timeout(asked)
    return min(seconds, LONGEST_S) if seconds > 0 else LONGEST_S


@asynccontextmanager
async def within(asked: str) -> AsyncIterator[None]:
    """Run a block for as long as the query parameter `timeout` allows.

    What the block has begun is not undone. Raises ApiError: 400 for what is no duration, 504 when
    the time is over.
    """
    scope = asyncio.timeout(bound_s(asked))
    try:
        async with scope:
            yield
    except TimeoutError as error:
        if not scope.expired():
            raise
        raise timed_out(
            "request did not complete within requested timeout - context deadline exceeded"
        ) from error
