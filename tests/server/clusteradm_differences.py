"""Where this hub and the one that clusteradm was recorded with differ, and why: data for the
replay, and for ``docs/wire-differences-clusteradm.md``.

Every entry must occur, and everything that occurs must have an entry; the tests hold both.
"""

from tests.server.wire_differences import Difference

_BY_JSON = "This hub answers JSON only. clusteradm accepts it: its Accept header names both."
_VERSION = "Another program of another version. clusteradm reads `gitVersion`."
_MANAGER = (
    "Every hub of ours defines ClusterManager, by which clusteradm tells a hub from another"
    " cluster, from the start; on the recorded one an administrator did later, and only then was"
    " the kind there."
)
_OWN = "Each hub has its own URL and CA, and tells them here."
_ROLE = (
    "The recorded administrator wrote the bootstrap role by hand; ours is a default of the hub,"
    " allows what OCM's own allows, and comes back at every start."
)
_WEBHOOK = (
    "OCM's admission webhooks did not run in the recording. In this hub their rules are part of"
    " admission, so a cluster is in the default set from the start and a taint has its time."
)
_STEPS = "The recorded controllers took other steps to the same state."
_NAMESPACE = (
    "A token asked for in a namespace that is not there: the API server names the namespace, this"
    " hub the account. clusteradm prints either."
)
_PROFILES = "ClusterProfiles are not kept by this hub."
_OURS = (
    "Hub and HubSnapshot, this hub's own kinds, tell of it and of its snapshots: see"
    " [api.md](api.md#the-hub-itself-hubletiov1alpha1)."
)
_VERSION_PROTOBUF = "(content-type) application/vnd.kubernetes.protobuf -> application/json"
_SET = "metadata/labels/cluster.open-cluster-management.io~1clusterset"

CLUSTERADM_DIFFERENCES: tuple[Difference, ...] = (
    Difference("*", "changes", _VERSION_PROTOBUF, _BY_JSON),
    Difference("* GET /version", "changes", "/minor", _VERSION),
    Difference("* GET /version", "changes", "/git*", _VERSION),
    Difference("* GET /version", "changes", "/goVersion", _VERSION),
    Difference("* GET /version", "changes", "/compiler", _VERSION),
    Difference("* GET /version", "lacks", "/emulation*", _VERSION),
    Difference("* GET /version", "lacks", "/minCompatibility*", _VERSION),
    Difference("clusteradm/2 *", "changes", "/message", _NAMESPACE),
    Difference("clusteradm/2 *", "changes", "/details/*", _NAMESPACE),
    Difference("clusteradm/7 *", "changes", "(content-type) text/plain*", _MANAGER),
    Difference("clusteradm/7 *", "changes", "(body) 404 page not found*", _MANAGER),
    Difference("clusteradm/23 *", "lacks", "/definitions/clusterprofiles*", _PROFILES),
    Difference("clusteradm/26 GET /apis", "adds", "/hublet.io~1v1alpha1 hub*", _OURS),
    Difference("* GET configmaps", "changes", "/data/kubeconfig", _OWN),
    Difference("clusteradm/5? * clusterroles", "adds", "/metadata/labels/*", _ROLE),
    Difference("clusteradm/5? * clusterroles", "adds", "/metadata/annotations/*", _ROLE),
    Difference("clusteradm/5? * clusterroles", "changes", "/rules/2/verbs/*", _ROLE),
    Difference("clusteradm/5? * clusterroles", "adds", "/rules/2/verbs/*", _ROLE),
    Difference("* managedclusters", "changes", "*/metadata/generation", _STEPS),
    Difference("* managedclusters", "adds", f"*/{_SET}", _WEBHOOK),
    Difference("* managedclusters", "adds", "*/spec/taints/*/timeAdded", _WEBHOOK),
    Difference("* GET managedclusters", "adds", "/items/cluster-*", _WEBHOOK),
    Difference("* GET managedclustersets", "changes", "*/status/conditions/0/*", _WEBHOOK),
    Difference("* GET managedclustersets", "changes", "*/metadata/resourceVersion", _WEBHOOK),
)

OUTSIDE: dict[str, str] = {
    "* deployments": (
        "The hub is one process and runs no workloads: there are no Deployments of a"
        " cluster-manager to look at. `get hub-info` and `init` ask for them and are told that"
        " there are none."
    ),
}
"""What of the recording needs something that is no part of the hub, and why: labels and reasons."""

_PREAMBLE = """\
# Differences between a hub that clusteradm was recorded with, and this one

`tests/server/test_clusteradm_replay.py` replays the recorded traffic of 77 commands of clusteradm
(main of July 2026, on a hub of kube-apiserver 1.36 with Open Cluster Management's controllers)
against a hub of ours: see `tests/golden/wire/README.md`. Status codes must be the recorded ones;
answers and watch events must be equal after decoding, but for the differences below. This file is
written from the tables in `tests/server/clusteradm_differences.py`; the tests hold that they are
complete, that no entry is idle, and that this file is those tables.

What is compared how, and what is put aside, is as for kubectl
([wire-differences-kubectl.md](wire-differences-kubectl.md)), and:

- Beside clusteradm others were at work whose requests were not recorded: an administrator, the
  agent of a cluster, the placement controller, the add-on manager, the operator. What they had
  written by the time of an answer is read off that answer and written before clusteradm asks:
  clusters, the agent's certificate request, decisions, the ClusterManager and the add-on where they
  are not there yet; the statuses, finalizers and owners of works, add-ons, placements and
  decisions; the conditions Joined and Available of a cluster, its Lease, and whether it is
  accepted. Everything else in these objects, and all others, are as the hub has them.
- CustomResourceDefinitions: their names where the recorded answer was protobuf; without schemas.

## What needs something outside the hub

These requests are sent, too, and must be answered with 404 and a Status that says "the server could
not find the requested resource".

| Where | Why |
|---|---|
"""


def preamble() -> str:
    """Return the text before the differences."""
    rows = [f"| `{where}` | {why} |" for where, why in OUTSIDE.items()]
    after = (
        "\n`Where` matches `clusteradm/seq METHOD resource`, for an event `clusteradm/seq TYPE"
        " resource`; `*` is\nanything. `Path` is a JSON pointer into the answer or the object of"
        " the event; items that only one\nside has are named.\n"
    )
    return _PREAMBLE + "\n".join(rows) + "\n" + after
