"""Request bodies: the media type decides how bytes become an object.

Owns the choice and the 415; each format is read by its own module. Patches have media types of
their own and do not come here.
"""

from hub.meta import Obj, protobuf
from hub.meta.codec import json, yaml
from hub.meta.duplicates import faults as find_faults
from hub.meta.duplicates import has_duplicates
from hub.meta.errors import unsupported_media_type
from hub.meta.objectmeta import check_types
from hub.meta.protobuf.schema import MessageSpec

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def decode_body(
    content_type: str | None,
    data: bytes,
    *,
    accepts_protobuf: bool,
    faults: list[str] | None = None,
    message: MessageSpec | None = None,
) -> Obj:
    """Return the object of a body; no Content-Type means JSON, parameters are ignored.

    `accepts_protobuf` is False for custom resources, as on kube-apiserver. apiVersion, kind and
    metadata have the right types afterwards. `faults`, when given, is told of fields that stand
    twice; with `message`, the table of a built-in kind, perhaps also of unknown ones between them.
    Raises a 400 ApiError for a body that cannot be read, 415 for a type that is not accepted.
    """
    media_type = (content_type or JSON).partition(";")[0].strip().lower()
    if media_type == YAML:
        obj = yaml.decode(data, faults)
    else:
        obj = _decode(media_type, data, accepts_protobuf=accepts_protobuf)
        if faults is not None and media_type == JSON and has_duplicates(data, obj):
            faults += find_faults(data, message)
    check_types(obj)
    return obj


def _decode(media_type: str, data: bytes, *, accepts_protobuf: bool) -> Obj:
    if media_type == JSON:
        return json.decode(data)
    if media_type == PROTOBUF and accepts_protobuf:
        return protobuf.decode_envelope(data)
    raise unsupported_media_type([JSON, YAML, *([PROTOBUF] if accepts_protobuf else [])])
