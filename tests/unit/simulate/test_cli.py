"""Flags: durations, kubeconfigs, and the hubs that are refused."""

import base64
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from hub.auth.authority import serving_names
from hub.auth.identity import create_identity
from tests.unit.auth.support import NOW, VirtualClock
from tools.duration import parse_duration
from tools.kubeconfig import read_kubeconfig
from tools.simulate.cli import EXIT_CONFIG, simulate
from tools.simulate.fleet import Plan

URL = "https://127.0.0.1:6443"
IDENTITY = create_identity(URL, VirtualClock(), names=serving_names(URL))
ADMIN = IDENTITY.mint_admin(NOW)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _kubeconfig(directory: Path, server: str) -> Path:
    user = {
        "client-certificate-data": _encoded(ADMIN.cert_pem),
        "client-key-data": _encoded(ADMIN.key_pem),
    }
    trust = _encoded(IDENTITY.serving_ca.cert_pem)
    config = {
        "current-context": "admin@hub",
        "contexts": [{"name": "admin@hub", "context": {"cluster": "hub", "user": "admin"}}],
        "clusters": [
            {"name": "hub", "cluster": {"server": server, "certificate-authority-data": trust}}
        ],
        "users": [{"name": "admin", "user": user}],
    }
    path = directory / "admin.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60s", 60),
        ("500ms", 0.5),
        ("5m", 300),
        ("1h30m", 5400),
        ("1.5s", 1.5),
        ("1d", 86400),
        ("10", 10),
    ],
)
def test_durations_are_written_as_go_writes_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "-1", "s", "5 m", "1x", "60sx"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be like 60s"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("server", "is_loopback"),
    [
        ("https://127.0.0.1:6443", True),
        ("https://[::1]:6443", True),
        ("https://localhost:6443", True),
        ("https://192.0.2.7:6443", False),
        ("https://hub.example.com", False),
    ],
)
def test_only_loopback_hubs_are_local(tmp_path: Path, server: str, is_loopback: bool) -> None:
    assert read_kubeconfig(_kubeconfig(tmp_path, server)).is_loopback is is_loopback


def test_a_hub_elsewhere_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    path = _kubeconfig(tmp_path, "https://192.0.2.7:6443")
    result = CliRunner().invoke(simulate, ["--kubeconfig", str(path), "--clusters", "1"])
    assert result.exit_code == EXIT_CONFIG
    assert "--allow-remote" in result.output


def test_the_kubeconfig_is_found_where_the_other_commands_find_it(tmp_path: Path) -> None:
    path = _kubeconfig(tmp_path, "https://192.0.2.7:6443")
    result = CliRunner().invoke(simulate, ["--clusters", "1"], env={"HUBLET_KUBECONFIG": str(path)})
    assert result.exit_code == EXIT_CONFIG
    assert "192.0.2.7 is not this machine" in result.output


@pytest.mark.parametrize("prefix", ["Bad_", "-a", "a.b", "x" * 60])
def test_a_prefix_that_makes_no_names_is_refused_before_anything_is_sent(
    tmp_path: Path, prefix: str
) -> None:
    path = _kubeconfig(tmp_path, "https://127.0.0.1:9")
    flags = ["--kubeconfig", str(path), "--clusters", "1", "--name-prefix", prefix]
    result = CliRunner().invoke(simulate, flags)
    assert result.exit_code == EXIT_CONFIG
    assert result.stderr.startswith(f"error: --name-prefix {prefix!r} makes names like {prefix}0")
    assert "must" in result.stderr


@pytest.mark.parametrize(
    ("flag", "place"),
    [
        ("--report", "nowhere/r.json"),
        ("--report", "/proc/r.json"),
        ("--state-dir", "/proc/x"),
        ("--state-dir", "/proc"),
        ("--state-dir", "file/x"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is_sent(
    tmp_path: Path, flag: str, place: str
) -> None:
    (tmp_path / "file").touch()
    path, target = _kubeconfig(tmp_path, "https://127.0.0.1:9"), tmp_path / place
    flags = ["--kubeconfig", str(path), "--clusters", "1", flag, str(target)]
    result = CliRunner().invoke(simulate, flags)
    assert result.exit_code == EXIT_CONFIG
    assert result.stderr.startswith(f"error: {flag} {target} cannot be written: ")
    assert result.stdout == ""


@pytest.mark.parametrize("content", ["", "[]", "current-context: x", "{not yaml"])
def test_what_is_no_kubeconfig_is_refused_and_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "broken.kubeconfig"
    path.write_text(content)
    with pytest.raises(ValueError, match="kubeconfig"):
        read_kubeconfig(path)


def test_names_sort_as_they_count() -> None:
    plan = Plan(
        clusters=12_000,
        works=1,
        duration_s=1.0,
        join_timeout_s=1.0,
        concurrency=1,
        name_prefix="sim-",
    )
    assert plan.names == sorted(plan.names)
    assert len(set(plan.names)) == 12_000
