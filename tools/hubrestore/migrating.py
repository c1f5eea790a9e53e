"""``migrate``: a whole move, from the old hub's last flush to the last cluster that came back."""

import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import click

from hub.clock import SystemClock
from hub.meta import Obj
from snapshot.errors import SnapshotError
from snapshot.plan import require_full
from tools.hubrestore.access import opened_without_key, prove_key, read_head, refuse_inside
from tools.hubrestore.hubapi import HubApi
from tools.hubrestore.moving import (
    Move,
    bring_over,
    release_old,
    restore_into,
    start_detached,
    wait_for_hub,
)
from tools.hubrestore.options import Given, dry, into, keyed, prefixed
from tools.hubrestore.output import print_json
from tools.hubrestore.progress import shown
from tools.hubrestore.restoring import serve_command

_LOOK_EVERY_S = 1.0
_NAMES_SHOWN = 20
_EXIT_MISSING = 1


@dataclass(frozen=True, slots=True)
class Options:
    """What only a move is told."""

    start: str
    is_stopped: bool
    release_timeout_s: int
    start_timeout_s: int
    clusters_timeout_s: int


@dataclass(slots=True)
class Story:
    """What was done, told as it is done, or at the end as one object."""

    is_json: bool
    facts: dict[str, object] = field(default_factory=dict)
    _began_s: float = field(default_factory=time.monotonic)

    def tell(self, step: str, says: str) -> None:
        """Note the end of a step."""
        at_s = time.monotonic() - self._began_s
        self.facts[step] = {"says": says, "at_seconds": round(at_s, 2)}
        if not self.is_json:
            click.echo(f"[{at_s:6.1f} s] {step}: {says}")
            sys.stdout.flush()


@dataclass(frozen=True, slots=True)
class Clusters:
    """How many of the clusters known to the snapshot have been heard since the start."""

    expected: int = 0
    returned: int = 0
    seconds_to_50: float | None = None
    seconds_to_95: float | None = None
    seconds_to_100: float | None = None

    @classmethod
    def of(cls, hub: Obj) -> "Clusters":
        """Read a Hub object."""
        told = hub.get("status", {}).get("clusters", {})
        return cls(
            expected=int(told.get("expected", 0)),
            returned=int(told.get("returned", 0)),
            seconds_to_50=told.get("secondsTo50"),
            seconds_to_95=told.get("secondsTo95"),
            seconds_to_100=told.get("secondsTo100"),
        )

    def describe(self) -> str:
        """Say it in a line."""
        parts = ((50, self.seconds_to_50), (95, self.seconds_to_95), (100, self.seconds_to_100))
        times = [f"{share} % after {spent:.1f} s" for share, spent in parts if spent is not None]
        return ", ".join([f"{self.returned} of {self.expected} clusters are back", *times])


@click.command()
@prefixed
@keyed
@into
@dry
@click.option("--to-store", required=True, metavar="URL", help="Where it goes; may be --from.")
@click.option(
    "--kubeconfig",
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="An administrator's on the old hub; it is good on the new one too.",
)
@click.option("--url", "hub_url", default="", metavar="URL", help="Another server than its own.")
@click.option(
    "--start",
    default="",
    metavar="COMMAND",
    help="Starts the new hub, detached; without, it is printed and waited for.",
)
@click.option(
    "--already-stopped", "is_stopped", is_flag=True, help="The old hub runs no more: do not ask it."
)
@click.option(
    "--release-timeout",
    "release_timeout_s",
    type=click.IntRange(min=1),
    default=120,
    show_default=True,
    metavar="SECONDS",
    help="How long the old hub may take to release.",
)
@click.option(
    "--start-timeout",
    "start_timeout_s",
    type=click.IntRange(min=1),
    default=120,
    show_default=True,
    metavar="SECONDS",
    help="How long until the URL must lead to the new hub.",
)
@click.option(
    "--clusters-timeout",
    "clusters_timeout_s",
    type=click.IntRange(min=0),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="How long to watch clusters come back.",
)
@click.pass_context
def migrate(
    ctx: click.Context,
    /,
    *,
    to_store: str,
    kubeconfig: Path,
    hub_url: str,
    dry_run: bool,
    start: str,
    is_stopped: bool,
    release_timeout_s: int,
    start_timeout_s: int,
    clusters_timeout_s: int,
    **_flags: object,
) -> None:
    """Move a hub: last flush and release, copy, restore, start, and watch its clusters come back.

    Run it again after an error: it goes on where it was. Ends with 1 when the time is over and
    clusters are missing.
    """
    given = Given.of(ctx)
    options = Options(start, is_stopped, release_timeout_s, start_timeout_s, clusters_timeout_s)
    refuse_inside(given)
    refuse_inside(given, to_store)
    api = HubApi.read(kubeconfig, url=hub_url)
    story = Story(given.is_json)
    with opened_without_key(given) as source, opened_without_key(given, to_store) as target:
        key = prove_key(given, source, require_full(read_head(source), source))
        move = Move(source, target, key, SystemClock(), given.directory, api, shown)
        serve = start or serve_command(given.directory, key.path, to_store)
        if dry_run:
            _rehearse(move, story, options, serve)
            missing: list[str] = []
        else:
            missing = _drive(move, story, options, serve)
    if given.is_json:
        print_json({"dry_run": dry_run, "steps": story.facts, "missing": missing})
    ctx.exit(_EXIT_MISSING if missing else 0)


