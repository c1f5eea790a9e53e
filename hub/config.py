"""What a hub is told when it starts: one frozen value, checked in one pass.

Owns defaults and the rules that need no I/O beyond following links. Flags, environment and file are
read by `tools`; here they arrive as plain values.
"""

import ipaddress
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import unquote, urlsplit

from hub.store import STORE_DIRECTORY

_RESOURCE = re.compile(r"[a-z][a-z0-9-]*(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
SOURCES = ("Auto", "Empty", "Volume", "Snapshot")
TAKEOVERS = ("Never", "IfReleased", "Claimed", "Force")
Http2: TypeAlias = Literal["auto", "ngh2", "h2"]


class ConfigError(ValueError):
    """Settings that cannot be; each problem names its setting and the fix."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The effective configuration of one hub."""

    data_dir: Path = Path("hublet-data")
    """Where the hub keeps its files, the store in a directory of it; one process at a time."""
    listen: str = "127.0.0.1:6443"
    """Address and port to serve on; port 0 takes a free one."""
    url: str = ""
    """What clients are told, ``https://HOST:PORT``; default: the listen address."""
    key_file: Path | None = None
    """The hub key, outside the data directory; default: ``<data-dir>.key``."""
    object_store: str = ""
    """Where every change is shipped, ``file:///dir`` or ``s3://bucket/prefix``; empty: nowhere."""
    bootstrap_source: str = "Auto"
    """Where the state comes from at a start: Auto, Empty, Volume or Snapshot."""
    bootstrap_snapshot_url: str = ""
    """The prefix an empty directory is restored from, with source Snapshot; default: the object
    store's own. Another one is moved here: its chain is copied, and it is ended there.
    """
    bootstrap_snapshot_to: str = "latest"
    """What an empty directory is restored to, with source Snapshot: latest, a revision, a time or
    @position.
    """
    bootstrap_takeover: str = "Claimed"
    """When the prefix may be taken from another directory: Never, IfReleased, Claimed or Force."""
    place: str = ""
    """A name that tells this volume from a clone of it, as the uids of cluster and claim do."""
    strict_fencing: int = 0
    """Seconds of silence of the object store after which writes are refused; 0: never."""
    detach: bool = False
    """Whether to run a directory that has shipped, or was restored, without its object store."""
    auto_approve_users: tuple[str, ...] = ()
    """Bootstrap users whose first certificate requests are approved without a person; a trailing *
    is a wildcard.
    """
    auto_accept: bool = False
    """Whether every new ManagedCluster is accepted (once) without a person."""
    seal: tuple[str, ...] = ()
    """Resources (``configmaps``, ``plural.group``) sealed at rest beside those that always are."""
    durable: tuple[str, ...] = ()
    """Resources whose writes are answered when they are in the bucket, asked for or not."""
    audit_log: str = ""
    """Where requests are recorded, a file or ``-`` for standard output; empty: nowhere."""
    restore_grace: float = 300.0
    """Seconds for which, after a restore, nothing is destroyed for what the state does not know."""
    http2: Http2 = "auto"
    """HTTP/2 library: auto, ngh2 or h2."""

    log_level: str = "info"
    """What is logged: debug, info, warning or error."""

    def __post_init__(self) -> None:
        problems = [
            *_choice("http2", self.http2, ("auto", "ngh2", "h2")),
            *_listen_problems(self.listen),
            *(_url_problems(self.url) if self.url else ()),
            *_resource_problems("seal", self.seal),
            *_resource_problems("durable", self.durable),
            *_choice("bootstrap-source", self.bootstrap_source, SOURCES),
            *_choice("bootstrap-takeover", self.bootstrap_takeover, TAKEOVERS),
            *self._bootstrap_problems(),
            *_choice("log-level", self.log_level, ("debug", "info", "warning", "error")),
        ]
        if self.durable and not self.object_store:
            problems.append("durable: nothing ships without an object store: give both, or neither")
        if self.object_store and "://" not in self.object_store:
            problems.append(
                f"object-store: {self.object_store!r} must be file:///dir or s3://bucket/prefix"
            )
        elif is_nested(self.data_dir, self.object_store):
            problems.append(
                f"data-dir: {self.data_dir} and the object store {self.object_store} lie inside "
                "each other: give each a directory of its own"
            )
        elif is_nested(self.hub_key_path(), self.object_store):
            problems.append(
                f"key-file: {self.hub_key_path()} lies in the object store {self.object_store}, "
                "whose segments it opens: keep it apart from them"
            )
        if problems:
            raise ConfigError(*problems)

    def _bootstrap_problems(self) -> list[str]:
        is_snapshot = self.bootstrap_source == "Snapshot"
        problems = []
        if is_snapshot and not self.object_store:
            problems.append("bootstrap-source: Snapshot needs an object-store")
        if self.bootstrap_snapshot_url and not is_snapshot:
            problems.append("bootstrap-snapshot-url: needs bootstrap-source Snapshot")
        if self.bootstrap_snapshot_to != "latest" and not is_snapshot:
            problems.append("bootstrap-snapshot-to: needs bootstrap-source Snapshot")
        if self.strict_fencing and not self.object_store:
            problems.append("strict-fencing: there is nothing to ask without an object store")
        if self.bootstrap_snapshot_url and "://" not in self.bootstrap_snapshot_url:
            problems.append(
                f"bootstrap-snapshot-url: {self.bootstrap_snapshot_url!r} must be file:///dir or "
                "s3://bucket/prefix"
            )
        if "/" in self.place:
            problems.append(f"place: {self.place!r} must be without /")
        return problems

    def address(self) -> tuple[str, int]:
        """Return the host and port to listen on."""
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)

    def store_dir(self) -> Path:
        """Return where the store is."""
        return self.data_dir / STORE_DIRECTORY

    def hub_key_path(self) -> Path:
        """Return where the hub key is."""
        if self.key_file is not None:
            return self.key_file
        return default_key_file(self.data_dir)

    def public_url(self, port: int) -> str:
        """Return what clients are told, when the hub listens on `port`."""
        if self.url:
            return self.url.rstrip("/")
        host, _ = self.address()
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return f"https://{host}:{port}"
        if address.is_unspecified:
            host = "::1" if address.version == 6 else "127.0.0.1"
        return f"https://[{host}]:{port}" if address.version == 6 else f"https://{host}:{port}"


