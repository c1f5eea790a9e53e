"""Reduce CustomResourceDefinitions to facts: ``python tests/golden/crds/strip.py FILE.yaml...``.

Writes one JSON file a definition beside this one. Descriptions and messages are left out, and so
are the lines of a Go template, which are no YAML.
"""

import json
import sys
from pathlib import Path

import yaml

from hub.meta import Obj

HERE = Path(__file__).resolve().parent
_SCHEMAS = ("items", "additionalProperties", "not")
_LISTS = ("anyOf", "allOf", "oneOf")


def facts_of(schema: Obj) -> Obj:
    """Return a schema without its prose."""
    found = {k: v for k, v in schema.items() if k != "description"}
    for key in _SCHEMAS:
        if isinstance(found.get(key), dict):
            found[key] = facts_of(found[key])
    for key in _LISTS:
        if key in found:
            found[key] = [facts_of(node) for node in found[key]]
    if "properties" in found:
        found["properties"] = {k: facts_of(v) for k, v in found["properties"].items()}
    if "x-kubernetes-validations" in found:
        found["x-kubernetes-validations"] = [
            {k: v for k, v in rule.items() if k != "message"}
            for rule in found["x-kubernetes-validations"]
        ]
    return found


def strip(text: str) -> Obj:
    """Return what a definition says, its schemas and columns without prose."""
    lines = [line for line in text.splitlines() if "{{" not in line]
    spec = yaml.safe_load("\n".join(lines))["spec"]
    versions = [
        {
            "name": version["name"],
            "served": version["served"],
            "storage": version["storage"],
            "subresources": sorted(version.get("subresources") or {}),
            "columns": [
                {k: v for k, v in column.items() if k != "description"}
                for column in version.get("additionalPrinterColumns") or []
            ],
            "schema": facts_of(version["schema"]["openAPIV3Schema"]),
        }
        for version in spec["versions"]
    ]
    head = {key: spec[key] for key in ("group", "names", "scope")}
    return {**head, "versions": versions}


def main() -> None:
    """Strip the files named on the command line."""
    for path in map(Path, sys.argv[1:]):
        found = strip(path.read_text())
        target = HERE / f"{found['names']['plural']}.json"
        target.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
