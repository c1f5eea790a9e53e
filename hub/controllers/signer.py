"""The signer ``kubernetes.io/kube-apiserver-client`` of the hub's client CA.

Approved requests get a certificate. Mirrors k8s.io/kubernetes/pkg/controller/certificates/signer.
Who approves is not its business; it signs what is approved and marks as Failed what it cannot sign.
"""

import base64
import datetime as dt

from hub.auth.certificates import sign_client_certificate
from hub.auth.errors import CsrError
from hub.auth.keypair import KeyPair
from hub.clock import Clock
from hub.meta import Obj
from hub.registry.engine import Engine
from hub.registry.requests import CLIENT_SIGNER, CSR, conditions_of, has_condition, is_same
from hub.registry.watch import Event
from hub.registry.workqueue import Queue, drain


class Signer:
    """Signs approved client certificate requests."""

    def __init__(self, engine: Engine, authority: KeyPair, clock: Clock) -> None:
        self._engine, self._authority, self._clock = engine, authority, clock
        self._queue = Queue()
        engine.watches.listen(CSR, self._changed)

    def _changed(self, event: Event) -> None:
        if wants_signature(event.obj):
            self._queue.add(event.name)

    async def run(self) -> None:
        """Reconcile until cancelled."""
        async for request in self._engine.paced(CSR):
            if wants_signature(request):
                self._queue.add(str(request["metadata"]["name"]))
        await drain("signer", self._queue, self.reconcile, workers=32)

    async def reconcile(self, name: str) -> float | None:
        """Sign one request."""
        request = self._engine.peek(CSR, name)
        if request is None or not wants_signature(request):
            return None
        status = dict(request.get("status") or {})
        try:
            status["certificate"] = self._sign(request["spec"])
        except CsrError as error:
            failed = {
                "type": "Failed",
                "status": "True",
                "reason": "SignerValidationFailure",
                "message": str(error),
            }
            status["conditions"] = [*conditions_of(request), failed]

        def sign(obj: Obj) -> Obj:
            is_wanted = is_same(obj, request) and wants_signature(obj)
            return {**obj, "status": status} if is_wanted else obj

        await self._engine.modify(CSR, name, sign, subresource="status")
        return None

    def _sign(self, spec: Obj) -> str:
        now: dt.datetime = self._clock.now()
        pem = base64.b64decode(spec["request"])
        certificate = sign_client_certificate(
            pem,
            self._authority,
            usages=spec.get("usages") or (),
            now=now,
            duration_s=spec.get("expirationSeconds"),
        )
        return base64.b64encode(certificate).decode()


def wants_signature(request: Obj) -> bool:
    """Whether a request is approved, ours to sign, and neither signed nor refused yet."""
    if (request.get("spec") or {}).get("signerName") != CLIENT_SIGNER:
        return False
    if has_condition(request, "Denied") or has_condition(request, "Failed"):
        return False
    has_certificate = bool((request.get("status") or {}).get("certificate"))
    return has_condition(request, "Approved") and not has_certificate
