"""``hubs/NAME/release`` and ``hubs/NAME/snapshot``: what a hub is asked to do.

Owns the answer, which says what will be done and goes out before it is. What an action does is the
composition root's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from hub.http.negotiate import JSON, Form, choose_form
from hub.meta import Obj
from hub.meta.errors import conflict, not_acceptable, not_found
from hub.registry.engine import Engine

if TYPE_CHECKING:
    from hub.http.verbs import Ask

RELEASE, SNAPSHOT = "release", "snapshot"
MESSAGES = {
    RELEASE: (
        "the hub takes no more requests, ships what is not in its object store yet, releases its "
        "prefix and stops"
    ),
    SNAPSHOT: (
        "the hub ships a full snapshot of the state it has now, unless the newest full is of that "
        "state already; Hub status.lastFull shows it"
    ),
}
"""What will be done, as the answer says it."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something that a hub does when it is asked.

    `refusal`: why it cannot, "" when it can; `begin` returns at once.
    """

    refusal: Callable[[], str]
    begin: Callable[[], None]


Actions: TypeAlias = Mapping[str, Action]
"""By subresource; one for each of `MESSAGES`."""


def act(engine: Engine, action: Action, ask: "Ask") -> None:
    """Answer a POST, whose body is not read; a dry run only says whether it would be done.

    :raises ApiError: 404, 406, 409 (it cannot be done) or 422
    """
    served, name = ask.served, ask.info.name
    if choose_form(ask.request.headers.get("accept"), is_list=False) is not Form.OBJECT:
        raise not_acceptable([JSON])
    hub = engine.peek(served.kind, name)
    if hub is None:
        raise not_found(served.resource, name)
    is_dry_run = ask.call().is_dry_run
    if refusal := action.refusal():
        raise conflict(served.resource, name, refusal)
    ask.reply.document(202, _accepted(ask, str(hub["metadata"]["uid"])))
    if not is_dry_run:
        action.begin()


def _accepted(ask: "Ask", uid: str) -> Obj:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "message": MESSAGES[ask.info.subresource],
        "details": {
            "name": ask.info.name,
            "group": ask.served.view.group,
            "kind": ask.served.kind.plural,
            "uid": uid,
        },
        "code": 202,
    }
