"""What names, labels and their values may look like, and how a name is generated.

Owns the character rules; each ``*_errors`` function returns the complaints in apimachinery's words
(empty = valid), since clients and people match those texts. Which rule a kind follows is the
registry's business. Mirrors apimachinery's ``pkg/api/validate/content`` and apiserver's
``pkg/storage/names``.
"""

import re
from collections.abc import Callable, Mapping

from hub.meta.causes import invalid_value
from hub.meta.errors import Cause

_LABEL_RE = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_RE = rf"{_LABEL_RE}(\.{_LABEL_RE})*"
_NAME_PART_RE = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE_RE = f"({_NAME_PART_RE})?"

_LABEL = re.compile(_LABEL_RE)
_SUBDOMAIN = re.compile(_SUBDOMAIN_RE)
_NAME_PART = re.compile(_NAME_PART_RE)
_LABEL_VALUE = re.compile(_LABEL_VALUE_RE)

_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-',"
    " and must start and end with an alphanumeric character"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character"
)
_NAME_PART_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character"
)
_LABEL_VALUE_RULE = f"a valid label must be an empty string or {_NAME_PART_RULE[5:]}"

_LETTER_LABEL_RE = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LETTER_LABEL = re.compile(_LETTER_LABEL_RE)
_LETTER_LABEL_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an"
    " alphabetic character, and end with an alphanumeric character"
)

_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_MAX_GENERATED = 63
MAX_BASE = _MAX_GENERATED - _SUFFIX_LENGTH


def label_name_errors(value: str, *, prefix: bool = False) -> list[str]:
    """Check a DNS-1123 label (Namespaces); `prefix`: a generateName, which may end with a dash."""
    name = _mask_trailing_dash(value) if prefix else value
    errors = _length_errors(name, 63)
    if _LABEL.fullmatch(name) is None:
        if _SUBDOMAIN.fullmatch(name) is None:
            errors.append(_rule(_LABEL_RULE, _LABEL_RE, "my-name", "123-abc"))
        else:
            errors.append("must not contain dots")
    return errors


def service_name_errors(value: str) -> list[str]:
    """Check a DNS-1035 label: a DNS label that begins with a letter (names of resources)."""
    errors = _length_errors(value, 63)
    if _LETTER_LABEL.fullmatch(value) is None:
        errors.append(_rule(_LETTER_LABEL_RULE, _LETTER_LABEL_RE, "my-name", "abc-123"))
    return errors


def subdomain_errors(value: str, *, prefix: bool = False) -> list[str]:
    """Check a DNS-1123 subdomain, the rule of most names; `prefix` as in `label_name_errors`."""
    name = _mask_trailing_dash(value) if prefix else value
    errors = _length_errors(name, 253)
    if _SUBDOMAIN.fullmatch(name) is None:
        errors.append(_rule(_SUBDOMAIN_RULE, _SUBDOMAIN_RE, "example.com"))
    return errors


def path_segment_errors(value: str, *, prefix: bool = False) -> list[str]:
    """Check that a name can stand in a URL path, the rule of RBAC objects; `prefix` as above."""
    if not prefix and value in {".", ".."}:
        return [f"may not be '{value}'"]
    return [f"may not contain '{c}'" for c in "/%" if c in value]


namespace_errors = label_name_errors
"""A Namespace is named like a DNS label."""


def label_key_errors(key: str) -> list[str]:
    """Check a label or annotation key: ``[subdomain/]name``."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        rule = _rule(_NAME_PART_RULE, _NAME_PART_RE, "MyName", "my.name", "123-abc")
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {rule} {optional}"]
    errors = []
    if slash and not prefix:
        errors.append("prefix part must be non-empty")
    elif slash:
        errors.extend(f"prefix part {e}" for e in subdomain_errors(prefix))
    if not name:
        errors.append("name part must be non-empty")
    errors.extend(f"name part {e}" for e in _length_errors(name, 63))
    if _NAME_PART.fullmatch(name) is None:
        rule = _rule(_NAME_PART_RULE, _NAME_PART_RE, "MyName", "my.name", "123-abc")
        errors.append(f"name part {rule}")
    return errors


def label_value_errors(value: str) -> list[str]:
    """Check a label's value: empty, or a name of at most 63 bytes."""
    errors = _length_errors(value, 63)
    if _LABEL_VALUE.fullmatch(value) is None:
        errors.append(_rule(_LABEL_VALUE_RULE, _LABEL_VALUE_RE, "MyValue", "my_value", "12345"))
    return errors


def label_causes(labels: Mapping[str, str], field: str) -> list[Cause]:
    """Return the causes of a 422 for a map of labels found at `field` (``metadata.labels``)."""
    causes: list[Cause] = []
    for key, value in labels.items():
        causes.extend(invalid_value(field, key, e) for e in label_key_errors(key))
        causes.extend(invalid_value(field, value, e) for e in label_value_errors(value))
    return causes


def annotation_causes(annotations: Mapping[str, str], field: str) -> list[Cause]:
    """Return the causes of a 422 for annotations: keys as labels (any case), 256 KiB in all."""
    causes: list[Cause] = []
    total = 0
    for key, value in annotations.items():
        causes.extend(invalid_value(field, key, e) for e in label_key_errors(key.lower()))
        total += len(key.encode()) + len(value.encode())
    if total > 256 * 1024:
        message = f"Too long: may not be more than {256 * 1024} bytes"
        causes.append(Cause("FieldValueTooLong", message, field))
    return causes


def generate_name(base: str, rand: Callable[[int], bytes]) -> str:
    """Return `base`, cut to 58 characters, and five random ones (no vowels, so no words).

    `rand(n)` gives n random bytes. A byte that would favour some letters is drawn again.
    """
    usable = 256 - 256 % len(_SUFFIX_ALPHABET)
    suffix = ""
    while len(suffix) < _SUFFIX_LENGTH:
        drawn = rand(_SUFFIX_LENGTH - len(suffix))
        suffix += "".join(_SUFFIX_ALPHABET[b % len(_SUFFIX_ALPHABET)] for b in drawn if b < usable)
    return base[:MAX_BASE] + suffix


def _mask_trailing_dash(name: str) -> str:
    # apimachinery replaces the last two characters, not one: "a--" is let through, as there
    return f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name


def _length_errors(value: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} bytes"] if len(value.encode()) > limit else []


def _rule(rule: str, regex: str, *examples: str) -> str:
    quoted = " or ".join(f"'{e}', " for e in examples)
    return f"{rule} (e.g. {quoted}regex used for validation is '{regex}')"
