"""`hublet why`: which cause is named, for what the hub knows."""

import datetime as dt

import pytest

from hub.meta import Obj
from tests.server.agents import Wish
from tools.why import Facts, _renewed, judge

NOW = dt.datetime(2026, 1, 1, 1, tzinfo=dt.UTC)
LONG_AGO = "2026-01-01T00:00:00Z"
AVAILABLE, CLOCK = "ManagedClusterConditionAvailable", "ManagedClusterConditionClockSynced"


def seen(*, ends: str = "", code: int = 200, is_refused: bool = False) -> Obj:
    request = {"request": "update leases", "code": code, "time": "2026-01-01T00:50:00Z"}
    request |= {"agent": "a1", "userAgent": "registration/v1"}
    if ends:
        request["certificateEnds"] = ends
    refused = [request] if is_refused else []
    return {"since": "2026-01-01T00:00:00Z", "last": {"registration": request}, "refused": refused}


NOTHING: Obj = {"since": "2026-01-01T00:00:00Z", "last": {}, "refused": []}


def cluster(*conditions: tuple[str, str], is_accepted: bool = True) -> Obj:
    found = [
        {
            "type": type_,
            "status": status,
            "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for type_, status in conditions
    ]
    return {"spec": {"hubAcceptsClient": is_accepted}, "status": {"conditions": found}}


def request(*conditions: str) -> Obj:
    made = Wish("c").as_obj()
    made["metadata"] |= {"name": "r", "creationTimestamp": "2026-01-01T00:58:00Z"}
    decided = [{"type": each, "reason": "No", "message": "not you"} for each in conditions]
    return {**made, "status": {"conditions": decided}} if decided else made


LEASE: Obj = {"spec": {"renewTime": "2026-01-01T00:30:00.000000Z"}}


GOING = {"metadata": {"deletionTimestamp": "2026-01-01T00:57:00Z"}}


def issued(at: str) -> Obj:
    made = request()
    condition = {"type": "Approved", "lastUpdateTime": at}
    return {**made, "status": {"certificate": "eA==", "conditions": [condition]}}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"cluster": cluster((AVAILABLE, "True")) | GOING, "held_by": ("work w", "work x")},
            (
                "it is being deleted since 3m, held by work w, work x: wait for its agent to "
                "remove what it had applied, or, when the cluster is gone for good, "
                "hublet detach c --force"
            ),
        ),
        (
            {"cluster": None, "requests": [request()]},
            (
                "waits for a person since 2m: it was detached or never made here, and its agent "
                "goes on asking: make it with hublet join-command c, or remove the klusterlet"
            ),
        ),
        (
            {"seen": NOTHING, "cluster": cluster(), "requests": [issued("2026-01-01T00:59:50Z")]},
            "its certificate r was issued 10s ago, and the agent has not used it yet",
        ),
        (
            {"seen": NOTHING, "cluster": cluster(), "requests": [issued("2025-12-31T00:00:00Z")]},
            "no agent of it has come yet",
        ),
        ({"cluster": None}, "the hub does not know it"),
        ({"cluster": cluster(is_accepted=False)}, "it is not accepted: hublet accept c"),
        (
            {"requests": [request()]},
            "r of system:open-cluster-management:c:a1 waits for a person since 2m: hublet accept c",
        ),
        (
            {"requests": [request("Denied")]},
            "certificate request r was refused: Denied, No not you",
        ),
        ({"seen": seen(ends="2026-01-01T00:40:00Z")}, "its certificate has ended 20m ago"),
        (
            {"cluster": cluster((CLOCK, "False"), (AVAILABLE, "Unknown"))},
            "its clock is off by 20m: the agent reports no status until it is right",
        ),
        ({"cluster": cluster((AVAILABLE, "True"))}, "it is available"),
        ({"cluster": cluster((AVAILABLE, "False"))}, "its agent reports: m"),
        ({"seen": NOTHING, "cluster": cluster()}, "no agent of it has come yet"),
        ({"seen": NOTHING}, "nothing was heard of its agent since the hub started 60m ago"),
        (
            {"seen": seen(code=403, is_refused=True)},
            "the hub refuses it: update leases was answered",
        ),
        ({}, "its agent was last heard of 10m ago: update leases"),
    ],
)
def test_the_cause_is_named(given: dict[str, object], says: str) -> None:
    known: dict[str, object] = {
        "cluster": cluster((AVAILABLE, "Unknown")),
        "requests": [],
        "seen": seen(),
        **given,
    }
    facts = Facts(
        name="c",
        lease=LEASE,
        server="https://hub",
        ca_sha256="x",
        context_cluster="hub",
        now=NOW,
        **known,  # type: ignore[arg-type]  # a table of fields
    )
    causes = list(judge(facts))
    assert any(says in cause for cause in causes), causes


def test_only_the_way_out_is_told_of_a_cluster_that_goes() -> None:
    facts = _facts(cluster=cluster((AVAILABLE, "True")) | GOING)
    (cause,) = judge(facts)
    assert "nothing is left in its namespace" in cause


@pytest.mark.parametrize(
    ("renewed", "says"),
    [
        ("2026-01-01T00:30:00.500000Z", "made by the hub 29m ago, never renewed"),
        ("2026-01-01T00:50:00.500000Z", "renewed 9m59s ago"),
    ],
)
def test_a_lease_that_nobody_renewed_is_called_so(renewed: str, says: str) -> None:
    made = {"creationTimestamp": "2026-01-01T00:30:00Z"}
    assert _renewed(_facts(lease={"metadata": made, "spec": {"renewTime": renewed}})) == says


def _facts(*, cluster: Obj | None = None, lease: Obj | None = None) -> Facts:
    return Facts(
        name="c",
        cluster=cluster,
        lease=lease,
        requests=[],
        seen=NOTHING,
        server="https://hub",
        ca_sha256="x",
        context_cluster="hub",
        now=NOW,
    )


@pytest.mark.parametrize(
    ("known", "more", "says"),
    [
        (False, {"unknownSince": LONG_AGO}, "restored to a state from before it joined"),
        (True, {"isAhead": True, "isHeld": True}, "not listed to it until the restore grace"),
        (True, {"isAhead": True, "isHeld": False}, "goes within an hour, unless they are made"),
        (True, {"unknownObjects": [{"name": "manifestworks c/w"}]}, "reports on what the hub does"),
    ],
)
def test_what_a_restore_has_lost_is_told(known: bool, more: Obj, says: str) -> None:
    found = cluster((AVAILABLE, "True")) if known else None
    facts = Facts("c", found, LEASE, [], {**seen(), **more}, "s", "f", "x", now=NOW)
    assert says in " ".join(judge(facts))
    plain = Facts("c", found, LEASE, [], seen(), "s", "f", "x", now=NOW)
    assert says not in " ".join(judge(plain))
