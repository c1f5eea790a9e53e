"""docs/sizing.md, from what `perf.backup` measured."""

from collections.abc import Callable

from hub.meta import Obj
from perf.machine import median

_HEAD = """# Sizing: backup and restore

Written by `python -m perf.backup --render docs/sizing.json`; do not edit. Measured by
`python -m perf.backup --clusters {counts} --out docs/sizing.json` on {date}: {cores} cores of a
shared {cpu}, {file_system}, Python {python}. Hub, simulated fleet ({works} ManifestWorks a
cluster, every agent with its two connections and their watches), SeaweedFS on loopback and the
measuring process share the cores. Load before and after each run: {loads}. Compare ratios within a
run, never single figures with another machine's.

| | {columns} | goal at 3,000 |
|---|{bars}---|
"""

_TAIL = """
- **A full** is from its beginning to its name in HEAD, read back afterwards; median of five. It
  goes on beside serving: requests (100 a second, a read and a durable write in turn) took at the
  99th percentile what the two rows say, without and during fulls. Memory is the most above the
  beginning of each full (median).
- **A new cluster** is created with `Hublet-Durable: true`: answered when the bucket has it.
- **Changed**: so many per cent of all objects get a new label as fast as the hub takes them; the
  deltas of that time. The hub ships at 1 MiB, 1,000 objects or one second, so they are several.
- **Restore** is `hub-restore restore`, process and all, then a hub started on the directory until
  `/readyz` says 200. Clusters count as back when their own agent has renewed its Lease since the
  start (the hub's status tells it); an agent does that once a minute, and so much of the time is
  their period.
- **Cold start**: the directory of a hub stopped in good order is copied, its pages are dropped
  from the cache, and a hub is started on the copy until `/readyz`.
"""


def render(found: Obj) -> str:
    """Return the page."""
    runs, about = found["runs"], found["machine"]
    counts = [run["clusters"] for run in runs]
    loads = "; ".join(f"{run['load'][0]:.1f}, {run['load'][1]:.1f}" for run in runs)
    head = _HEAD.format(
        **about,
        counts=" ".join(map(str, counts)),
        works=runs[0]["works"],
        loads=loads,
        columns=" | ".join(f"{count:,}" for count in counts),
        bars="---|" * len(counts),
    )
    rows = "".join(
        f"| {name} | {' | '.join(show(run) for run in runs)} | {goal} |\n"
        for name, show, goal in _ROWS
    )
    return head + rows + _TAIL


def _changed(share: str) -> Callable[[Obj], str]:
    def show(run: Obj) -> str:
        it = run["changed"][share]
        each = f"{it['bytes'] / 1e3:.0f} kB in {it['segments']:.0f}"
        spent = (it["cut_s"] + it["put_s"]) / max(1, it["segments"]) * 1000
        return f"{it['objects']:.0f} objects: {each}, {spent:.0f} ms each"

    return show


def _back(key: str) -> Callable[[Obj], str]:
    return lambda run: ", ".join(f"{run[key].get(share, '-')}" for share in ("50", "95", "100"))


_ROWS: tuple[tuple[str, Callable[[Obj], str], str], ...] = (
    ("objects", lambda r: f"{r['objects']:,}", ""),
    ("data file", lambda r: f"{r['file_bytes'] / 1e6:.0f} MB", ""),
    (
        "hub's memory, fleet connected (without file pages)",
        lambda r: f"{r['rss_mib']:.0f} ({r['anon_mib']:.0f}) MiB",
        "",
    ),
    ("full: time", lambda r: f"{median(r['full_s']):.2f} s", "3 s"),
    ("full: size", lambda r: f"{r['full_bytes'] / 1e6:.1f} MB", "70 MB"),
    (
        "full: memory beside (without file pages)",
        lambda r: f"+{median(r['full_rss_mib']):.0f} (+{median(r['full_anon_mib']):.0f}) MiB",
        "+50 MiB",
    ),
    ("p99 of requests without a full", lambda r: f"{r['quiet_p99_ms']:.1f} ms", ""),
    (
        "p99 of requests during a full",
        lambda r: f"{r['full_p99_ms']:.1f} ms ({r['full_p99_ms'] / r['quiet_p99_ms']:.2f} times)",
        "1.5 times",
    ),
    ("new cluster durable: p50", lambda r: f"{r['new_p50_ms']:.1f} ms", "20 ms"),
    ("new cluster durable: p99", lambda r: f"{r['new_p99_ms']:.1f} ms", "80 ms"),
    ("delta of one new cluster", lambda r: f"{r['one_bytes'] / 1e3:.1f} kB", ""),
    ("deltas of 1 % changed", _changed("1%"), ""),
    ("deltas of 5 % changed", _changed("5%"), ""),
    ("restore from the bucket", lambda r: f"{r['restore_s']:.2f} s", ""),
    ("restore to `/readyz`", lambda r: f"{r['restore_ready_s']:.2f} s", "3 s"),
    ("then 50, 95, 100 % of the clusters back (s)", _back("restored_back_s"), ""),
    ("cold start on a copied volume to `/readyz`", lambda r: f"{r['cold_ready_s']:.2f} s", "1 s"),
    ("then 50, 95, 100 % of the clusters back (s)", _back("copied_back_s"), ""),
)
