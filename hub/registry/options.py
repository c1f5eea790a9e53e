"""What a list or watch request asks for, parsed and checked.

Pure; the rules are those of k8s.io/apimachinery/pkg/apis/meta/internalversion/validation and
k8s.io/apiserver/pkg/storage (resourceVersion semantics).
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec

from hub.meta.causes import forbidden_field, not_supported
from hub.meta.errors import ApiError, Cause, bad_request, invalid
from hub.meta.selectors import (
    FieldRequirement,
    FieldSelector,
    LabelSelector,
    parse_field_selector,
    parse_label_selector,
)
from hub.registry.kind import Served

_MATCH = "resourceVersionMatch"
_MATCHES = ("NotOlderThan", "Exact")
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_INT64 = 1 << 63
_MOST_DIGITS = 20
_SHOWN = 40
GENERIC_FIELDS = ("metadata.name", "metadata.namespace")


@dataclass(frozen=True, slots=True)
class ListOptions:
    """A list or watch request.

    `revision` None = not given, 0 = any; `timeout_s` None = the server's choice.
    """

    labels: LabelSelector
    fields: FieldSelector
    revision: int | None = None
    revision_match: str = ""
    limit: int = 0
    continue_token: str = ""
    timeout_s: int | None = None
    wants_bookmarks: bool = False
    wants_initial_events: bool | None = None

    @property
    def pinned_name(self) -> str:
        """Return the one name that the field selector allows, "" if it allows several."""
        return self.fields.pinned("metadata.name") or ""

    @property
    def exact_revision(self) -> int:
        """Return the one revision that a list must show, 0 = the present.

        A limit with a revision and no match means the same as Exact, for the sake of clients that
        are older than the parameter (k8s.io/apiserver/pkg/storage, ValidateListOptions).
        """
        is_legacy = bool(self.limit and self.revision) and not self.revision_match
        return self.revision or 0 if is_legacy or self.revision_match == "Exact" else 0


def is_true(text: str | None) -> bool:
    """Read a boolean query parameter: given and neither "false" nor "0".

    Mirrors k8s.io/apimachinery/pkg/runtime/conversion.go (Convert_Slice_string_To_bool).
    """
    return text is not None and text.lower() not in ("false", "0")


def parse_revision(text: str, field: str = "resourceVersion") -> int | None:
    """Return the number, None for "".

    :raises ApiError: 400 when it is no decimal number
    """
    if text == "":
        return None
    if not text.isascii() or not text.isdigit() or len(text) > _MOST_DIGITS:
        shown = text[:_SHOWN]
        raise bad_request(f"Invalid value: {shown!r}: {field}: must be a decimal number of 64 bits")
    return int(text)


def parse_list_options(
    query: Mapping[str, str], served: Served, *, is_watch: bool, path_name: str = ""
) -> ListOptions:
    """Return the options in `query`; `path_name`, when given, is the only name selected.

    :raises ApiError: 400 or 422, naming the parameter
    """
    fields = parse_field_selector(query.get("fieldSelector", ""))
    fields = _stored_fields(fields, served)
    if path_name:
        named = FieldRequirement("metadata.name", path_name, is_equal=True)
        fields = FieldSelector((named, *fields.requirements))
    initial = query.get("sendInitialEvents")
    options = ListOptions(
        labels=parse_label_selector(query.get("labelSelector", "")),
        fields=fields,
        revision=parse_revision(query.get("resourceVersion", "")),
        revision_match=query.get("resourceVersionMatch", ""),
        limit=max(_parse_int(query.get("limit", ""), "limit") or 0, 0),
        continue_token=query.get("continue", ""),
        timeout_s=_parse_int(query.get("timeoutSeconds", ""), "timeoutSeconds"),
        wants_bookmarks=is_true(query.get("allowWatchBookmarks")),
        wants_initial_events=None if initial is None else is_true(initial),
    )
    causes = list(_problems(options, is_watch=is_watch))
    if causes:
        raise invalid("meta.k8s.io", "ListOptions", "", causes)
    if options.continue_token and options.revision:
        raise bad_request("specifying resource version is not allowed when using continue")
    return options


def _parse_int(text: str, field: str) -> int | None:
    if text == "":
        return None
    if _INTEGER.fullmatch(text) is None or abs(int(text)) >= _INT64:
        raise bad_request(f"{field}: {text[:_SHOWN]!r} is not a number of 64 bits")
    return int(text)


def _stored_fields(fields: FieldSelector, served: Served) -> FieldSelector:
    """Return a selector by the names that objects are indexed with; 400 for one that is not."""
    own = served.kind.strategy.selectable()
    names = served.view.field_names or {name: name for name in own}
    found = []
    for requirement in fields.requirements:
        field = requirement.field
        if field in GENERIC_FIELDS:
            found.append(requirement)
        elif field in names:
            found.append(replace(requirement, field=names[field]))
        elif own or served.kind.is_custom:
            raise bad_request(f"field label not supported: {field}")
        else:
            only = ", ".join(f'"{name}"' for name in GENERIC_FIELDS)
            raise bad_request(f'"{field}" is not a known field selector: only {only}')
    return FieldSelector(tuple(found))


def _problems(options: ListOptions, *, is_watch: bool) -> Iterator[Cause]:
    if is_watch:
        yield from _watch_problems(options)
        return
    match = options.revision_match
    if match:
        if options.revision is None:
            yield forbidden_field(
                _MATCH, f"{_MATCH} is forbidden unless resourceVersion is provided"
            )
        if options.continue_token:
            yield forbidden_field(_MATCH, f"{_MATCH} is forbidden when continue is provided")
        if match not in _MATCHES:
            yield not_supported(_MATCH, match, ("Exact", "NotOlderThan", ""))
        if match == "Exact" and options.revision == 0:
            yield forbidden_field(_MATCH, f'{_MATCH} "exact" is forbidden for resourceVersion "0"')
    if options.wants_initial_events is not None:
        yield forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list")


def _watch_problems(options: ListOptions) -> Iterator[Cause]:
    match, initial = options.revision_match, options.wants_initial_events
    if initial is not None and match != "NotOlderThan":
        yield forbidden_field(
            _MATCH, f"sendInitialEvents requires setting {_MATCH} to NotOlderThan"
        )
    elif initial and not options.wants_bookmarks:
        yield forbidden_field(
            "allowWatchBookmarks",
            "sendInitialEvents requires setting allowWatchBookmarks to true",
        )
    if not match:
        return
    if initial is None:
        yield forbidden_field(
            _MATCH, f"{_MATCH} is forbidden for watch unless sendInitialEvents is provided"
        )
    if match != "NotOlderThan":
        yield not_supported(_MATCH, match, ("NotOlderThan",))
    if options.continue_token:
        yield forbidden_field(_MATCH, f"{_MATCH} is forbidden when continue is provided")


class _Token(msgspec.Struct, frozen=True):
    v: str
    rv: int
    start: str


_LIST_VERSION = "meta.k8s.io/v1"
NOW = -1
"""As the revision of a token: go on with whatever is there, not with a state of the past."""


def encode_continue(revision: int, start: str) -> str:
    """Return the token with which a list goes on after `start`, in the form of kube-apiserver's.

    `start` is a name, in a list over all namespaces "namespace/name".
    """
    raw = msgspec.json.encode(_Token(_LIST_VERSION, revision, f"{start}\0"))
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode_continue(token: str) -> tuple[int, str]:
    """Return the revision of the first page (0: the present) and where to go on.

    :raises ApiError: 400 when the token is not one of ours
    """
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        read = msgspec.json.decode(raw, type=_Token)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise bad_token() from None
    if read.v != _LIST_VERSION or read.rv == 0 or len(read.start) < 2 or read.start[-1] != "\0":
        raise bad_token()
    return max(read.rv, 0), read.start[:-1]


def bad_token() -> ApiError:
    """Return the 400 for a continue token that means nothing here."""
    return bad_request("invalid continue token: continue key is not valid: list again without it")
