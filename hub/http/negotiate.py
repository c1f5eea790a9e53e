"""Which form an answer takes: plain JSON, a Table, or metadata alone.

Pure; mirrors k8s.io/apiserver/pkg/endpoints/handlers/negotiation. Bodies come in as JSON, YAML or
protobuf, answers always go out as JSON: every client that prefers protobuf lists JSON second.
"""

import enum
from dataclasses import dataclass

from hub.meta.errors import not_acceptable

JSON = "application/json"
_ACCEPTED = (JSON, "application/yaml", "application/vnd.kubernetes.protobuf")


class Form(enum.Enum):
    """How objects are written."""

    OBJECT = "object"
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A media type of the Accept header, its parameters split off."""

    type_: str
    parameters: dict[str, str]


def parse_accept(header: str) -> list[Accepted]:
    """Return the media types in order of preference (q sorted, ties in order of appearance)."""
    found: list[tuple[float, int, Accepted]] = []
    for position, item in enumerate(header.split(",")):
        parts = [p.strip() for p in item.split(";")]
        if not parts[0]:
            continue
        pairs = (p.split("=", 1) for p in parts[1:] if "=" in p)
        parameters = {key.strip(): value.strip().strip('"') for key, value in pairs}
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 0.0
        found.append((-quality, position, Accepted(parts[0].lower(), parameters)))
    return [accepted for _, _, accepted in sorted(found, key=lambda entry: entry[:2])]


def choose_form(header: str | None, *, is_list: bool) -> Form:
    """Return the first acceptable form.

    :raises ApiError: 406 when nothing in `header` can be written
    """
    if not header:
        return Form.OBJECT
    for accepted in parse_accept(header):
        if accepted.type_ not in (JSON, "application/*", "*/*"):
            continue
        form = _form_of(accepted, is_list=is_list)
        if form is not None:
            return form
    raise not_acceptable(_ACCEPTED[:1])


def _form_of(accepted: Accepted, *, is_list: bool) -> Form | None:
    wanted = accepted.parameters.get("as")
    if wanted is None:
        return Form.OBJECT
    if accepted.parameters.get("g") != "meta.k8s.io" or accepted.parameters.get("v") != "v1":
        return None
    if wanted == "Table":
        return Form.TABLE
    if wanted == ("PartialObjectMetadataList" if is_list else "PartialObjectMetadata"):
        return Form.METADATA
    return None
