"""Asks a hub over the wire, for the commands that people run.

One client, which may be asked several things at once: HTTP/2 carries them on one connection.

Reads with pages, writes, and turns refusals into one error that says what was asked.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlencode

from hub.http.client import Client
from hub.meta import Obj
from hub.meta.codec import json
from hub.meta.errors import ApiError
from tools.kubeconfig import Kubeconfig

MERGE = "application/merge-patch+json"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_PAGE = 500
_TIMEOUT_S = 30.0


class RefusedError(Exception):
    """The hub said no: its status, and its message as it stands."""

    def __init__(self, what: str, status: int, message: str) -> None:
        super().__init__(f"{what}: {message}")
        self.status = status


@dataclass(frozen=True, slots=True)
class Caller:
    """One identity's connection to a hub."""

    client: Client
    identity: Kubeconfig

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Obj | None = None,
        media_type: str = "application/json",
        accept: str = "application/json",
    ) -> Obj:
        """Ask and return the answer's object. Raises RefusedError, ConnectionLost, TimeoutError."""
        headers = [("accept", accept), ("user-agent", "hublet"), *self.identity.headers()]
        content = b""
        if body is not None:
            headers.append(("content-type", media_type))
            content = json.encode(body)
        answer = await self.client.request(
            method, path, headers, body=content, timeout_s=_TIMEOUT_S
        )
        if answer.status >= HTTPStatus.BAD_REQUEST:
            what = f"{method} {path.partition('?')[0]}"
            raise RefusedError(what, answer.status, _message(answer.body))
        return json.decode(answer.body)

    async def find(self, path: str) -> Obj | None:
        """Return an object, None when it is not there."""
        try:
            return await self.call("GET", path)
        except RefusedError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return None

    async def items(
        self, path: str, *, accept: str = "application/json", **query: str
    ) -> list[Obj]:
        """Return the items of a list, read in pages."""
        found: list[Obj] = []
        asked: Mapping[str, str] = {**query, "limit": str(_PAGE)}
        while True:
            page = await self.call("GET", f"{path}?{urlencode(asked)}", accept=accept)
            found += page["items"]
            token = page["metadata"].get("continue")
            if not token:
                return found
            asked = {**asked, "continue": token}

    async def ensure(self, path: str, obj: Obj) -> None:
        """Create an object unless it is there."""
        try:
            await self.call("POST", path, body=obj)
        except RefusedError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise


@asynccontextmanager
async def calling(identity: Kubeconfig) -> AsyncIterator[Caller]:
    """Connect for the length of the block."""
    async with Client(identity.host, identity.port, identity.context()) as client:
        yield Caller(client, identity)


def _message(body: bytes) -> str:
    try:
        return str(json.decode(body)["message"])
    except (ApiError, KeyError):
        return body[:200].decode(errors="replace").strip() or "no message"
