"""Which kubeconfig is taken, and that a fault of it is told as one: exit 2 and the field."""

import base64
import os
from pathlib import Path

import pytest
import yaml

from hub.auth.authority import serving_names
from hub.auth.identity import create_identity
from hub.meta import Obj
from tests.unit.auth.support import NOW, VirtualClock
from tools.asking import EXIT_CONFIG, find_identity

URL = "https://hub.test:6443"
IDENTITY = create_identity(URL, VirtualClock(), names=serving_names(URL))
CA = IDENTITY.serving_ca.cert_pem
ADMIN = IDENTITY.mint_admin(NOW)
TRUST: Obj = {"certificate-authority-data": base64.b64encode(CA.encode()).decode()}
DAMAGED = CA.replace(CA.splitlines()[3], "@" * 64)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def write(path: Path, *, cluster: Obj | None = None, user: Obj | None = None) -> Path:
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "hub", "user": "u"}}],
        "clusters": [
            {"name": "hub", "cluster": {"server": URL, **(TRUST if cluster is None else cluster)}}
        ],
        "users": [{"name": "u", "user": {"token": "t"} if user is None else user}],
    }
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.mark.parametrize(
    ("cluster", "user", "says"),
    [
        ({"certificate-authority-data": encoded(DAMAGED)}, None, "certificate-authority has no"),
        ({"certificate-authority-data": encoded("\u00e4")}, None, "certificate-authority has no"),
        ({"certificate-authority-data": "!"}, None, "certificate-authority-data is not base64"),
        ({"certificate-authority": "no.crt"}, None, "/no.crt cannot be read: No such file"),
        ({**TRUST, "server": f"{URL}/proxy/hub"}, None, "server must be https://HOST:PORT"),
        ({**TRUST, "server": "https://hub:port"}, None, "server must be https://HOST:PORT"),
        ({**TRUST, "insecure-skip-tls-verify": True}, None, "has insecure-skip-tls-verify"),
        ({**TRUST, "tls-server-name": "x"}, None, "has tls-server-name"),
        (None, {"token": "t", "as": "somebody"}, "has as, which"),
        (None, {"exec": {"command": "x"}}, "has exec, which"),
        (None, {"tokenFile": "no.token"}, "/no.token cannot be read: No such file"),
        (None, {"tokenFile": "empty"}, "/empty is empty"),
        (None, {"client-certificate-data": encoded(ADMIN.cert_pem)}, "one is missing"),
        (
            None,
            {"client-certificate-data": encoded("x"), "client-key-data": encoded("y")},
            "are not a usable pair",
        ),
    ],
)
def test_a_fault_is_told_with_the_file_and_the_field(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    cluster: Obj | None,
    user: Obj | None,
    says: str,
) -> None:
    (tmp_path / "empty").touch()
    path = write(tmp_path / "config", cluster=cluster, user=user)
    with pytest.raises(SystemExit) as ended:
        find_identity(path)
    assert ended.value.code == EXIT_CONFIG
    told = capsys.readouterr().err
    assert told.startswith(f"error: {path}: ")
    assert says in told


def test_without_a_ca_the_systems_are_trusted(tmp_path: Path) -> None:
    identity = find_identity(write(tmp_path / "config", cluster={}))
    assert identity.ca_pem == b""
    assert identity.context().check_hostname


def test_a_client_certificate_and_a_slash_after_the_port_are_taken(tmp_path: Path) -> None:
    user = {
        "client-certificate-data": encoded(ADMIN.cert_pem),
        "client-key-data": encoded(ADMIN.key_pem),
    }
    path = write(tmp_path / "config", cluster={**TRUST, "server": f"{URL}/"}, user=user)
    assert find_identity(path).server == URL


def test_a_file_with_a_token_counts_before_an_inline_one(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    path = write(tmp_path / "config", user={"tokenFile": "token", "token": "old"})
    assert find_identity(path).headers() == [("authorization", "Bearer from-file")]


def test_of_a_list_the_first_file_with_a_current_context_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "blank").write_text("clusters: []\n")
    first = write(tmp_path / "first", user={"token": "first"})
    second = write(tmp_path / "second", user={"token": "second"})
    none = [str(tmp_path / "missing"), str(tmp_path / "blank"), ""]
    monkeypatch.delenv("HUBLET_KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([*none, str(first), str(second)]))
    assert find_identity(None).token == "first"
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(none))
    with pytest.raises(SystemExit) as ended:
        find_identity(None)
    assert ended.value.code == EXIT_CONFIG
    assert "no file of KUBECONFIG has a current context" in capsys.readouterr().err
