"""How stored objects look to a client: whole, as Table rows, or as metadata alone.

Turns stored JSON documents into response bytes. A whole object in its storage view passes through
undecoded.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hub.clock import Clock
from hub.http.negotiate import Form
from hub.meta import Obj
from hub.meta.codec.json import decode, encode
from hub.meta.errors import bad_request
from hub.meta.table import partial_object_metadata, render_table
from hub.registry.kind import Served
from hub.registry.printing import Printer, age_printer, name_printer
from hub.registry.watch import Variant

_INCLUDES = ("None", "Metadata", "Object")
_DEFAULT_PRINTERS = (name_printer(), age_printer())
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class ListMeta:
    """A list's metadata. `remaining` None = not told."""

    revision: int
    continue_token: str = ""
    remaining: int | None = None

    def as_obj(self) -> Obj:
        """Return the wire form."""
        found: Obj = {"resourceVersion": str(self.revision)}
        if self.continue_token:
            found["continue"] = self.continue_token
        if self.remaining:
            found["remainingItemCount"] = self.remaining
        return found


class Renderer:
    """One request's way of writing objects of one served kind."""

    __slots__ = ("_clock", "_types", "form", "include", "served")

    def __init__(self, served: Served, form: Form, include: str, clock: Clock) -> None:
        if include and include not in _INCLUDES:
            raise bad_request(f"unrecognized includeObject value: {include!r}")
        self.served, self.form, self._clock = served, form, clock
        self.include = include or "Metadata"
        types = {"kind": served.kind.kind, "apiVersion": served.view.api_version}
        self._types = encode(types)[:-1] + b","

    @property
    def _is_storage(self) -> bool:
        """Whether stored objects are shown as they are."""
        view = self.served.view
        return view == self.served.kind.storage and not view.is_read_through

    def view(self, obj: Obj) -> Obj:
        """Return a stored object in the view asked for."""
        return obj if self._is_storage else self.served.view.from_storage(obj)

    def document(self, stored: bytes) -> bytes:
        """Return one stored document in the form asked for."""
        if self.form is Form.OBJECT and self._is_storage:
            return stored
        return self.one(decode(stored))

    def one(self, obj: Obj) -> bytes:
        """Return one stored object in the form asked for."""
        shown = self.view(obj)
        if self.form is Form.TABLE:
            revision = str(shown["metadata"].get("resourceVersion", ""))
            return encode(self._table([shown], {"resourceVersion": revision}))
        if self.form is Form.METADATA:
            return encode(partial_object_metadata(shown))
        return encode(shown)

    def list_head(self, meta: ListMeta) -> bytes:
        """Return the beginning of a list in the form asked for, up to the first item."""
        if self.form is Form.TABLE:
            return encode(self._table([], meta.as_obj())).removesuffix(b"]}")
        kind, version = self.served.kind.list_kind, self.served.view.api_version
        wire_meta = meta.as_obj()
        if self.form is Form.METADATA:
            kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
        elif self.served.kind.is_custom:
            wire_meta.setdefault("continue", "")  # always there in Go's unstructured lists
        return b'{"kind":%b,"apiVersion":%b,"metadata":%b,"items":[' % (
            encode(kind),
            encode(version),
            encode(wire_meta),
        )

    def list_item(self, stored: bytes) -> bytes:
        """Return one stored document as an item of such a list: whole, a row, or metadata.

        Built-in kinds leave the type out of their items, which Go's typed lists have no place for.
        """
        if self.form is Form.OBJECT and not self.served.kind.is_custom:
            return self._untyped(self.document(stored))
        if self.form is not Form.TABLE:
            return self.document(stored)
        rows = self._cells([self.view(decode(stored))])
        (row,) = render_table(None, rows, include=self.include, metadata={})["rows"]
        return encode(row)

    def _untyped(self, document: bytes) -> bytes:
        """Return a document without kind and apiVersion, which stand first in what is stored."""
        if document.startswith(self._types):
            return b"{" + document[len(self._types) :]
        obj = decode(document)
        return encode({name: obj[name] for name in obj if name not in ("kind", "apiVersion")})

    def variant(self) -> Variant:
        """Return how watch events are written; watchers of the same form share their bytes.

        The columns of Tables stand in the first event of a watch only.
        """
        key = (self.served.view.api_version, self.form.value, self.include)
        if self.form is not Form.TABLE:
            return Variant(key, self.document)
        return Variant(key, self.document, Variant((*key, "rows"), self._rows_alone))

    def _rows_alone(self, stored: bytes) -> bytes:
        shown = self.view(decode(stored))
        meta = {"resourceVersion": str(shown["metadata"].get("resourceVersion", ""))}
        return encode(self._table([shown], meta, has_columns=False))

    def bookmark(
        self, revision: int, *, is_initial_end: bool = False, is_first: bool = True
    ) -> bytes:
        """Return a bookmark's object: type and revision only; `is_first`: of the watch's events."""
        meta: Obj = {"resourceVersion": str(revision)}
        if is_initial_end:
            meta["annotations"] = {INITIAL_EVENTS_END: "true"}
        kind, version = self.served.kind.kind, self.served.view.api_version
        obj: Obj = {"kind": kind, "apiVersion": version, "metadata": meta}
        if self.form is Form.TABLE:
            # the annotation must survive in Table form: clients read it from the row's object
            row = {"cells": [], "object": {**obj, **_PARTIAL}}
            meta = {"resourceVersion": str(revision)}
            table = self._table([], meta, has_columns=is_first)
            return encode({**table, "rows": [row]})
        if self.form is Form.METADATA:
            obj |= _PARTIAL
        return encode(obj)

    def _printers(self) -> tuple[Printer, ...]:
        return self.served.view.printers or _DEFAULT_PRINTERS

    def _table(self, objects: Sequence[Obj], meta: Obj, *, has_columns: bool = True) -> Obj:
        columns = [p.column for p in self._printers()] if has_columns else None
        return render_table(columns, self._cells(objects), include=self.include, metadata=meta)

    def _cells(self, objects: Sequence[Obj]) -> list[tuple[list[object], Obj]]:
        now, printers = self._clock.now(), self._printers()
        return [([p.cell(obj, now) for p in printers], obj) for obj in objects]


_PARTIAL: Obj = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
