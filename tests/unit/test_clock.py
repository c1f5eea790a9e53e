"""The machine's clock and its randomness."""

import uuid

from hub.clock import SystemClock


def test_a_uid_is_a_version_4_uuid_in_its_canonical_form() -> None:
    clock = SystemClock()
    drawn = [clock.uid() for _ in range(1000)]
    assert len(set(drawn)) == 1000
    for text in drawn:
        parsed = uuid.UUID(text)
        assert (str(parsed), parsed.version, parsed.variant) == (text, 4, uuid.RFC_4122)
