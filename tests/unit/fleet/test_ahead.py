"""Which agents are kept waiting after a restore."""

import pytest

from hub.fleet.ahead import Ahead, Look, Lost
from hub.registry.hold import Hold
from hub.store import Revision
from tests.unit.registry.given import VirtualClock

AGENT = "system:open-cluster-management:c:a1"
WORK = "work.open-cluster-management.io"


def look(revision: str = "150", **rest: str) -> Look:
    given = {"user": AGENT, "group": WORK, "resource": "manifestworks", "namespace": "c"}
    return Look(**{**given, **rest}, revision=revision)


def an_ahead(clock: VirtualClock) -> Ahead:
    return Ahead(Hold(clock, grace_s=300), Lost(Revision(100), Revision(200)))


@pytest.mark.parametrize("revision", ["101", "200"])
def test_an_agent_that_saw_lost_history_waits_until_the_grace_is_over(revision: str) -> None:
    clock = VirtualClock()
    ahead = an_ahead(clock)
    assert "restored to an older state" in ahead.refusal(look(revision))
    assert ahead.clusters == {"c"}
    clock.move(300)
    assert ahead.refusal(look(revision)) == ""
    assert not ahead.is_holding
    assert ahead.clusters == {"c"}


@pytest.mark.parametrize("revision", ["100", "201", "1"])
def test_an_agent_that_saw_none_of_it_is_served(revision: str) -> None:
    ahead = an_ahead(VirtualClock())
    assert ahead.refusal(look()) != ""
    assert ahead.refusal(look(revision)) == ""


@pytest.mark.parametrize("revision", ["", "0", "nonsense"])
def test_an_agent_that_says_nothing_waits_once_history_is_known_to_be_lost(revision: str) -> None:
    ahead = an_ahead(VirtualClock())
    assert ahead.refusal(look(revision)) == ""
    ahead.refusal(look(namespace="other"))
    assert ahead.refusal(look(revision)) != ""
    assert ahead.clusters == {"other"}


@pytest.mark.parametrize(
    "other",
    [
        look(user="admin"),
        look(namespace=""),
        look(resource="configmaps", group=""),
        look(resource="leases", group="coordination.k8s.io"),
    ],
)
def test_nobody_else_waits(other: Look) -> None:
    ahead = an_ahead(VirtualClock())
    assert ahead.refusal(other) == ""
    assert not ahead.clusters


def test_a_start_that_lost_nothing_keeps_nobody_waiting() -> None:
    ahead = Ahead(Hold(VirtualClock(), grace_s=300), None)
    assert ahead.refusal(look()) == ""
    assert not ahead.is_holding
