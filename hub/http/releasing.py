"""``hubs/NAME/release``: the hub ships the rest, gives its prefix up and stops.

Owns the answer, which goes out before the hub does. What stopping means is the composition root's:
it is what SIGTERM does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hub.http.negotiate import JSON, Form, choose_form
from hub.meta import Obj
from hub.meta.errors import conflict, not_acceptable, not_found
from hub.registry.engine import Engine

if TYPE_CHECKING:
    from hub.http.verbs import Ask

_MESSAGE = (
    "the hub takes no more requests, ships what is not in its object store yet, releases its "
    "prefix and stops"
)


@dataclass(frozen=True, slots=True)
class Handover:
    """How the hub stops for another one to take over.

    `refusal`: why it cannot, "" when it can; `begin` returns at once.
    """

    refusal: Callable[[], str]
    begin: Callable[[], None]


def release(engine: Engine, handover: Handover, ask: "Ask") -> None:
    """Answer a POST, whose body is not read; a dry run only says whether it would be done.

    :raises ApiError: 404, 406, 409 (there is nothing to release) or 422
    """
    served, name = ask.served, ask.info.name
    if choose_form(ask.request.headers.get("accept"), is_list=False) is not Form.OBJECT:
        raise not_acceptable([JSON])
    hub = engine.peek(served.kind, name)
    if hub is None:
        raise not_found(served.resource, name)
    is_dry_run = ask.call().is_dry_run
    if refusal := handover.refusal():
        raise conflict(served.resource, name, refusal)
    ask.reply.document(202, _accepted(ask, str(hub["metadata"]["uid"])))
    if not is_dry_run:
        handover.begin()


def _accepted(ask: "Ask", uid: str) -> Obj:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "message": _MESSAGE,
        "details": {
            "name": ask.info.name,
            "group": ask.served.view.group,
            "kind": ask.served.kind.plural,
            "uid": uid,
        },
        "code": 202,
    }
