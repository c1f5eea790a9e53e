"""Make the golden recordings of this directory from the full ones.

    PYTHONPATH=. python tests/golden/wire/strip.py DIRECTORY_OF_THE_FULL_RECORDINGS

Keeps what the replay reads and leaves out the rest: connections, TLS, response headers other than
the media type, managedFields of JSON objects. Protobuf bodies and frames are kept byte for byte.
"""

import base64
import gzip
import json
import sys
from pathlib import Path

from hub.meta import Obj

NAMES = (
    "klusterlet-v1.3-bootstrap.jsonl",
    "klusterlet-v0.16-bootstrap.jsonl",
    "klusterlet-v1.3-detach.jsonl",
    "klusterlet-v1.3-expired.jsonl",
    "klusterlet-v1.3-rotation.jsonl",
)
_KEPT_HEADERS = {"accept", "content-type", "user-agent"}
_HERE = Path(__file__).resolve().parent


def strip_exchange(full: Obj) -> Obj:
    """Return the golden form of one recorded exchange."""
    headers = {name.lower(): value for name, value in full["res_headers"]}
    media_type = headers.get("content-type", "")
    kept: Obj = {name: full[name] for name in ("seq", "t", "step", "method", "path", "status")}
    kept["identity"] = {name: full["identity"][name] for name in ("via", "user")}
    kept["req_headers"] = [[n, v] for n, v in full["req_headers"] if n.lower() in _KEPT_HEADERS]
    kept["req_body"] = full["req_body"]
    kept["content_type"] = media_type
    kept["end"] = full["end"]
    if full.get("stream"):
        kept["dur"] = full["dur"]
        split = _protobuf_frames if "protobuf" in media_type else _json_lines
        kept["events"] = split(full["chunks"])
        return kept
    body = base64.b64decode(full["res_body"])
    if headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    kept["res_body"] = _portable(body)
    return kept


def _portable(body: bytes) -> Obj | str:
    """JSON as itself, anything else as base64."""
    if body.startswith(b"{"):
        return _without_managed_fields(json.loads(body))
    return base64.b64encode(body).decode()


def _without_managed_fields(obj: Obj) -> Obj:
    for one in (obj, obj.get("object") or {}, *(obj.get("items") or ())):
        (one.get("metadata") or {}).pop("managedFields", None)
    return obj


def _json_lines(chunks: list[list[object]]) -> list[list[object]]:
    """Return [seconds, event] of a JSON watch, timed by the chunk in which the event ended."""
    events: list[list[object]] = []
    rest = b""
    for seconds, text in chunks:
        rest += base64.b64decode(str(text))
        *lines, rest = rest.split(b"\n")
        events += [[seconds, _portable(line)] for line in lines]
    return events


def _protobuf_frames(chunks: list[list[object]]) -> list[list[object]]:
    """Return [seconds, frame in base64, without its length] of a protobuf watch."""
    events: list[list[object]] = []
    rest = b""
    for seconds, text in chunks:
        rest += base64.b64decode(str(text))
        while len(rest) >= 4 and len(rest) >= (end := 4 + int.from_bytes(rest[:4], "big")):
            events.append([seconds, base64.b64encode(rest[4:end]).decode()])
            rest = rest[end:]
    return events


def main() -> None:
    """Write the golden files beside this one."""
    source = Path(sys.argv[1])
    for name in NAMES:
        lines = [json.loads(line) for line in (source / name).read_text().splitlines()]
        text = "".join(
            json.dumps(strip_exchange(line), separators=(",", ":"), ensure_ascii=False) + "\n"
            for line in lines
        )
        (_HERE / name).write_text(text)
        print(name, len(lines), "exchanges", len(text), "characters")


if __name__ == "__main__":
    main()
