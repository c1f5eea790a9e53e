"""``hublet``: serve a hub, simulate a fleet, show the main job.

Thin: reads flags, environment (``HUBLET_*``) and file, and hands over. Exit codes are in
docs/errors.md.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

import click
import uvloop
from click.core import ParameterSource

from hub.auth.errors import AuthError
from hub.clock import SystemClock
from hub.config import Config, ConfigError
from hub.server import Started, run_hub
from hub.store import StoreError
from snapshot.errors import Fenced, SnapshotError
from tools.demo import demo
from tools.logs import configure_logs
from tools.refusals import explain_os_error
from tools.settings import Effective, add_settings, resolve
from tools.simulate.cli import simulate

EXIT_OS, EXIT_CONFIG, EXIT_STORE, EXIT_FENCED = 1, 2, 11, 75


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
    except (BaseExceptionGroup, SnapshotError, StoreError, AuthError, OSError) as error:
        _explain(_first(error), config)


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
        _fail(EXIT_CONFIG, error.problems[-1])


def _explain(error: BaseException, config: Config) -> None:
    """End with the exit code of a known failure; anything else is a bug and shows its traceback."""
    if isinstance(error, Fenced):
        _fail(EXIT_FENCED, str(error), error.hint)
    if isinstance(error, SnapshotError):
        _fail(error.exit_code, str(error), error.hint)
    if isinstance(error, StoreError | AuthError):
        _fail(EXIT_STORE, str(error))
    if isinstance(error, OSError):
        _fail(EXIT_OS, *explain_os_error(error, _places(config), address=config.listen))
    raise error


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
    click.echo(
        f"hublet serves {started.url}  ({started.start_kind} start, {started.seconds:.2f} s)"
    )
    click.echo(f"  export KUBECONFIG={started.kubeconfig.resolve()}")
    click.echo("  kubectl get managedclusters")
    click.echo("  hublet simulate --kubeconfig $KUBECONFIG --clusters 10")
    for warning in started.warnings:
        click.echo(f"warning: {warning}")
    sys.stdout.flush()


def _first(error: BaseException) -> BaseException:
    """Return the failure that ended a task group, the innermost of the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _fail(code: int, message: str, hint: str = "") -> NoReturn:
    click.echo(f"error: {message}", err=True)
    if hint:
        click.echo(f"hint: {hint}", err=True)
    sys.exit(code)


add_settings(serve)
add_settings(show)
main.add_command(simulate)
main.add_command(demo)

if __name__ == "__main__":
    main()
