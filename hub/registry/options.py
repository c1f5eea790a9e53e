"""What a list or watch request asks for, parsed and checked.

Pure; the rules are those of k8s.io/apimachinery/pkg/apis/meta/internalversion/validation and
k8s.io/apiserver/pkg/storage (resourceVersion semantics).
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from hub.meta.errors import ApiError, Cause, bad_request, invalid
from hub.meta.selectors import (
    FieldRequirement,
    FieldSelector,
    LabelSelector,
    parse_field_selector,
    parse_label_selector,
)
from hub.registry.kind import Served

_MATCHES = ("NotOlderThan", "Exact")
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
    if not text.isascii() or not text.isdigit():
        raise bad_request(f"Invalid value: {text!r}: {field}: must be a decimal number")
    return int(text)


def parse_list_options(
    query: Mapping[str, str], served: Served, *, is_watch: bool, path_name: str = ""
) -> ListOptions:
    """Return the options in `query`; `path_name`, when given, is the only name selected.

    :raises ApiError: 400 or 422, naming the parameter
    """
    fields = parse_field_selector(query.get("fieldSelector", ""))
    _check_fields(fields, served)
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
    try:
        return int(text)
    except ValueError:
        raise bad_request(f"{field}: {text!r} is not a number") from None


def _check_fields(fields: FieldSelector, served: Served) -> None:
    own = served.kind.strategy.selectable()
    for field in (requirement.field for requirement in fields.requirements):
        if field in GENERIC_FIELDS or field in own:
            continue
        if own or served.kind.is_custom:
            raise bad_request(f"field label not supported: {field}")
        only = ", ".join(f'"{name}"' for name in GENERIC_FIELDS)
        raise bad_request(f'"{field}" is not a known field selector: only {only}')


def _problems(options: ListOptions, *, is_watch: bool) -> list[Cause]:
    match = options.revision_match
    causes: list[Cause] = []

    def refuse(reason: str, field: str, message: str) -> None:
        causes.append(Cause(reason, message, field))

    if options.wants_initial_events is not None:
        if not is_watch:
            refuse(
                "FieldValueForbidden",
                "sendInitialEvents",
                "Forbidden: sendInitialEvents is forbidden for list",
            )
        elif match != "NotOlderThan":
            refuse(
                "FieldValueForbidden",
                "resourceVersionMatch",
                "Forbidden: sendInitialEvents requires setting resourceVersionMatch to "
                "NotOlderThan",
            )
        elif options.wants_initial_events and not options.wants_bookmarks:
            refuse(
                "FieldValueForbidden",
                "allowWatchBookmarks",
                "Forbidden: sendInitialEvents requires setting allowWatchBookmarks to true",
            )
        return causes
    if not match:
        return causes
    if is_watch:
        refuse(
            "FieldValueForbidden",
            "resourceVersionMatch",
            "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents "
            "is provided",
        )
    elif match not in _MATCHES:
        refuse(
            "FieldValueNotSupported",
            "resourceVersionMatch",
            f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""',
        )
    elif options.revision is None:
        refuse(
            "FieldValueForbidden",
            "resourceVersionMatch",
            "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        )
    elif match == "Exact" and options.revision == 0:
        refuse(
            "FieldValueForbidden",
            "resourceVersionMatch",
            'Forbidden: resourceVersionMatch "Exact" is forbidden for resourceVersion "0"',
        )
    return causes


class _Token(msgspec.Struct, frozen=True):
    v: str
    rv: int
    start: str


def encode_continue(revision: int, start: str) -> str:
    """Return the token with which a list goes on after `start` (a key's "namespace/name")."""
    raw = msgspec.json.encode(_Token("hublet/v1", revision, start))
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode_continue(token: str) -> tuple[int, str]:
    """Return the revision of the first page and where to go on.

    :raises ApiError: 400 when the token is not one of ours
    """
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        read = msgspec.json.decode(raw, type=_Token)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise _bad_token() from None
    if read.v != "hublet/v1" or read.rv <= 0 or not read.start.partition("/")[2]:
        raise _bad_token()
    return read.rv, read.start


def _bad_token() -> ApiError:
    return bad_request("continue key is not valid: list again without it")
