"""A lane: one thread for what blocks on disk and network, one thing at a time, beside the loop."""

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

_T = TypeVar("_T")
_P = ParamSpec("_P")


class Lane:
    """One worker thread; `close` waits for what it is doing."""

    def __init__(self, name: str) -> None:
        self._worker = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def run(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Run `function` in the thread, after what it was given before."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._worker, functools.partial(function, *args, **kwargs)
        )

    def later(self, function: Callable[[], object]) -> None:
        """Have `function` run after what is under way, whether or not anybody still waits."""
        try:
            self._worker.submit(function)
        except RuntimeError:  # the thread has ended: nothing is under way
            function()

    def close(self) -> None:
        """Let the thread end."""
        self._worker.shutdown(wait=True)
