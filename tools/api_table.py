"""The table of what the API serves, for the manual: made from the kinds themselves.

    python -m tools.api_table docs/api-table.md

A test compares the page with what this returns, and its verbs with a running hub's discovery.
"""

from pathlib import Path

import click

from hub.backup.kinds import OWN
from hub.fleet.definitions import OWN_DEFINITIONS
from hub.fleet.kinds import FLEET
from hub.registry.builtin import BUILTIN
from hub.registry.crd.definition import definition_kind
from hub.registry.kind import STANDARD_VERBS, SUBRESOURCE_VERBS, Kind, View
from hub.registry.printing import age_printer, name_printer

HEAD = """# What the API serves

Made by `python -m tools.api_table docs/api-table.md` from the kinds of a new hub; definitions add
theirs. What differs from kube-apiserver, and why: [api.md](api.md), and exchange by exchange
[wire-differences.md](wire-differences.md) and
[wire-differences-kubectl.md](wire-differences-kubectl.md).

*Verbs*: "all" are create, delete, deletecollection, get, list, patch, update and watch. *Bodies*:
built-in kinds take JSON, YAML and protobuf, and strategic merge patches beside JSON and merge
patches; custom ones JSON and YAML, JSON and merge patches. *Kept*: durable (in the log, the state
hash and the snapshots), sealed (durable, and encrypted at rest), an hour (outside log and
snapshots), by the hub (it writes them itself; outside log and snapshots), or not at all.
"""
_COLUMNS = (
    "Resource",
    "Kind",
    "Short names",
    "Versions, stored first",
    "Scope",
    "Verbs",
    "Subresources",
    "Bodies",
    "Kept",
    "Columns (wide ones in brackets)",
)


def kinds() -> tuple[Kind, ...]:
    """Return the kinds that every hub serves, in the order of their groups."""
    everything = (*BUILTIN, definition_kind(OWN_DEFINITIONS), *FLEET, *OWN)
    return tuple(sorted(everything, key=lambda kind: (kind.storage.group, kind.plural)))


def render() -> str:
    """Return the page."""
    lines = [HEAD, _row(_COLUMNS), _row(("---",) * len(_COLUMNS))]
    return "\n".join([*lines, *(_row(_cells(kind)) for kind in kinds())]) + "\n"


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(kind: Kind) -> tuple[str, ...]:
    return (
        f"`{kind.id}`",
        kind.kind,
        ", ".join(kind.short_names),
        "; ".join(_version(view, kind.storage) for view in kind.views if view.is_served),
        "namespaced" if kind.is_namespaced else "cluster",
        "all" if kind.verbs == STANDARD_VERBS else ", ".join(kind.verbs),
        "; ".join(f"{each} ({_verbs(each)})" for each in sorted(kind.subresources)),
        "custom" if kind.is_custom else "built-in",
        _kept(kind),
        ", ".join(_columns(kind)),
    )


def _version(view: View, storage: View) -> str:
    """Return the version, with its group where that is not the resource's own."""
    return view.version if view.group == storage.group else view.api_version


def _verbs(subresource: str) -> str:
    return ", ".join(SUBRESOURCE_VERBS[subresource])


def _kept(kind: Kind) -> str:
    if kind.is_virtual:
        return "not at all"
    if kind.is_volatile:
        return "by the hub" if kind.keeper else "an hour"
    return "sealed" if kind.is_sealed else "durable"


def _columns(kind: Kind) -> list[str]:
    if kind.is_virtual:
        return []
    printers = kind.storage.printers or (name_printer(), age_printer())
    columns = [printer.column for printer in printers]
    return [f"[{each.name}]" if each.priority else each.name for each in columns]


@click.command()
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
def main(output: Path) -> None:
    """Write the page to OUTPUT."""
    output.write_text(render())


if __name__ == "__main__":
    main()
