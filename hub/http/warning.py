"""Warning headers (RFC 7234, code 299), as kube-apiserver writes them and kubectl prints them.

Mirrors k8s.io/apiserver/pkg/endpoints/filters/warning.go and apimachinery's NewWarningHeader.
"""

MAX_TOTAL = 4096
"""Characters of all warnings of one answer; beyond it each is cut to `MAX_ITEM`."""
MAX_ITEM = 256


class Warnings:
    """What a client is to be told beside its answer; each text once, in order."""

    __slots__ = ("_texts",)

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}

    def add(self, text: str) -> None:
        """Take a warning."""
        self._texts.setdefault(text)

    def headers(self) -> list[tuple[str, str]]:
        """Return one header for each, as many as fit."""
        texts = list(self._texts)
        if sum(map(len, texts)) > MAX_TOTAL:
            texts = [text[:MAX_ITEM] for text in texts][: MAX_TOTAL // MAX_ITEM]
        return [("warning", warning_value(text)) for text in texts]


def warning_value(text: str) -> str:
    r"""Return the value of one header: quotes escaped, control characters as spaces, UTF-8.

    >>> warning_value('unknown field "spec.a"')
    '299 - "unknown field \\"spec.a\\""'
    """
    plain = "".join(char if char >= " " and char != "\x7f" else " " for char in text)
    quoted = plain.replace("\\", "\\\\").replace('"', '\\"')
    # header values go out as latin-1: so written, these are the bytes of UTF-8
    return f'299 - "{quoted}"'.encode("utf-8", "replace").decode("latin-1")
