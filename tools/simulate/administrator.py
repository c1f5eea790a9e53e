"""The administrator: lets the simulated clusters in and gives them their works, over the wire.

Owns the admin's connection: the bootstrap token, approving CSRs, accepting clusters, what they get
(`Provision`), and a watch over all ManagedClusters that notices any which stops being available.
What an earlier run has done (`IdentityStore.made`) is not done again.
"""

import asyncio
import datetime as dt
import ssl
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from hub.auth.bootstrap_policy import CLUSTER_NAME_LABEL
from hub.auth.bootstrap_token import NAMESPACE, SECRET_PREFIX, new_bootstrap_token
from hub.meta import Obj
from tools.simulate.clusterbody import ACCEPTED, AVAILABLE, SIGNER
from tools.simulate.condition import condition, find_condition, is_true
from tools.simulate.context import Context
from tools.simulate.provision import Provision
from tools.simulate.reflector import Reflector
from tools.simulate.registration import DEFAULT_LEASE_S, available_features
from tools.simulate.resource import CLUSTERS, CSRS, SECRETS, Selection
from tools.simulate.session import Place, RefusedError, Session
from tools.simulate.upkeep import Upkeep

USER_AGENT = "hublet-simulate/v0.1.0"
CONCURRENCY = 32
TOKEN_LIFETIME = dt.timedelta(hours=2)
_PAGE = 500
_GONE = frozenset({404})


