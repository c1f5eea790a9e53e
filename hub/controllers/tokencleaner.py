"""Bootstrap tokens that have expired are deleted.

Mirrors k8s.io/kubernetes/pkg/controller/bootstrap/tokencleaner.go.
"""

from hub.auth.bootstrap_token import NAMESPACE, SECRET_TYPE, token_life_s
from hub.clock import Clock
from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.registry.builtin import SECRET
from hub.registry.call import Preconditions
from hub.registry.engine import Engine
from hub.registry.objects import meta_of
from hub.registry.watch import Event
from hub.registry.workqueue import Queue, drain
from hub.store import Op

_LOOK_AGAIN_S = 3600.0


class TokenCleaner:
    """Deletes a token's Secret at the time it names, at once when it names none that can be read.

    A token without an expiration stays.
    """

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine, self._clock = engine, clock
        self._queue = Queue()
        engine.watches.listen(SECRET, self._changed)

    def _changed(self, event: Event) -> None:
        is_there = event.change.op is not Op.DELETE
        if is_there and event.namespace == NAMESPACE and _is_token(event.obj):
            self._queue.add(event.name)

    async def run(self) -> None:
        """Clean until cancelled."""
        async for secret in self._engine.paced(SECRET, NAMESPACE):
            if _is_token(secret):
                self._queue.add(str(meta_of(secret)["name"]))
        await drain("token-cleaner", self._queue, self.reconcile)

    async def reconcile(self, name: str) -> float | None:
        """Delete one token if its time is over; return when to look again."""
        secret = self._engine.peek(SECRET, name, NAMESPACE)
        if secret is None or not _is_token(secret):
            return None
        left = token_life_s(secret, self._clock.now())
        if left is None:
            return None
        if left > 0:
            return min(left, _LOOK_AGAIN_S)
        meta = meta_of(secret)
        judged = Preconditions(str(meta["uid"]), str(meta["resourceVersion"]))
        try:
            await self._engine.delete(SECRET, name, namespace=NAMESPACE, preconditions=judged)
        except ApiError as error:
            if error.code != 404:
                raise
        return None


def _is_token(secret: Obj) -> bool:
    return secret.get("type") == SECRET_TYPE
