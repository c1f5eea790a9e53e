"""Where this hub and the recorded one differ, and why: data for the replay, and for
``docs/wire-differences.md``.

Every entry must occur, and everything that occurs must have an entry; the tests hold both.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

Kind = Literal["adds", "lacks", "changes", "no event", "steps"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One known difference.

    `where` is a pattern over labels such as ``v1.3/10 PATCH managedclusters/status`` or
    ``v1.3/7 MODIFIED managedclusters@504`` (an event, with its recorded revision); `path` a pattern
    over JSON pointers, or ``(status)``, ``(content-type)``, ``(event)``.
    """

    where: str
    kind: Kind
    path: str
    reason: str

    def explains(self, label: str, kind: str, path: str) -> bool:
        is_here = fnmatchcase(label, self.where) and self.kind == kind
        return is_here and fnmatchcase(path, self.path)


_BY_JSON = (
    "This hub answers JSON only. The agents accept it: their Accept header names both, and a watch"
    " says in its head what it is (tried with real agents, all answers in JSON)."
)
_BY_GO = (
    "The empty fields of Go's struct. A bookmark's object stands for a revision; clients read its"
    " metadata only."
)
_WEBHOOK = (
    "OCM's admission webhooks did not run in the recording. In this hub their rules are part of"
    " admission, so a cluster is in the default set from the start and a taint has its time."
)
_STEPS = (
    "The hub's own steps between two writes of clients. The recorded controllers took another order"
    " for each of the two clusters, ours take other and fewer steps. The state they end in is"
    " compared."
)
_ADDON_MANAGER = (
    "OCM's add-on manager is not part of the hub yet: it makes the ClusterManagementAddOn the owner"
    " and writes its conditions and empty status fields."
)
_COLD_START = (
    "A kube-apiserver answers while its RBAC and watch caches are still cold. This hub has its"
    " state before it listens, and keeps its history over a restart: the watches resume at their"
    " last revision, without the 403s, the 429, and the lists that follow."
)
_REFRESH = (
    "At every start the hub renews all Leases before it listens, so that nobody takes the hub's own"
    " absence for that of the clusters."
)
_CLEANUP = (
    "OCM's clean-up controllers take their finalizers off one after the other, five seconds after"
    " the last work. Ours takes both off at once when nothing is left. The messages are ours: OCM's"
    " have a spelling mistake."
)
_NO_CACHE = (
    "The recorded hub ran without a watch cache by then, and says it in other words. With one it"
    " names both revisions, as this hub does."
)
_ADDON = "*managedclusteraddons*"

DIFFERENCES = (
    Difference(
        "v1.3*",
        "changes",
        "(content-type) application/vnd.kubernetes.protobuf* -> application/json",
        _BY_JSON,
    ),
    Difference("v1.3*/* BOOKMARK certificatesigningrequests@*", "lacks", "/object/spec/*", _BY_GO),
    Difference("v1.3*/* BOOKMARK certificatesigningrequests@*", "lacks", "/object/status", _BY_GO),
    Difference(
        "* managedclusters*",
        "adds",
        "*/metadata/labels/cluster.open-cluster-management.io~1clusterset",
        _WEBHOOK,
    ),
    Difference("* managedclusters*", "adds", "*/spec/taints/*/timeAdded", _WEBHOOK),
    Difference("* MODIFIED managedclusters@*", "steps", "(event)", _STEPS),
    Difference(
        "v1.3-detach/7 * managedclusters@*", "changes", "/status/conditions/4/message", _CLEANUP
    ),
    Difference(
        "v1.3-detach/7 MODIFIED managedclusters@436", "adds", "/metadata/finalizers/1", _CLEANUP
    ),
    Difference(
        "v1.3-detach/7 MODIFIED managedclusters@614", "adds", "/metadata/finalizers/1", _CLEANUP
    ),
    Difference(
        "v1.3-detach/7 DELETED managedclusters@*", "adds", "/metadata/finalizers/1", _CLEANUP
    ),
    Difference("v1.3-expired/* ERROR *", "changes", "/message", _NO_CACHE),
    Difference(
        "v1.3-detach/8 MODIFIED managedclusteraddons@407", "no event", "(event)", _ADDON_MANAGER
    ),
    Difference(
        "v1.3-expired/7 MODIFIED managedclusteraddons@697", "no event", "(event)", _ADDON_MANAGER
    ),
    Difference("v1.3-expired/38 ADDED *@730", "lacks", "/status/conditions", _ADDON_MANAGER),
    Difference("v1.3-detach/8 MODIFIED *@408", "lacks", "/status/conditions", _ADDON_MANAGER),
    Difference("v1.3-detach/17 PATCH *", "lacks", "/status/conditions", _ADDON_MANAGER),
    Difference("v1.3-detach/8 MODIFIED *@409", "lacks", "/status/conditions", _ADDON_MANAGER),
    Difference("v1.3/8 MODIFIED managedclusteraddons@592", "no event", "(event)", _ADDON_MANAGER),
    Difference("v0.16/9 MODIFIED managedclusteraddons@563", "no event", "(event)", _ADDON_MANAGER),
    Difference(_ADDON, "lacks", "/metadata/ownerReferences", _ADDON_MANAGER),
    Difference("v1.3/8 MODIFIED *@593", "lacks", "/status/conditions", _ADDON_MANAGER),
    Difference("v1.3/28 PATCH *", "lacks", "/status/conditions", _ADDON_MANAGER),
    Difference("v1.3/8 MODIFIED *@594", "lacks", "/status/conditions", _ADDON_MANAGER),
    Difference("v0.16/9 MODIFIED *@564", "lacks", "/status/conditions", _ADDON_MANAGER),
    Difference(f"v0.16/{_ADDON}", "lacks", "/status/addOnMeta", _ADDON_MANAGER),
    Difference(f"v0.16/{_ADDON}", "lacks", "/status/addOnConfiguration", _ADDON_MANAGER),
    Difference(f"v0.16/{_ADDON}", "lacks", "/status/healthCheck/mode", _ADDON_MANAGER),
    Difference("*", "changes", "(status) 403 -> 200", _COLD_START),
    Difference("v0.16/90 GET managedclusters", "changes", "(status) 429 -> 200", _COLD_START),
    Difference("v1.3-expired/4? GET leases", "changes", "/spec/renewTime", _REFRESH),
    Difference("v1.3-expired/4? GET leases", "changes", "/metadata/resourceVersion", _REFRESH),
    Difference("v1.3/88 GET leases", "changes", "/spec/renewTime", _REFRESH),
    Difference("v1.3/88 GET leases", "changes", "/metadata/resourceVersion", _REFRESH),
    Difference("v0.16/97 GET leases", "changes", "/spec/renewTime", _REFRESH),
    Difference("v0.16/97 GET leases", "changes", "/metadata/resourceVersion", _REFRESH),
)

