"""The arbiter's table, every row."""

from dataclasses import replace

import msgspec
import pytest

from snapshot.arbiter import Continue, Create, Local, Refuse, TakeClaim, decide
from snapshot.head import Head, Writer
from snapshot.local import Claim, LocalState
from tests.unit.snapshot.support import HASH, HUB_ID, full_ref, head, ref

OTHER_HASH = "22" * 32

HEAD = head(
    full=full_ref(10),
    tail=(ref(10, 20, seq=2),),
    epoch=3,
    writer=Writer(dir="d", session="s1", host="h", pid=1),
)
STATE = LocalState(dir_id="d", hub_id=HUB_ID, sessions=("s1",), epoch=3, seq=2, rev=20, chain=HASH)
OWN = Local(dir_id="d", rev=20, state_hash=HASH, state=STATE, claim=None)
CLAIM = Claim(
    hub_id=HUB_ID,
    epoch=3,
    seq=2,
    rev=20,
    chain=HASH,
    state_hash=HASH,
    object_store="s3://b/p",
    restored="2026-05-04T03:02:01Z",
)
RESTORED = Local(
    dir_id="new",
    rev=20,
    state_hash=HASH,
    state=LocalState(dir_id="new", hub_id=HUB_ID),
    claim=CLAIM,
)


def state(**facts: object) -> LocalState:
    return msgspec.structs.replace(STATE, **facts)


def changed(**facts: object) -> Head:
    return msgspec.structs.replace(HEAD, **facts)


def claim(**facts: object) -> Claim:
    return msgspec.structs.replace(CLAIM, **facts)


OTHER_WRITER = Writer(dir="e", session="s9", host="h", pid=9)
NEVER_SHIPPED = replace(OWN, state=LocalState(dir_id="d", hub_id=HUB_ID, sessions=("s1",)))

GO_ON: list[tuple[str, Local | None, Head | None, bool, object]] = [
    ("a new directory on a new prefix", None, None, False, Create()),
    ("a directory that never shipped", replace(OWN, state=None), None, False, Create()),
    ("a first try that got no answer", NEVER_SHIPPED, None, False, Create()),
    ("a first try that had landed", NEVER_SHIPPED, HEAD, True, Continue(1000)),
    ("a clean or crashed restart", OWN, HEAD, True, Continue(1000)),
    ("a released prefix of ours", OWN, changed(released=True), True, Continue(1000)),
    (
        "changes not shipped yet",
        replace(OWN, rev=25, state_hash=OTHER_HASH),
        HEAD,
        True,
        Continue(1000),
    ),
    (
        "a record one segment behind: the answer was lost",
        replace(OWN, state=state(seq=1, rev=10, chain=OTHER_HASH)),
        HEAD,
        True,
        Continue(1000),
    ),
    (
        "an epoch whose answer was lost",
        replace(OWN, state=state(sessions=("s0", "s1"))),
        HEAD,
        True,
        Continue(1000),
    ),
    (
        "a claim whose epoch was taken before a crash",
        replace(RESTORED, dir_id="d", state=state(seq=0, epoch=0), claim=claim(epoch=2)),
        HEAD,
        True,
        Continue(1000),
    ),
    ("a restored directory", RESTORED, HEAD, True, TakeClaim(1000)),
    (
        "a restored directory, old hub released",
        RESTORED,
        changed(released=True),
        True,
        TakeClaim(1000),
    ),
    (
        "a restored directory, more reserved since",
        RESTORED,
        changed(reserved_rev=9000),
        True,
        TakeClaim(9000),
    ),
    (
        "a restored directory that has been written since",
        replace(RESTORED, rev=30, state_hash=OTHER_HASH),
        HEAD,
        True,
        TakeClaim(1000),
    ),
]

