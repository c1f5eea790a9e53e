"""A bucket as an object store: ``s3://bucket/prefix``, over boto3.

Owns everything S3: options, credentials (the usual AWS chain), retries, and telling apart the
answers that matter (404, 409, 412). The only module that imports boto3.

- Conditions are If-None-Match / If-Match; 409 ConditionalRequestConflict means "two at once, try
  again", and is tried again. Some servers (SeaweedFS) answer 412 to an If-Match on a missing
  object where AWS answers 404: a look at the object tells the two apart.
- Retries are bounded, with jitter, by botocore's standard mode; a retried conditional put may meet
  its own first attempt and then raises `PreconditionFailed` or `ObjectExists`: the chain looks for
  its nonce.
- Credentials that the server no longer takes (expired, rotated), and a clock that jumped, are met
  once with a client from a fresh session, which reads files, environment and profiles again.
- Custom endpoints get ``when_required`` checksums (many servers refuse trailing CRCs); Content-MD5
  guards every put.
"""

import base64
import contextlib
import datetime as dt
import functools
import hashlib
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    SSLError,
)
from botocore.parsers import ResponseParserError

from snapshot.errors import (
    ObjectExists,
    ObjectMissing,
    PreconditionFailed,
    RemoteDenied,
    RemoteError,
    RemoteInvalid,
    RemoteUnavailable,
)
from snapshot.remote.api import Blob, Entry, Source, check_name, new_file

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import GetObjectOutputTypeDef, ListObjectsV2OutputTypeDef

_T = TypeVar("_T")

_CHUNK = 1 << 20
_CONFLICT_TRIES = 6
_STALE = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidToken",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
    }
)
"""What a server says of credentials that were good once; fresh ones may be at hand."""
_WORDLESS = frozenset({"400", "401", "403"})
"""What botocore makes of the same in an answer to HEAD, which has no body to say why."""
_DENIED = _STALE | {"AccessDenied", "AllAccessDisabled"}
_NO_S3_HINT = (
    "check the endpoint (endpoint= in the URL, HUBLET_S3_ENDPOINT): it must be an S3 server, and "
    "honour If-None-Match and If-Match on PUT"
)
_TLS_HINT = (
    "name the CA of the endpoint's certificate, a PEM file, with ca_file= in the URL or "
    "HUBLET_S3_CA_FILE, and check that the endpoint speaks https"
)


@dataclass(frozen=True, slots=True)
class S3Options:
    """Where the bucket is and how to speak to it; None leaves it to the AWS configuration chain."""

    bucket: str
    prefix: str = ""
    """Without slashes at its ends; empty is the bucket's root."""
    endpoint: str | None = None
    region: str | None = None
    path_style: bool | None = None
    """None: path style for custom endpoints, else what AWS prefers."""
    ca_file: str | None = None
    """PEM bundle for the endpoint's certificate."""
    timeout_s: float = 20.0
    """For connecting and for each read."""
    attempts: int = 4
    """Tries of one request, the first included."""


