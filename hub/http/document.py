"""Documents that are built once and answered many times: discovery and OpenAPI."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Document:
    """An answer as it stands: bytes, media type, entity tag and who may keep it how long.

    Without an `etag` it cannot be asked for conditionally; `cache` "" = as any other answer.
    """

    body: bytes
    content_type: str
    etag: str = ""
    cache: str = ""