def default_key_file(data_dir: Path) -> Path:
    """Return where the hub key of a data directory is unless it is named: beside it.

    A directory told by its place alone (``.``, ``..``) is looked up for its name. ``/`` has none,
    and nothing lies beside it: its key would be inside, which whoever loads it refuses.
    """
    named = data_dir if data_dir.name not in ("", "..") else data_dir.resolve()
    return named.parent / f"{named.name}.key"


def is_nested(directory: Path, object_store: str) -> bool:
    """Whether a directory and a ``file://`` object store are the same or lie in one another.

    What a hub keeps would then be among what it ships, and be shipped or swept with it.
    """
    parts = urlsplit(object_store)
    if parts.scheme != "file":
        return False
    ours, theirs = (Path(os.path.realpath(each)) for each in (directory, unquote(parts.path)))
    return ours.is_relative_to(theirs) or theirs.is_relative_to(ours)


def _choice(key: str, value: str, known: tuple[str, ...]) -> list[str]:
    if value in known:
        return []
    return [f"{key}: {value!r} must be {', '.join(known[:-1])} or {known[-1]}"]


def _resource_problems(key: str, named: tuple[str, ...]) -> list[str]:
    return [
        f"{key}: {each!r} must be a resource, as configmaps or widgets.example.com"
        for each in named
        if not _RESOURCE.fullmatch(each)
    ]


def _listen_problems(listen: str) -> list[str]:
    host, _, port = listen.rpartition(":")
    is_port = port.isascii() and port.isdigit() and int(port) <= 65535
    return [] if host.strip("[]") and is_port else [f"listen: {listen!r} must be ADDRESS:PORT"]


def _url_problems(url: str) -> list[str]:
    """Return why clients could not be told `url` as the address of the hub."""
    try:
        parts = urlsplit(url)
        is_address = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:  # a port that is none, or half an IPv6 address
        is_address = False
    if not is_address or parts.scheme != "https":
        return [f"url: {url!r} must be https://HOST:PORT"]
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        return [f"url: {url!r} must not have a path"]
    return []
