"""Reads a kubeconfig: server, CA and credentials of the current context.

Inline data, files beside it and bearer tokens. What would run another program, and whatever else
changes where or as whom kubectl asks, is refused: to read over it would be to ask as somebody else.
"""

import base64
import ipaddress
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from hub.http.tls import client_context, replace_leaf
from hub.meta import Obj

_UNSUPPORTED_PLACE = ("insecure-skip-tls-verify", "proxy-url", "tls-server-name")
_UNSUPPORTED_USER = (
    *("exec", "auth-provider", "username", "password"),
    *("as", "as-uid", "as-groups", "as-user-extra"),
)


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """Where the hub is, whom to trust, and who to be: a client certificate, a token, or nobody."""

    host: str
    port: int
    ca_pem: bytes
    """Empty: the system's CAs, as for kubectl."""
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
        """Return what TLS needs to reach the server as this identity.

        Raises ValueError, which names the field that is not usable.
        """
        try:
            context = client_context(self.ca_pem or None)
        except (ValueError, ssl.SSLError) as error:
            raise ValueError(f"certificate-authority has no usable certificate: {error}") from error
        if bool(self.cert_pem) != bool(self.key_pem):
            raise ValueError("client-certificate and client-key need each other: one is missing")
        if self.cert_pem:
            try:
                replace_leaf(context, self.cert_pem, self.key_pem)
            except (ValueError, ssl.SSLError) as error:
                raise ValueError(
                    f"client-certificate and client-key are not a usable pair: {error}"
                ) from error
        return context

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
        _refuse_unsupported(path, cluster, user)
        host, port = _parse_server(path, cluster["server"])
        return Kubeconfig(
            host=host,
            port=port,
            ca_pem=_content(cluster, "certificate-authority", path),
            cert_pem=_content(user, "client-certificate", path),
            key_pem=_content(user, "client-key", path),
            token=_token(user, path),
            cluster_name=str(context["cluster"]),
        )
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"{path} is not a kubeconfig: {error}") from error


def has_current_context(path: Path) -> bool:
    """Whether the file is there and names one; a file that is broken counts, to be told of."""
    try:
        config = yaml.safe_load(path.read_text())
    except FileNotFoundError:
        return False
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return True
    return not isinstance(config, dict) or bool(config.get("current-context"))


def _named(config: Obj, section: str, key: str, name: str) -> Obj:
    for entry in config[section]:
        if entry["name"] == name:
            value: Obj = entry[key]
            return value
    raise ValueError(f"the kubeconfig has no {key} named {name!r}")


def _refuse_unsupported(path: Path, cluster: Obj, user: Obj) -> None:
    for whose, section, fields in (
        ("cluster", cluster, _UNSUPPORTED_PLACE),
        ("user", user, _UNSUPPORTED_USER),
    ):
        for name in fields:
            if section.get(name):
                raise ValueError(
                    f"{path}: the {whose} of the current context has {name}, which is not "
                    "supported here; give a kubeconfig with a server, its CA, and a client "
                    "certificate or a token"
                )


def _parse_server(path: Path, url: str) -> tuple[str, int]:
    problem = f"{path}: server must be https://HOST:PORT and no more, not {url!r}"
    try:
        server = urlsplit(url)
        port = server.port or 443
    except ValueError as error:
        raise ValueError(problem) from error
    is_plain = server.path in {"", "/"} and not (server.query or server.fragment)
    if server.scheme != "https" or not server.hostname or "@" in server.netloc or not is_plain:
        raise ValueError(problem)
    return server.hostname, port


def _token(user: Obj, path: Path) -> str:
    """Return the bearer token; a file counts before one that is inline, as in client-go."""
    if not user.get("tokenFile"):
        return str(user.get("token") or "")
    return _read(user, "tokenFile", path).decode().strip()


def _content(section: Obj, key: str, path: Path) -> bytes:
    """Return what stands inline, or in the file that is named, seen from the kubeconfig."""
    if inline := section.get(f"{key}-data"):
        try:
            return base64.b64decode("".join(str(inline).split()), validate=True)
        except ValueError as error:
            raise ValueError(f"{path}: {key}-data is not base64: {error}") from error
    return _read(section, key, path) if section.get(key) else b""


def _read(section: Obj, key: str, path: Path) -> bytes:
    file = path.parent / str(section[key])
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: {key} {file} cannot be read: {error.strerror}") from error
    if not content.strip():
        raise ValueError(f"{path}: {key} {file} is empty")
    return content