class Administrator:
    """The person with the admin kubeconfig; `run` until cancelled."""

    def __init__(
        self,
        context: Context,
        tls: ssl.SSLContext,
        *,
        clusters: Sequence[str],
        works: int,
        addons: int = 0,
        lease_s: int = DEFAULT_LEASE_S,
    ) -> None:
        self.lapses: dict[str, str] = {}
        """Clusters seen not available after `guard` was called, and what was seen."""
        self._context, self._wanted = context, frozenset(clusters)
        self._lease_s = lease_s
        self._session = Session(context.route, tls, tally=context.tally, agent=USER_AGENT)
        self._session.is_early = False  # an administrator is never refused
        self._session.is_admin = True
        self.provision = Provision(context, self._session, works=works, addons=addons)
        self._is_guarding = False
        self._token_id = ""
        self._limit = asyncio.Semaphore(CONCURRENCY)
        self._clusters = Reflector(
            self._session, Selection(CLUSTERS), on_change=self._on_cluster, rng=context.rng
        )
        self._csrs = Reflector(
            self._session, Selection(CSRS), on_change=self._on_csr, rng=context.rng
        )
        self._accepting: Upkeep | None = None
        self._approving: Upkeep | None = None

    async def mint_token(self) -> str:
        """Create a bootstrap token for managed clusters and return it."""
        token = new_bootstrap_token(self._context.clock.token)
        expiration = self._context.clock.now() + TOKEN_LIFETIME
        secret = token.as_secret(expiration=expiration)
        await self._session.create(Place(SECRETS, namespace=NAMESPACE), secret)
        self._token_id = token.token_id
        return str(token)

    async def retire_token(self) -> None:
        """Delete the token again; the agents have their certificates."""
        if self._token_id:
            name, self._token_id = f"{SECRET_PREFIX}{self._token_id}", ""
            place = Place(SECRETS, namespace=NAMESPACE, name=name)
            try:
                await self._session.delete(place, expected=_GONE)
            except RefusedError as error:
                if error.status != 404:
                    raise

    async def run(self, *, approves: bool) -> None:
        """Watch and let in; `approves` when clusters without a certificate are expected."""
        try:
            async with asyncio.TaskGroup() as group:
                rng = self._context.rng
                self._accepting = Upkeep(
                    group, lambda: self._clusters.objects, self._admit, rng=rng, limit=self._limit
                )
                self._approving = Upkeep(
                    group, lambda: self._csrs.objects, self._approve, rng=rng, limit=self._limit
                )
                group.create_task(self._clusters.run())
                if approves:
                    group.create_task(self._csrs.run())
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connection; `run` does it at its end."""
        await self._session.close()

    def guard(self) -> None:
        """From now on note every cluster that is not available."""
        self._is_guarding = True
        for name in self._wanted:
            self._check(name)

    def list_unavailable(self, found: Mapping[str, Obj]) -> list[str]:
        """Return which of the clusters are not available in `found`."""
        available = {name for name, cluster in found.items() if is_true(cluster, AVAILABLE)}
        return sorted(self._wanted - available)

    def list_unlabelled(self, found: Mapping[str, Obj]) -> list[str]:
        """Return which of the clusters in `found` lack the label of one of their add-ons."""
        addons = frozenset(self.provision.addons)
        return sorted(n for n, cluster in found.items() if addons - available_features(cluster))

    async def list_clusters(self) -> dict[str, Obj]:
        """Ask the hub, in pages, for the clusters that there are."""
        found: dict[str, Obj] = {}
        token = ""
        while True:
            query = {"limit": str(_PAGE), **({"continue": token} if token else {})}
            page = await self._session.list(Place(CLUSTERS), urlencode(query))
            found |= {c["metadata"]["name"]: c for c in page["items"]}
            token = (page.get("metadata") or {}).get("continue") or ""
            if not token:
                return {name: found[name] for name in self._wanted & found.keys()}

    # -- clusters

    def _on_cluster(self, name: str) -> None:
        if name not in self._wanted:
            return
        if self._is_guarding:
            self._check(name)
        if self._accepting is not None and name in self._clusters.objects:
            self._accepting.wake(name)

    def _check(self, name: str) -> None:
        cluster = self._clusters.objects.get(name)
        if cluster is None:
            self.lapses.setdefault(name, "gone")
        elif not is_true(cluster, AVAILABLE):
            seen = find_condition(cluster, AVAILABLE) or {"reason": "no condition"}
            self.lapses.setdefault(name, f"{seen.get('status')} {seen.get('reason')}")

    async def _admit(self, cluster: Obj) -> bool:
        """Accept the cluster, then provide for it once the hub has made its namespace."""
        name, spec = cluster["metadata"]["name"], cluster["spec"]
        lease_s = spec.get("leaseDurationSeconds") or DEFAULT_LEASE_S
        if not spec.get("hubAcceptsClient") or lease_s != self._lease_s:
            patch = {"spec": {"hubAcceptsClient": True, "leaseDurationSeconds": self._lease_s}}
            await self._session.patch(Place(CLUSTERS, name=name), patch)
            return True
        if is_true(cluster, ACCEPTED) and self.provision.is_missing(name):
            await self.provision.provide(name)
        return False

    # -- certificate requests

    def _on_csr(self, name: str) -> None:
        csr = self._csrs.objects.get(name)
        if csr is not None and self._approving is not None and self._is_approvable(csr):
            self._approving.wake(name)

    def _is_approvable(self, csr: Obj) -> bool:
        """Whether it is a first request of one of our clusters, made with our token."""
        spec: Obj = csr["spec"]
        labels: Obj = csr["metadata"].get("labels") or {}
        return (
            labels.get(CLUSTER_NAME_LABEL) in self._wanted
            and spec.get("signerName") == SIGNER
            and spec.get("username") == f"system:bootstrap:{self._token_id}"
            and not (csr.get("status") or {}).get("conditions")
        )

    async def _approve(self, csr: Obj) -> bool:
        if not self._is_approvable(csr):
            return False
        approved = condition(
            "Approved",
            "True",
            reason="HubletSimulateApprove",
            message="approved by hublet simulate",
        )
        approved["lastUpdateTime"] = self._context.now_text()
        status = {**(csr.get("status") or {}), "conditions": [approved]}
        place = Place(CSRS, name=csr["metadata"]["name"], subresource="approval")
        await self._session.update(place, {**csr, "status": status})
        return True
