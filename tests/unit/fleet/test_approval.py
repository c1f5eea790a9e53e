"""Which certificate requests are an agent's, exactly."""

import pytest

from hub.auth.certificates import CsrInfo, parse_csr
from hub.fleet.approval import MANAGED_CLUSTERS, agent_subject_problem, is_agent_request
from hub.meta import Obj
from tests.server.agents import MANAGED, PREFIX, Wish


def info(**flaw: object) -> CsrInfo:
    import base64

    wish = Wish("c", **flaw)  # type: ignore[arg-type]  # a table of fields
    return parse_csr(base64.b64decode(wish.as_obj()["spec"]["request"]))


@pytest.mark.parametrize(
    "good",
    [
        {},
        {"organizations": [MANAGED, f"{PREFIX}c"]},
        {"organizations": [f"{PREFIX}c"]},
        {"common_name": f"{PREFIX}c:agent-1"},
    ],
)
def test_an_agents_subject_names_one_cluster(good: dict[str, object]) -> None:
    assert MANAGED == MANAGED_CLUSTERS
    assert agent_subject_problem(info(**good), "c") == ""


@pytest.mark.parametrize(
    ("flaw", "problem"),
    [
        ({"organizations": [f"{PREFIX}d", MANAGED]}, "organizations"),
        ({"organizations": [f"{PREFIX}c", f"{PREFIX}d", MANAGED]}, "organizations"),
        ({"organizations": [f"{PREFIX}c", "system:masters"]}, "organizations"),
        ({"organizations": [MANAGED]}, "organizations"),
        ({"organizations": []}, "organizations"),
        ({"common_name": f"{PREFIX}d:a"}, "another cluster"),
        ({"common_name": f"{PREFIX}c"}, "common name"),
        ({"common_name": f"{PREFIX}c:"}, "common name"),
        ({"common_name": f"{PREFIX}:a"}, "common name"),
        ({"common_name": f"{PREFIX}c:a:b"}, "common name"),
        ({"common_name": "c:a"}, "common name"),
        ({"common_name": f"x{PREFIX}c:a"}, "common name"),
        ({"dns_names": ["hub"]}, "alternative names"),
    ],
)
def test_any_other_subject_is_refused_with_its_reason(
    flaw: dict[str, object], problem: str
) -> None:
    assert problem in agent_subject_problem(info(**flaw), "c")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"labels": {}}, False),
        ({"labels": {"open-cluster-management.io/cluster-name": ""}}, False),
        (
            {
                "labels": {
                    "open-cluster-management.io/cluster-name": "c",
                    "open-cluster-management.io/addon-name": "x",
                }
            },
            False,
        ),
        ({"signer": "example.com/x"}, False),
    ],
)
def test_requests_of_add_ons_and_strangers_are_somebody_elses(
    change: dict[str, object], *, expected: bool
) -> None:
    request: Obj = Wish("c", **change).as_obj()  # type: ignore[arg-type]  # a table of fields
    assert is_agent_request(request) is expected


@pytest.mark.parametrize("decision", ["Approved", "Denied"])
def test_a_decided_request_is_left_alone(decision: str) -> None:
    request = {**Wish("c").as_obj(), "status": {"conditions": [{"type": decision}]}}
    assert not is_agent_request(request)
