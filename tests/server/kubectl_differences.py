"""Where this hub and the one that kubectl was recorded with differ, and why: data for the replay,
and for ``docs/wire-differences-kubectl.md``.

Every entry must occur, and everything that occurs must have an entry; the tests hold both.
"""

from tests.server.wire_differences import Difference

_BY_JSON = "This hub answers JSON only. kubectl accepts it: its Accept header names both."
_VERSION = (
    "Another program of another version. kubectl reads `major`, `minor` and `gitVersion`; there is"
    " no emulation of an older version here."
)
_INDEX = (
    "The API server forgets the media type of the index of OpenAPI documents, so that Go guesses."
    " We say what it is."
)
_OBJECTS = (
    "Which objects a hub makes for itself: this one has a namespace for the hub and the ConfigMap"
    " with its CA in every namespace, the API server has node leases and front-proxy settings; the"
    " recorded hub's controllers made no default ServiceAccount."
)
_WEBHOOK = (
    "OCM's admission webhooks did not run in the recording. In this hub their rules are part of"
    " admission, so a cluster is in the default set from the start and a taint has its time."
)
_BY_GO = (
    "The empty fields of Go's struct. A bookmark's object stands for a revision; clients read its"
    " metadata only."
)
_RULES = (
    "The recorded hub (a build of another distribution's sources) lets everybody read"
    " `/.well-known`. Here the ServiceAccounts' issuer is for whoever is granted it."
)
_NEWER = (
    "Parameters that are younger than Kubernetes 1.35, or alpha, or about the storage of another"
    " server: not read here."
)
_MANAGER = (
    "Every hub of ours defines ClusterManager, by which tools tell a hub from another cluster; the"
    " recorded one had no operator."
)
_OURS = (
    "Hub and HubSnapshot, this hub's own kinds, tell of it and of its snapshots: see"
    " [api.md](api.md#the-hub-itself-hubletiov1alpha1)."
)
_NO_CACHE = (
    "The hub of this recording ran without a watch cache. With one, an API server answers as this"
    " hub does: with the seconds after which to ask again, and with both revisions."
)
_LATE = (
    "The API server describes a new kind in the background, so that its index was still the old one"
    " when kubectl asked. Here a kind is described as soon as it is served."
)
_PROTOBUF = "(content-type) application/vnd.kubernetes.protobuf -> application/json"
_SET = "metadata/labels/cluster.open-cluster-management.io~1clusterset"

KUBECTL_DIFFERENCES: tuple[Difference, ...] = (
    Difference("*", "changes", _PROTOBUF, _BY_JSON),
    Difference("* GET /version", "changes", "/minor", _VERSION),
    Difference("* GET /version", "changes", "/git*", _VERSION),
    Difference("* GET /version", "changes", "/goVersion", _VERSION),
    Difference("* GET /version", "changes", "/compiler", _VERSION),
    Difference("* GET /version", "lacks", "/emulation*", _VERSION),
    Difference("* GET /version", "lacks", "/minCompatibility*", _VERSION),
    Difference(
        "* GET /openapi/v3",
        "changes",
        "(content-type) text/plain; charset=utf-8 -> application/json",
        _INDEX,
    ),
    Difference("* GET namespaces", "lacks", "/rows/kube-node-lease", _OBJECTS),
    Difference("* GET namespaces", "adds", "/rows/open-cluster-management", _OBJECTS),
    Difference("* GET configmaps", "adds", "/rows/*~1kube-root-ca.crt", _OBJECTS),
    Difference("* GET configmaps", "adds", "/rows/kube-public~1cluster-info", _OBJECTS),
    Difference("* GET configmaps", "lacks", "/rows/kube-system~1extension-*", _OBJECTS),
    Difference("* GET configmaps", "lacks", "/rows/kube-system~1kube-apiserver-*", _OBJECTS),
    Difference("* GET configmaps", "changes", "/metadata/remainingItemCount", _OBJECTS),
    Difference("* GET serviceaccounts", "adds", "/rows/tour~1default", _OBJECTS),
    Difference("* managedclusters*", "adds", f"*/{_SET}", _WEBHOOK),
    Difference("* managedclusters*", "adds", "*/spec/taints/0/timeAdded", _WEBHOOK),
    Difference("* BOOKMARK *", "lacks", "/spec", _BY_GO),
    Difference("* BOOKMARK *", "lacks", "/status", _BY_GO),
    Difference("* BOOKMARK customresourcedefinitions", "lacks", "/spec/*", _BY_GO),
    Difference("* BOOKMARK customresourcedefinitions", "lacks", "/status/*", _BY_GO),
    Difference(
        "* selfsubjectrulesreviews", "lacks", '/status/nonResourceRules/*"/.well-known"*', _RULES
    ),
    Difference("* GET /openapi/v3/*", "lacks", "/paths/*/query/shardSelector", _NEWER),
    Difference("* GET /openapi/v3/*", "lacks", "/paths/*/query/ignoreStoreRead*", _NEWER),
    Difference(
        "* GET /apis",
        "adds",
        "/operator.open-cluster-management.io~1v1 clustermanagers/*",
        _MANAGER,
    ),
    Difference(
        "* GET /openapi/v3", "adds", "/apis~1operator.open-cluster-management.io~1v1", _MANAGER
    ),
    Difference("* GET /apis", "adds", "/hublet.io~1v1alpha1 hub*", _OURS),
    Difference("* GET /openapi/v3", "adds", "/apis~1hublet.io~1v1alpha1", _OURS),
    Difference("1.3?/18? GET /openapi/v3", "changes", "(status) 304 -> 200", _LATE),
    Difference("1.3?/18? GET /openapi/v3", "changes", "(content-type)  -> application/json", _LATE),
    Difference("1.3?/18? GET /openapi/v3", "changes", '(body)  -> {"paths":*', _LATE),
    Difference("1.35-expired/7 *", "adds", "/details/retryAfterSeconds", _NO_CACHE),
    Difference("1.35-expired/8 ERROR *", "changes", "/message", _NO_CACHE),
)

