"""How strictly the fields of a request are read: ``fieldValidation``.

Owns the three directives and what becomes of fields that are given twice or that the kind does not
have (k8s.io/apiserver/pkg/endpoints/handlers, create.go, update.go and patch.go): unknown ones are
dropped in any case, and told of in Warning headers or in a refusal.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from hub.meta import Obj
from hub.meta.causes import invalid_value, not_supported
from hub.meta.codec.json import encode
from hub.meta.codec.yaml import FAULTS_HEAD
from hub.meta.duplicates import unknown_field
from hub.meta.errors import ApiError, bad_request, invalid
from hub.meta.knownfields import prune
from hub.meta.protobuf.tables import find_message
from hub.registry.kind import Served

IGNORE, WARN, STRICT = "Ignore", "Warn", "Strict"
_DIRECTIVES = ("", IGNORE, STRICT, WARN)


def parse_directive(text: str, options_kind: str) -> str:
    """Return the directive of a query, Warn when there is none.

    :raises ApiError: 422
    """
    if text not in _DIRECTIVES:
        cause = not_supported("fieldValidation", text, _DIRECTIVES)
        raise invalid("meta.k8s.io", options_kind, "", [cause])
    return text or WARN


def known_fields(served: Served, obj: Obj) -> tuple[Obj, list[str]]:
    """Return an object of the view of `served` without unknown fields, and their paths.

    Views with a schema say themselves what they know; of other custom kinds all fields are.
    """
    kind, view = served.kind, served.view
    if view.prune is not None:
        return view.prune(obj)
    message = None if kind.is_custom else find_message(view.api_version, kind.kind)
    return (obj, []) if message is None else prune(obj, message)


@dataclass(slots=True)
class Strictness:
    """The directive of one request, and what was found while its body was decoded.

    `faults`: texts such as ``duplicate field "a"``; `warn` takes what the client is to be told.
    """

    directive: str = IGNORE
    faults: Sequence[str] = ()
    warn: Callable[[str], None] = field(default=lambda _text: None)

    def read(self, served: Served, obj: Obj) -> Obj:
        """Return what was sent without unknown fields.

        :raises ApiError: 400 when strict and something is wrong
        """
        return self._judge(served, obj, _refuse_body)

    def read_patched(self, served: Served, obj: Obj) -> Obj:
        """Return what a patch has made of an object without unknown fields.

        :raises ApiError: 422 when strict and something is wrong with the patch or its outcome
        """
        return self._judge(served, obj, _refuse_patched)

    def _judge(
        self, served: Served, obj: Obj, refusal: Callable[[Served, Obj, str], ApiError]
    ) -> Obj:
        known, unknown = known_fields(served, obj)
        if self.directive == IGNORE or not (unknown or self.faults):
            return known
        texts = list(dict.fromkeys([*self.faults, *(unknown_field(at) for at in unknown)]))
        if self.directive == STRICT:
            raise refusal(served, obj, strict_message(texts))
        for text in texts:
            # what the YAML reader found is one error of several lines
            for line in text.removeprefix(FAULTS_HEAD).split("\n"):
                self.warn(line.strip())
        return known


def strict_message(faults: Iterable[str]) -> str:
    """Return what a strict refusal says of what was found."""
    return f"strict decoding error: {', '.join(faults)}"


def _refuse_body(served: Served, _obj: Obj, problem: str) -> ApiError:
    kind = served.kind.kind
    version = served.view.version
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {problem}')


def _refuse_patched(_served: Served, obj: Obj, problem: str) -> ApiError:
    return invalid("", "", "", [invalid_value("patch", encode(obj).decode(), problem)])
