"""Hub and HubSnapshot as objects: the wire form of `hub.backup.status`.

Pure; knows also which points are listed. What is not known is left out.
"""

import datetime as dt
from collections.abc import Iterable, Sequence

from hub.backup.status import (
    ClustersStatus,
    DrillStatus,
    FencingStatus,
    FullStatus,
    HubStatus,
    ShippedStatus,
    SnapshotPoint,
    StartStatus,
)
from hub.meta import Obj
from hub.meta.timestamp import format_time

MOST_SNAPSHOTS = 50
"""How many points are listed."""
NEWEST_DELTAS = 10
"""How many of them are for the newest deltas, however many fulls and merges there are."""
NEWEST_PINNED = 15
"""How many for what is pinned, however old it is."""


def status_obj(status: HubStatus) -> Obj:
    """Return the status of the Hub object but for its conditions."""
    position, lag = status.position, status.lag
    return _known(
        {
            "identity": {
                "hubID": status.identity.hub_id,
                "version": status.identity.version,
                "url": status.identity.url,
            },
            "epoch": status.epoch,
            "writer": status.writer,
            "start": _start(status.start),
            "position": {
                "revision": position.revision,
                "stateHash": position.state_hash,
                "objects": position.objects,
            },
            "shipped": status.shipped and _shipped(status.shipped),
            "lag": {"revisions": lag.revisions, "seconds": _seconds(lag.seconds)},
            "lastFull": status.last_full and _full(status.last_full),
            "lastDrill": status.last_drill and _drill(status.last_drill),
            "fencing": _fencing(status.fencing),
            "clusters": _clusters(status.clusters),
        }
    )


def _start(start: StartStatus) -> Obj:
    return _known(
        {
            "kind": start.kind,
            "time": format_time(start.at),
            "source": start.source,
            "takeover": start.takeover,
            "restoredFrom": start.restored_from,
            "restoredRevision": start.restored_revision,
        }
    )


def _shipped(shipped: ShippedStatus) -> Obj:
    time = _time(shipped.at)
    return _known({"revision": shipped.revision, "seq": shipped.seq, "time": time})


def _full(full: FullStatus) -> Obj:
    return _known(
        {
            "revision": full.revision,
            "time": format_time(full.at),
            "size": full.size,
            "seconds": _seconds(full.seconds),
        }
    )


def _drill(drill: DrillStatus) -> Obj:
    return {
        "revision": drill.revision,
        "time": format_time(drill.at),
        "seconds": _seconds(drill.seconds),
        "result": drill.result,
    }


def _fencing(fencing: FencingStatus) -> Obj:
    return _known({"level": fencing.level, "missing": list(fencing.missing)})


def _clusters(clusters: ClustersStatus) -> Obj:
    return _known(
        {
            "expected": clusters.expected,
            "returned": clusters.returned,
            "secondsTo50": _seconds(clusters.seconds_to_50),
            "secondsTo95": _seconds(clusters.seconds_to_95),
            "secondsTo100": _seconds(clusters.seconds_to_100),
        }
    )


def _known(fields: Obj) -> Obj:
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def _time(moment: dt.datetime | None) -> str:
    return "" if moment is None else format_time(moment)


def _seconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 2)


def snapshot_name(point: SnapshotPoint) -> str:
    """Return the name of a point's object: names sort as the chain goes."""
    return f"{point.seq:010}-{point.kind}"


def snapshot_status(point: SnapshotPoint) -> Obj:
    """Return the status of a point's object."""
    return {
        "kind": point.kind,
        "epoch": point.epoch,
        "seq": point.seq,
        "revision": point.revision,
        "time": format_time(point.at),
        "size": point.size,
        "objectName": point.object_name,
        "verified": point.is_verified,
        "pinned": point.is_pinned,
    }


def choose(points: Iterable[SnapshotPoint], most: int = MOST_SNAPSHOTS) -> list[SnapshotPoint]:
    """Return the points that are listed, oldest first.

    The newest deltas (`NEWEST_DELTAS`) and what is pinned (`NEWEST_PINNED`), then fulls, then
    merges, then more deltas, the newest of each kind, until there are `most`. More that is pinned
    counts as a full.
    """
    newest = sorted(points, key=lambda p: (p.seq, p.at), reverse=True)
    deltas = [p for p in newest if p.kind == "d0" and not p.is_pinned]
    fulls = [p for p in newest if p.kind == "full" or p.is_pinned]
    merges = [p for p in newest if p.kind in ("d1", "d2") and not p.is_pinned]
    pinned = [p for p in fulls if p.is_pinned][:NEWEST_PINNED]
    newest_deltas, others = deltas[:NEWEST_DELTAS], deltas[NEWEST_DELTAS:]
    ranked = _distinct([*newest_deltas, *pinned, *fulls, *merges, *others])
    return sorted(ranked[:most], key=snapshot_name)


def _distinct(points: Sequence[SnapshotPoint]) -> list[SnapshotPoint]:
    """Keep the first of each name: two fulls may hang at one position."""
    found: dict[str, SnapshotPoint] = {}
    for point in points:
        found.setdefault(snapshot_name(point), point)
    return list(found.values())