PREAMBLE = """\
# Differences between a hub that kubectl was recorded with, and this one

`tests/server/test_kubectl_replay.py` replays the recorded traffic of kubectl 1.35.2 and 1.32.5 on a
tour of 155 commands, and of kubectl 1.35.2 with expired revisions, with a real hub (kube-apiserver
1.36, kube-controller-manager, OCM's CRDs, none of OCM's controllers) against a hub of ours whose
OCM controllers stand still: see `tests/golden/wire/README.md`. Status codes must be the recorded
ones; answers and watch events must be equal after decoding, but for the differences below. This
file is written from the table in `tests/server/kubectl_differences.py`; the tests hold that it is
complete, that no entry is idle, and that this file is that table.

Left out: server-side apply (a later issue), that is apply patches, and the patches of managedFields
that belong to them. What they left behind is written by an administrator, from their answers, so
that what follows can be compared.

A kind that this hub does not serve must be answered with 404 and a Status that says "the server
could not find the requested resource", as kubectl prints it. (API servers of this age send plain
text for a path that nobody serves, later ones a Status; clients make the same of both.)

How values are compared which two hubs cannot share:

- uids, resourceVersions of objects, continue tokens, certificates, tokens and credential ids: the
  first pair that meets belongs together from then on, and requests carry ours.
- times that a hub writes: any time since the replay began. Ages in Tables: any age.
- resourceVersions of lists and bookmarks: a number. A watch resumes where our list was.
- the audience that a hub takes for itself, in requests for tokens: ours is the hub's URL.
- items and rows are brought together by namespace and name; the rules of a rules review, which have
  no order, by what they say.
- ETags: who was answered with 304 sends the one that our hub gave for the document.
- discovery and OpenAPI documents: an outline of each (resources with verbs, names and subresources;
  paths with parameters; kinds with fields, types and merge keys), as far as this hub serves it. Of
  `/openapi/v2` only the media type, and that who has it is told so.
- lists of CustomResourceDefinitions: the one that the tour makes.
- descriptions in these documents and of columns, and the hash of a storage version: not compared.
- managedFields: not compared; this hub does not keep them.
- answers in protobuf have no nulls: ours are ignored then.

Also not compared: what the administrator sent to be seen by `kubectl get -w` and `kubectl wait` (it
was not recorded, and is made from the events); response headers other than Content-Type and
Warning. HTTP/1.1 in the recordings is HTTP/2 in the replay. The hub's controllers take each step
when the recorded ones had taken it, as the answers show: namespaces, definitions and owners are
emptied once the watch of `kubectl delete` is open, a definition's conditions come when they were
seen, certificates are waited for.

`Where` matches `recording/seq METHOD resource`, for an event `recording/seq TYPE resource`; `*` is
anything. `Path` is a JSON pointer into the answer or the object of the event; items and rows that
only one side has are named.
"""
