"""Events that the hub itself writes, for people who look with ``kubectl describe``."""

from hub.clock import Clock
from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.meta.names import subdomain_errors
from hub.meta.timestamp import format_time
from hub.registry.engine import Engine
from hub.registry.event import EVENT
from hub.registry.kind import Kind
from hub.registry.objects import meta_of

_DEFAULT_NAMESPACE = "default"
"""Where Events about cluster-scoped objects lie."""
MESSAGE_BYTES = 1024
"""What the API server takes in the note of an Event."""
_NAME_CHARACTERS = 253


def reference_to(kind: Kind, obj: Obj) -> Obj:
    """Return an ObjectReference to a stored object."""
    meta = meta_of(obj)
    found = {
        "kind": kind.kind,
        "namespace": meta.get("namespace"),
        "name": meta["name"],
        "uid": meta["uid"],
        "apiVersion": kind.storage.api_version,
        "resourceVersion": meta.get("resourceVersion"),
    }
    return {name: value for name, value in found.items() if value}


async def warn(engine: Engine, about: Obj, *, reason: str, message: str, component: str) -> None:
    """Write a Warning about an object; one that cannot be written is not missed."""
    now = format_time(engine.clock.now())
    namespace = str(about.get("namespace") or _DEFAULT_NAMESPACE)
    event = {
        "metadata": {"name": _event_name(str(about["name"]), engine.clock)},
        "involvedObject": about,
        "reason": reason,
        "message": _cut(message),
        "source": {"component": component},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "type": "Warning",
        "reportingComponent": component,
    }
    try:
        await engine.create(EVENT, event, namespace=namespace)
    except ApiError as error:
        if error.code not in (403, 404, 409):  # the namespace is going, or gone
            raise


def _event_name(about: str, clock: Clock) -> str:
    """Return a name that begins with that of an object, cut where it would be too long.

    Names that are no Event's, those of roles for one, are left out altogether, as
    k8s.io/client-go/tools/internal/events does (GenerateEventName).
    """
    suffix = clock.token(8).hex()
    fitting = about[: _NAME_CHARACTERS - len(suffix) - 1].rstrip(".-")
    name = f"{fitting}.{suffix}"
    return clock.uid() if subdomain_errors(name) else name


def _cut(message: str) -> str:
    """Return what fits of a message; dots stand for the rest."""
    data = message.encode()
    if len(data) <= MESSAGE_BYTES:
        return message
    return data[: MESSAGE_BYTES - 3].decode(errors="ignore") + "..."