class S3Remote:
    """`Remote` on a bucket and prefix."""

    def __init__(self, options: S3Options, *, pause: Callable[[float], None] = time.sleep) -> None:
        self._options = options
        self._prefix = f"{options.prefix}/" if options.prefix else ""
        self._pause = pause
        self._renewing = threading.Lock()
        if options.ca_file is not None and not Path(options.ca_file).is_file():
            raise RemoteInvalid(f"ca_file {options.ca_file} is not there", op="open")
        try:
            self._client = _client(options)
        except (BotoCoreError, ValueError) as error:
            raise RemoteInvalid(str(error), op="open", object=options.bucket) from error

    @property
    def url(self) -> str:
        """Return bucket and prefix as a URL."""
        return f"s3://{self._options.bucket}/{self._options.prefix}"

    def get(self, name: str) -> Blob:
        """GET into memory."""
        with _errors("get", self._at(name)):
            answer = self._get(name)
            with contextlib.closing(answer["Body"]) as body:
                return Blob(body.read(), answer["ETag"])

    def get_to_file(self, name: str, path: Path) -> int:
        """GET in pieces into a file; botocore checks the length of what comes."""
        with (
            _errors("get", self._at(name)),
            contextlib.closing(self._get(name)["Body"]) as body,
            new_file(path) as file,
        ):
            for chunk in body.iter_chunks(_CHUNK):
                file.write(chunk)
            return file.tell()

    def put_if_absent(self, name: str, source: Source) -> str:
        """PUT with ``If-None-Match: *``."""
        bucket, key = self._options.bucket, self._key(name)

        def send(client: "S3Client") -> str:
            with _body(source) as (body, md5):
                return client.put_object(
                    Bucket=bucket, Key=key, Body=body, ContentMD5=md5, IfNoneMatch="*"
                )["ETag"]

        with _errors("put", self._at(name), refused=ObjectExists):
            return self._through_conflicts(send)

    def put_if_match(self, name: str, source: bytes, *, etag: str) -> str:
        """PUT with ``If-Match``."""
        bucket, key = self._options.bucket, self._key(name)

        def send(client: "S3Client") -> str:
            with _body(source) as (body, md5):
                return client.put_object(
                    Bucket=bucket, Key=key, Body=body, ContentMD5=md5, IfMatch=etag
                )["ETag"]

        try:
            with _errors("put", self._at(name), refused=PreconditionFailed):
                return self._through_conflicts(send)
        except PreconditionFailed:
            self.head(name)  # raises ObjectMissing when that is why, see the module's docstring
            raise

    def head(self, name: str) -> Entry:
        """HEAD."""
        bucket, key = self._options.bucket, self._key(name)
        with _errors("head", self._at(name)):
            answer = self._ask(
                lambda client: client.head_object(Bucket=bucket, Key=key), stale=_STALE | _WORDLESS
            )
            return Entry(name, answer["ContentLength"], _utc(answer["LastModified"]))

    def list(self, under: str = "") -> Iterator[Entry]:
        """ListObjectsV2, page by page."""
        with _errors("list", self._at(under)):
            for page in self._pages(self._prefix + under):
                for each in page.get("Contents", []):
                    name = each["Key"].removeprefix(self._prefix)
                    yield Entry(name, each["Size"], _utc(each["LastModified"]))

    def delete(self, name: str) -> None:
        """DELETE; S3 answers the same whether there was one."""
        bucket, key = self._options.bucket, self._key(name)
        with _errors("delete", self._at(name)), contextlib.suppress(ObjectMissing):
            self._ask(lambda client: client.delete_object(Bucket=bucket, Key=key))

    def close(self) -> None:
        """Close the connections of the pool."""
        self._client.close()

    def _at(self, name: str) -> str:
        """Return where an object is, for messages: its URL, and the endpoint unless it is AWS."""
        endpoint = self._options.endpoint
        return f"s3://{self._options.bucket}/{self._prefix}{name}" + (
            f" at {endpoint}" if endpoint else ""
        )

    def _key(self, name: str) -> str:
        return self._prefix + check_name(name)

    def _get(self, name: str) -> "GetObjectOutputTypeDef":
        bucket, key = self._options.bucket, self._key(name)
        return self._ask(lambda client: client.get_object(Bucket=bucket, Key=key))

    def _pages(self, under: str) -> Iterator["ListObjectsV2OutputTypeDef"]:
        """Ask page by page, each by the client of the moment: a long list outlives credentials."""
        bucket, after = self._options.bucket, ""
        while True:
            page = self._ask(functools.partial(_list_page, bucket=bucket, under=under, after=after))
            if not page.keys() & {"IsTruncated", "KeyCount", "Name"}:
                raise KeyError("IsTruncated")  # a web page, not a list without objects
            yield page
            if not page.get("IsTruncated"):
                return
            if page["NextContinuationToken"] == after:
                raise KeyError("NextContinuationToken")  # it would go round and round
            after = page["NextContinuationToken"]

    def _ask(self, send: Callable[["S3Client"], _T], *, stale: frozenset[str] = _STALE) -> _T:
        """Send a request; once more with fresh credentials when those at hand are refused."""
        client = self._client
        try:
            return send(client)
        except ClientError as error:
            if _code(error) not in stale:
                raise
        except (NoCredentialsError, PartialCredentialsError):
            pass  # they may have been written since the client was made
        return send(self._renewed(client))

    def _renewed(self, refused: "S3Client") -> "S3Client":
        """Return a client other than the refused one; of several threads the first makes it.

        The old one is not closed: other threads may be in the middle of a request.
        """
        with self._renewing:
            if self._client is refused:
                self._client = _client(self._options)
            return self._client

    def _through_conflicts(self, send: Callable[["S3Client"], str]) -> str:
        """Send, and again with jitter while the server says that two conditional writes met."""
        for tried in range(1, _CONFLICT_TRIES + 1):
            try:
                return self._ask(send)
            except ClientError as error:
                if _status(error) != 409 or tried == _CONFLICT_TRIES:
                    raise
                self._pause(random.uniform(0.5, 1.0) * 0.05 * 2**tried)  # noqa: S311  jitter, no secret
        raise AssertionError("unreachable: the last try returns or raises")


