"""What happened outside the recordings, read off the watches and the scenarios: data.

An administrator created, changed, approved and deleted; hubs were started again and their history
compacted. Times are in seconds since the recording began.
"""

from dataclasses import dataclass
from typing import Literal

Verb = Literal["create", "replace", "delete", "patch-status", "approve", "mark"]


@dataclass(frozen=True, slots=True)
class Action:
    """What the administrator did, named by the recorded revision it made.

    `at`: when, for what no open watch saw; None = when it was seen.
    """

    recording: str
    revision: str
    verb: Verb
    at: float | None = None


ACTIONS = (
    Action("v1.3", "524", "create"),
    Action("v1.3", "544", "replace"),
    Action("v1.3", "588", "create"),
    Action("v1.3", "593", "patch-status"),
    Action("v1.3", "598", "approve"),
    Action("v1.3", "609", "delete"),
    Action("v1.3", "621", "delete"),
    Action("v0.16", "526", "create"),
    Action("v0.16", "549", "replace"),
    Action("v0.16", "559", "create"),
    Action("v0.16", "564", "patch-status"),
    Action("v0.16", "569", "approve"),
    Action("v0.16", "611", "delete"),
    Action("v0.16", "623", "delete"),
    Action("v1.3-detach", "395", "create"),
    Action("v1.3-detach", "402", "create"),
    Action("v1.3-detach", "408", "patch-status"),
    Action("v1.3-detach", "413", "approve"),
    Action("v1.3-detach", "420", "delete"),
    Action("v1.3-detach", "481", "create"),
    Action("v1.3-detach", "566", "create"),
    Action("v1.3-detach", "601", "delete"),
    Action("v1.3-detach", "661", "create", at=267.0),
    Action("v1.3-detach", "681", "create"),
    Action("v1.3-expired", "689", "create"),
    Action("v1.3-expired", "693", "create"),
    Action("v1.3-expired", "728", "mark", at=360.0),
    Action("v1.3-expired", "729", "mark", at=360.0),
    Action("v1.3-expired", "730", "mark", at=360.0),
    Action("v1.3-expired", "769", "mark", at=490.0),
    Action("v1.3-expired", "770", "mark", at=490.0),
    Action("v1.3-expired", "771", "mark", at=490.0),
)

RESTARTS = {"v1.3-expired": (365.0, 445.0)}
"""When a hub was started again behind the back of its clients."""

COMPACTIONS = {"v1.3-expired": (370.0, 495.0)}

CUT = {"v1.3-detach", "v1.3-expired"}
"""Recordings in which connections broke while the hub went on."""
