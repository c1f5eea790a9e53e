"""Schemas and printer columns of Hub and HubSnapshot, as data.

Owns the field names; `hub.backup.wire` fills them, and docs/api.md has them, which tests compare.
"""

from hub.fleet.schema.common import CONDITIONS
from hub.fleet.schema.node import array, flag, obj, real, root, text, time, whole
from hub.fleet.schema.table import Column, condition_path

_REVISION = "A revision, as resourceVersions count them."
_IDENTITY = obj(
    "Which hub this is; the same after a restore, wherever that is.",
    {
        "hubID": text("Made with the hub, never changed; also the uid of this object."),
        "version": text("Release of the program that runs."),
        "url": text("Where agents and people find the hub."),
    },
)
_START = obj(
    "How this process began.",
    {
        "kind": text(
            "local (no object store), empty, continue, restored or adopted (a copied directory)."
        ),
        "time": time("When it started."),
        "source": text("The bootstrap source it was given."),
        "takeover": text("The takeover it was given."),
        "restoredFrom": text("The prefix it was restored from, when it was."),
        "restoredRevision": whole("The revision that was restored.", bits=64),
    },
)
_POSITION = obj(
    "Where the durable state stands.",
    {
        "revision": whole("Newest durable revision.", bits=64),
        "stateHash": text("Hash of all durable objects, independent of their order, in hex."),
        "objects": whole("How many durable objects there are.", bits=64),
    },
)
_SHIPPED = obj(
    "How far the object store is.",
    {
        "revision": whole("Newest revision in the object store.", bits=64),
        "seq": whole("Position in the chain, which counts segments.", bits=64),
        "time": time("When its newest segment was cut."),
    },
)
_LAG = obj(
    "What would be lost with this machine now.",
    {
        "revisions": whole("Durable revisions that are not in the object store.", bits=64),
        "seconds": real("For how long there have been any."),
    },
)
_LAST_FULL = obj(
    "The newest full segment.",
    {
        "revision": whole(_REVISION, bits=64),
        "time": time("When it was cut."),
        "size": whole("Its bytes.", bits=64),
        "seconds": real(
            "How long cutting and storing it took; absent when an earlier process did."
        ),
    },
)
_LAST_DRILL = obj(
    "The newest restore drill: the chain loaded beside the store and compared with it.",
    {
        "revision": whole("The revision that was restored.", bits=64),
        "time": time("When it ended."),
        "seconds": real("How long it took."),
        "result": text("Passed, or what did not fit."),
    },
)
_FENCING = obj(
    "What keeps two hubs from writing the same prefix.",
    {
        "level": whole(
            "0: no object store; 1: it does not refuse every second writer; 2: it does. Absent "
            "while it is not known.",
            bits=32,
        ),
        "missing": array("What the object store cannot do.", text(), is_atomic=True),
    },
)
_CLUSTERS = obj(
    "The managed clusters since the start.",
    {
        "expected": whole("Accepted clusters that there were at the start.", bits=32),
        "returned": whole("How many of them have renewed their Lease since.", bits=32),
        "secondsTo50": real("From the start until half of them had."),
        "secondsTo95": real("From the start until 95 of 100 had."),
        "secondsTo100": real("From the start until all had."),
    },
)
HUB = root(
    "The hub itself: who it is, how it started, how far its state has been shipped. There is one, "
    "named hub. The hub keeps it; clients can read it only.",
    {
        "status": obj(
            "What the hub knows of itself.",
            {
                "identity": _IDENTITY,
                "epoch": whole("Which of its prefix's writers this is, 0 without one.", bits=64),
                "writer": text("The process that writes the prefix."),
                "start": _START,
                "position": _POSITION,
                "shipped": _SHIPPED,
                "lag": _LAG,
                "lastFull": _LAST_FULL,
                "lastDrill": _LAST_DRILL,
                "fencing": _FENCING,
                "clusters": _CLUSTERS,
                "conditions": CONDITIONS,
            },
        )
    },
)
HUB_SNAPSHOT = root(
    "A point that the hub can be restored to: the end of a segment in its object store. The fulls "
    "and merges there are and the newest deltas, 50 at most. The hub keeps them; clients can read "
    "them only.",
    {
        "status": obj(
            "The segment that ends there.",
            {
                "kind": text(
                    "full (everything), d0 (a delta as it was shipped), d1 (5 minutes of them in "
                    "one), d2 (an hour).",
                    enum=("full", "d0", "d1", "d2"),
                ),
                "epoch": whole("Which writer shipped it.", bits=64),
                "seq": whole("Position in the chain.", bits=64),
                "revision": whole("The revision that a restore to this point has.", bits=64),
                "time": time("When it was cut."),
                "size": whole("Bytes of the segment.", bits=64),
                "objectName": text("Its name below the prefix."),
                "verified": flag("Whether it has been read back and compared."),
                "pinned": flag("Whether clean-up leaves it alone."),
            },
        )
    },
)
HUB_COLUMNS = (
    Column("Version", ".status.identity.version"),
    Column("Epoch", ".status.epoch", "integer"),
    Column("Revision", ".status.position.revision", "integer"),
    Column("Lag", ".status.lag.revisions", "integer"),
    Column("Backup", condition_path("BackupHealthy")),
    Column("Clusters", ".status.clusters.expected", "integer"),
    Column("Returned", ".status.clusters.returned", "integer"),
    Column("Settled", condition_path("Settled")),
    Column("URL", ".status.identity.url", priority=1),
    Column("Start", ".status.start.kind", priority=1),
    Column("Age", ".metadata.creationTimestamp", "date"),
)
SNAPSHOT_COLUMNS = (
    Column("Kind", ".status.kind"),
    Column("Epoch", ".status.epoch", "integer"),
    Column("Revision", ".status.revision", "integer"),
    Column("Size", ".status.size", "integer"),
    Column("Verified", ".status.verified", "boolean"),
    Column("Pinned", ".status.pinned", "boolean"),
    Column("Age", ".status.time", "date"),
    Column("Time", ".status.time", priority=1),
    Column("Object", ".status.objectName", priority=1),
)
