"""Make the golden recordings of kubectl and clusteradm from the full ones.

    PYTHONPATH=. python tests/golden/wire/strip_kubectl.py DIRECTORY_OF_THE_FULL_RECORDINGS

Keeps what the replay reads. Discovery and OpenAPI documents become outlines (structure without
descriptions) of the groups that a hub serves; Tables lose the descriptions of their columns,
CustomResourceDefinitions of others those of their schemas; answers about kinds outside `_GROUPS`
and about core kinds that no hub of ours serves are left out, as those are never compared.
"""

import base64
import gzip
import json
import re
import sys
from pathlib import Path
from urllib.parse import urlsplit

from hub.meta import Obj
from hub.meta.protobuf import MAGIC
from tests.server.kubectl_recording import fields_of
from tests.server.wire_outline import (
    outline_discovery,
    outline_index,
    outline_openapi,
    outline_resources,
)

NAMES = (
    "kubectl-1.35.jsonl",
    "kubectl-1.32.jsonl",
    "kubectl-1.35-expired.jsonl",
    "clusteradm.jsonl",
)
_HERE = Path(__file__).resolve().parent
_KEPT_HEADERS = {
    "accept",
    "content-type",
    "if-none-match",
    "impersonate-group",
    "impersonate-user",
}
_CORE = {"configmaps", "events", "namespaces", "secrets", "serviceaccounts"}
_GROUPS = {
    "addon.open-cluster-management.io",
    "apiextensions.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "cluster.open-cluster-management.io",
    "coordination.k8s.io",
    "demo.example.com",
    "events.k8s.io",
    "operator.open-cluster-management.io",
    "rbac.authorization.k8s.io",
    "work.open-cluster-management.io",
}
_SHORT = 150
_HASH = re.compile(r"([0-9A-F]{12})[0-9A-F]{116}")
"""An ETag; its beginning tells it from the others."""
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_OWN_CRD = "demo.example.com"
_OPERATOR = "operator.open-cluster-management.io"
_SCALE = "autoscaling/v1 Scale"
_CORE_KINDS = {"Namespace", "ConfigMap", "Secret", "ServiceAccount", "Event"}


class Stripper:
    """Strips one set of recordings; knows the bodies that later lines only name."""

    def __init__(self, source: Path) -> None:
        self._source = source
        self._bodies: dict[tuple[str, int], bytes] = {}
        self._kept: dict[str, tuple[str, int]] = {}

    def strip(self, name: str) -> list[Obj]:
        """Return the golden lines of one file."""
        lines = [json.loads(line) for line in (self._source / name).read_text().splitlines()]
        return [self._strip(name, line) for line in lines]

    def _strip(self, name: str, full: Obj) -> Obj:
        headers = {n.lower(): value for n, value in full["res_headers"]}
        kept: Obj = {key: full[key] for key in ("seq", "step", "method", "path", "status")}
        kept["path"] = _HASH.sub(r"\1", full["path"])
        identity = full["identity"] or {}
        kept["user"] = identity.get("user") or identity["via"]
        kept["req_headers"] = [
            [n, _HASH.sub(r"\1", v)] for n, v in full["req_headers"] if n.lower() in _KEPT_HEADERS
        ]
        kept["req_body"] = _sent(base64.b64decode(full["req_body"] or ""))
        kept["content_type"] = headers.get("content-type", "")
        if "warning" in headers:
            kept["warning"] = headers["warning"]
        if full.get("stream"):
            kept["events"] = _events(full["chunks"]) if _is_kept(full["path"]) else []
            return kept
        answer = self._answer(name, full, headers)
        text = json.dumps(answer)
        first = self._kept.setdefault(text, (name, full["seq"]))
        if len(text) > _SHORT and first != (name, full["seq"]):
            return {**kept, "res_body_same_as": first}
        return {**kept, "res_body": answer}

    def _answer(self, name: str, full: Obj, headers: dict[str, str]) -> Obj | str | None:
        body = self._body(name, full, headers)
        path = urlsplit(full["path"]).path
        if not body or not _is_kept(path):
            return None
        if path.startswith(_CRDS) and body.startswith(MAGIC):
            return {"definitions": dict.fromkeys(_definitions(body), True)}
        if not body.startswith(b"{"):
            return _portable(body)
        answer: Obj = json.loads(body)
        if full["status"] != 200:
            return answer
        return _outlined(path, answer)

    def _body(self, name: str, full: Obj, headers: dict[str, str]) -> bytes:
        same = full.get("res_body_same_as")
        if same:
            return self._bodies[same["file"], same["seq"]]
        body = base64.b64decode(full["res_body"] or "")
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self._bodies[name, full["seq"]] = body
        return body


def _definitions(body: bytes) -> list[str]:
    """Return the names in one CustomResourceDefinition, or in a list of them, in protobuf.

    A list's message has ``items=2``, a definition's ``metadata=1``, whose ``name=1``.
    """
    unknown = fields_of(body, len(MAGIC), len(body))
    kind = body[slice(*fields_of(body, *unknown[1][0])[2][0])]
    items = unknown[2] if not kind.endswith(b"List") else fields_of(body, *unknown[2][0])[2]
    metas = [fields_of(body, *item)[1][0] for item in items]
    return sorted(body[slice(*fields_of(body, *meta)[1][0])].decode() for meta in metas)


