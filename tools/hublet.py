"""``hublet``: serve a hub, simulate a fleet, show the main job.

Thin: reads flags, environment (``HUBLET_*``) and hands over. Exit codes are in docs/errors.md.
"""

import asyncio
import signal
import sys
from pathlib import Path
from typing import NoReturn

import click
import uvloop

from hub.auth.errors import AuthError
from hub.clock import SystemClock
from hub.config import Config, ConfigError, Http2
from hub.server import Started, run_hub
from hub.store import StoreError
from snapshot.errors import Fenced, SnapshotError
from tools.demo import demo
from tools.logs import configure_logs
from tools.simulate.cli import simulate

EXIT_OS, EXIT_CONFIG, EXIT_STORE, EXIT_FENCED = 1, 2, 11, 75


@click.group(context_settings={"show_default": True})
@click.version_option(package_name="hublet")
def main() -> None:
    """Serve a compact multi-cluster hub: one process, one file, one bucket."""


@main.command()
@click.option(
    "--data-dir",
    envvar="HUBLET_DATA_DIR",
    type=click.Path(path_type=Path),
    default=Path("hublet-data"),
    help="Where the store lies.",
)
@click.option(
    "--listen",
    envvar="HUBLET_LISTEN",
    default="127.0.0.1:6443",
    help="Address and port to serve on.",
)
@click.option(
    "--url", envvar="HUBLET_URL", default="", help="What clients are told, https://HOST:PORT."
)
@click.option(
    "--key-file",
    envvar="HUBLET_KEY_FILE",
    type=click.Path(path_type=Path),
    default=None,
    help="The hub key; outside the data directory.  [default: DATA_DIR.key]",
)
@click.option(
    "--object-store",
    envvar="HUBLET_OBJECT_STORE",
    default="",
    help="Ship every change to file:///dir or s3://bucket/prefix.",
)
@click.option(
    "--auto-approve-users",
    envvar="HUBLET_AUTO_APPROVE_USERS",
    default="",
    help="Bootstrap users whose first certificate requests need no person, comma separated.",
)
@click.option(
    "--auto-accept/--no-auto-accept",
    envvar="HUBLET_AUTO_ACCEPT",
    default=False,
    help="Accept every new cluster.",
)
@click.option(
    "--audit-log",
    envvar="HUBLET_AUDIT_LOG",
    default="",
    help="Record every request in this file, as JSON lines; - is standard output.",
)
@click.option(
    "--http2",
    envvar="HUBLET_HTTP2",
    type=click.Choice(["auto", "ngh2", "h2"]),
    default="auto",
    help="HTTP/2 library.",
)
@click.option(
    "--log-level", envvar="HUBLET_LOG_LEVEL", default="info", help="debug, info, warning or error."
)
def serve(
    *,
    data_dir: Path,
    listen: str,
    url: str,
    key_file: Path | None,
    object_store: str,
    auto_approve_users: str,
    auto_accept: bool,
    audit_log: str,
    http2: Http2,
    log_level: str,
) -> None:
    """Run a hub until SIGTERM or SIGINT."""
    configure_logs(log_level)
    try:
        config = Config(
            data_dir=data_dir,
            listen=listen,
            url=url,
            key_file=key_file,
            object_store=object_store,
            auto_approve_users=tuple(u for u in auto_approve_users.split(",") if u),
            auto_accept=auto_accept,
            audit_log=audit_log,
            http2=http2,
        )
    except ConfigError as error:
        _fail(EXIT_CONFIG, str(error))
    try:
        uvloop.run(_serve(config))
    except (BaseExceptionGroup, SnapshotError, StoreError, AuthError, OSError) as error:
        _explain(_first(error))


def _explain(error: BaseException) -> None:
    """End with the exit code of a known failure; anything else is a bug and shows its traceback."""
    if isinstance(error, Fenced):
        _fail(EXIT_FENCED, str(error), error.hint)
    if isinstance(error, SnapshotError):
        _fail(error.exit_code, str(error), error.hint)
    if isinstance(error, StoreError | AuthError):
        _fail(EXIT_STORE, str(error))
    if isinstance(error, OSError):
        _fail(
            EXIT_OS,
            str(error),
            "check --listen, --data-dir, --audit-log and the space on the volume",
        )
    raise error


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


main.add_command(simulate)
main.add_command(demo)

if __name__ == "__main__":
    main()
