"""Durable answers: who waits, for how long, and what is said, in virtual time."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from hub.http.api import Headers, Request, Responder
from hub.http.durably import Durability, Held
from hub.http.info import parse_request
from hub.http.reply import Reply
from hub.meta.errors import ApiError
from hub.registry.builtin import SECRET
from hub.store import Revision
from tests.unit.backup.virtual import LoopClock, now_s, run

PATH = "/api/v1/namespaces/a/secrets"


@dataclass
class Sent:
    """What went to the client, and when: the part of a `Responder` that is used here."""

    answers: list[tuple[float, int, dict[str, str], bytes]] = field(default_factory=list)

    def respond(self, status: int, headers: Headers, body: bytes) -> None:
        self.answers.append((now_s(), status, dict(headers), body))


@dataclass
class Slow:
    """A bucket that takes a revision after a while, or never; `says` is why."""

    takes_s: float = 5.0
    says: str = ""
    asked: list[int] = field(default_factory=list)

    async def __call__(self, revision: Revision) -> str:
        self.asked.append(revision)
        await asyncio.sleep(self.takes_s)
        return self.says


def reply_to(sent: Sent) -> Reply:
    return Reply(cast("Responder", sent), "id")


def hold(
    bucket: Slow, header: str | None = "true", *, query: str = "", kinds: tuple[str, ...] = ()
) -> tuple[Held | None, Sent]:
    sent = Sent()
    headers = {} if header is None else {"hublet-durable": header}
    request = Request("POST", f"{PATH}{query}", headers, b"", None, "", "2")
    durability = Durability(LoopClock(), bucket, frozenset(kinds))
    info = parse_request("POST", request.target)
    return durability.hold(info, SECRET, request, reply_to(sent)), sent


def answered(bucket: Slow, *, revision: int = 7, query: str = "") -> Sent:
    """Answer a write that asks to be durable."""

    async def work() -> Sent:
        held, sent = hold(bucket, query=query)
        assert held is not None
        held.warn("look out")
        held.send(201, b"{}")
        assert sent.answers == []
        held.receipt.revision = Revision(revision)
        await held.give()
        return sent

    return run(work())


def refused(bucket: Slow, *, query: str = "") -> tuple[ApiError, float]:
    async def work() -> tuple[ApiError, float]:
        held, sent = hold(bucket, query=query)
        assert held is not None
        held.send(200, b"{}")
        held.receipt.revision = Revision(7)
        with pytest.raises(ApiError) as caught:
            await held.give()
        assert sent.answers == []
        return caught.value, now_s()

    return run(work())


def test_the_answer_is_given_when_the_bucket_has_the_newest_revision() -> None:
    bucket = Slow()
    ((at, status, headers, body),) = answered(bucket).answers
    assert (at, status, body, bucket.asked) == (5.0, 201, b"{}", [7])
    assert headers["hublet-durable"] == "true"
    assert headers["warning"] == '299 - "look out"'


def test_what_never_ships_is_answered_at_once_and_without_the_header() -> None:
    bucket = Slow()
    ((at, status, headers, _),) = answered(bucket, revision=0).answers
    assert (at, status, bucket.asked) == (0.0, 201, [])
    assert "hublet-durable" not in headers


def test_an_answer_in_pieces_waits_as_well() -> None:
    async def work() -> None:
        held, sent = hold(Slow())
        assert held is not None
        made: list[float] = []

        def pieces() -> Iterator[bytes]:
            made.append(now_s())
            yield b"[]"

        await held.pour(pieces())
        held.receipt.revision = Revision(7)
        await held.give()
        ((at, status, headers, body),) = sent.answers
        assert (at, status, body, made) == (5.0, 200, b"[]", [5.0])
        assert headers["hublet-durable"] == "true"

    run(work())


@pytest.mark.parametrize(
    ("query", "at"),
    [
        ("", 30.0),
        ("?timeout=4s", 4.0),
        ("?timeout=45s", 30.0),
        ("?timeout=0", 30.0),
        ("?timeout=1ms", 0.001),
    ],
)
def test_a_bucket_that_does_not_answer_is_waited_for_so_long(query: str, at: float) -> None:
    error, ended = refused(Slow(takes_s=1000), query=query)
    assert ended == pytest.approx(at)
    assert (error.code, error.reason, error.retry_after_s) == (504, "Timeout", 0)
    assert "the write has been made on this hub at resourceVersion 7" in error.message
    assert "it will be shipped. Read before you repeat it" in error.message


def test_a_stop_is_told_with_what_has_been_done() -> None:
    error, ended = refused(Slow(takes_s=2.0, says="the hub is stopping"))
    assert (error.code, ended) == (504, 2.0)
    assert "is not in the bucket yet (the hub is stopping)" in error.message


@pytest.mark.parametrize("value", ["yes", "True", "1", "", "true, true"])
def test_a_header_that_says_neither_is_named(value: str) -> None:
    async def work() -> None:
        with pytest.raises(ApiError, match="the header Hublet-Durable must be true or fal") as it:
            hold(Slow(), value)
        assert it.value.code == 400

    run(work())


@pytest.mark.parametrize(
    ("header", "kinds", "waits"),
    [
        (None, (), False),
        ("false", (), False),
        ("true", (), True),
        (None, ("secrets",), True),
        ("false", ("secrets",), True),
        (None, ("configmaps",), False),
    ],
)
def test_who_waits(header: str | None, kinds: tuple[str, ...], *, waits: bool) -> None:
    async def work() -> None:
        held, _ = hold(Slow(), header, kinds=kinds)
        assert (held is not None) is waits

    run(work())


def test_without_a_bucket_a_request_is_refused_before_it_writes() -> None:
    async def work() -> None:
        request = Request("POST", PATH, {"hublet-durable": "true"}, b"", None, "", "2")
        nowhere = Durability(LoopClock())
        info, reply = parse_request("POST", PATH), reply_to(Sent())
        with pytest.raises(ApiError, match="nothing was written") as caught:
            nowhere.hold(info, SECRET, request, reply)
        assert (caught.value.code, caught.value.reason) == (412, "PreconditionFailed")
        assert nowhere.hold(info, SECRET, replace(request, headers={}), reply) is None

    run(work())
