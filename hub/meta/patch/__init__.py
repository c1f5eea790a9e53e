"""Patches on plain objects: JSON patch, merge patch, strategic merge patch.

Pure: every patch is a function from an object, in the version it is shown in, to the patched one.
What a patch may touch is the registry's business.
"""

from hub.meta.patch.json_patch import json_patch
from hub.meta.patch.media import (
    APPLY_PATCHES,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    Patch,
    parse_patch,
)
from hub.meta.patch.merge import merge_patch
from hub.meta.patch.schema import PatchSchema, find_schema
from hub.meta.patch.strategic import strategic_patch

__all__ = [
    "APPLY_PATCHES",
    "JSON_PATCH",
    "MERGE_PATCH",
    "STRATEGIC_PATCH",
    "Patch",
    "PatchSchema",
    "find_schema",
    "json_patch",
    "merge_patch",
    "parse_patch",
    "strategic_patch",
]
