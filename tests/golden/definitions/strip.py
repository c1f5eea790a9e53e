"""Reduce CustomResourceDefinitions to facts: ``python -m tests.golden.definitions.strip FILE...``.

Writes one JSON file an input beside this one, a whole definition that can be created. Descriptions
and messages are left out, and so are the lines of a Go template, which are no YAML.
"""

import json
import sys
from pathlib import Path

import yaml

from hub.meta import Obj
from tests.golden.crds.strip import facts_of

HERE = Path(__file__).resolve().parent
_KEPT = ("name", "served", "storage", "subresources", "selectableFields", "deprecated")
_APPROVAL = "api-approved.kubernetes.io"


def strip(text: str) -> Obj:
    """Return a definition without prose and without its conversion webhook."""
    lines = [line for line in text.splitlines() if "{{" not in line]
    whole = yaml.safe_load("\n".join(lines))
    spec, meta = whole["spec"], {"name": whole["metadata"]["name"]}
    approval = (whole["metadata"].get("annotations") or {}).get(_APPROVAL)
    if approval:
        meta["annotations"] = {_APPROVAL: "unapproved, a copy for tests"}
    versions = []
    for version in spec["versions"]:
        found = {key: version[key] for key in _KEPT if key in version}
        columns = version.get("additionalPrinterColumns") or []
        found["additionalPrinterColumns"] = [
            {k: v for k, v in column.items() if k != "description"} for column in columns
        ]
        found["schema"] = {"openAPIV3Schema": facts_of(version["schema"]["openAPIV3Schema"])}
        versions.append(found)
    head = {key: spec[key] for key in ("group", "names", "scope")}
    return {
        "apiVersion": whole["apiVersion"],
        "kind": whole["kind"],
        "metadata": meta,
        "spec": {**head, "versions": versions},
    }


def main() -> None:
    """Strip the files named on the command line."""
    for path in map(Path, sys.argv[1:]):
        name = path.name.removesuffix(".yaml").removesuffix(".crd")
        target = HERE / f"{name}.json"
        target.write_text(json.dumps(strip(path.read_text()), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
