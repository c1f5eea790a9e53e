"""What ``kubectl get`` prints: a column and the function that fills its cell.

Pure; a printer belongs to a view of a kind. Column names, types and priorities are those of
kube-apiserver (pkg/printers/internalversion/printers.go) and of OCM's CRDs; descriptions are ours.
"""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from hub.meta import Obj
from hub.meta.table import Column, age, cell_at

Cell: TypeAlias = Callable[[Obj, dt.datetime], object]


@dataclass(frozen=True, slots=True)
class Printer:
    """One column of a Table."""

    column: Column
    cell: Cell


def name_printer() -> Printer:
    """Print the name, as every kind does first."""
    column = Column("Name", "string", "name", "Name of the object, unique within its namespace.", 0)
    return Printer(column, lambda obj, _now: obj["metadata"]["name"])


def age_printer(type_: str = "string") -> Printer:
    """Print how long the object has existed."""
    column = Column("Age", type_, "", "Time since the object was created.", 0)
    return Printer(column, age)


def created_printer() -> Printer:
    """Print when the object was created, as roles and definitions do."""
    column = Column("Created At", "date", "", "When the object was created.", 0)
    return Printer(column, lambda obj, _now: obj["metadata"]["creationTimestamp"])


def text_printer(name: str, path: str) -> Printer:
    """Print a text of a built-in kind, which is "" in Go where it is absent."""
    column = Column(name, "string", "", f"Value of {path}.", 0)
    return Printer(column, lambda obj, now: cell_at(obj, path, "string", now) or "")


def path_printer(
    name: str,
    path: str,
    *,
    type_: str = "string",
    format_: str = "",
    description: str = "",
    priority: int = 0,
) -> Printer:
    """Print the value at a JSON path, as a CustomResourceDefinition's printer column does."""
    column = Column(name, type_, format_, description or f"Value of {path}.", priority)
    return Printer(column, lambda obj, now: cell_at(obj, path, type_, now))


def computed(
    name: str,
    cell: Callable[[Obj], object],
    *,
    description: str,
    type_: str = "string",
    priority: int = 0,
) -> Printer:
    """Print what a function makes of the object."""
    column = Column(name, type_, "", description, priority)
    return Printer(column, lambda obj, _now: cell(obj))
