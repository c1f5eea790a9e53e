"""``/scale``: get, update and patch of a custom object's Scale."""

from typing import TYPE_CHECKING

from hub.http.negotiate import JSON, Form, choose_form
from hub.meta import Obj
from hub.meta.body import decode_body
from hub.meta.codec.json import decode, encode
from hub.meta.errors import not_acceptable, not_found
from hub.meta.patch import parse_patch
from hub.registry.engine import Engine
from hub.registry.scale import change_scale, scale_of

if TYPE_CHECKING:
    from hub.http.verbs import Ask


def get_scale(engine: Engine, ask: "Ask") -> None:
    """Answer a GET."""
    _check_form(ask)
    stored = engine.find(ask.served.kind, ask.info.name, ask.namespace)
    if stored is None:
        raise not_found(ask.served.resource, ask.info.name)
    _send(ask, scale_of(ask.served, decode(engine.store.read(stored))))


async def set_scale(engine: Engine, ask: "Ask") -> None:
    """Answer a PUT or PATCH."""
    _check_form(ask)
    content_type, body = ask.request.headers.get("content-type"), ask.request.body
    if ask.info.verb == "patch":
        change = parse_patch(content_type, body, None)
    else:
        sent = decode_body(content_type, body, accepts_protobuf=False)

        def change(_scale: Obj) -> Obj:
            return sent

    obj = await change_scale(
        engine,
        ask.served,
        change,
        name=ask.info.name,
        namespace=ask.namespace,
        call=ask.call(fields=ask.fields()),
    )
    _send(ask, scale_of(ask.served, obj))


def _check_form(ask: "Ask") -> None:
    if choose_form(ask.request.headers.get("accept"), is_list=False) is not Form.OBJECT:
        raise not_acceptable([JSON])


def _send(ask: "Ask", scale: Obj) -> None:
    ask.reply.send(200, encode(scale) + b"\n")
