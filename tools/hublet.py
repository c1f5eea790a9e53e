"""``hublet``: serve a hub, simulate a fleet, show the main job.

Thin: reads flags, environment (``HUBLET_*``) and file, and hands over. Exit codes are in
docs/errors.md.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from urllib.parse import urlsplit

import click
import uvloop
from click.core import ParameterSource

from hub.clock import SystemClock
from hub.config import Config, ConfigError
from hub.server import Started, run_hub
from tools.accepting import accept, detach
from tools.clusters import clusters
from tools.demo import demo
from tools.failures import EXIT_CONFIG, KNOWN, explain, fail
from tools.joining import get, join_command
from tools.logs import configure_logs
from tools.settings import Effective, add_settings, resolve
from tools.simulate.cli import simulate
from tools.store import store
from tools.why import why


@click.group(context_settings={"show_default": True, "help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hublet")
def main() -> None:
    """Serve a compact multi-cluster hub: one process, one file, one bucket."""


@main.command()
@click.pass_context
def serve(context: click.Context, /, **_flags: object) -> None:
    """Run a hub until SIGTERM or SIGINT."""
    config = _resolve(context).config
    configure_logs(config.log_level)
    try:
        uvloop.run(_serve(config))
    except KNOWN as error:
        explain(error, _places(config), address=config.listen)


@main.group("config")
def config_group() -> None:
    """Look at the configuration."""


@config_group.command("show")
@click.pass_context
def show(context: click.Context, /, **_flags: object) -> None:
    """Print what is in force and where each setting comes from, as a YAML file."""
    for line in _resolve(context).lines():
        click.echo(line)


def _resolve(context: click.Context) -> Effective:
    """Return the configuration, or end with everything that is wrong with it."""
    given = {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    try:
        return resolve(given, os.environ)
    except ConfigError as error:
        for problem in error.problems[:-1]:
            click.echo(f"error: {problem}", err=True)
        fail(EXIT_CONFIG, error.problems[-1])


def _places(config: Config) -> dict[str, Path]:
    """Return where a hub keeps files, by setting."""
    places = {"data-dir": config.data_dir, "key-file": config.hub_key_path()}
    if config.audit_log not in ("", "-"):
        places["audit-log"] = Path(config.audit_log)
    return places


async def _serve(config: Config) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await run_hub(config, SystemClock(), stop=stop, on_started=_greet)


def _greet(started: Started) -> None:
    """Tell whoever started the hub where to go next."""
    # a URL that was given once is kept, and may be of another port or a proxy's
    is_elsewhere = urlsplit(started.url).netloc != started.listen
    listening = f" (listening on {started.listen})" if is_elsewhere else ""
    click.echo(
        f"hublet serves {started.url}{listening}"
        f"  ({started.start_kind} start, {started.seconds:.2f} s)"
    )
    click.echo(f"  export KUBECONFIG={started.kubeconfig.resolve()}")
    click.echo("  kubectl get managedclusters")
    click.echo("  hublet simulate --kubeconfig $KUBECONFIG --clusters 10")
    for warning in started.warnings:
        click.echo(f"warning: {warning}")
    sys.stdout.flush()


add_settings(serve)
add_settings(show)
main.add_command(simulate)
main.add_command(demo)
main.add_command(store)
main.add_command(get)
main.add_command(join_command)
main.add_command(accept)
main.add_command(detach)
main.add_command(clusters)
main.add_command(why)

if __name__ == "__main__":
    main()
