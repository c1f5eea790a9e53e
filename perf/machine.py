"""What the machine says: CPU, resident memory, load, cores, and the printing of figures.

Shared by the measuring commands of this directory. A figure means nothing without the load it was
taken under, so each command prints both.
"""

import os
import re
import resource
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds used so far, and resident memory in MiB, all and without file pages."""

    cpu_s: float
    rss_mib: float
    anon_mib: float


def usage(pid: int) -> Usage:
    """Return what the kernel says of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = Path(f"/proc/{pid}/status").read_text()
    kib = {n: int(v) for n, v in re.findall(r"^(VmRSS|RssAnon):\s+(\d+)", status, re.MULTILINE)}
    cpu = (int(fields[11]) + int(fields[12])) / _TICKS
    return Usage(cpu, kib["VmRSS"] / 1024, kib["RssAnon"] / 1024)


class CpuMeter:
    """CPU and wall seconds of a process since the meter was made."""

    def __init__(self, pid: int) -> None:
        self._pid, self._cpu_s, self._began_s = pid, usage(pid).cpu_s, time.monotonic()

    def cpu_s(self) -> float:
        """Return the CPU seconds since."""
        return usage(self._pid).cpu_s - self._cpu_s

    def share(self) -> float:
        """Return CPU seconds a wall second."""
        return self.cpu_s() / (time.monotonic() - self._began_s)


def say(name: str, value: str) -> None:
    """Print one figure."""
    print(f"{name:<44} {value}", flush=True)


def say_load() -> None:
    """Print the load averages: other work on the machine makes every figure worse."""
    cores = len(os.sched_getaffinity(0))
    loads = " ".join(f"{load:.2f}" for load in os.getloadavg())
    say("load of the machine (1, 5, 15 min)", f"{loads} on {cores} cores")


def percentile(values: Iterable[float], fraction: float) -> float:
    """Return the smallest value that `fraction` of all do not exceed.

    >>> percentile([4, 1, 3, 2], 0.5), percentile([4, 1, 3, 2], 1)
    (2, 4)
    """
    ordered = sorted(values)
    return ordered[max(0, -(-int(fraction * 1000) * len(ordered) // 1000) - 1)]


def median(values: Iterable[float]) -> float:
    """Return the middle value (the lower of two)."""
    return percentile(values, 0.5)


def spread(values: Sequence[float], form: str = ".0f") -> str:
    """Return least, median and most as text."""
    found = (min(values), median(values), max(values))
    return " / ".join(format(value, form) for value in found)


def split_cores() -> tuple[set[int], set[int]]:
    """Return one core for the hub and the others for what drives it.

    On a machine of one core they share it, and the figures say little.
    """
    first, *others = sorted(os.sched_getaffinity(0))
    return {first}, set(others) or {first}


def raise_descriptors(wanted: int) -> None:
    """Allow this process and its children `wanted` descriptors. Raises SystemExit with the fix."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= wanted:
        return
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise SystemExit(
            f"error: {wanted} descriptors are needed, the hard limit is {hard}\n"
            f"hint: raise it (ulimit -Hn {wanted}), or ask for fewer connections"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def file_system(path: Path) -> str:
    """Return the type of the file system under `path`: on tmpfs a sync costs nothing."""
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, point, found, *_ = line.split()
        if path.resolve().is_relative_to(point) and len(point) >= len(best):
            best, kind = point, found
    return kind
