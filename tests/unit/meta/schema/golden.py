"""Golden data of the schema tests, and the CRDs beside the repository when they are there."""

import json
from collections.abc import Iterator
from pathlib import Path

import yaml

from hub.meta import Obj
from hub.meta.errors import Cause
from hub.meta.schema.structural import Schema, parse

ROOT = Path(__file__).resolve().parents[4]
GOLDEN = ROOT / "tests" / "golden" / "schema"
SHARED = ROOT.parent / "shared" / "data"


def lines(name: str) -> list[Obj]:
    text = (GOLDEN / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def crd_schema(name: str) -> Schema:
    found: Obj = json.loads((GOLDEN / "crds.json").read_text(encoding="utf-8"))
    return parse(found[name])


def sorted_causes(causes: list[Cause]) -> list[list[str]]:
    return sorted([c.reason, c.field, c.message] for c in causes)


def documents(path: Path) -> Iterator[Obj]:
    """Yield the objects of a YAML file; some have lines of a Go template in them, which go."""
    kept = [line for line in path.read_text(encoding="utf-8").splitlines() if "{{" not in line]
    for found in yaml.load_all("\n".join(kept), yaml.CSafeLoader):
        if found:
            yield found


def shared_crds() -> list[Obj]:
    paths = sorted((SHARED / "crds").rglob("*.yaml"))
    return [crd for path in paths for crd in documents(path)]
