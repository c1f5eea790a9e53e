"""From a URL to a `Remote`.

Owns the URL syntax: ``file:///dir``, and ``s3://bucket/prefix?endpoint=...&region=...`` with the
further options ``path_style=true``, ``ca_file=...``, ``timeout=20`` and ``attempts=4``. Options in
the URL win over the environment (HUBLET_S3_ENDPOINT, _REGION, _PATH_STYLE, _CA_FILE, _TIMEOUT,
_ATTEMPTS), that over the AWS configuration chain. Credentials never stand in the URL.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from snapshot.errors import RemoteInvalid
from snapshot.remote.api import Remote, check_name
from snapshot.remote.file import FileRemote

_S3_OPTIONS = ("endpoint", "region", "path_style", "ca_file", "timeout", "attempts")


def open_remote(url: str, *, environ: Mapping[str, str] = os.environ) -> Remote:
    """Open the prefix at `url`; `RemoteInvalid` says what is wrong with it. Connects on use."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return _open_file(parts)
    if parts.scheme == "s3":
        return _open_s3(parts, environ)
    shown = f"{parts.scheme}://" if parts.scheme else url  # the rest may hold a password
    raise RemoteInvalid(f"{shown!r} is neither file:// nor s3://", op="open")


def _open_file(parts: SplitResult) -> Remote:
    path = Path(unquote(parts.path))
    if parts.netloc not in {"", "localhost"} or not path.is_absolute() or parts.query:
        raise RemoteInvalid(f"{parts.geturl()!r} is not of the form file:///dir", op="open")
    return FileRemote(path)


def _open_s3(parts: SplitResult, environ: Mapping[str, str]) -> Remote:
    # boto3 costs 30 MB and a quarter of a second: only those who use it pay
    from snapshot.remote.s3 import S3Options, S3Remote, parse_bool  # noqa: PLC0415  see above

    options = _options(parts, environ)
    prefix = unquote(parts.path).strip("/")
    if not parts.hostname or "@" in parts.netloc:
        raise RemoteInvalid("the URL must be s3://bucket/prefix, without credentials", op="open")
    if prefix:
        check_name(prefix)
    endpoint = options.get("endpoint")
    if endpoint and "@" in urlsplit(endpoint).netloc:
        raise RemoteInvalid("the endpoint must be without credentials", op="open")
    path_style = options.get("path_style")
    return S3Remote(
        S3Options(
            bucket=parts.netloc,
            prefix=prefix,
            endpoint=endpoint,
            region=options.get("region"),
            path_style=parse_bool(path_style, option="path_style") if path_style else None,
            ca_file=options.get("ca_file"),
            timeout_s=_number(options, "timeout", 20.0),
            attempts=int(_number(options, "attempts", 4)),
        )
    )


def _options(parts: SplitResult, environ: Mapping[str, str]) -> dict[str, str]:
    """Merge the query over the environment; unknown options are refused, not ignored."""
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(set(query) - set(_S3_OPTIONS)):
        raise RemoteInvalid(
            f"unknown option {unknown[0]!r}, known are {', '.join(_S3_OPTIONS)}", op="open"
        )
    named = {each: environ.get(f"HUBLET_S3_{each.upper()}", "") for each in _S3_OPTIONS}
    return {name: value for name, value in (named | query).items() if value}


def _number(options: Mapping[str, str], name: str, default: float) -> float:
    try:
        value = float(options.get(name, default))
    except ValueError as error:
        raise RemoteInvalid(f"{name} is a number, not {options[name]!r}", op="open") from error
    if not 0 < value < 3600:
        raise RemoteInvalid(f"{name} is between 0 and 3600, not {options[name]}", op="open")
    return value
