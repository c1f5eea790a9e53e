"""``/scale``: get, update and patch of a custom object's Scale."""

from typing import TYPE_CHECKING

from hub.http.negotiate import choose_form
from hub.http.render import Renderer
from hub.meta import Obj
from hub.meta.body import decode_body
from hub.meta.codec.json import decode
from hub.meta.errors import not_found
from hub.meta.patch import parse_patch
from hub.registry.engine import Engine
from hub.registry.kind import Served, View
from hub.registry.printing import age_printer, computed, name_printer
from hub.registry.scale import GROUP, VERSION, change_scale, scale_of

if TYPE_CHECKING:
    from hub.http.verbs import Ask

_PRINTERS = (
    name_printer(),
    computed(
        "Desired",
        lambda scale: scale["spec"].get("replicas", 0),
        description="How many there shall be.",
        type_="integer",
    ),
    computed(
        "Available",
        lambda scale: scale["status"]["replicas"],
        description="How many there are.",
        type_="integer",
    ),
    age_printer("date"),
)


def get_scale(engine: Engine, ask: "Ask") -> None:
    """Answer a GET."""
    renderer = _renderer(ask)
    stored = engine.find(ask.served.kind, ask.info.name, ask.namespace)
    if stored is None:
        raise not_found(ask.served.resource, ask.info.name)
    scale = scale_of(ask.served, decode(engine.store.read(stored)))
    ask.reply.send(200, renderer.one(scale) + b"\n")


async def set_scale(engine: Engine, ask: "Ask") -> None:
    """Answer a PUT or PATCH."""
    renderer = _renderer(ask)
    content_type, body = ask.request.headers.get("content-type"), ask.request.body
    if ask.info.verb == "patch":
        change = parse_patch(content_type, body, None)
    else:
        sent = decode_body(content_type, body, accepts_protobuf=True)

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
    ask.reply.send(200, renderer.one(scale_of(ask.served, obj)) + b"\n")


def _renderer(ask: "Ask") -> Renderer:
    """Return how a Scale is to be written."""
    form = choose_form(ask.request.headers.get("accept"), is_list=False)
    served = Served(ask.served.kind, View(GROUP, VERSION, printers=_PRINTERS))
    return Renderer(served, form, ask.info.query.get("includeObject", ""), ask.clock)
