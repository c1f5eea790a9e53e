"""The media types of patches: a body becomes a function from an object to the patched one.

Owns the choice, the 415 and the 400 for bytes that are no JSON.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from hub.meta import Obj
from hub.meta.codec.json import decode_value
from hub.meta.errors import ApiError, bad_request, unsupported_media_type
from hub.meta.patch.json_patch import json_patch
from hub.meta.patch.merge import merge_patch
from hub.meta.patch.schema import PatchSchema
from hub.meta.patch.strategic import strategic_patch

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCHES = ("application/apply-patch+yaml", "application/apply-patch+cbor")

Patch: TypeAlias = Callable[[Obj], Obj]
"""Returns the patched object and leaves its argument alone. Raises an ApiError."""


def parse_patch(content_type: str | None, data: bytes, schema: PatchSchema | None) -> Patch:
    """Return the patch that a body stands for.

    `schema` is how lists of the kind merge, None for custom resources, which take no strategic
    merge patch. Raises an ApiError: 415 for other media types, 400 for what is no JSON. What the
    patch says is looked at when it is applied.
    """
    media_type = (content_type or "").partition(";")[0].strip().lower()
    accepted = [JSON_PATCH, MERGE_PATCH, *([STRATEGIC_PATCH] if schema else [])]
    if media_type in APPLY_PATCHES:
        raise _no_apply(accepted)
    if media_type not in accepted:
        # kube-apiserver's list, word for word
        raise unsupported_media_type([*accepted, APPLY_PATCHES[0]])
    value = _decode(data)
    if media_type == JSON_PATCH:
        return lambda target: json_patch(target, value)
    if media_type == STRATEGIC_PATCH and schema is not None:
        return lambda target: strategic_patch(target, value, schema)
    return lambda target: merge_patch(target, value)


def _decode(data: bytes) -> Any:
    try:
        return decode_value(data)
    except ApiError as error:
        problem = error.message.rpartition("json parse error: ")[2]
        raise bad_request(f"error decoding patch: {problem}") from error


def _no_apply(accepted: list[str]) -> ApiError:
    error = unsupported_media_type(accepted)
    error.message = f"server-side apply is not served yet: {error.message}"
    return error
