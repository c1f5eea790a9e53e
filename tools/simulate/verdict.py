"""What a status code means to an agent.

Owns one decision: is an answer fine, expected, a matter of waiting, or an error of the hub. Pure.
"""

import enum

_AWAY = frozenset({429, 503, 504})
_EARLY = frozenset({403, 404})
_FINAL = frozenset({400, 401, 422})


class Verdict(enum.Enum):
    """How a session takes an answer."""

    FINE = "fine"
    EXPECTED = "expected"  # the caller named it: a 404 that starts a registration
    CONFLICT = "conflict"  # normal with two writers; read again and retry
    AWAY = "away"  # the hub says it cannot serve now
    EARLY = "early"  # not accepted yet: agents are refused and wait
    ERROR = "error"  # a hub must not answer this


def judge(status: int, *, expected: frozenset[int], is_early: bool) -> Verdict:
    """Return how to take `status`; `is_early` until the agent has once been fully served."""
    if status in expected:
        return Verdict.EXPECTED
    if status in {200, 201}:
        return Verdict.FINE
    if status == 409:
        return Verdict.CONFLICT
    if status in _AWAY:
        return Verdict.AWAY
    if is_early and status in _EARLY:
        return Verdict.EARLY
    return Verdict.ERROR


def is_final(status: int, *, is_admin: bool) -> bool:
    """Whether the same request will be refused again: it is wrong, or made by the wrong person."""
    return status in _FINAL or (is_admin and status == 403)
