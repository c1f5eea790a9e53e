"""``/openapi/v2``, made of the v3 documents when first asked for, and anew when those change."""

from hub.http.document import Document
from hub.http.negotiate import JSON, parse_accept
from hub.http.openapi import OpenApi
from hub.meta.codec.json import decode, encode
from hub.meta.errors import not_acceptable
from hub.meta.schema.openapi import content_hash
from hub.meta.schema.swagger import encode_swagger, swagger

PATH = "/openapi/v2"
_ASKED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_ANY_JSON = (JSON, "application/*", "*/*")


class Swagger:
    """The v2 document of one hub, in both forms."""

    def __init__(self, openapi: OpenApi, *, release: str) -> None:
        self._openapi, self._release = openapi, release
        self._made_of: tuple[str, ...] = ()
        self._forms: dict[str, Document] = {}

    def find(self, path: str, accept: str | None) -> Document | None:
        """Return the document at `path`.

        :raises ApiError: 406
        """
        if path != PATH:
            return None
        form = _form(accept)
        documents = self._openapi.documents()
        made_of = tuple(document.etag for document in documents)
        if made_of != self._made_of:
            found = swagger((decode(d.body) for d in documents), self._release)
            bodies = {JSON: encode(found), _PROTOBUF: encode_swagger(found)}
            self._forms = {
                type_: Document(body, type_, f'"{content_hash(body)}"', "no-cache, private")
                for type_, body in bodies.items()
            }
            self._made_of = made_of
        return self._forms[form]


def _form(accept: str | None) -> str:
    for accepted in parse_accept(accept or "*/*"):
        if accepted.type_ in (_ASKED, _PROTOBUF):
            return _PROTOBUF
        if accepted.type_ in _ANY_JSON:
            return JSON
    raise not_acceptable([_ASKED, JSON])
