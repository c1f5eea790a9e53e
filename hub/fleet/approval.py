"""Which certificate requests of agents are approved without a person.

The rules of OCM's approve reconcilers (pkg/registration/register/csr), strict form: the label, the
signer, the subject's organisations and its common name must all name one cluster. Then one of three
must hold:

- it is a *renewal*, requested by the very identity it asks for;
- it comes from the cluster's *own bootstrap account*, ``<cluster>/<cluster>-bootstrap-sa``, and the
  cluster is known (the rule of stolostron's managedcluster-import-controller);
- it comes from a *shared bootstrap user* that the operator has listed, for a cluster that has not
  joined yet. OCM asks nothing more than the list, so that whoever holds the shared token, which
  lies on every cluster, can take over any other. Here the name of a cluster that has joined is in
  use: the request waits for a person, and an Event says so.
"""

import base64
import binascii
from collections.abc import Collection

from hub.auth.bootstrap_policy import CLUSTER_NAME_LABEL
from hub.auth.certificates import CsrInfo, parse_csr
from hub.auth.errors import CsrError
from hub.auth.rbac import Authorizer
from hub.auth.user import Attributes, User
from hub.fleet.conditions import JOINED, condition_status
from hub.fleet.kinds import MANAGED_CLUSTER, REGISTER_GROUP
from hub.meta import Obj
from hub.registry.engine import Engine
from hub.registry.report import reference_to, warn
from hub.registry.requests import ADDON_NAME_LABEL, CLIENT_SIGNER, CSR, has_condition, is_same
from hub.registry.watch import Event
from hub.registry.workqueue import Queue, drain

MANAGED_CLUSTERS = "system:open-cluster-management:managed-clusters"
_PREFIX = "system:open-cluster-management:"
_APPROVED = {
    "type": "Approved",
    "status": "True",
    "reason": "AutoApprovedByHubCSRApprovingController",
    "message": "Auto approving Managed cluster agent certificate after SubjectAccessReview.",
}


def agent_subject_problem(info: CsrInfo, cluster: str) -> str:
    """Return why a request's subject is not that of an agent of `cluster`, "" when it is."""
    organizations = sorted(set(info.organizations) - {MANAGED_CLUSTERS})
    if organizations != [f"{_PREFIX}{cluster}"]:
        return f"organizations {organizations} must be exactly {_PREFIX}{cluster}"
    parts = info.common_name.removeprefix(_PREFIX).split(":")
    if not info.common_name.startswith(_PREFIX) or len(parts) != 2 or not all(parts):
        return f"common name {info.common_name!r} must be {_PREFIX}<cluster>:<agent>"
    if parts[0] != cluster:
        return f"common name {info.common_name!r} names another cluster than {cluster}"
    if info.dns_names or info.ip_addresses or info.emails or info.uris:
        return "subject alternative names are not for agents"
    return ""


class Approver:
    """Approves renewals, and the first requests of listed bootstrap users."""

    def __init__(
        self, engine: Engine, authorizer: Authorizer, *, bootstrap_users: Collection[str]
    ) -> None:
        self._engine, self._authorizer = engine, authorizer
        self._bootstrap_users = bootstrap_users
        self._queue = Queue()
        engine.watches.listen(CSR, self._changed)

    def _changed(self, event: Event) -> None:
        if is_agent_request(event.obj):
            self._queue.add(event.name)

    async def run(self) -> None:
        """Reconcile until cancelled."""
        async for request in self._engine.paced(CSR):
            if is_agent_request(request):
                self._queue.add(str(request["metadata"]["name"]))
        await drain("approval", self._queue, self.reconcile, workers=32)

    async def reconcile(self, name: str) -> float | None:
        """Approve one request, if the rules allow."""
        request = self._engine.peek(CSR, name)
        if request is None or not is_agent_request(request):
            return None
        if not self.is_approvable(request):
            await self._tell_of_name_in_use(request)
            return None

        def approve(obj: Obj) -> Obj:
            if not is_same(obj, request) or not is_agent_request(obj):
                return obj
            status = dict(obj.get("status") or {})
            status["conditions"] = [*(status.get("conditions") or []), dict(_APPROVED)]
            return {**obj, "status": status}

        await self._engine.modify(CSR, name, approve, subresource="approval")
        return None

    def is_approvable(self, request: Obj) -> bool:
        """Whether the rules allow this request without a person."""
        cluster = _cluster_of(request)
        user = _requester(request)
        name = _agent_asked_for(request)
        if not name:
            return False
        if user.name == name:
            asked = Attributes(
                "renew", REGISTER_GROUP, "*", "managedclusters", "clientcertificates"
            )
            return self._authorizer.authorize(user, asked).allowed
        if user.name == bootstrap_account(cluster):
            return self._engine.find(MANAGED_CLUSTER, cluster) is not None
        return is_listed(user.name, self._bootstrap_users) and not self._has_joined(cluster)

    def _has_joined(self, cluster: str) -> bool:
        found = self._engine.peek(MANAGED_CLUSTER, cluster)
        return found is not None and condition_status(found, JOINED) == "True"

    async def _tell_of_name_in_use(self, request: Obj) -> None:
        """Whoever asks, listed or not: the person who decides should know it."""
        cluster, user = _cluster_of(request), _requester(request)
        is_own = f"{_PREFIX}{cluster}" in user.groups or user.name == bootstrap_account(cluster)
        if is_own or not _agent_asked_for(request) or not self._has_joined(cluster):
            return
        await warn(
            self._engine,
            reference_to(CSR, request),
            reason="ClusterNameInUse",
            message=f"{user.name} asks for a certificate of {cluster}, which has joined already: "
            "approve it if that cluster was made anew, or give it a bootstrap account of its own",
            component="hublet",
        )


def is_listed(user: str, bootstrap_users: Collection[str]) -> bool:
    """Whether the operator's list has a user, by name or by a beginning that ends in ``*``."""
    return any(
        user == listed or (listed.endswith("*") and user.startswith(listed[:-1]))
        for listed in bootstrap_users
    )


def bootstrap_account(cluster: str) -> str:
    """Return the user name of a cluster's own bootstrap ServiceAccount."""
    return f"system:serviceaccount:{cluster}:{cluster}-bootstrap-sa"


def _cluster_of(request: Obj) -> str:
    return str(request["metadata"]["labels"][CLUSTER_NAME_LABEL])


def _requester(request: Obj) -> User:
    spec = request["spec"]
    return User(str(spec.get("username") or ""), tuple(spec.get("groups") or ()))


def _agent_asked_for(request: Obj) -> str:
    """Return the common name if the request is exactly one for an agent of its cluster, else ""."""
    try:
        info = parse_csr(base64.b64decode(request["spec"]["request"]))
    except (CsrError, ValueError, binascii.Error):
        return ""
    return "" if agent_subject_problem(info, _cluster_of(request)) else info.common_name


def is_agent_request(request: Obj) -> bool:
    """Whether this is an undecided request of a klusterlet (add-ons have managers of their own)."""
    labels = request["metadata"].get("labels") or {}
    if not labels.get(CLUSTER_NAME_LABEL) or ADDON_NAME_LABEL in labels:
        return False
    if request["spec"].get("signerName") != CLIENT_SIGNER:
        return False
    return not (has_condition(request, "Approved") or has_condition(request, "Denied"))
