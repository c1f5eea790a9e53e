"""The demo as a user runs it: `hublet demo`, with a bucket of its own and on a real S3 server."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.seaweed import seaweed
from tools.demo import demo

ROOT = Path(__file__).resolve().parents[2]


def run_demo(home: Path, *flags: str, **environ: str) -> str:
    """Run it in a process of its own, with its temporary files in `home`; return what it said."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.hublet", "demo", *flags],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(home), **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check(said: str, clusters: int) -> None:
    """The statements that the demo is for, word by word."""
    verdicts = re.findall(r"^(ok|FAILED)  +(.*)$", said, flags=re.MULTILINE)
    assert [verdict for verdict, _ in verdicts] == ["ok"] * 11, said
    text = "\n".join(statement for _, statement in verdicts)
    assert f"{clusters}/{clusters} clusters joined, {clusters}/{clusters} works applied" in text
    assert text.count(f"{clusters}/{clusters} add-ons available") == 2
    assert f"hublet clusters tells the same of {clusters}/{clusters} clusters" in text
    assert said.count("  | sim-0000   yes        True     True ") == 2
    assert f"{clusters}/{clusters} clusters back and available" in text
    assert re.search(
        rf"^0 new CSRs \({clusters} before, {clusters} after by uid", text, re.MULTILINE
    )
    assert f"{clusters}/{clusters} agents went on with the certificate they had" in text
    state = re.search(
        r"state equal by state_hash: (\w+) at revision (\d+), before (.*)$", text, re.MULTILINE
    )
    assert state is not None, said
    assert state[3] == f"{state[1]} at revision {state[2]}"
    assert "kill to serving" in said
    assert f"migrate: {clusters} of {clusters} clusters are back" in text
    assert (
        f"{clusters} clusters noticed a gap and nothing else: 0 new CSRs, 0 works evicted" in text
    )
    assert "the prefix left behind says where the hub went" in text


@pytest.mark.timeout(120)
def test_the_demo_brings_every_cluster_back_without_a_new_csr(tmp_path: Path) -> None:
    check(run_demo(tmp_path), 25)
    assert list(tmp_path.iterdir()) == [], "it cleans up"


@pytest.mark.timeout(120)
def test_the_same_demo_against_a_real_s3_server(tmp_path: Path) -> None:
    with seaweed() as server:
        url = server.url("hubs/demo")
        said = run_demo(tmp_path, "--object-store", url, **server.environ)
    check(said, 25)
    assert f"to {url}" in said


def test_a_prefix_that_is_in_use_is_refused_at_once_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir()
    (tmp_path / "bucket" / "HEAD").write_text("another hub's")
    url = (tmp_path / "bucket").as_uri()
    refused = CliRunner().invoke(demo, ["--object-store", url])
    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"error: {url} holds HEAD, and the demo begins with an empty")
    assert "hint: name one that is empty with --object-store" in refused.stderr
    assert refused.stdout == ""
    assert [each.name for each in (tmp_path / "bucket").iterdir()] == ["HEAD"]


def test_an_object_store_that_cannot_be_used_is_named_before_anything_starts() -> None:
    refused = CliRunner().invoke(demo, ["--object-store", "ftp://x"])
    assert refused.exit_code == 1
    assert "neither file:// nor s3://" in refused.stderr
    assert "hint: use file:///dir" in refused.stderr
