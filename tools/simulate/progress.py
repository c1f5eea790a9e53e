"""How far a run is: one line that is drawn again on a terminal, plain lines elsewhere."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

LINE_EVERY_S, DRAW_EVERY_S = 2.0, 0.5
_BAR = 24
_ERASE = "\r\x1b[K"


@dataclass(slots=True)
class Progress:
    """Tells through `write`; `is_terminal` says whether a line can be drawn again.

    A plain line comes every two seconds at most, one that is drawn twice a second.
    """

    write: Callable[[str], None]
    is_terminal: bool = False
    columns: int = 80
    now_s: Callable[[], float] = time.monotonic
    _is_drawn: bool = False
    _next_s: float = 0.0

    def say(self, line: str) -> None:
        """Write a line that stays."""
        erase = _ERASE if self._is_drawn else ""
        self._is_drawn = False
        self.write(f"{erase}{line}\n")

    def show(self, line: Callable[[], str], share: float) -> None:
        """Tell how far things are; `share` is how much of this phase is done."""
        now_s = self.now_s()
        if now_s < self._next_s:
            return
        if not self.is_terminal:
            self._next_s = now_s + LINE_EVERY_S
            self.say(line())
            return
        self._next_s = now_s + DRAW_EVERY_S
        done = round(min(max(share, 0.0), 1.0) * _BAR)
        bar = f"[{'#' * done}{'.' * (_BAR - done)}] {line().strip()}"
        self._is_drawn = True
        self.write(_ERASE + bar[: max(self.columns - 1, 1)])


def progress_on(stream: TextIO) -> Progress:
    """Return the progress of a run on a stream."""

    def write(text: str) -> None:
        stream.write(text)
        stream.flush()

    columns = shutil.get_terminal_size().columns
    return Progress(write, is_terminal=stream.isatty(), columns=columns)
