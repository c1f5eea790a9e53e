"""Every report of users that a hub of clusters answers for has a test that says how we do.

The numbers are those of the collection of public reports behind this hub (the contract with Open
Cluster Management's agents, section 10); the words are ours. Reports about placement and add-on
managers have no test yet where those are not part of the hub.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNIT, SERVER = ROOT / "tests" / "unit", ROOT / "tests" / "server"
CONTROLLERS, FLEET = UNIT / "controllers", UNIT / "fleet"

REPORTS: dict[int, tuple[str, tuple[tuple[Path, str], ...]]] = {
    1: (
        "an agent stops asking for certificates because too many requests lie on the hub",
        (
            (
                CONTROLLERS / "test_csrcleaner.py",
                "test_an_agent_that_asks_again_and_again_never_meets_its_threshold",
            ),
            (
                SERVER / "test_cleaners.py",
                "test_an_agent_never_sees_as_many_requests_as_would_stop_it",
            ),
        ),
    ),
    2: (
        "every start of an agent leaves another pending request",
        (
            (CONTROLLERS / "test_surplus.py", "test_superseded_requests_go_first_and_oldest_first"),
            (
                CONTROLLERS / "test_csrcleaner.py",
                "test_the_requests_of_another_user_do_not_supersede_an_agents",
            ),
        ),
    ),
    3: (
        "several agents register under one name",
        (
            (
                SERVER / "test_abuse.py",
                "test_the_shared_token_gets_no_certificate_of_a_cluster_that_has_joined",
            ),
            (SERVER / "test_people.py", "test_a_clusters_own_account_brings_in_that_cluster_alone"),
        ),
    ),
    4: (
        "a cluster is deleted and made again, and its lease stops or it flaps",
        (
            (
                SERVER / "test_pain_points.py",
                "test_a_cluster_made_again_goes_on_with_its_certificate_and_its_lease",
            ),
            (
                SERVER / "test_pain_points.py",
                "test_a_hundred_clusters_made_again_are_ready_for_their_agents",
            ),
            (FLEET / "test_leases.py", "test_a_cluster_accepted_again_gets_a_whole_grace_period"),
        ),
    ),
    5: (
        "the hub's serving certificate is renewed, and agents stop",
        (
            (
                SERVER / "test_pain_points.py",
                "test_the_ca_that_clusters_are_given_is_a_ca_and_never_the_leaf",
            ),
            (
                CONTROLLERS / "test_leaf.py",
                "test_a_leaf_is_renewed_kept_and_used_once_when_a_third_of_its_life_is_left",
            ),
            (
                CONTROLLERS / "test_leaf.py",
                "test_a_listening_server_shows_the_new_leaf_to_the_next_client",
            ),
        ),
    ),
    9: (
        "a clock that is off makes clusters Unknown, or freezes their status",
        (
            (
                FLEET / "test_leases.py",
                "test_the_hubs_own_time_of_receipt_counts_and_not_the_agents",
            ),
            (FLEET / "test_leases.py", "test_a_clock_that_is_off_is_reported"),
        ),
    ),
    10: (
        "a dead cluster is noticed late, and nobody can tune it",
        (
            (FLEET / "test_leases.py", "test_the_lease_duration_of_the_cluster_decides"),
            (
                FLEET / "test_leases.py",
                "test_silence_of_five_lease_durations_makes_a_cluster_unknown",
            ),
            (
                FLEET / "test_leases.py",
                "test_renewals_that_change_nothing_else_wake_nobody_and_are_not_logged",
            ),
        ),
    ),
    11: (
        "Available flaps",
        (
            (FLEET / "test_leases.py", "test_every_renewal_begins_the_time_anew"),
            (FLEET / "test_leases.py", "test_an_unknown_cluster_is_left_to_its_agent"),
        ),
    ),
    16: (
        "deleting a cluster that is gone hangs on finalizers",
        (
            (
                SERVER / "test_detachment.py",
                "test_a_dead_cluster_is_detached_by_force_and_what_stays_is_told",
            ),
        ),
    ),
    17: (
        "more than a thousand clusters make messages of Events too long",
        ((UNIT / "registry" / "test_report.py", "test_a_message_beyond_a_kibibyte_is_cut"),),
    ),
    18: (
        "one new cluster costs as much as all of them",
        (
            (FLEET / "test_namespaces.py", "test_a_set_that_wants_nothing_wakes_no_cluster"),
            (
                SERVER / "test_label_index.py",
                "test_lists_by_an_indexed_label_follow_every_change_and_a_restart",
            ),
        ),
    ),
    19: (
        "more than a hundred works of a cluster conflict",
        (
            (
                SERVER / "test_pain_points.py",
                "test_an_agent_alone_on_more_than_a_hundred_works_meets_no_conflict",
            ),
        ),
    ),
    20: (
        "agents are throttled, and nobody knows the limits",
        (
            (
                SERVER / "test_bounds.py",
                "test_more_requests_than_the_hub_takes_are_429_and_told_when_to_come_again",
            ),
            (
                SERVER / "test_abuse.py",
                "test_a_flood_of_requests_is_cut_and_collected_and_concerns_nobody_else",
            ),
        ),
    ),
    21: (
        "the name that stands for no default shows in the older version of add-ons",
        (
            (
                FLEET / "test_conversion.py",
                "test_a_kind_without_a_default_gets_the_reserved_name_that_v1alpha1_never_shows",
            ),
            (FLEET / "test_addon_view.py", "test_what_is_stored_survives_the_way_through_v1beta1"),
        ),
    ),
    22: (
        "the CA of client certificates is another after a start",
        (
            (
                SERVER / "test_pain_points.py",
                "test_certificates_of_agents_stay_good_when_the_hub_starts_again",
            ),
        ),
    ),
    23: (
        "requests were approved without a look at subject and signer",
        (
            (FLEET / "test_approval.py", "test_any_other_subject_is_refused_with_its_reason"),
            (
                SERVER / "test_registration.py",
                "test_a_request_that_is_not_exactly_an_agents_waits_for_a_person",
            ),
            (SERVER / "test_registration.py", "test_a_renewal_is_for_the_very_identity_that_asks"),
        ),
    ),
    24: (
        "a replica set whose name makes too long a label fails without a word",
        (
            (
                FLEET / "test_work_admission.py",
                "test_a_replica_set_is_looked_at_like_the_works_it_makes",
            ),
        ),
    ),
}
OURS = {*range(1, 6), *range(9, 12), *range(16, 25)}
"""The reports about what this hub does by now."""


@cache
def names_in(path: Path) -> set[str]:
    """The names of the tests in a file, as pytest collects them."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        node.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, functions) and node.name.startswith("test_")
    }


def test_no_report_is_left_out() -> None:
    assert set(REPORTS) == OURS


@pytest.mark.parametrize("number", REPORTS)
def test_every_report_has_a_test_that_exists(number: int) -> None:
    about, tests = REPORTS[number]
    assert about
    assert tests
    for file, name in tests:
        assert name in names_in(file), f"{file.name}: {name}"
