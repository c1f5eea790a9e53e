"""`hublet serve` in a hurry: a hub that merges, cuts fulls, drills and cleans up within seconds.

    python -m tests.fault.hurried_hub serve --data-dir DIR --object-store URL ...

So that a hub which lives for a second or two still does all that a hub does in a day. The times of
the chain are no settings of `hublet`: the protocol promises the same with any.
"""

import asyncio
import datetime as dt
import os
import signal

import click
import uvloop
from click.core import ParameterSource

from hub.backup.pace import PacePolicy
from hub.backup.tend import TendPolicy
from hub.clock import SystemClock
from hub.config import Config
from hub.server import Started, run_hub
from snapshot.policy import Policy
from snapshot.retention import Retention
from tools.failures import KNOWN, explain
from tools.logs import configure_logs
from tools.settings import add_settings, resolve

PACE = PacePolicy(debounce_s=0.02, max_wait_s=0.1, heartbeat_s=0.5, last_retry_s=1.0)
CHAIN = Policy(
    max_d0=4,
    d1_every_ms=400,
    max_d1=2,
    d2_every_ms=1_000,
    delta_floor_bytes=400_000,
    full_every_ms=5_000,
)
RETENTION = Retention(
    window=dt.timedelta(seconds=5), daily=0, weekly=0, min_age=dt.timedelta(seconds=5)
)
"""Nothing that is put is on its way to HEAD for longer than `min_age`: a try ends in 2 s."""
TEND = TendPolicy(
    look_every_s=0.1,
    list_every_s=1.0,
    drill_every_s=1.5,
    clean_every_s=0.5,
    first_drill_s=0.3,
    retry_s=0.3,
    chain=CHAIN,
    retention=RETENTION,
)


@click.group()
def main() -> None:
    """The command line of `hublet`, as far as it is needed."""


@main.command()
@click.pass_context
def serve(context: click.Context, /, **_flags: object) -> None:
    """Run a hub until SIGTERM."""
    given = {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    config = resolve(given, os.environ).config
    configure_logs(config.log_level)
    try:
        uvloop.run(_serve(config))
    except KNOWN as error:
        explain(error, {}, address=config.listen)


async def _serve(config: Config) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    clock = SystemClock()
    await run_hub(config, clock, stop=stop, on_started=_greet, pace=PACE, tend=TEND)


def _greet(started: Started) -> None:
    click.echo(f"hublet serves {started.url}  ({started.start_kind} start)")


add_settings(serve)

if __name__ == "__main__":
    main()
