"""How the ``hublet`` commands end when something is wrong: a message, a hint, an exit code.

Owns the codes (docs/errors.md) and which failure has which; anything unknown is a bug and shows its
traceback.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import click

from hub.auth.errors import AuthError
from hub.store import StoreError
from snapshot.errors import Fenced, SnapshotError
from tools.refusals import explain_os_error

EXIT_OS, EXIT_CONFIG, EXIT_STORE, EXIT_FENCED = 1, 2, 11, 75
KNOWN = (BaseExceptionGroup, SnapshotError, StoreError, AuthError, OSError)
"""What `explain` is for; an exception group holds one of the others, or a bug."""


def explain(error: BaseException, places: Mapping[str, Path], *, address: str = "") -> NoReturn:
    """End with the exit code of a known failure; `places` and `address` as `explain_os_error`."""
    error = _first(error)
    if isinstance(error, Fenced):
        fail(EXIT_FENCED, str(error), error.hint)
    if isinstance(error, SnapshotError):
        fail(error.exit_code, str(error), error.hint)
    if isinstance(error, StoreError | AuthError):
        fail(EXIT_STORE, str(error))
    if isinstance(error, OSError):
        fail(EXIT_OS, *explain_os_error(error, places, address=address))
    raise error


def fail(code: int, message: str, hint: str = "") -> NoReturn:
    """End with a message, and a hint where there is something to do."""
    click.echo(f"error: {message}", err=True)
    if hint:
        click.echo(f"hint: {hint}", err=True)
    sys.exit(code)


def _first(error: BaseException) -> BaseException:
    """Return the failure that ended a task group, the innermost of the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
