"""What to do about damage: never the command that has just found it."""

import pytest

from snapshot import errors


@pytest.mark.parametrize(
    "kind",
    [
        errors.IntegrityError,
        errors.SegmentCorrupt,
        errors.ChainBroken,
        errors.HeadCorrupt,
        errors.StateMismatch,
    ],
)
def test_a_damaged_prefix_has_a_hint_that_leads_on(kind: type[errors.IntegrityError]) -> None:
    hint = kind("x", op="verify").hint
    assert hint
    assert "hub-restore verify" not in hint
