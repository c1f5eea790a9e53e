"""Reads a kubeconfig: server, CA and credentials of the current context.

Inline data, files beside it and bearer tokens; what would run another program is refused, for
kubectl does that better.
"""

import base64
import binascii
import ipaddress
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from hub.http.tls import client_context
from hub.meta import Obj


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """Where the hub is, whom to trust, and who to be: a client certificate, a token, or nobody."""

    host: str
    port: int
    ca_pem: bytes
    cert_pem: bytes = b""
    key_pem: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    cluster_name: str = ""
    """What the context calls the cluster; agents compare it."""

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def server(self) -> str:
        """Return the server's URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{host}:{self.port}"

    def context(self) -> ssl.SSLContext:
        """Return what TLS needs to reach the server as this identity."""
        if not self.cert_pem:
            return client_context(self.ca_pem)
        return client_context(self.ca_pem, self.cert_pem, self.key_pem)

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers that say who asks, none with a client certificate."""
        return [("authorization", f"Bearer {self.token}")] if self.token else []


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
        for program in ("exec", "auth-provider"):
            if program in user:
                raise ValueError(
                    f"{path}: the user of the current context has {program}, which is not "
                    "supported here; give a kubeconfig with a client certificate or a token"
                )
        return Kubeconfig(
            host=server.hostname,
            port=server.port or 443,
            ca_pem=_content(cluster, "certificate-authority", path),
            cert_pem=_content(user, "client-certificate", path),
            key_pem=_content(user, "client-key", path),
            token=str(user.get("token") or ""),
            cluster_name=str(context["cluster"]),
        )
    except (KeyError, TypeError, AttributeError, yaml.YAMLError, binascii.Error) as error:
        raise ValueError(f"{path} is not a kubeconfig: {error}") from error


def _named(config: Obj, section: str, key: str, name: str) -> Obj:
    for entry in config[section]:
        if entry["name"] == name:
            value: Obj = entry[key]
            return value
    raise ValueError(f"the kubeconfig has no {key} named {name!r}")


def _content(section: Obj, key: str, path: Path) -> bytes:
    """Return what stands inline, or in the file that is named, seen from the kubeconfig."""
    if f"{key}-data" in section:
        return base64.b64decode(section[f"{key}-data"], validate=True)
    return (path.parent / section[key]).read_bytes() if key in section else b""
