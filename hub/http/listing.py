"""LIST: a page of a kind, streamed in slices.

A large list neither fills memory nor holds up the loop. Owns paging and resourceVersion semantics
of lists (k8s.io/apiserver/pkg/storage). Values stay compressed until their slice is written; no
store transaction is open while bytes travel.
"""

import asyncio
from collections.abc import Iterable, Iterator

from hub.http.negotiate import Form
from hub.http.render import ListMeta, Renderer
from hub.http.reply import Reply
from hub.meta.errors import bad_request, expired, resource_version_too_large
from hub.meta.requirement import Operator
from hub.meta.selectors import LabelSelector
from hub.registry.engine import Engine
from hub.registry.kind import Kind, Served
from hub.registry.options import ListOptions, decode_continue, encode_continue
from hub.store import (
    Index,
    Key,
    Match,
    Page,
    Stored,
    decode_index,
    decode_key,
    encode_key,
)
from hub.store import (
    prefix as key_prefix,
)

SLICE_BYTES = 256 * 1024
_WAIT_FOR_REVISION_S = 3.0


def matcher(options: ListOptions) -> Match | None:
    """Return the test that selects objects by key and index block, None when all are selected."""
    if options.labels.is_empty and options.fields.is_empty:
        return None
    needles = _needles(options.labels)

    def match(key: Key, index: Index) -> bool:
        if any(index.find(needle) < 0 for needle in needles):
            return False
        labels, fields = decode_index(index)
        if not options.labels.matches(labels):
            return False
        if options.fields.is_empty:
            return True
        _, namespace, name = decode_key(key)
        return options.fields.matches(
            {**fields, "metadata.name": name, "metadata.namespace": namespace}
        )

    return match


def _needles(labels: LabelSelector) -> list[bytes]:
    """Return what the index block of a selected object must contain.

    Most objects are ruled out by it undecoded.

    Thousands of agents each list all CSRs by their own cluster's label.
    """
    return [
        f"\0{wanted.key}\0{wanted.values[0]}".encode()
        for wanted in labels.requirements
        if wanted.operator in (Operator.EQUALS, Operator.DOUBLE_EQUALS)
    ]


def select(engine: Engine, kind: Kind, namespace: str, options: ListOptions) -> Page:
    """Return every entry that is selected, without a scan where name or label allow."""
    match = matcher(options)
    revision = engine.store.revision
    prefix = key_prefix(kind.id, namespace or None)
    found: Iterable[Stored | None]
    if options.pinned_name and (namespace or not kind.is_namespaced):
        space = namespace if kind.is_namespaced else ""
        found = [engine.find(kind, options.pinned_name, space)]
    else:
        keys = engine.candidates(kind, options.labels)
        if keys is None:
            return engine.store.scan(prefix, match=match)
        found = (engine.store.get(key) for key in keys if key.startswith(prefix))
    entries = [e for e in found if e is not None and (match is None or match(e.key, e.index))]
    return Page(entries, revision, has_more=False, remaining=0)


async def wait_for(engine: Engine, revision: int | None) -> None:
    """Wait until the store has reached `revision`.

    :raises ApiError: 504 when it has not within three seconds (the client is ahead of this hub)
    """
    if not revision or revision <= engine.store.revision:
        return
    deadline = engine.clock.monotonic_s() + _WAIT_FOR_REVISION_S
    while engine.store.revision < revision:
        if engine.clock.monotonic_s() >= deadline:
            raise resource_version_too_large(revision, engine.store.revision)
        await asyncio.sleep(0.05)


def read_page(
    engine: Engine, served: Served, namespace: str, options: ListOptions
) -> tuple[Page, ListMeta]:
    """Return the entries to show and the list's metadata.

    :raises ApiError: 400 for a continue token that is not ours, 410 for an exact revision that is
        past
    """
    kind = served.kind
    after: Key | None = None
    first_revision = 0
    if options.continue_token:
        first_revision, start = decode_continue(options.continue_token)
        space, _, name = start.partition("/")
        try:
            after = encode_key(kind.id, space, name)
        except ValueError:
            raise bad_request("continue key is not valid: list again without it") from None
    is_narrow = options.pinned_name or engine.candidates(kind, options.labels) is not None
    if after is None and (is_narrow or not options.limit):
        page = select(engine, kind, namespace, options)
    else:
        page = engine.store.scan(
            key_prefix(kind.id, namespace or None),
            after=after,
            limit=options.limit or None,
            match=matcher(options),
        )
    if options.revision_match == "Exact" and options.revision != page.revision:
        raise expired(
            f"The provided resource version is too old: {options.revision} ({page.revision})"
        )
    revision = first_revision or page.revision
    token = ""
    if page.has_more and page.entries:
        _, space, name = decode_key(page.entries[-1].key)
        token = encode_continue(revision, f"{space}/{name}")
    return page, ListMeta(revision, token, page.remaining if token else None)


async def answer_list(
    engine: Engine, renderer: Renderer, namespace: str, options: ListOptions, reply: Reply
) -> None:
    """Answer a LIST."""
    await wait_for(engine, options.revision)
    page, meta = read_page(engine, renderer.served, namespace, options)
    await answer_page(engine, renderer, page, meta, reply)


async def answer_page(
    engine: Engine, renderer: Renderer, page: Page, meta: ListMeta, reply: Reply
) -> None:
    """Write entries as a list, in slices when they are many."""
    if renderer.form is not Form.OBJECT:
        documents = [engine.store.read(entry) for entry in page.entries]
        reply.send(200, renderer.whole_list(documents, meta) + b"\n")
        return
    slices = _slices(engine, renderer, page, meta)
    first = next(slices)
    second = next(slices, None)
    if second is None:
        reply.send(200, first)
        return
    reply.stream()
    reply.responder.write(first)
    piece: bytes | None = second
    while piece is not None and not reply.responder.is_closed:
        if not reply.responder.write(piece):
            await reply.responder.drain()
        await asyncio.sleep(0)
        piece = next(slices, None)
    reply.responder.end()


def _slices(engine: Engine, renderer: Renderer, page: Page, meta: ListMeta) -> Iterator[bytes]:
    pieces = [renderer.list_head(meta)]
    size = 0
    for position, entry in enumerate(page.entries):
        document = renderer.document(engine.store.read(entry))
        if position:
            pieces.append(b",")
        pieces.append(document)
        size += len(document)
        if size >= SLICE_BYTES:
            yield b"".join(pieces)
            pieces, size = [], 0
    pieces.append(b"]}\n")
    yield b"".join(pieces)
