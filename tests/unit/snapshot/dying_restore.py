"""Restores that stop dead, one after each step of theirs: python -m ... BUCKET-URL TEMPLATE OUT.

Every round restores into a fresh copy of TEMPLATE (OUT/N/data) in a process that ends, without any
clean-up, right after its N-th change to the file system; the last round is the first that ends by
itself. A process of its own, as it forks.
"""

import os
import shutil
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import ParamSpec, TypeVar

from snapshot.remote import open_remote
from snapshot.restore import restore
from tests.unit.snapshot.support import KEY, StillClock

P = ParamSpec("P")
T = TypeVar("T")
SEAMS = ("rename", "replace", "unlink", "rmdir", "mkdir", "fsync")
DEAD = 77


def main(url: str, template: Path, out: Path) -> None:
    """Run the rounds."""
    for number in count(1):
        target = out / str(number) / "data"
        target.parent.mkdir(parents=True)
        if template.exists():
            shutil.copytree(template, target)
        child = os.fork()
        if child == 0:
            die_after(number)
            restore(open_remote(url), KEY, target, clock=StillClock("r"))
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status != DEAD:
            sys.exit(status)


def die_after(steps: int) -> None:
    """Let this process end right after so many changes."""
    left = iter(range(steps - 1, -1, -1))

    def dying(change: Callable[P, T]) -> Callable[P, T]:
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
            result = change(*args, **kwargs)
            if next(left) == 0:
                os._exit(DEAD)
            return result

        return wrapped

    for name in SEAMS:
        setattr(os, name, dying(getattr(os, name)))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
