"""The registration agent's first phase: from a bootstrap token to a client certificate.

Owns the bootstrap connection with its two watches. Key and request stay in memory until the
certificate is there; a run that ends before starts again with another CSR, as OCM's agent does.
"""

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable

from hub.auth.bootstrap_policy import CLUSTER_NAME_LABEL
from hub.meta import Obj
from tools.simulate.backoff import Backoff
from tools.simulate.clusterbody import SIGNER, new_cluster, new_csr
from tools.simulate.condition import is_true
from tools.simulate.context import REGISTRATION_AGENT, Context
from tools.simulate.frame import MalformedError
from tools.simulate.identity import Identity, new_request
from tools.simulate.reflector import Reflector
from tools.simulate.resource import CLUSTERS, CSRS, Selection
from tools.simulate.session import HubAwayError, Place, RefusedError

_NOT_FOUND = frozenset({404})
_EXISTS = frozenset({409})


class Bootstrap:
    """One cluster's registration; `run` returns when it is done."""

    def __init__(self, context: Context, cluster: str, *, token: str) -> None:
        self._context, self._cluster = context, cluster
        self._session = context.session(REGISTRATION_AGENT, token=token)
        self._request = new_request(cluster, context.agent_name())
        self._certificate: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._csrs = self._reflector(
            Selection(CSRS, label_selector=f"{CLUSTER_NAME_LABEL}={cluster}"), self._on_csr
        )
        self._clusters = self._reflector(
            Selection(CLUSTERS, field_selector=f"metadata.name={cluster}"), lambda _: None
        )

    async def run(self) -> Identity:
        """Register and return the identity, already kept."""
        try:
            async with asyncio.TaskGroup() as group:
                watches = [group.create_task(r.run()) for r in (self._csrs, self._clusters)]
                await self._insist(self._ensure_cluster)
                await self._insist(self._create_csr)
                certificate = await self._certificate
                for watch in watches:
                    watch.cancel()
        finally:
            await self._session.close()
        identity = self._request.signed(self._cluster, certificate)
        self._context.check_certificate(certificate, identity.key_pem, identity.subject)
        self._context.identities.save(identity)
        self._context.tally.certificates_issued += 1
        return identity

    # -- steps

    async def _ensure_cluster(self) -> None:
        place = Place(CLUSTERS, name=self._cluster)
        try:
            await self._session.get(place, expected=_NOT_FOUND)
        except RefusedError as error:
            if error.status != 404:
                raise
            await self._create_cluster()

    async def _create_cluster(self) -> None:
        try:
            await self._session.create(
                Place(CLUSTERS), new_cluster(self._cluster), expected=_EXISTS
            )
        except RefusedError as error:
            if error.status != 409:  # 409: an earlier try got through though its answer was lost
                raise

    async def _create_csr(self) -> None:
        self._context.tally.csrs_created += 1
        await self._session.create(Place(CSRS), new_csr(self._cluster, self._request))

    async def _insist(self, step: Callable[[], Awaitable[None]]) -> None:
        """Run `step` until the hub lets it."""
        backoff = Backoff(self._context.rng)
        while True:
            try:
                await step()
            except (HubAwayError, RefusedError, MalformedError):
                await asyncio.sleep(backoff.next_s(time.monotonic()))
            else:
                return

    # -- what the watches show

    def _on_csr(self, name: str) -> None:
        csr = self._csrs.objects.get(name)
        if csr is None or self._certificate.done() or not self._is_ours(csr):
            return
        certificate = (csr.get("status") or {}).get("certificate")
        if certificate and is_true(csr, "Approved"):
            self._certificate.set_result(base64.b64decode(certificate).decode())

    def _is_ours(self, csr: Obj) -> bool:
        spec: Obj = csr["spec"]
        request = base64.b64decode(spec.get("request", "")).decode(errors="replace")
        return spec.get("signerName") == SIGNER and request == self._request.request_pem

    def _reflector(self, selection: Selection, on_change: Callable[[str], None]) -> Reflector:
        return Reflector(self._session, selection, on_change=on_change, rng=self._context.rng)
