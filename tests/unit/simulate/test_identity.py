"""Keys and certificates in the state directory."""

import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from hub.auth.subject import Subject, read_subject
from tools.simulate.identity import Identity, IdentityStore, make_request, new_request


def test_a_request_has_the_subject_ocms_agents_use() -> None:
    request = x509.load_pem_x509_csr(new_request("c1", "abcde").request_pem.encode())
    subject = request.subject
    [name] = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    assert name.value == "system:open-cluster-management:c1:abcde"
    groups = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert [g.value for g in groups] == [
        "system:open-cluster-management:c1",
        "system:open-cluster-management:managed-clusters",
    ]
    assert len(subject.rdns) == 2  # Go puts all organisations into one
    assert request.is_signature_valid


def test_an_identity_lasts_and_nobody_else_may_read_it(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    identity = Identity("c1", "abcde", "cert", "key", 2)
    IdentityStore(directory).save(identity)
    assert IdentityStore(directory).find("c1") == identity
    [path] = directory.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_works_made_before_the_certificate_came_are_remembered_with_it(tmp_path: Path) -> None:
    store = IdentityStore(tmp_path)
    store.note_made("c1", works=5, addons=1)
    assert IdentityStore(tmp_path).find("c1") is None
    store.save(Identity("c1", "abcde", "cert", "key"))
    found = IdentityStore(tmp_path).find("c1")
    assert found is not None
    assert found.works == 5


def test_works_are_never_forgotten_by_a_smaller_number(tmp_path: Path) -> None:
    store = IdentityStore(tmp_path)
    store.save(Identity("c1", "abcde", "cert", "key", 5))
    store.note_made("c1", works=1, addons=0)
    assert IdentityStore(tmp_path).find("c1") == Identity("c1", "abcde", "cert", "key", 5)


def test_a_foreign_file_is_refused_and_named(tmp_path: Path) -> None:
    (tmp_path / "c1.json").write_text('{"cluster":"c1"}')
    with pytest.raises(ValueError, match=r"c1\.json is not an identity"):
        IdentityStore(tmp_path).find("c1")


def test_a_half_written_file_of_a_crash_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "c1.json.new").write_text('{"clus')
    store = IdentityStore(tmp_path)
    assert store.find("c1") is None
    store.save(Identity("c1", "abcde", "cert", "key"))
    assert [path.name for path in tmp_path.iterdir()] == ["c1.json"]


def test_a_subject_of_any_length_is_asked_for_as_go_would() -> None:
    subject = Subject("system:" + "u" * 100, ("g" * 80, "h"))
    made = make_request(subject, "abcde", hosts=["a.example"])
    csr = x509.load_pem_x509_csr(made.request_pem.encode())
    asked = read_subject(csr)
    assert (asked.common_name, set(asked.organizations)) == ("system:" + "u" * 100, {"g" * 80, "h"})
    names = csr.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a.example"]


def test_what_an_agent_holds_is_kept_until_it_lets_it_go(tmp_path: Path) -> None:
    store = IdentityStore(tmp_path)
    store.save(Identity("c1", "abcde", "cert", "key"))
    store.note_holds("c1", frozenset({"b", "a"}))
    found = IdentityStore(tmp_path).find("c1")
    assert found is not None
    assert found.holds == ("a", "b")
    store.note_dropped("c1", "a")
    store.note_dropped("c1", "never held")
    found = IdentityStore(tmp_path).find("c1")
    assert found is not None
    assert found.holds == ("b",)
