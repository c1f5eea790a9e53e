"""LIST: a page of a kind, streamed in slices.

A large list neither fills memory nor holds up the loop. Owns paging and resourceVersion semantics
of lists (k8s.io/apiserver/pkg/storage). Values are read a few at a time and stay compressed until
their slice is written; no store transaction is open while bytes travel.
"""

import asyncio
from collections.abc import Iterable, Iterator

from hub.http.entries import Entries, begin, shorten
from hub.http.render import ListMeta, Renderer
from hub.http.reply import SLICE_BYTES, Reply
from hub.meta.errors import ApiError, expired, resource_version_too_large
from hub.meta.requirement import Operator
from hub.meta.selectors import LabelSelector
from hub.registry.engine import Engine
from hub.registry.kind import Kind, Served
from hub.registry.options import NOW, ListOptions, bad_token, decode_continue, encode_continue
from hub.store import (
    Compacted,
    FutureRevision,
    Index,
    Key,
    Match,
    Page,
    Revision,
    Stored,
    decode_index,
    decode_key,
    encode_key,
)
from hub.store import (
    prefix as key_prefix,
)

_WAIT_FOR_REVISION_S = 3.0
_EXPIRED_PAGE = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


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


def select(engine: Engine, kind: Kind, namespace: str, options: ListOptions) -> Entries:
    """Return every entry that is selected, without a scan where name or label allow.

    Exactly what there was at the list's revision: what is in the file but not shown to watches yet
    would come a second time, to a watch that goes on from here.
    """
    match = matcher(options)
    revision = engine.store.revision
    prefix = key_prefix(kind.id, namespace or None)
    keys: Iterable[Key] | None
    if options.pinned_name and (namespace or not kind.is_namespaced):
        space = namespace if kind.is_namespaced else ""
        keys = _key_of(kind, space, options.pinned_name)
    else:
        keys = engine.candidates(kind, options.labels)
        if keys is None:
            return begin(engine.store, prefix, match)
    found = (engine.store.get_at(key, revision) for key in keys if key.startswith(prefix))
    entries = [e for e in found if e is not None and (match is None or match(e.key, e.index))]
    page = Page(entries, revision, has_more=False, remaining=0)
    return shorten(engine.store, prefix, match, page)


def _key_of(kind: Kind, namespace: str, name: str) -> list[Key]:
    try:
        return [encode_key(kind.id, namespace, name)]
    except ValueError:  # a name that no object can have
        return []


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
) -> tuple[Entries, ListMeta]:
    """Return the entries to show and the list's metadata.

    Later pages show the state at the first one's revision, whatever is written meanwhile.

    :raises ApiError: 400 for a continue token that is not ours, 410 for a revision that the log no
        longer reaches
    """
    kind, start = served.kind, ""
    after: Key | None = None
    revision = options.exact_revision
    if options.continue_token:
        revision, start = decode_continue(options.continue_token)
        after = _key_after(kind, namespace, start)
    is_narrow = options.pinned_name or engine.candidates(kind, options.labels) is not None
    if not revision and after is None and (is_narrow or not options.limit):
        entries = select(engine, kind, namespace, options)
        return entries, ListMeta(entries.revision, "", None)
    prefix, match = key_prefix(kind.id, namespace or None), matcher(options)
    try:
        page = engine.store.scan_at(
            prefix,
            Revision(revision or engine.store.revision),
            after=after,
            limit=options.limit or None,
            match=match,
        )
    except (Compacted, FutureRevision) as error:
        raise _too_old(start) from error
    token = ""
    if page.has_more and page.entries:
        token = encode_continue(page.revision, _start_of(page.entries[-1].key, kind, namespace))
    meta = ListMeta(page.revision, token, page.remaining if token else None)
    return shorten(engine.store, prefix, match, page), meta


def _key_after(kind: Kind, namespace: str, start: str) -> Key:
    """Return the last key that was shown; `start` is relative to the list's own prefix."""
    space, name = namespace, start
    if kind.is_namespaced and not namespace:
        space, _, name = start.partition("/")
    try:
        return encode_key(kind.id, space if kind.is_namespaced else "", name)
    except ValueError:
        raise bad_token() from None


def _start_of(key: Key, kind: Kind, namespace: str) -> str:
    _, space, name = decode_key(key)
    return f"{space}/{name}" if kind.is_namespaced and not namespace else name


def _too_old(start: str) -> ApiError:
    """Return the 410 with which a list that cannot go on is answered.

    With the token in it the client may go on nevertheless, from the present: client-go's pager
    and kubectl tell the two by it (k8s.io/apiserver/pkg/storage/etcd3/errors.go).
    """
    if not start:
        return expired("The resourceVersion for the provided list is too old.")
    return expired(_EXPIRED_PAGE, continue_token=encode_continue(NOW, start))


async def answer_list(
    engine: Engine, renderer: Renderer, namespace: str, options: ListOptions, reply: Reply
) -> None:
    """Answer a LIST."""
    await wait_for(engine, options.revision)
    entries, meta = read_page(engine, renderer.served, namespace, options)
    await answer_page(engine, renderer, entries, meta, reply)


async def answer_page(
    engine: Engine, renderer: Renderer, entries: Iterable[Stored], meta: ListMeta, reply: Reply
) -> None:
    """Write entries as a list, in slices when they are many."""
    await reply.pour(_slices(engine, renderer, entries, meta))


def _slices(
    engine: Engine, renderer: Renderer, entries: Iterable[Stored], meta: ListMeta
) -> Iterator[bytes]:
    pieces = [renderer.list_head(meta)]
    size = 0
    for position, entry in enumerate(entries):
        document = renderer.list_item(engine.store.read(entry))
        if position:
            pieces.append(b",")
        pieces.append(document)
        size += len(document)
        if size >= SLICE_BYTES:
            yield b"".join(pieces)
            pieces, size = [], 0
    pieces.append(b"]}\n")
    yield b"".join(pieces)
