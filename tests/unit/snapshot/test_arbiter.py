"""The arbiter's table: every row by name, and what must hold in the whole product of them."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import pytest

from snapshot.arbiter import (
    Adopt,
    Allowed,
    CatchUp,
    Continue,
    Create,
    Damaged,
    Decision,
    Local,
    Refuse,
    Restore,
    Source,
    TakeClaim,
    Takeover,
    decide,
)
from snapshot.chain import Base
from snapshot.head import Head, SegmentRef, Writer
from snapshot.local import Claim, LocalState

HUB, HASH, OTHER_HASH = "hub-1", "11" * 32, "22" * 32
FLOOR = 1000
HERE, ELSEWHERE = "7:1/8:1/", "9:1/10:1/"


def segment(seq: int, to_rev: int, *, level: str) -> SegmentRef:
    return SegmentRef(
        name=f"e00000003/{level}/{to_rev}",
        level=level,  # type: ignore[arg-type]  # one of its words
        from_seq=seq - 1,
        seq=seq,
        from_rev=0 if level == "full" else to_rev - 10,
        to_rev=to_rev,
        hash=HASH,
        size=100,
        time_ms=0,
    )


FULL, DELTA = segment(1, 10, level="full"), segment(2, 20, level="d0")
LIVE = Head(
    hub_id=HUB,
    epoch=3,
    writer=Writer(dir="d", session="s1", host="h", pid=1),
    nonce="n",
    seq=2,
    last_seq=2,
    rev=20,
    chain=HASH,
    state_hash=HASH,
    objects=1,
    full=FULL,
    tail=(DELTA,),
    reserved_rev=FLOOR,
    key="k",
    time="2026-05-04T03:02:01.000Z",
    released=False,
    fork=None,
)
RELEASED = msgspec.structs.replace(LIVE, released=True)
MOVED = msgspec.structs.replace(LIVE, released=True, moved="s3://b/new", epoch=4)
PAST = Base(seq=1, rev=10, chain=OTHER_HASH, state_hash=OTHER_HASH, objects=1, full=FULL, tail=())
STATE = LocalState(
    dir_id="d", hub_id=HUB, sessions=("s1",), epoch=3, seq=2, rev=20, chain=HASH, place=HERE
)
CLAIM = Claim(
    hub_id=HUB,
    epoch=3,
    seq=2,
    rev=20,
    chain=HASH,
    state_hash=HASH,
    object_store="s3://b/p",
    restored="2026-05-04T03:02:01Z",
)


def state(**facts: object) -> LocalState:
    return msgspec.structs.replace(STATE, **facts)


def claim(**facts: object) -> Claim:
    return msgspec.structs.replace(CLAIM, **facts)


def head(**facts: object) -> Head:
    return msgspec.structs.replace(LIVE, **facts)


def directory(
    remembered: LocalState | None = STATE,
    *,
    rev: int = 20,
    state_hash: str = HASH,
    claim: Claim | None = None,
    place: str = HERE,
    dir_id: str = "d",
) -> Local:
    return Local(dir_id, rev, state_hash, remembered, claim, place)


RESTORED_STATE = LocalState(dir_id="d", hub_id=HUB)
OTHERS = state(sessions=("s0",))
"""Of a directory that had the prefix once, before session s1 took it."""
FENCED = state(sessions=("s0",), fenced_by="process 1 on h")

OWN: dict[str, Local] = {
    "own": directory(),
    "own, changes not shipped yet": directory(rev=25, state_hash=OTHER_HASH),
    "own, the record is a segment behind": directory(state(seq=1, rev=10, chain=OTHER_HASH)),
    "own, an epoch's answer was lost": directory(state(sessions=("s0", "s1"))),
    "own, its first try landed unheard": directory(state(epoch=0, seq=0, rev=0)),
    "own, its place was never noted": directory(state(place=""), place=ELSEWHERE),
    "own, on a volume named since": directory(place=f"{HERE}claim-1"),
    "own, claim spent but for the file": directory(
        state(epoch=0, seq=0), claim=claim(epoch=2, seq=1)
    ),
    "own, adoption spent but for the file": directory(
        state(sessions=("s1",), inherited=("s0",)), claim=claim(epoch=2, adopted=True)
    ),
}
"""The directory that wrote last, restarted where it was."""
COPIES: dict[str, Local] = {
    "a copy": directory(place=ELSEWHERE),
    "a copy with changes of its own": directory(rev=25, place=ELSEWHERE),
    "a clone of the volume": directory(state(place=f"{HERE}a"), place=f"{HERE}b"),
    "a copy whose try was lost": directory(
        state(sessions=("s2",), inherited=("s1",), place=ELSEWHERE), place=ELSEWHERE
    ),
}
OLDER: dict[str, Local] = {
    "an older copy": directory(rev=19),
    "an older copy, elsewhere": directory(rev=19, place=ELSEWHERE),
}
CONTRADICTING: dict[str, Local] = {
    "own, forked": directory(state(chain=OTHER_HASH)),
    "own, ahead of a bucket set back": directory(state(seq=3, rev=30), rev=30),
    "own, another state at the revision": directory(state_hash=OTHER_HASH),
    "adopted, another state at the revision": directory(
        FENCED, state_hash=OTHER_HASH, claim=claim(adopted=True)
    ),
    "a copy, another state at the revision": directory(state_hash=OTHER_HASH, place=ELSEWHERE),
    "state file of another directory": directory(dir_id="x"),
    "never shipped, state file of another directory": directory(
        state(sessions=(), epoch=0, seq=0, rev=0), dir_id="x"
    ),
    "restored, an older store": directory(RESTORED_STATE, rev=19, claim=CLAIM),
    "restored, another store": directory(RESTORED_STATE, state_hash=OTHER_HASH, claim=CLAIM),
    "restored, the prefix shipped more": directory(RESTORED_STATE, claim=claim(seq=1)),
    "restored, the prefix was taken": directory(RESTORED_STATE, claim=claim(epoch=2)),
    "restored, another chain": directory(RESTORED_STATE, claim=claim(chain=OTHER_HASH)),
    "restored, the prefix was set back": directory(RESTORED_STATE, claim=claim(seq=3)),
    "adopted, the prefix moved on": directory(FENCED, claim=claim(seq=1, adopted=True)),
}
"""What neither permission nor force goes on with: a human has to look."""
CLAIMING: dict[str, Local] = {
    "restored": directory(RESTORED_STATE, claim=CLAIM),
    "restored, then written": directory(RESTORED_STATE, rev=30, claim=CLAIM),
    "restored to the past": directory(
        RESTORED_STATE, rev=10, state_hash=OTHER_HASH, claim=claim(base=PAST)
    ),
    "adopted after it was fenced": directory(FENCED, rev=25, claim=claim(adopted=True)),
    "adopted, behind": directory(FENCED, rev=10, claim=claim(adopted=True)),
    "a copy, adopted": directory(place=ELSEWHERE, claim=claim(adopted=True)),
}
REBUILT: dict[str, Local] = {
    "its own damage restored": directory(RESTORED_STATE, claim=claim(own=True)),
}
TAKEN: dict[str, Local] = {
    "another wrote last": directory(state(dir_id="c", sessions=("s0",)), dir_id="c"),
    "gone on elsewhere": directory(OTHERS),
    "fenced": directory(FENCED),
    "fenced, and HEAD is of its session": directory(state(fenced_by="a move")),
    "a store without memory": directory(None),
    "restored, claim removed": directory(RESTORED_STATE),
}
NEW: dict[str, Local] = {
    "a store that never shipped": directory(state(sessions=(), epoch=0, seq=0, rev=0)),
    "a store whose first try was lost": directory(state(sessions=("s7",), epoch=0, seq=0, rev=0)),
}
FOREIGN: dict[str, Local | Damaged] = {
    "another hub": directory(state(hub_id="hub-2")),
    "another hub that never shipped": directory(LocalState(dir_id="d", hub_id="hub-2")),
    "another hub, restored": directory(None, claim=claim(hub_id="hub-2")),
    "another hub, damaged": Damaged("torn", state(hub_id="hub-2"), HERE),
}
OWN_DAMAGED = {"damaged": Damaged("torn", STATE, HERE)}
DAMAGED = {
    "damaged copy": Damaged("torn", STATE, ELSEWHERE),
    "damaged, of another": Damaged("torn", OTHERS, HERE),
    "damaged, without memory": Damaged("torn", None, HERE),
}
FENCED_DAMAGED = {"damaged, fenced": Damaged("torn", FENCED, HERE)}
LOCALS: dict[str, Local | Damaged | None] = {
    "empty": None,
    **OWN,
    **COPIES,
    **OLDER,
    **CONTRADICTING,
    **CLAIMING,
    **REBUILT,
    **TAKEN,
    **NEW,
    **FOREIGN,
    **OWN_DAMAGED,
    **DAMAGED,
    **FENCED_DAMAGED,
}
HEADS: dict[str, Head | None] = {
    "none": None,
    "none, prefix in use": None,
    "live": LIVE,
    "released": RELEASED,
    "moved": MOVED,
}
ALLOWED = tuple(Allowed(*each) for each in itertools.product(Source, Takeover, (False, True)))
GOES_ON = (Continue, TakeClaim, Adopt, CatchUp, Restore)


@dataclass(frozen=True, slots=True)
class Case:
    """One cell of the table; it prints as what a failed assertion should say."""

    local: str
    head: str
    allowed: Allowed

    def decide(self) -> Decision:
        seen = HEADS[self.head]
        is_in_use = seen is not None or self.head == "none, prefix in use"
        return decide(LOCALS[self.local], seen, is_prefix_in_use=is_in_use, allowed=self.allowed)

    @property
    def is_force(self) -> bool:
        return self.allowed.takeover is Takeover.FORCE

    def may_take(self) -> bool:
        """Whether the words of the issue let this directory take a prefix of another."""
        takeover = self.allowed.takeover
        if takeover is Takeover.CLAIMED and (self.allowed.has_lease or self.local in CLAIMING):
            return True
        is_free = self.head in {"released", "moved"}
        return self.is_force or (takeover is not Takeover.NEVER and is_free)


def cases(*heads: str, local: str = "") -> Iterator[tuple[Case, Decision]]:
    """Every cell, or those of some heads, with what the arbiter says."""
    for name, seen, allowed in itertools.product(LOCALS, heads or HEADS, ALLOWED):
        if not local or name == local:
            case = Case(name, seen, allowed)
            yield case, case.decide()


# ------------------------------------------------------------------------ the whole product


def test_every_refusal_says_why_and_what_to_do() -> None:
    refused = [(case, it) for case, it in cases() if isinstance(it, Refuse)]
    assert len(refused) > 1000
    for case, decision in refused:
        assert decision.reason, case
        assert decision.hint, case


def test_nothing_is_taken_from_another_writer_without_leave() -> None:
    """Own directories take nothing; everything else needs release, claim, lease or force."""
    takes = 0
    for case, decision in cases("live", "released", "moved"):
        if case.local in OWN or case.local in OWN_DAMAGED or case.local in REBUILT:
            continue
        if isinstance(decision, GOES_ON):
            takes += 1
            assert case.may_take(), (case, decision)
    assert takes > 100


def test_a_takeover_never_takes_nothing_at_all() -> None:
    for case, decision in cases():
        if case.allowed.takeover is Takeover.NEVER and isinstance(decision, GOES_ON):
            assert case.local in OWN or case.local in OWN_DAMAGED or case.local in REBUILT, case


def test_no_force_goes_over_another_hub() -> None:
    for case, decision in cases("live", "released", "moved"):
        if case.local in FOREIGN:
            assert isinstance(decision, Refuse), case
            assert "belongs to hub hub-1, the directory to hub-2" in decision.reason, case


def test_no_force_goes_on_with_histories_that_differ() -> None:
    for case, decision in cases():
        if case.local in CONTRADICTING:
            assert isinstance(decision, Refuse), (case, decision)


def test_a_hub_is_created_only_where_none_was() -> None:
    created = {case.local for case, it in cases() if isinstance(it, Create)}
    assert created == {"empty", *NEW, "a store without memory", "restored, claim removed"} | {
        "own, its first try landed unheard",
        "another hub that never shipped",
    }
    for case, decision in cases("none, prefix in use", "live", "released", "moved"):
        assert not isinstance(decision, Create), case


def test_without_a_head_nothing_goes_on() -> None:
    for case, decision in cases("none", "none, prefix in use"):
        assert isinstance(decision, Create | Refuse), case
    for case, decision in cases("none, prefix in use"):
        assert isinstance(decision, Refuse), case


def test_a_restart_of_the_same_directory_always_continues() -> None:
    for case, decision in cases("live", "released"):
        if case.local in OWN:
            assert decision == Continue(FLOOR), case


def test_nothing_else_continues() -> None:
    for case, decision in cases():
        if isinstance(decision, Continue):
            assert case.local in OWN, case


def test_a_hub_that_was_moved_starts_by_force_only() -> None:
    for case, decision in cases("moved"):
        if case.is_force:
            continue
        assert isinstance(decision, Refuse), case
        if case.local not in {*FOREIGN, *CONTRADICTING}:
            assert "moved to s3://b/new" in decision.reason, case


def test_a_fenced_directory_goes_on_by_force_or_adoption_only_and_never_with_its_store() -> None:
    for case, decision in cases("live", "released"):
        if case.local in {"fenced", "fenced, and HEAD is of its session"}:
            assert isinstance(decision, CatchUp if case.is_force else Refuse), case
        if case.local in FENCED_DAMAGED and not case.is_force:
            assert isinstance(decision, Refuse), case


def test_a_store_is_built_where_there_is_none_and_caught_up_where_there_is() -> None:
    for case, decision in cases():
        has_store = isinstance(LOCALS[case.local], Local)
        if isinstance(decision, Restore):
            assert not has_store, case
            assert case.allowed.source in {Source.AUTO, Source.SNAPSHOT}, case
        if isinstance(decision, CatchUp | Continue | TakeClaim | Adopt):
            assert has_store, case


def test_revisions_go_on_above_all_that_were_reserved() -> None:
    for case, decision in cases():
        if isinstance(decision, Continue | TakeClaim | Adopt):
            assert decision.floor == FLOOR, case


def test_what_was_built_from_the_bucket_starts_under_the_same_permission() -> None:
    """A restore that the next decision refused would leave a hub that cannot start."""
    rebuilt = 0
    for case, decision in cases("live", "released", "moved"):
        if not isinstance(decision, Restore | CatchUp):
            continue
        rebuilt += 1
        seen = HEADS[case.head]
        assert seen is not None
        own = isinstance(decision, Restore) and decision.is_own
        left = directory(RESTORED_STATE, claim=claim(epoch=seen.epoch, own=own))
        after = decide(left, seen, is_prefix_in_use=True, allowed=case.allowed)
        assert after == TakeClaim(FLOOR), (case, after)
    assert rebuilt > 50


def test_a_volume_that_was_wanted_and_is_empty_is_neither_made_nor_restored() -> None:
    for case, decision in cases(local="empty"):
        if case.allowed.source is Source.VOLUME:
            assert isinstance(decision, Refuse), case
        if case.allowed.source is Source.EMPTY:
            assert isinstance(decision, Create | Refuse), case


def test_a_store_that_is_there_goes_on_whatever_the_source_says() -> None:
    for name, seen, takeover in itertools.product(LOCALS, HEADS, Takeover):
        if isinstance(LOCALS[name], Local):
            said = {repr(Case(name, seen, Allowed(each, takeover)).decide()) for each in Source}
            assert len(said) == 1, (name, seen, takeover)


# ------------------------------------------------------------------------ the rows

AUTO = Allowed()
LEASE = Allowed(has_lease=True)
FORCE = Allowed(takeover=Takeover.FORCE)
IF_RELEASED = Allowed(takeover=Takeover.IF_RELEASED)
NEVER = Allowed(takeover=Takeover.NEVER)

ROWS: list[tuple[str, str, Allowed, type[Decision]]] = [
    ("empty", "none", AUTO, Create),
    ("empty", "none", Allowed(Source.EMPTY), Create),
    ("empty", "none", Allowed(Source.SNAPSHOT), Refuse),
    ("empty", "none", Allowed(Source.VOLUME), Refuse),
    ("empty", "live", AUTO, Refuse),
    ("empty", "live", LEASE, Restore),
    ("empty", "live", FORCE, Restore),
    ("empty", "live", Allowed(Source.EMPTY, Takeover.FORCE), Refuse),
    ("empty", "released", AUTO, Restore),
    ("empty", "released", IF_RELEASED, Restore),
    ("empty", "released", Allowed(Source.SNAPSHOT), Restore),
    ("empty", "released", Allowed(Source.EMPTY), Refuse),
    ("empty", "released", NEVER, Refuse),
    ("empty", "moved", FORCE, Restore),
    ("a store that never shipped", "none", AUTO, Create),
    ("a store that never shipped", "live", AUTO, Refuse),
    ("a store whose first try was lost", "none", AUTO, Create),
    ("own", "none", FORCE, Refuse),
    ("own", "moved", FORCE, Continue),
    ("a copy", "live", AUTO, Refuse),
    ("a copy", "live", LEASE, Adopt),
    ("a copy", "released", AUTO, Adopt),
    ("a copy", "released", NEVER, Refuse),
    ("a copy", "live", FORCE, Adopt),
    ("a clone of the volume", "live", AUTO, Refuse),
    ("a clone of the volume", "released", IF_RELEASED, Adopt),
    ("a copy whose try was lost", "live", AUTO, Refuse),
    ("a copy whose try was lost", "released", AUTO, Adopt),
    ("an older copy", "live", AUTO, Refuse),
    ("an older copy", "released", AUTO, CatchUp),
    ("an older copy", "live", FORCE, CatchUp),
    ("restored", "live", AUTO, TakeClaim),
    ("restored", "live", IF_RELEASED, Refuse),
    ("restored", "released", IF_RELEASED, TakeClaim),
    ("restored", "live", NEVER, Refuse),
    ("restored, then written", "live", AUTO, TakeClaim),
    ("restored to the past", "live", AUTO, TakeClaim),
    ("its own damage restored", "live", NEVER, TakeClaim),
    ("adopted after it was fenced", "live", AUTO, Adopt),
    ("adopted after it was fenced", "live", IF_RELEASED, Refuse),
    ("adopted, behind", "live", AUTO, CatchUp),
    ("a copy, adopted", "live", AUTO, Adopt),
    ("another wrote last", "live", AUTO, Refuse),
    ("another wrote last", "released", AUTO, Refuse),
    ("another wrote last", "live", FORCE, CatchUp),
    ("fenced", "released", AUTO, Refuse),
    ("fenced", "live", FORCE, CatchUp),
    ("restored, claim removed", "live", AUTO, Refuse),
    ("a store without memory", "live", AUTO, Refuse),
    ("damaged", "none", AUTO, Refuse),
    ("damaged", "live", AUTO, Restore),
    ("damaged", "live", NEVER, Restore),
    ("damaged", "live", Allowed(Source.VOLUME), Refuse),
    ("damaged", "live", Allowed(Source.EMPTY), Refuse),
    ("damaged copy", "live", AUTO, Refuse),
    ("damaged copy", "released", AUTO, Restore),
    ("damaged, of another", "live", AUTO, Refuse),
    ("damaged, of another", "released", AUTO, Restore),
    ("damaged, fenced", "released", AUTO, Refuse),
    ("damaged, fenced", "live", FORCE, Restore),
]


@pytest.mark.parametrize(("local", "seen", "allowed", "kind"), ROWS, ids=map(str, ROWS))
def test_the_row(local: str, seen: str, allowed: Allowed, kind: type[Decision]) -> None:
    decision = Case(local, seen, allowed).decide()
    assert type(decision) is kind, decision


REASONS: list[tuple[str, str, str, str]] = [
    ("empty", "none, prefix in use", "no HEAD", "put it back"),
    ("empty", "live", "data directory is empty, and the prefix holds hub hub-1", "takeover"),
    ("own", "none", "has shipped up to revision 20, this prefix is empty", "put it back"),
    ("damaged", "none", "damaged and the prefix is empty", "move the directory away"),
    ("restored", "none", "restored from s3://b/p, this prefix is empty", "--object-store"),
    ("another hub", "live", "belongs to hub hub-1", "prefix of its own"),
    ("state file of another directory", "live", "state file is of directory d", "as a whole"),
    ("own", "moved", "moved to s3://b/new", "start it there"),
    ("a copy", "live", "is a copy of the one that wrote", "hub-restore adopt"),
    ("an older copy", "live", "older copy of itself", "newer directory"),
    ("own, ahead of a bucket set back", "live", "HEAD is at position 2", "newest HEAD"),
    ("own, forked", "live", "another history", "newest HEAD"),
    ("own, another state at the revision", "live", "different states at revision 20", "inspect"),
    ("restored, the prefix shipped more", "live", "has shipped up to position @2", "restore again"),
    ("restored, the prefix was taken", "live", "has taken epoch 3", "restore again"),
    ("restored, another chain", "live", "not at the position 2", "hub-restore restore"),
    ("restored, the prefix was set back", "live", "not at the position 3", "hub-restore restore"),
    ("restored, an older store", "live", "is not the one that was restored", "hub-restore"),
    ("fenced", "live", "process 1 on h took the prefix", "unshipped changes"),
    ("another wrote last", "released", "another directory wrote this prefix last", "adopt"),
    ("gone on elsewhere", "live", "a copy of this directory has gone on in its place", "adopt"),
    ("damaged copy", "live", "the store cannot be used: torn", "hub-restore restore"),
]


@pytest.mark.parametrize(("local", "seen", "reason", "hint"), REASONS, ids=map(str, REASONS))
def test_the_refusal(local: str, seen: str, reason: str, hint: str) -> None:
    decision = Case(local, seen, AUTO).decide()
    assert isinstance(decision, Refuse), decision
    assert reason in decision.reason
    assert hint in decision.hint


def test_a_takeover_that_forbids_a_claim_is_named_with_the_flag() -> None:
    decision = Case("restored", "live", NEVER).decide()
    assert isinstance(decision, Refuse)
    assert "takeover is Never" in decision.reason
    assert "--bootstrap-takeover Claimed" in decision.hint


def test_more_reserved_since_a_restore_raises_the_floor() -> None:
    seen = head(reserved_rev=9000)
    assert decide(CLAIMING["restored"], seen, is_prefix_in_use=True) == TakeClaim(9000)