def parse_bool(text: str, *, option: str) -> bool:
    """Read true/false as people write them in URLs and environments."""
    values = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    try:
        return values[text.lower()]
    except KeyError as error:
        raise RemoteInvalid(f"{option} is true or false, not {text!r}", op="open") from error


def _client(options: S3Options) -> "S3Client":
    custom = options.endpoint is not None
    path_style = custom if options.path_style is None else options.path_style
    checksums: Literal["when_required", "when_supported"] = (
        "when_required" if custom else "when_supported"
    )
    config = Config(
        connect_timeout=options.timeout_s,
        read_timeout=options.timeout_s,
        retries={"mode": "standard", "total_max_attempts": options.attempts},
        s3={"addressing_style": "path" if path_style else "auto"},
        request_checksum_calculation=checksums,
        response_checksum_validation=checksums,
    )
    return boto3.session.Session().client(
        "s3",
        endpoint_url=options.endpoint,
        region_name=options.region or ("us-east-1" if custom else None),
        verify=options.ca_file,
        config=config,
    )


def _list_page(
    client: "S3Client", *, bucket: str, under: str, after: str
) -> "ListObjectsV2OutputTypeDef":
    if not after:
        return client.list_objects_v2(Bucket=bucket, Prefix=under)
    return client.list_objects_v2(Bucket=bucket, Prefix=under, ContinuationToken=after)


@contextlib.contextmanager
def _body(source: Source) -> Iterator[tuple[bytes | BinaryIO, str]]:
    """Give what boto3 sends, and its Content-MD5."""
    md5 = hashlib.md5(usedforsecurity=False)
    if isinstance(source, bytes):
        md5.update(source)
        yield source, base64.b64encode(md5.digest()).decode()
        return
    with source.open("rb") as file:
        while chunk := file.read(_CHUNK):
            md5.update(chunk)
        file.seek(0)
        yield file, base64.b64encode(md5.digest()).decode()


def _utc(moment: dt.datetime) -> dt.datetime:
    return moment.astimezone(dt.UTC)


def _code(error: ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")


def _status(error: ClientError) -> int:
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)


@contextlib.contextmanager
def _errors(
    op: str, name: str, *, refused: type[RemoteError] = PreconditionFailed
) -> Iterator[None]:
    """Translate botocore's errors into the contract's; `refused` is what a 412 means here."""
    try:
        yield
    except ClientError as error:
        raise _answer(error, op, name, refused=refused) from error
    except (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError) as error:
        raise RemoteDenied(str(error), op=op, object=name) from error
    except SSLError as error:
        raise RemoteUnavailable(str(error), op=op, object=name, hint=_TLS_HINT) from error
    except (ResponseParserError, KeyError, RecursionError) as error:  # no XML, no ETag, redirects
        what = "the answer is not that of an S3 server"
        raise RemoteError(what, op=op, object=name, hint=_NO_S3_HINT) from error
    except (BotoCoreError, OSError) as error:
        raise RemoteUnavailable(str(error), op=op, object=name) from error
    except ValueError as error:  # botocore's word for what it cannot put into a request
        raise RemoteInvalid(str(error), op=op, object=name) from error


def _answer(error: ClientError, op: str, name: str, *, refused: type[RemoteError]) -> RemoteError:
    status, code = _status(error), _code(error)
    text = error.response.get("Error", {}).get("Message") or code or f"HTTP {status}"
    if code == "NoSuchBucket":
        hint = "create the bucket, or correct its name in the URL"
        return RemoteError("there is no such bucket", op=op, object=name, hint=hint)
    if status == 501 or (status == 404 and op in {"get", "list"} and code in {"", "404"}):
        what = f"the server answers {status} {text}, not as S3 does"  # S3 names its reason in XML
        return RemoteError(what, op=op, object=name, hint=_NO_S3_HINT)
    if status == 404:
        return ObjectMissing("no such object", op=op, object=name)
    if status == 412:
        return refused("refused by its condition", op=op, object=name)
    if status in {401, 403} or code in _DENIED:
        return RemoteDenied(text, op=op, object=name)
    if status >= 500 or status in {0, 408, 409, 429} or code == "RequestTimeout":
        return RemoteUnavailable(text, op=op, object=name)
    return RemoteError(f"{text} (HTTP {status}, {code})", op=op, object=name)
