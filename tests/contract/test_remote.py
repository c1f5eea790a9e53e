"""The remote contract, run against a directory and a real S3 server; and what each has alone."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from snapshot.errors import RemoteDenied, RemoteError, RemoteInvalid, RemoteUnavailable
from snapshot.remote import Remote, open_remote
from tests.contract.remote_suite import SUITE, Check
from tests.fault.memory_remote import MemoryRemote
from tests.seaweed import Seaweed, seaweed


@pytest.fixture(scope="module")
def s3_server() -> Iterator[Seaweed]:
    with seaweed() as server:
        yield server


@pytest.fixture
def s3_keys(s3_server: Seaweed, monkeypatch: pytest.MonkeyPatch) -> Seaweed:
    for name, value in s3_server.environ.items():
        monkeypatch.setenv(name, value)
    return s3_server


@pytest.fixture
def s3_remote(s3_keys: Seaweed) -> Iterator[Remote]:
    remote = open_remote(s3_keys.url(f"t/{secrets.token_hex(6)}"), environ={})
    yield remote
    remote.close()


@pytest.mark.parametrize("check", SUITE, ids=lambda check: check.__name__)
def test_a_directory_keeps_the_contract(check: Check, tmp_path: Path) -> None:
    check(open_remote((tmp_path / "bucket").as_uri()), tmp_path)


@pytest.mark.parametrize("check", SUITE, ids=lambda check: check.__name__)
def test_the_fake_in_memory_keeps_the_contract(check: Check, tmp_path: Path) -> None:
    check(MemoryRemote(), tmp_path)


@pytest.mark.parametrize("check", SUITE, ids=lambda check: check.__name__)
def test_an_s3_server_keeps_the_contract(check: Check, s3_remote: Remote, tmp_path: Path) -> None:
    check(s3_remote, tmp_path)


def test_reading_a_mistyped_directory_does_not_make_it(tmp_path: Path) -> None:
    assert list(open_remote((tmp_path / "typo").as_uri()).list()) == []
    assert not (tmp_path / "typo").exists()


def test_a_directory_that_goes_away_is_no_answer_and_is_not_made_anew(tmp_path: Path) -> None:
    """A mount that is lost must not look like objects that somebody deleted."""
    bucket, aside = tmp_path / "bucket", tmp_path / "aside"
    remote = open_remote(bucket.as_uri())
    etag = remote.put_if_absent("HEAD", b"1")
    bucket.rename(aside)
    for _ in range(2):
        with pytest.raises(RemoteUnavailable, match="the directory is gone"):
            remote.put_if_match("HEAD", b"2", etag=etag)
        with pytest.raises(RemoteUnavailable, match="the directory is gone"):
            remote.get("HEAD")
        with pytest.raises(RemoteUnavailable, match="the directory is gone"):
            list(remote.list())
        assert not bucket.exists()
        bucket.mkdir()  # what a mount leaves behind that is lost
        with pytest.raises(RemoteUnavailable, match="another one is there"):
            remote.put_if_absent("x", b"1")
        assert list(bucket.iterdir()) == []
        bucket.rmdir()
    aside.rename(bucket)
    assert remote.put_if_match("HEAD", b"2", etag=etag)


def test_the_rest_of_a_crash_is_swept_and_a_live_spool_is_not(tmp_path: Path) -> None:
    open_remote(tmp_path.as_uri()).put_if_absent("x", b"1")
    (tmp_path / ".tmp" / "dead").write_bytes(b"half")
    remote = open_remote(tmp_path.as_uri())
    assert list((tmp_path / ".tmp").iterdir()) == []
    assert [entry.name for entry in remote.list()] == ["x"]


def test_wrong_keys_are_told_from_an_absent_server(
    s3_server: Seaweed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    with pytest.raises(RemoteDenied):
        open_remote(s3_server.url("p"), environ={}).get("HEAD")
    with pytest.raises(RemoteUnavailable):
        open_remote("s3://b/p?endpoint=http://127.0.0.1:9&attempts=1", environ={}).get("HEAD")


def test_a_missing_bucket_is_named(s3_keys: Seaweed) -> None:
    url = s3_keys.url("p").replace(f"//{s3_keys.bucket}/", "//nobucket/")
    with pytest.raises(RemoteError, match="no such bucket"):
        open_remote(url, environ={}).get("HEAD")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://x/y", "neither file:// nor s3://"),
        ("file://host/dir", "file:///dir"),
        ("file:relative", "file:///dir"),
        ("s3:///prefix", "s3://bucket/prefix"),
        ("s3://key:secret@bucket/p", "without credentials"),
        ("s3://bucket/p?endpont=x", "unknown option 'endpont'"),
        ("s3://bucket/p?path_style=maybe", "true or false"),
        ("s3://bucket/p?timeout=soon", "is a number"),
        ("s3://bucket/p?timeout=0", "between 0 and 3600"),
        ("s3://bucket/p/../q", "not an object name"),
        ("s3://bucket/p?endpoint=nonsense", "nonsense"),
        ("s3://bucket/p?ca_file=/nowhere/ca.pem", "/nowhere/ca.pem is not there"),
    ],
)
def test_a_bad_url_is_refused_by_name(url: str, says: str) -> None:
    with pytest.raises(RemoteInvalid, match=says):
        open_remote(url, environ={})


def test_the_url_wins_over_the_environment() -> None:
    environ = {"HUBLET_S3_ENDPOINT": "not a url", "HUBLET_S3_REGION": "eu-central-1"}
    with pytest.raises(RemoteInvalid, match="not a url"):
        open_remote("s3://bucket/p", environ=environ)
    remote = open_remote("s3://bucket/p?endpoint=http://127.0.0.1:9", environ=environ)
    assert remote.url == "s3://bucket/p"