def _is_kept(path: str) -> bool:
    parts = urlsplit(path).path.strip("/").split("/")
    if parts[:2] == ["openapi", "v2"]:
        return False
    if parts[:2] == ["openapi", "v3"]:
        return len(parts) == 2 or parts[2:] == ["api", "v1"] or parts[3] in _GROUPS
    if parts[0] == "apis" and len(parts) > 1:
        return parts[1] in _GROUPS
    if parts[:2] == ["api", "v1"] and len(parts) > 2:
        is_inside = parts[2] == "namespaces" and len(parts) > 4
        return parts[2] in _CORE and (not is_inside or parts[4] in {*_CORE, "status", "finalize"})
    return True


def _outlined(path: str, answer: Obj) -> Obj:
    """Return an outline of a document, anything else without what is never compared."""
    if path in ("/api", "/apis"):
        return _served(outline_discovery(answer))
    if path == "/openapi/v3":
        return {key: value for key, value in outline_index(answer).items() if _is_served(key)}
    if path.startswith("/openapi/v3/"):
        outline = outline_openapi(answer)
        paths = {key: value for key, value in outline["paths"].items() if _is_kept(key)}
        return {"paths": paths, "kinds": _kinds(outline["kinds"])}
    if answer.get("kind") == "APIResourceList":
        is_core = answer["groupVersion"] == "v1"
        found = outline_resources(answer)
        return {k: v for k, v in found.items() if not is_core or k.split("/")[0] in _CORE}
    if path == _CRDS:
        answer["items"] = [i for i in answer["items"] if i["spec"]["group"] == _OWN_CRD]
    return _without_noise(_undescribed_crd(answer))


def _served(outline: Obj) -> Obj:
    """Keep the resources (``group/version plural``) of the kept groups and the core kinds."""
    found = {}
    for key, value in outline.items():
        group, plural = key.split("/")[0], key.split(" ")[1]
        if group in _GROUPS or (not group and plural in _CORE):
            found[key] = value
    return found


def _is_served(key: str) -> bool:
    """Whether a path of the OpenAPI index (``apis/group/version``) is kept."""
    return key == "api/v1" or "".join(key.split("/")[1:2]) in _GROUPS


def _kinds(outline: Obj) -> Obj:
    """Keep the schemas (``group/version Kind``) of the kept groups and the core kinds."""
    found = {}
    for key, value in outline.items():
        version, kind = key.split(" ")
        is_core = version == "v1" and kind in _CORE_KINDS
        if version.split("/")[0] in _GROUPS or is_core or key == _SCALE:
            found[key] = value
    return found


def _without_noise(obj: Obj) -> Obj:
    """Take off managedFields and the descriptions of columns, and null columns stay."""
    rows = [row.get("object") or {} for row in obj.get("rows") or ()]
    for one in (obj, obj.get("object") or {}, *(obj.get("items") or ()), *rows):
        (one.get("metadata") or {}).pop("managedFields", None)
    for column in obj.get("columnDefinitions") or ():
        column.pop("description", None)
    return obj


def _undescribed(value: Obj) -> Obj:
    """Take every description off a CustomResourceDefinition."""
    for key, child in list(value.items()):
        if key == "description" and isinstance(child, str):
            del value[key]
        for one in child if isinstance(child, list) else [child]:
            if isinstance(one, dict):
                _undescribed(one)
    return value


def _portable(body: bytes) -> Obj | str:
    """JSON objects as themselves, anything else as base64."""
    if body.startswith(b"{"):
        found: Obj = json.loads(body)
        return found
    return base64.b64encode(body).decode()


def _sent(body: bytes) -> Obj | str:
    """A request as itself where that says every byte, otherwise as base64."""
    found = _portable(body)
    is_exact = isinstance(found, str) or _dense(found).encode() == body.rstrip(b"\n")
    return found if is_exact else base64.b64encode(body).decode()


def _dense(obj: Obj) -> str:
    return json.dumps(obj, separators=(",", ":"), ensure_ascii=False)


def _events(chunks: list[list[object]]) -> list[list[object]]:
    """Return [seconds, event] of a JSON watch, timed by the chunk in which the event ended."""
    events: list[list[object]] = []
    rest = b""
    for seconds, text in chunks:
        rest += base64.b64decode(str(text))
        *lines, rest = rest.split(b"\n")
        for line in lines:
            event: Obj = json.loads(line)
            event["object"] = _undescribed_crd(_without_noise(event["object"]))
            events.append([seconds, event])
    return events


def _undescribed_crd(obj: Obj) -> Obj:
    """Take the descriptions off a CustomResourceDefinition that the tour did not make itself."""
    if obj.get("kind") == "CustomResourceDefinition" and obj["spec"]["group"] == _OPERATOR:
        for version in obj["spec"]["versions"]:  # nobody's but the operator's
            version.pop("schema")
    is_foreign = obj.get("kind") == "CustomResourceDefinition" and obj["spec"]["group"] != _OWN_CRD
    return _undescribed(obj) if is_foreign else obj


def main() -> None:
    """Write the golden files beside this one."""
    stripper = Stripper(Path(sys.argv[1]))
    for name in NAMES:
        lines = stripper.strip(name)
        text = "".join(_dense(line) + "\n" for line in lines)
        (_HERE / name).write_text(text)
        print(name, len(lines), "exchanges", len(text), "characters")


if __name__ == "__main__":
    main()
