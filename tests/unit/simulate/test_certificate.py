"""A certificate is taken only from the CA that was given, for the key and name that were asked."""

import datetime as dt

import pytest

from hub.auth.authority import create_authority
from hub.auth.certificates import mint_client
from tools.simulate.certificate import certificate_faults
from tools.simulate.identity import FLEET_GROUP, USER_PREFIX, agent_subject, new_request

NOW = dt.datetime(2026, 6, 1, tzinfo=dt.UTC)
CA = create_authority("hublet-client@one", NOW)
OTHER = create_authority("hublet-client@one", NOW)
GROUPS = [f"{USER_PREFIX}c1", FLEET_GROUP]
MINE = mint_client(f"{USER_PREFIX}c1:abcde", GROUPS, CA, now=NOW)
ADMIN = mint_client("admin", ["masters"], CA, now=NOW)


def faults(
    *,
    cert: str = MINE.cert_pem,
    key: str = MINE.key_pem,
    cluster: str = "c1",
    authority: str = CA.cert_pem,
    now: dt.datetime = NOW,
) -> list[str]:
    subject = agent_subject(cluster, "abcde")
    return certificate_faults(cert, key, subject=subject, authority=authority.encode(), now=now)


@pytest.mark.parametrize(
    "authority", [CA.cert_pem, ADMIN.cert_pem, OTHER.cert_pem + CA.cert_pem, ""]
)
def test_what_was_asked_for_is_taken(authority: str) -> None:
    assert faults(authority=authority) == []


@pytest.mark.parametrize(
    "authority",
    [
        OTHER.cert_pem,
        mint_client("admin", ["masters"], OTHER, now=NOW).cert_pem,
        create_authority("serving", NOW).cert_pem,
        OTHER.cert_pem + ADMIN.cert_pem,
    ],
    ids=["same name", "sibling of another", "another name", "the CA of that name counts"],
)
def test_another_ca_is_a_lie_even_under_the_same_name(authority: str) -> None:
    found = faults(authority=authority)
    assert len(found) == 1
    assert found[0].endswith("is not the CA of this hub")


def test_another_key_name_or_time_is_told() -> None:
    assert faults(key=new_request("c1", "abcde").key_pem) == ["it is for another key"]
    assert faults(cluster="c2") == [f"it is for {USER_PREFIX}c1:abcde in {', '.join(GROUPS)}"]
    assert faults(now=NOW + dt.timedelta(days=4000))[0].startswith("it is valid from")
    assert faults(cert=CA.cert_pem)[0].startswith("it cannot be read: ")
    assert faults(cert="nothing")[0].startswith("it cannot be read: ")
