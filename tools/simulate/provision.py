"""What the administrator makes for its clusters: works, add-ons, and works that come and go.

Every created work is entered where its agent's watch is checked (`Context.writes`), so a work that
the hub has answered for must arrive.
"""

from collections.abc import Sequence

from hub.meta import Obj
from tools.simulate.addonbody import addon_names, new_addon, new_management_addon
from tools.simulate.context import Context
from tools.simulate.honesty import revision_of
from tools.simulate.resource import ADDONS, MANAGEMENT_ADDONS, WORKS
from tools.simulate.session import Place, RefusedError, Session
from tools.simulate.workbody import new_work

_EXISTS = frozenset({409})
_GONE = frozenset({404})


class Provision:
    """Creates and deletes over the administrator's session."""

    def __init__(self, context: Context, session: Session, *, works: int, addons: int) -> None:
        self._context, self._session = context, session
        self._works = works
        self.addons: Sequence[str] = addon_names(addons)
        """The names of the add-ons every cluster gets."""

    async def define_addons(self) -> None:
        """Create what a hub has once for each add-on."""
        for name in self.addons:
            await self._ensure(Place(MANAGEMENT_ADDONS), new_management_addon(name))

    def is_missing(self, cluster: str) -> bool:
        """Whether `cluster` has not got all yet, in this run or before."""
        works, addons = self._context.identities.made(cluster)
        return works < self._works or addons < len(self.addons)

    async def provide(self, cluster: str) -> None:
        """Create what `cluster` has not got yet."""
        works, addons = self._context.identities.made(cluster)
        for number in range(works, self._works):
            await self.create_work(new_work(cluster, number))
        for name in self.addons[addons:]:
            await self._ensure(Place(ADDONS, namespace=cluster), new_addon(cluster, name))
        self._context.identities.note_made(
            cluster, works=max(works, self._works), addons=max(addons, len(self.addons))
        )

    async def create_work(self, work: Obj) -> None:
        """Create a work, unless an earlier run has."""
        cluster, name = work["metadata"]["namespace"], work["metadata"]["name"]
        writes, revision = self._context.writes(cluster), ""
        write = writes.begin(name)
        try:
            revision = revision_of(await self._ensure(Place(WORKS, namespace=cluster), work))
        finally:
            self._session.tally.lied("watch manifestworks", writes.end(write, revision))

    async def delete_work(self, cluster: str, name: str) -> None:
        """Delete a work; its agent has to let it go."""
        try:
            await self._session.delete(Place(WORKS, namespace=cluster, name=name), expected=_GONE)
        except RefusedError as error:
            if error.status != 404:
                raise

    async def _ensure(self, place: Place, obj: Obj) -> Obj:
        """Create `obj` and return it, empty when an earlier run got this far and no further."""
        try:
            return await self._session.create(place, obj, expected=_EXISTS)
        except RefusedError as error:
            if error.status != 409:
                raise
            return {}