def _drive(move: Move, story: Story, options: Options, serve: str) -> list[str]:
    """Go through every step that is open; return the clusters that did not come back."""
    log = move.directory.absolute().with_name(f"{move.directory.absolute().name}.log")
    process = None
    if move.is_started:
        story.tell("start", f"a hub runs on {move.directory} already")
    else:
        hub_id = read_head(move.source).hub_id
        story.tell(
            "release",
            release_old(
                move,
                hub_id=hub_id,
                is_stopped=options.is_stopped,
                timeout_s=options.release_timeout_s,
            ),
        )
        story.tell("copy", bring_over(move, is_stopped=options.is_stopped))
        story.tell("restore", restore_into(move))
        if options.start:
            process = start_detached(options.start, log)
            story.tell("start", f"process {process.pid} runs {options.start} (log: {log})")
        else:
            story.tell("start", f"start the new hub now: {serve}")
    found = wait_for_hub(move, process, log, timeout_s=options.start_timeout_s)
    host = move.hub.identity.host
    story.tell(
        "check",
        f"{move.hub.identity.server} leads to the new hub, epoch {found.epoch}: {found.writer}; "
        f"{host} is {resolve_host(host)}",
    )
    return _watch_clusters(move, story, timeout_s=options.clusters_timeout_s)


def _watch_clusters(move: Move, story: Story, *, timeout_s: float) -> list[str]:
    until_s = time.monotonic() + timeout_s
    clusters, told = Clusters(), 0
    with shown() as progress:
        while True:
            try:
                clusters = Clusters.of(move.hub.hub())
            except SnapshotError:
                if time.monotonic() >= until_s:
                    raise
            if not told and clusters.expected:
                progress.phase("return", clusters.expected)
            progress.advance(clusters.returned - told)
            told = clusters.returned
            if clusters.returned >= clusters.expected or time.monotonic() >= until_s:
                break
            time.sleep(_LOOK_EVERY_S)
    story.facts["clusters"] = clusters
    says = clusters.describe() if clusters.expected else "no clusters were known to the snapshot"
    story.tell("clusters", says)
    if clusters.returned >= clusters.expected:
        return []
    missing = move.hub.clusters_missing(clusters.expected - clusters.returned)
    more = f" and {len(missing) - _NAMES_SHOWN} more" if len(missing) > _NAMES_SHOWN else ""
    story.tell("missing", f"no Lease renewed since: {', '.join(missing[:_NAMES_SHOWN])}{more}")
    return missing or ["?"]


def resolve_host(host: str) -> str:
    """Return the addresses that a name has now, as this machine sees them."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        return f"not resolved here ({error.strerror or error})"
    return ", ".join(sorted({str(each[4][0]) for each in found}))


def _rehearse(move: Move, story: Story, options: Options, serve: str) -> None:
    """Say which steps are done and which are open."""
    is_started = move.is_started
    steps = (
        ("release", is_started or move.is_released, _release_words(options)),
        ("copy", is_started or move.is_copied, f"bring the chain to {move.target.url}"),
        ("restore", is_started or move.is_restored, f"restore into {move.directory}"),
        ("start", is_started, serve),
        ("check", False, f"{move.hub.identity.server} must lead to the new hub"),
        ("clusters", False, f"watch clusters come back for {options.clusters_timeout_s} s"),
    )
    for name, is_done, words in steps:
        story.tell(name, f"{'done' if is_done else 'open'}: {words}")


def _release_words(options: Options) -> str:
    if options.is_stopped:
        return "the old hub is said to be stopped"
    return "have the old hub ship the rest, release its prefix and stop"
