"""What is noted of agents, and what is not."""

from hub.fleet.sightings import Sightings, is_agent
from tests.unit.registry.given import VirtualClock

AGENT = "system:open-cluster-management:c:a1"


def note(sightings: Sightings, user: str = AGENT, **facts: object) -> None:
    known = {"what": "get leases", "code": 200, "user_agent": "registration/v1"}
    sightings.note(user, certificate_ends_unix_s=None, **{**known, **facts})  # type: ignore[arg-type]  # a table of fields


def test_only_a_clusters_own_agents_are_noted() -> None:
    for name in (
        "admin",
        "system:open-cluster-management:c",
        "system:open-cluster-management:cluster:c:addon:x:agent:y",
        "system:serviceaccount:c:c-bootstrap-sa",
    ):
        assert not is_agent(name)
    assert is_agent(AGENT)
    sightings = Sightings(VirtualClock())
    note(sightings, "admin")
    assert sightings.of("admin")["last"] == {}


def test_the_last_request_of_each_program_is_known() -> None:
    clock = VirtualClock()
    sightings = Sightings(clock)
    note(sightings, what="update leases")
    clock.move(10)
    note(sightings, what="watch manifestworks", user_agent="work/v2 (linux)")
    note(sightings, what="get leases")
    found = sightings.of("c")
    assert (found["since"], found["now"]) == ("2026-01-01T00:00:00Z", "2026-01-01T00:00:10Z")
    assert found["last"] == {
        "registration": {
            "request": "get leases",
            "code": 200,
            "time": "2026-01-01T00:00:10Z",
            "agent": "a1",
            "userAgent": "registration/v1",
        },
        "work": {
            "request": "watch manifestworks",
            "code": 200,
            "time": "2026-01-01T00:00:10Z",
            "agent": "a1",
            "userAgent": "work/v2 (linux)",
        },
    }
    assert found["refused"] == []


def test_the_latest_refusals_are_kept_and_few() -> None:
    sightings = Sightings(VirtualClock())
    for number in range(8):
        note(sightings, what=f"get {number}", code=403)
    for code in (404, 409, 410, 200):
        note(sightings, code=code)
    assert [each["request"] for each in sightings.of("c")["refused"]] == [
        f"get {number}" for number in range(3, 8)
    ]


def test_the_end_of_a_certificate_is_told() -> None:
    sightings = Sightings(VirtualClock())
    sightings.note(
        AGENT, what="get leases", code=200, user_agent="", certificate_ends_unix_s=1_800_000_000.0
    )
    assert sightings.of("c")["last"][""]["certificateEnds"] == "2027-01-15T08:00:00Z"


def test_a_client_that_changes_its_name_fills_nothing() -> None:
    sightings = Sightings(VirtualClock())
    for number in range(1000):
        note(sightings, user_agent=f"p{number}/v1")
        note(sightings, user_agent="work/v2")
    assert list(sightings.of("c")["last"]) == [*(f"p{n}" for n in range(993, 1000)), "work"]


def test_what_a_client_says_is_cut() -> None:
    sightings = Sightings(VirtualClock())
    note(sightings, what="get " + "x" * 10_000, user_agent="y" * 10_000)
    ((program, request),) = sightings.of("c")["last"].items()
    assert program == request["userAgent"] == "y" * 256
    assert request["request"] == "get " + "x" * 252
