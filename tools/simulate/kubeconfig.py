"""Reads an administrator's kubeconfig: server, CA and client certificate of the current context."""

import base64
import binascii
import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from hub.meta import Obj


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """Where the hub is, whom to trust, and who to be."""

    host: str
    port: int
    ca_pem: bytes
    cert_pem: bytes
    key_pem: bytes = field(repr=False)

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def read_kubeconfig(path: Path) -> Kubeconfig:
    """Return what the file at `path` says. Raises ValueError and OSError."""
    try:
        config = yaml.safe_load(path.read_text())
        context = _named(config, "contexts", "context", config["current-context"])
        cluster = _named(config, "clusters", "cluster", context["cluster"])
        user = _named(config, "users", "user", context["user"])
        server = urlsplit(cluster["server"])
        if server.scheme != "https" or not server.hostname:
            raise ValueError(f"server must be https://HOST:PORT, not {cluster['server']!r}")
        return Kubeconfig(
            host=server.hostname,
            port=server.port or 443,
            ca_pem=_inline(cluster, "certificate-authority-data"),
            cert_pem=_inline(user, "client-certificate-data"),
            key_pem=_inline(user, "client-key-data"),
        )
    except (KeyError, TypeError, yaml.YAMLError, binascii.Error) as error:
        raise ValueError(
            f"{path} is not a kubeconfig with a client certificate: {error}"
        ) from error


def _named(config: Obj, section: str, key: str, name: str) -> Obj:
    for entry in config[section]:
        if entry["name"] == name:
            value: Obj = entry[key]
            return value
    raise ValueError(f"the kubeconfig has no {key} named {name!r}")


def _inline(section: Obj, key: str) -> bytes:
    return base64.b64decode(section[key], validate=True)
