"""What `hublet serve` says once it serves."""

from pathlib import Path

import pytest

from hub.server import Started
from tools.hublet import _greet


def greeting(capsys: pytest.CaptureFixture[str], url: str) -> str:
    _greet(Started(url, Path("admin.kubeconfig"), "continue", 0.5, listen="127.0.0.1:7443"))
    return capsys.readouterr().out.splitlines()[0]


def test_where_it_listens_is_said_when_the_url_is_another(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert greeting(capsys, "https://hub.example.com:6443") == (
        "hublet serves https://hub.example.com:6443 (listening on 127.0.0.1:7443)"
        "  (continue start, 0.50 s)"
    )
    assert greeting(capsys, "https://127.0.0.1:7443") == (
        "hublet serves https://127.0.0.1:7443  (continue start, 0.50 s)"
    )