REFUSED: list[tuple[str, Local | None, Head | None, bool, str]] = [
    ("objects without HEAD, new directory", None, None, True, "no HEAD"),
    ("objects without HEAD", OWN, None, True, "no HEAD"),
    ("HEAD gone with everything", OWN, None, False, "has shipped up to revision 20"),
    (
        "restored, prefix empty",
        RESTORED,
        None,
        False,
        "restored from s3://b/p, this prefix is empty",
    ),
    ("empty directory, a hub in the prefix", None, HEAD, True, "directory is empty"),
    ("another hub's prefix", OWN, changed(hub_id="other"), True, "belongs to hub other"),
    ("another hub's claim", RESTORED, changed(hub_id="other"), True, "belongs to hub other"),
    (
        "a state file from elsewhere",
        replace(OWN, dir_id="x"),
        HEAD,
        True,
        "state file is of directory d",
    ),
    ("an older copy of the directory", replace(OWN, rev=19), HEAD, True, "older copy"),
    ("a bucket set back", replace(OWN, state=state(seq=3)), HEAD, True, "HEAD is at position 2"),
    (
        "a bucket with another history",
        replace(OWN, state=state(chain=OTHER_HASH)),
        HEAD,
        True,
        "another history",
    ),
    (
        "another state at one revision",
        replace(OWN, state_hash=OTHER_HASH),
        HEAD,
        True,
        "different states",
    ),
    (
        "fenced by another directory",
        OWN,
        changed(writer=OTHER_WRITER, epoch=4),
        True,
        "another directory wrote",
    ),
    (
        "another directory, released",
        OWN,
        changed(writer=OTHER_WRITER, released=True),
        True,
        "another directory",
    ),
    ("a store without memory", replace(OWN, state=None), HEAD, True, "another directory"),
    (
        "a restored directory without its claim",
        replace(RESTORED, claim=None),
        HEAD,
        True,
        "another directory",
    ),
    (
        "claim, more was shipped",
        RESTORED,
        changed(seq=4, chain=OTHER_HASH),
        True,
        "shipped 2 more segments",
    ),
    ("claim, another took the epoch", RESTORED, changed(epoch=4), True, "has taken epoch 4"),
    ("claim, another chain", RESTORED, changed(chain=OTHER_HASH), True, "not at the position 2"),
    ("claim, a bucket set back", RESTORED, changed(seq=1), True, "not at the position 2"),
    ("claim, an older epoch", RESTORED, changed(epoch=2), True, "not at the position 2"),
    (
        "claim, an older store",
        replace(RESTORED, rev=19),
        HEAD,
        True,
        "is not the one that was restored",
    ),
    (
        "claim, another store",
        replace(RESTORED, state_hash=OTHER_HASH),
        HEAD,
        True,
        "is not the one that was",
    ),
]


@pytest.mark.parametrize(
    ("row", "local", "seen", "in_use", "decision"), GO_ON, ids=[row[0] for row in GO_ON]
)
def test_goes_on_with(
    row: str, local: Local | None, seen: Head | None, in_use: bool, decision: object
) -> None:
    assert decide(local, seen, is_prefix_in_use=in_use) == decision


@pytest.mark.parametrize(
    ("row", "local", "seen", "in_use", "reason"), REFUSED, ids=[row[0] for row in REFUSED]
)
def test_refuses(
    row: str, local: Local | None, seen: Head | None, in_use: bool, reason: str
) -> None:
    decision = decide(local, seen, is_prefix_in_use=in_use)
    assert isinstance(decision, Refuse)
    assert reason in decision.reason
    assert decision.hint


def test_who_moved_the_prefix_on_is_told_to_restore_again() -> None:
    decision = decide(RESTORED, changed(seq=4, chain=OTHER_HASH), is_prefix_in_use=True)
    assert isinstance(decision, Refuse)
    assert "restore again" in decision.hint


def test_an_empty_directory_is_told_how_to_take_the_prefix() -> None:
    decision = decide(None, HEAD, is_prefix_in_use=True)
    assert isinstance(decision, Refuse)
    assert "hub-restore takeover" in decision.hint
    assert "--takeover Force" in decision.hint
