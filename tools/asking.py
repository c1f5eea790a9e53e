"""What the commands for people have in common: which hub they ask, and when they fail.

Owns ``--kubeconfig`` with its places, and the exit codes (docs/errors.md).
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from hub.http.client import ConnectionLost
from tools.caller import Caller, RefusedError, calling
from tools.failures import fail
from tools.kubeconfig import Kubeconfig, has_current_context, read_kubeconfig

P = ParamSpec("P")
T = TypeVar("T")
EXIT_REFUSED, EXIT_CONFIG, EXIT_UNREACHABLE = 1, 2, 3
VARIABLES = ("HUBLET_KUBECONFIG", "KUBECONFIG")
DEFAULT = Path("hublet-data/admin.kubeconfig")


def asks_a_hub(command: Callable[P, None]) -> Callable[P, None]:
    """Add ``--kubeconfig``."""
    return click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path),
        help=f"Which hub, and as whom.  [env var: {', '.join(VARIABLES)}; default: {DEFAULT}]",
    )(command)


def run(kubeconfig: Path | None, work: Callable[[Caller], Awaitable[T]]) -> T:
    """Ask the hub of a kubeconfig, or end with what is wrong."""
    identity = find_identity(kubeconfig)
    try:
        return asyncio.run(_work(identity, work))
    except RefusedError as error:
        fail(EXIT_REFUSED, str(error))
    except (ConnectionLost, TimeoutError, OSError) as error:
        fail(
            EXIT_UNREACHABLE,
            f"{identity.server} does not answer: {error or type(error).__name__}",
            "see that the hub runs, and that this is its address",
        )


async def _work(identity: Kubeconfig, work: Callable[[Caller], Awaitable[T]]) -> T:
    async with calling(identity) as caller:
        return await work(caller)


def find_identity(kubeconfig: Path | None) -> Kubeconfig:
    """Read the kubeconfig that is meant: the flag's, a variable's, or the one a hub has written."""
    path = kubeconfig or _named_by_environment() or DEFAULT
    try:
        identity = read_kubeconfig(path)
    except OSError as error:
        fail(
            EXIT_CONFIG,
            f"kubeconfig {path} cannot be read: {error.strerror}",
            f"name the hub's with --kubeconfig; hublet serve writes it as {DEFAULT}",
        )
    except ValueError as error:
        fail(EXIT_CONFIG, str(error))
    try:
        identity.context()
    except ValueError as error:
        fail(EXIT_CONFIG, f"{path}: {error}")
    return identity


def _named_by_environment() -> Path | None:
    """Return the file that a variable names, None when none does.

    KUBECONFIG may be a list, of which kubectl takes the first current context. Files are not merged
    here: the first that has one must have what it names, too.
    """
    if own := os.environ.get("HUBLET_KUBECONFIG"):
        return Path(own)
    listed = [Path(each) for each in os.environ.get("KUBECONFIG", "").split(os.pathsep) if each]
    if len(listed) < 2:
        return next(iter(listed), None)
    if chosen := next((path for path in listed if has_current_context(path)), None):
        return chosen
    return fail(
        EXIT_CONFIG,
        f"no file of KUBECONFIG has a current context: {', '.join(map(str, listed))}",
        "name the hub's kubeconfig with --kubeconfig",
    )
