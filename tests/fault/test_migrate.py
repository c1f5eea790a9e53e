"""hub-restore migrate with real processes: the old hub ends, the new one has the same clusters."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hub.meta import Obj
from snapshot.head import Head, decode_head
from tests.hubs import ROOT, HubProcess

CLUSTERS = 3


@dataclass(frozen=True, slots=True)
class Site:
    """An old hub with a fleet, and where a new one is to be."""

    place: Path
    port: int
    old: HubProcess

    @property
    def key(self) -> str:
        return str(self.place / "hub.key")

    def url(self, name: str) -> str:
        return (self.place / name).as_uri()

    def head(self, name: str) -> Head:
        return decode_head((self.place / name / "HEAD").read_bytes())

    def serve_command(self, store: str) -> str:
        return (
            f"{sys.executable} -m tools.hublet serve --data-dir {self.place / 'new'} "
            f"--listen 127.0.0.1:{self.port} --key-file {self.key} --object-store {self.url(store)}"
        )

    @contextlib.contextmanager
    def migrating(self, store: str, *flags: str) -> Iterator["subprocess.Popen[str]"]:
        """A move from bucket "a" under way; it has ended after the block."""
        words = [sys.executable, "-m", "tools.restore", "migrate", "--from", self.url("a")]
        words += ["--to-store", self.url(store), "--into", str(self.place / "new")]
        words += ["--key-file", self.key, "--kubeconfig", str(self.old.kubeconfig), *flags]
        pipe = subprocess.PIPE
        with subprocess.Popen(words, cwd=ROOT, stdout=pipe, stderr=pipe, text=True) as process:
            yield process

    def migrate(self, store: str, *flags: str) -> "subprocess.CompletedProcess[str]":
        """Move from bucket "a"."""
        with self.migrating(store, *flags) as process:
            out, err = process.communicate(timeout=90)
            return subprocess.CompletedProcess([], process.returncode, out, err)

    def simulate(self, kubeconfig: Path, duration: str) -> Obj:
        """Let the fleet work for a while; return the report."""
        report = self.place / "report.json"
        words = [sys.executable, "-m", "tools.hublet", "simulate", "--kubeconfig", str(kubeconfig)]
        words += ["--clusters", str(CLUSTERS), "--works", "1", "--duration", duration]
        words += ["--state-dir", str(self.place / "fleet"), "--report", str(report)]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        found: Obj = json.loads(report.read_bytes())
        return found


@pytest.fixture
def site(tmp_path: Path, free_port: int) -> Iterator[Site]:
    flags = ["--key-file", str(tmp_path / "hub.key"), "--object-store", (tmp_path / "a").as_uri()]
    with contextlib.ExitStack() as stack:
        old = HubProcess(tmp_path / "old", free_port, *flags)
        stack.push(old.__exit__)
        old.start()
        yield Site(tmp_path, free_port, old)


@contextlib.contextmanager
def ended(pid: int) -> Iterator[None]:
    """End a detached process with the block."""
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def pid_of(said: str) -> int:
    found = re.search(r"process (\d+) runs", said)
    assert found, said
    return int(found[1])


def missing_of(said: str) -> list[str]:
    return said.partition("no Lease renewed since: ")[2].splitlines()[0].split(", ")


def read_until(process: "subprocess.Popen[str]", mark: str) -> str:
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if mark in line:
            return said
    assert process.stderr is not None
    raise AssertionError(said + process.stderr.read())


@pytest.mark.timeout(180)
@pytest.mark.parametrize("store", ["b", "a"])
def test_a_hub_moves_with_its_fleet_and_a_second_run_finds_it_there(site: Site, store: str) -> None:
    site.simulate(site.old.kubeconfig, "1s")
    flags = ("--start", site.serve_command(store), "--clusters-timeout", "60")
    with site.migrating(store, *flags) as moving:
        said = read_until(moving, "] start: ")
        with ended(pid_of(said)):
            said += read_until(moving, "] check: ")
            report = site.simulate(site.old.kubeconfig, "2s")
            out, err = moving.communicate(timeout=90)
            said += out
            assert moving.returncode == 0, said + err
            assert f"{CLUSTERS} of {CLUSTERS} clusters are back, 50 % after" in said
            assert "127.0.0.1 is 127.0.0.1" in said
            assert report["csrs_created"] == 0
            assert site.old.wait() == 0
            assert not site.head(store).released
            if store != "a":
                old = site.head("a")
                assert (old.released, old.moved) == (True, site.url("b"))
            again = site.migrate(store, "--clusters-timeout", "10", "-o", "json")
            facts = json.loads(again.stdout)
            assert again.returncode == 0
            assert "a hub runs on" in facts["steps"]["start"]["says"]
            assert facts["steps"]["clusters"]["says"].startswith(f"{CLUSTERS} of {CLUSTERS}")


@pytest.mark.timeout(120)
def test_a_move_that_was_cut_short_is_taken_up(site: Site) -> None:
    failing = site.migrate("b", "--start", f"{sys.executable} -c raise(SystemExit(3))")
    assert failing.returncode == 8, failing.stdout + failing.stderr
    assert "the new hub has ended with 3" in failing.stderr
    rehearsal = site.migrate("b", "--dry-run", "-o", "json")
    steps = json.loads(rehearsal.stdout)["steps"]
    states = {name: told["says"].partition(":")[0] for name, told in steps.items()}
    assert states == {
        "release": "done",
        "copy": "done",
        "restore": "done",
        "start": "open",
        "check": "open",
        "clusters": "open",
    }
    with site.migrating("b", "--start", site.serve_command("b")) as taken_up:
        said = read_until(taken_up, "] start: ")
        with ended(pid_of(said)):
            out, err = taken_up.communicate(timeout=60)
            assert taken_up.returncode == 0, said + out + err
            assert "holds the newest state" in said
            assert "no clusters were known" in out


@pytest.mark.timeout(120)
def test_a_hub_that_was_lost_is_moved_when_it_is_said_to_be_stopped(site: Site) -> None:
    site.simulate(site.old.kubeconfig, "1s")
    site.old.kill()
    refused = site.migrate("b", "-o", "json")
    assert refused.returncode == 6
    assert json.loads(refused.stdout)["error"]["hint"].startswith("see that it runs")
    flags = ("--already-stopped", "--start", site.serve_command("b"), "--clusters-timeout", "2")
    with site.migrating("b", *flags) as moving:
        said = read_until(moving, "] start: ")
        with ended(pid_of(said)):
            out, err = moving.communicate(timeout=60)
            assert moving.returncode == 1, said + out + err
            assert f"0 of {CLUSTERS} clusters are back" in out
            assert "missing: no Lease renewed since: " in out
            assert len(missing_of(out)) == CLUSTERS
            assert site.head("a").moved == site.url("b")


@pytest.mark.timeout(120)
def test_release_asks_the_hub_of_a_kubeconfig_and_waits(site: Site) -> None:
    words = [sys.executable, "-m", "tools.restore", "release", "--from", site.url("a")]
    words += ["--kubeconfig", str(site.old.kubeconfig), "-o", "json"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["released"]
    assert site.head("a").released
    assert site.old.wait() == 0
