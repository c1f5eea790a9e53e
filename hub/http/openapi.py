"""``/openapi/v3``: the index, and a document a group and version, built when first asked for.

A document is built anew when the kinds in its version have changed.

Owns caching and conditional answers. A document's address carries the hash of its bytes, so that
clients keep it for good; what is in it is `hub.meta.schema.openapi`'s.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from hub.http.document import Document
from hub.http.negotiate import JSON
from hub.meta import Obj
from hub.meta.codec.json import encode
from hub.meta.schema.builtin import builtin_schema, endless_schemas
from hub.meta.schema.openapi import (
    KindDoc,
    SubDoc,
    content_hash,
    document_path,
    group_version_document,
    index,
)
from hub.registry.catalog import Catalog
from hub.registry.kind import SUBRESOURCE_VERBS, Kind, Served

ROOT = "/openapi/v3"
SchemaOf: TypeAlias = Callable[[Served], Obj | None]
"""Gives the structural schema of a kind that is not built in; None = nothing is said of it."""
_OWN_KINDS = {
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
    "scale": ("autoscaling", "v1", "Scale"),
    "release": ("", "v1", "Status"),
    "snapshot": ("", "v1", "Status"),
}


class OpenApi:
    """The OpenAPI documents of one hub."""

    def __init__(self, catalog: Catalog, schema_of: SchemaOf, *, release: str) -> None:
        self._catalog, self._schema_of, self._release = catalog, schema_of, release
        self._documents: dict[str, Document] = {}
        self._built_from: dict[str, list[Kind]] = {}
        self._generation = -1
        self._index: Document | None = None

    def find(self, path: str, wanted_hash: str) -> Document | None:
        """Return the document at `path`; one asked for by the hash it has may be kept for good."""
        if path == ROOT:
            return self._listing()
        if not path.startswith(f"{ROOT}/"):
            return None
        self._build()
        document = self._documents.get(path.removeprefix(f"{ROOT}/"))
        if document is None or f'"{wanted_hash}"' != document.etag:
            return document
        return Document(document.body, JSON, document.etag, "public, immutable")

    def documents(self) -> list[Document]:
        """Return all documents, by path."""
        self._build()
        return [document for _, document in sorted(self._documents.items())]

    def _listing(self) -> Document:
        self._build()
        if self._index is None:
            hashes = {path: doc.etag.strip('"') for path, doc in self._documents.items()}
            body = encode(index(hashes))
            self._index = Document(body, JSON, f'"{content_hash(body)}"', "no-cache, private")
        return self._index

    def _build(self) -> None:
        if self._generation == self._catalog.generation:
            return
        self._generation, self._index = self._catalog.generation, None
        before, self._documents = self._documents, {}
        for group, versions in self._catalog.group_versions().items():
            for version in versions:
                path = document_path(group, version)
                served = self._catalog.in_version(group, version)
                kinds = [s.kind for s in served]
                present = before.get(path)
                if present is None or not _is_same(kinds, self._built_from[path]):
                    present = self._document(group, version, served)
                self._documents[path], self._built_from[path] = present, kinds

    def _document(self, group: str, version: str, served: Sequence[Served]) -> Document:
        kinds = [self._describe(s) for s in served]
        body = encode(group_version_document(group, version, kinds, release=self._release))
        return Document(body, JSON, f'"{content_hash(body)}"', "no-cache, private")

    def _describe(self, served: Served) -> KindDoc:
        kind, view = served.kind, served.view
        schema = builtin_schema(view.api_version, kind.kind) or self._schema_of(served)
        return KindDoc(
            kind=kind.kind,
            plural=kind.plural,
            is_namespaced=kind.is_namespaced,
            verbs=kind.verbs,
            schema=schema,
            subresources=tuple(_subresource(kind, name) for name in kind.subresources),
            is_custom=kind.is_custom,
            list_kind=kind.list_kind,
            selectable=kind.strategy.selectable(),
            parts=endless_schemas(view.api_version, kind.kind),
        )


def _is_same(kinds: Sequence[Kind], others: Sequence[Kind]) -> bool:
    """Whether two lists hold the very same kinds."""
    return len(kinds) == len(others) and all(a is b for a, b in zip(kinds, others, strict=True))


def _subresource(kind: Kind, name: str) -> SubDoc:
    group, version, own = _OWN_KINDS.get(name, ("", "", ""))
    return SubDoc(
        name,
        tuple(SUBRESOURCE_VERBS[name]),
        group=group,
        version=version,
        kind=own,
        is_told=not kind.is_custom,
    )
