"""Delays grow, stay bounded and are forgotten."""

import random

from tools.simulate.backoff import Backoff


class _NoJitter(random.Random):
    def random(self) -> float:
        return 0.0


def test_delays_double_up_to_the_cap() -> None:
    backoff, now_s, delays = Backoff(_NoJitter()), 100.0, []
    for _ in range(8):
        delays.append(backoff.next_s(now_s))
        now_s += delays[-1]
    assert delays == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


def test_jitter_stretches_a_delay_by_at_most_its_own_length() -> None:
    rng = random.Random(7)
    delays = [Backoff(rng).next_s(0.0) for _ in range(1000)]
    assert min(delays) >= 0.8
    assert max(delays) < 1.6
    assert max(delays) - min(delays) > 0.7


def test_a_quiet_time_brings_back_the_shortest_delay() -> None:
    backoff = Backoff(_NoJitter())
    assert [backoff.next_s(0.0), backoff.next_s(1.0), backoff.next_s(3.0)] == [0.8, 1.6, 3.2]
    assert backoff.next_s(3.0 + 3.2 + 121.0) == 0.8
