"""The configuration: what is refused, by the name of its setting, and what follows from it."""

from pathlib import Path
from typing import TypedDict, Unpack

import pytest

from hub.config import Config, ConfigError, Http2


class Settings(TypedDict, total=False):
    """The settings that have rules."""

    listen: str
    url: str
    object_store: str
    http2: Http2
    seal: tuple[str, ...]
    durable: tuple[str, ...]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"listen": "6443"}, "listen: '6443' must be ADDRESS:PORT"),
        ({"listen": ":6443"}, "listen: ':6443' must be ADDRESS:PORT"),
        ({"listen": "localhost"}, "listen: 'localhost' must be ADDRESS:PORT"),
        ({"listen": "localhost:http"}, "listen: 'localhost:http' must be ADDRESS:PORT"),
        ({"listen": "localhost:65536"}, "listen: 'localhost:65536' must be ADDRESS:PORT"),
        ({"listen": "localhost:-1"}, "listen: 'localhost:-1' must be ADDRESS:PORT"),
        ({"url": "http://hub:6443"}, "url: 'http://hub:6443' must be https://HOST:PORT"),
        ({"url": "hub:6443"}, "url: 'hub:6443' must be https://HOST:PORT"),
        ({"url": "https://"}, "url: 'https://' must be https://HOST:PORT"),
        ({"url": "https://hub:99999"}, "url: 'https://hub:99999' must be https://HOST:PORT"),
        ({"url": "https://hub:0"}, "url: 'https://hub:0' must be https://HOST:PORT"),
        ({"url": "https://[::1"}, "url: 'https://[::1' must be https://HOST:PORT"),
        ({"url": "https://hub:x"}, "url: 'https://hub:x' must be https://HOST:PORT"),
        ({"url": "https://me@hub"}, "url: 'https://me@hub' must be https://HOST:PORT"),
        ({"url": "https://hub/api"}, "url: 'https://hub/api' must not have a path"),
        ({"url": "https://hub?x=1"}, "url: 'https://hub?x=1' must not have a path"),
        ({"url": "https://hub#x"}, "url: 'https://hub#x' must not have a path"),
        ({"object_store": "bucket"}, "object-store: 'bucket' must be file:///dir or s3://"),
        ({"http2": "h3"}, "http2: 'h3' must be auto, ngh2 or h2"),
        ({"seal": ("secrets", "ConfigMap")}, "seal: 'ConfigMap' must be a resource, as configmaps"),
        ({"seal": ("apps/deployments",)}, "seal: 'apps/deployments' must be a resource"),
        ({"durable": ("Secret",)}, "durable: 'Secret' must be a resource, as configmaps"),
        ({"durable": ("secrets",)}, "durable: nothing ships without an object store"),
    ],
)
def test_a_setting_that_cannot_be_is_named(settings: Settings, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config(**settings)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("127.0.0.1:6443", ("127.0.0.1", 6443)),
        ("0.0.0.0:0", ("0.0.0.0", 0)),
        ("[::1]:6443", ("::1", 6443)),
        ("hub.example.com:443", ("hub.example.com", 443)),
    ],
)
def test_the_address_to_listen_on(listen: str, address: tuple[str, int]) -> None:
    assert Config(listen=listen).address() == address


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        ({}, "https://127.0.0.1:7000"),
        ({"listen": "0.0.0.0:0"}, "https://127.0.0.1:7000"),
        ({"listen": "[::]:0"}, "https://[::1]:7000"),
        ({"listen": "[::1]:0"}, "https://[::1]:7000"),
        ({"listen": "hub.example.com:0"}, "https://hub.example.com:7000"),
        ({"url": "https://hub.example.com:443/"}, "https://hub.example.com:443"),
        ({"url": "https://hub.example.com"}, "https://hub.example.com"),
        ({"url": "https://[::1]:6443"}, "https://[::1]:6443"),
    ],
)
def test_what_clients_are_told(settings: Settings, url: str) -> None:
    assert Config(**settings).public_url(7000) == url


def told(**settings: Unpack[Settings]) -> Config:
    return Config(data_dir=Path("a/b.c"), **settings)


def test_the_key_lies_beside_the_directory_unless_it_is_named() -> None:
    assert told().hub_key_path() == Path("a/b.c.key")
    assert Config(key_file=Path("k")).hub_key_path() == Path("k")


def test_the_key_lies_beside_a_directory_that_is_told_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to("data")
    monkeypatch.chdir(tmp_path / "data")
    assert Config(data_dir=Path()).hub_key_path() == tmp_path / "data.key"
    assert Config(data_dir=Path("below/..")).hub_key_path() == tmp_path / "data.key"
    assert Config(data_dir=Path("/")).hub_key_path() == Path("/.key")
    assert Config(data_dir=tmp_path / "link").hub_key_path() == tmp_path / "link.key"


@pytest.mark.parametrize(
    ("data_dir", "bucket"),
    [
        ("hub", "hub"),
        ("bucket/hub", "bucket"),
        ("hub", "hub/bucket"),
        ("a/../bucket/hub", "bucket"),
        ("link/hub", "bucket"),
        ("my bucket/hub", "my bucket"),
    ],
)
def test_the_store_and_its_bucket_never_lie_in_one_another(
    tmp_path: Path, data_dir: str, bucket: str
) -> None:
    (tmp_path / "bucket").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "bucket")
    url = (tmp_path / bucket).as_uri()
    with pytest.raises(ConfigError, match=r"data-dir: .* lie inside each other"):
        Config(data_dir=tmp_path / data_dir, object_store=url)


@pytest.mark.parametrize("key_file", ["bucket/hub.key", "link/hub.key", "bucket"])
def test_the_hub_key_does_not_lie_in_the_bucket_that_it_opens(
    tmp_path: Path, key_file: str
) -> None:
    (tmp_path / "bucket").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "bucket")
    with pytest.raises(ConfigError, match=r"key-file: .* keep it apart"):
        Config(
            data_dir=tmp_path / "hub",
            key_file=tmp_path / key_file,
            object_store=(tmp_path / "bucket").as_uri(),
        )


@pytest.mark.parametrize("bucket", ["bucket", "hub2", "hu"])
def test_a_bucket_beside_the_store_is_fine(tmp_path: Path, bucket: str) -> None:
    Config(data_dir=tmp_path / "hub", object_store=(tmp_path / bucket).as_uri())
    Config(data_dir=tmp_path / "hub", object_store=f"s3://bucket{tmp_path}")