_PREAMBLE = """\
# Differences between recorded hubs and this one

`tests/server/test_wire_replay.py` replays the recorded traffic of two real agents (the klusterlet
of Open Cluster Management, main of August 2026 as "v1.3", and v0.16.0) with a real hub
(kube-apiserver 1.36, OCM's controllers) against a hub of ours: see `tests/golden/wire/README.md`.
"v1.3" and "v0.16" were recorded at once on one hub and are replayed so, in order of time; the
others each have a hub: "v1.3-detach" (a cluster deleted and made again, twice), "v1.3-expired"
(watches whose revisions are gone), "v1.3-rotation" (certificates renewed). Status codes must be
the recorded ones; answers and watch events must be equal after decoding, but for the differences
below. This file is written from the table in `tests/server/wire_differences.py`; the tests hold
that it is complete, that no entry is idle, and that this file is that table.

How values are compared which two hubs cannot share:

- uids, resourceVersions of objects, generated names, certificates, certificate requests and
  credential ids: the first pair that meets belongs together from then on.
- times that a hub writes: any time since the replay began. Times that a client wrote must come
  back. The renewTime of a Lease is sent as the present.
- resourceVersions of lists and bookmarks: a number. An informer resumes where it is on our hub.
- a revision in the message of an expired watch: a number.
- managedFields: not compared; this hub does not keep them.

Not compared, because it has no counterpart or depends on the time that a replay does not spend:

- in "v1.3" and "v0.16", the nine 403 answers and the one 429 of the recorded hub's cold start: the
  requests are sent and must be answered with 200, and the eight watches among them stay open and
  must bring nothing, least of all a 410: nothing was missed;
- bookmarks sent about once a minute, and the end of a watch by timeoutSeconds: the replay closes
  the watch where the recorded one ended;
- how the recorded hub died, or was cut off from its clients: ours is stopped and started on the
  same directory, and the clients close their watches;
- what the administrator sent (it was not recorded): creations, updates, deletions, approvals and
  the add-on's registrations are made from the objects in the watches, at the time of the scenario
  where no watch was open; history is compacted when it was;
- response headers other than Content-Type; HTTP/1.1 in the recordings is HTTP/2 in the replay.

`Where` matches `recording/seq METHOD resource`, or for an event `recording/seq TYPE
resource@revision` (the recorded revision); `*` is anything. `Path` is a JSON pointer into the
answer or the object of the event.
"""
_WORDS = {
    "adds": "only ours has",
    "lacks": "only the recorded one has",
    "changes": "other value",
    "no event": "no such event",
    "steps": "other steps",
}


def render(differences: Sequence[Difference] = DIFFERENCES, preamble: str = _PREAMBLE) -> str:
    """Return ``docs/wire-differences.md``, or another document of its kind."""
    by_reason: dict[str, list[Difference]] = {}
    for difference in differences:
        by_reason.setdefault(difference.reason, []).append(difference)
    lines = [preamble]
    for reason, found in by_reason.items():
        lines += [f"## {reason}\n", "| Where | What | Path |", "|---|---|---|", *_rows(found), ""]
    return "\n".join(lines)


def _rows(differences: Sequence[Difference]) -> Iterator[str]:
    for found in differences:
        yield f"| `{found.where}` | {_WORDS[found.kind]} | `{found.path}` |"
