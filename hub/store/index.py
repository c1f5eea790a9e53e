r"""The index block: labels and selectable fields of an object, in the clear, before its value.

Owns the encoding that selectors read, so that a list or a watch with a selector never decompresses
what it does not return. Decoding is one ``split``; the block is empty when there is nothing to
select by.

Layout: the number of labels in decimal, then label keys and values in turn, then field names and
values, all joined by NUL. A string that itself holds NUL or 01 (only field values can) is escaped.

>>> encode_index({"env": "prod"}, {"metadata.name": "alpha"})
b'1\x00env\x00prod\x00metadata.name\x00alpha'
>>> decode_index(encode_index({"env": "prod"}, {"metadata.name": "alpha"}))
({'env': 'prod'}, {'metadata.name': 'alpha'})
"""

from collections.abc import Mapping

from hub.store.api import Index

EMPTY = Index(b"")
"""The block of an object without labels and fields."""

_ESCAPE = "\x01"


def encode_index(labels: Mapping[str, str], fields: Mapping[str, str]) -> Index:
    """Return the block; the order of the mappings is kept."""
    if not labels and not fields:
        return EMPTY
    parts = [str(len(labels))]
    for mapping in (labels, fields):
        for pair in mapping.items():
            parts.extend(pair)
    block = "\0".join(parts)
    if _ESCAPE in block or block.count("\0") != len(parts) - 1:
        block = "\0".join(map(_escape, parts))
    return Index(block.encode("utf-8", "surrogatepass"))


def decode_index(index: Index) -> tuple[dict[str, str], dict[str, str]]:
    """Return (labels, fields)."""
    if not index:
        return {}, {}
    parts = index.decode("utf-8", "surrogatepass").split("\0")
    if index.find(b"\x01") >= 0:
        parts = list(map(_unescape, parts))
    end = 2 * int(parts[0]) + 1
    labels = dict(zip(parts[1:end:2], parts[2:end:2], strict=True))
    return labels, dict(zip(parts[end::2], parts[end + 1 :: 2], strict=True))


def _escape(text: str) -> str:
    return text.replace(_ESCAPE, _ESCAPE + "1").replace("\0", _ESCAPE + "0")


def _unescape(text: str) -> str:
    return text.replace(_ESCAPE + "0", "\0").replace(_ESCAPE + "1", _ESCAPE)
