"""The add-ons of one managed cluster, as its registration agent looks after them.

Works on the registration agent's connection and watches. Nothing is installed anywhere: an add-on
is well as soon as it has what its manager asks for.
"""

import asyncio
import base64
from collections.abc import Callable, Mapping

from hub.meta import Obj
from hub.registry.requests import ADDON_NAME_LABEL
from tools.simulate.addonbody import (
    Step,
    addon_host,
    addon_subject,
    is_done,
    new_addon_csr,
    next_step,
    step_patch,
)
from tools.simulate.condition import is_true
from tools.simulate.context import Context
from tools.simulate.identity import KeyRequest, make_request
from tools.simulate.resource import ADDONS, CSRS
from tools.simulate.session import Place, RefusedError, Session
from tools.simulate.upkeep import Upkeep

_GONE = frozenset({404})


class AddOns:
    """Brings the add-ons of one cluster in line; `start` it in the agent's task group."""

    def __init__(
        self,
        context: Context,
        session: Session,
        cluster: str,
        *,
        objects: Callable[[], Mapping[str, Obj]],
    ) -> None:
        self._context, self._session, self._cluster = context, session, cluster
        self._objects = objects
        self._done: set[str] = set()
        self._requests: dict[str, KeyRequest] = {}
        self._certified: set[str] = set()
        self._upkeep: Upkeep | None = None

    @property
    def done(self) -> frozenset[str]:
        """Which of the add-ons the hub shows as available."""
        return frozenset(self._done)

    def start(self, group: asyncio.TaskGroup) -> None:
        """Begin; until then changes are only noted."""
        self._upkeep = Upkeep(group, self._objects, self._advance, rng=self._context.rng)

    def on_change(self, name: str) -> None:
        """Look at an add-on that the watch has shown."""
        addon = self._objects().get(name)
        if addon is not None and is_done(addon):
            self._done.add(name)
        else:
            self._done.discard(name)
        if addon is None:
            self._requests.pop(name, None)
            self._certified.discard(name)
        self._wake(name)

    def on_csr(self, csr: Obj) -> None:
        """Look at a request of this cluster, which may be an add-on's."""
        name = (csr["metadata"].get("labels") or {}).get(ADDON_NAME_LABEL, "")
        request, addon = self._requests.get(name), self._objects().get(name)
        certificate = (csr.get("status") or {}).get("certificate")
        if request is None or addon is None or not certificate or not is_true(csr, "Approved"):
            return
        asked = base64.b64decode(csr["spec"].get("request", "")).decode(errors="replace")
        if asked == request.request_pem:
            pem = base64.b64decode(certificate).decode(errors="replace")
            subject = addon_subject(self._cluster, addon, request.agent)
            self._context.check_certificate(pem, request.key_pem, subject)
            self._certified.add(name)
            self._wake(name)

    def _wake(self, name: str) -> None:
        if self._upkeep is not None and name in self._objects():
            self._upkeep.wake(name)

    async def _advance(self, addon: Obj) -> bool:
        """Send what `addon` calls for next."""
        name: str = addon["metadata"]["name"]
        step = next_step(addon, has_certificate=name in self._certified)
        if step is Step.NOTHING:
            return False
        if step is Step.REQUEST_CERTIFICATE:
            await self._request_certificate(name, addon)
            return False  # the add-on stays as it is; `on_csr` looks at it again
        place = Place(ADDONS, namespace=self._cluster, name=name, subresource="status")
        patch = step_patch(addon, step, now=self._context.now_text())
        try:
            await self._session.patch(place, patch, expected=_GONE)
        except RefusedError as error:
            if error.status != 404:  # 404: deleted meanwhile, the watch will tell
                raise
        return True

    async def _request_certificate(self, name: str, addon: Obj) -> None:
        if name in self._requests:
            return
        agent = self._context.agent_name()
        subject = addon_subject(self._cluster, addon, agent)
        request = make_request(subject, agent, hosts=[addon_host(name)])
        self._requests[name] = request  # before the answer: the watch may be faster
        self._context.tally.addon_csrs_created += 1
        try:
            await self._session.create(Place(CSRS), new_addon_csr(self._cluster, name, request))
        except BaseException:
            self._requests.pop(name, None)
            raise
