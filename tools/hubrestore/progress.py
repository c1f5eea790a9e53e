"""Progress of a long operation: a bar with rate and estimate on a terminal, nothing elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from snapshot.plan import Progress, Quiet
from tools.hubrestore.output import is_terminal, size

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

_BYTES = frozenset({"fetch", "copy"})
"""Phases whose units are bytes; those of the others are objects."""


class Bar:
    """A `Progress` that draws on stderr."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._bar: ProgressBar[int] | None = None
        self._name, self._done, self._began_s = "", 0, 0.0

    def phase(self, name: str, total: int) -> None:
        """Begin a bar; the one before is done."""
        self.close()
        self._name, self._done, self._began_s = name, 0, self._now_s()
        self._bar = click.progressbar(
            length=total,
            label=f"{name:<6}",
            file=sys.stderr,
            show_eta=True,
            item_show_func=lambda _: self.rate(),
        )
        self._bar.render_progress()

    def advance(self, units: int) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._done += units
            self._bar.update(units)

    def close(self) -> None:
        """End the bar that is drawn."""
        if self._bar is not None:
            self._bar.render_finish()
            self._bar = None

    def rate(self) -> str:
        """Return what is done a second, since the phase began."""
        rate = self._done / max(self._now_s() - self._began_s, 1e-3)
        return f"{size(int(rate))}/s" if self._name in _BYTES else f"{rate:,.0f} objects/s"


@contextmanager
def shown() -> Iterator[Progress]:
    """Give the progress of an operation: drawn when somebody looks."""
    if not is_terminal():
        yield Quiet()
        return
    bar = Bar()
    try:
        yield bar
    finally:
        bar.close()
