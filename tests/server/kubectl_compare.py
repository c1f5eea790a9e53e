"""What has to be put aside before two answers to kubectl can be compared value by value.

Items and rows are brought together by name, as two hubs hold different objects of their own; rules
have no order; ages are ages; the columns of a Table may be described in other words; a recorded
outline is narrowed to what this hub serves.
"""

import re
from collections.abc import Iterator

from hub.meta import Obj
from hub.meta.codec.json import encode
from tests.server.kubectl_recording import Document
from tests.server.wire_compare import Finding
from tests.server.wire_outline import (
    outline_discovery,
    outline_index,
    outline_openapi,
    outline_resources,
)

_PRESENT = re.compile(r"current: \d+")
_AGE = re.compile(r"^(\d+[smhdy])+$")


def outlined(kind: Document, document: Obj) -> Obj:
    """Return the outline of one of our documents."""
    outline = {
        "discovery": outline_discovery,
        "resources": outline_resources,
        "openapi": outline_openapi,
        "index": outline_index,
    }
    return outline[kind](document) if kind else document


def narrowed(recorded: Obj, ours: Obj) -> Obj:
    """Return the part of a recorded outline that speaks of what this hub serves."""
    if "paths" in recorded and "kinds" in recorded:
        return {
            part: {key: value for key, value in recorded[part].items() if key in ours[part]}
            for part in ("paths", "kinds")
        }
    return {key: value for key, value in recorded.items() if key in ours}


def aligned(recorded: Obj, ours: Obj) -> tuple[Obj, Obj, list[Finding]]:
    """Return both with the items they share, and a finding for each that one of them lacks."""
    findings: list[Finding] = []
    for part in ("items", "rows"):
        if not isinstance(recorded.get(part), list) or not isinstance(ours.get(part), list):
            continue
        old = {_name(item): item for item in recorded[part]}
        new = {_name(item): item for item in ours[part]}
        findings += _one_sided(part, old, new)
        recorded = {**recorded, part: [_plain(i, part) for n, i in old.items() if n in new]}
        ours = {**ours, part: [_plain(i, part) for n, i in new.items() if n in old]}
    recorded, ours, unordered = _unordered(recorded, ours)
    return _undated(recorded), _undated(_undescribed(ours)), [*findings, *unordered]


def _unordered(recorded: Obj, ours: Obj) -> tuple[Obj, Obj, list[Finding]]:
    """Take the rules of a rules review, which have no order, out of both, and compare them."""
    if recorded.get("kind") != "SelfSubjectRulesReview" or "status" not in ours:
        return recorded, ours, []
    findings: list[Finding] = []
    for part in ("resourceRules", "nonResourceRules"):
        old = {encode(rule).decode(): rule for rule in map(_sorted, recorded["status"][part])}
        new = {encode(rule).decode(): rule for rule in map(_sorted, ours["status"][part])}
        findings += _one_sided(f"status/{part}", old, new)
    statuses = [
        {key: value for key, value in obj["status"].items() if not key.endswith("Rules")}
        for obj in (recorded, ours)
    ]
    return {**recorded, "status": statuses[0]}, {**ours, "status": statuses[1]}, findings


def _sorted(rule: Obj) -> Obj:
    return {name: sorted(rule[name]) for name in sorted(rule)}


def _one_sided(part: str, old: dict[str, Obj], new: dict[str, Obj]) -> Iterator[Finding]:
    for name in old.keys() - new.keys():
        yield Finding(f"/{part}/{name}", "lacks", old[name], None)
    for name in new.keys() - old.keys():
        yield Finding(f"/{part}/{name}", "adds", None, new[name])


def _name(item: Obj) -> str:
    meta = (item.get("object") or item)["metadata"]
    return "~1".join(n for n in (meta.get("namespace"), meta["name"]) if n)


def _plain(item: Obj, part: str) -> Obj:
    """Return an item, a row with every age as the same one."""
    if part == "items":
        return item
    cells = [
        "AGE" if isinstance(cell, str) and _AGE.match(cell) else cell for cell in item["cells"]
    ]
    return {**item, "cells": cells}


def _undated(status: Obj) -> Obj:
    """Return a Status that tells of the future without the present revision."""
    message = status.get("message")
    if not isinstance(message, str):
        return status
    return {**status, "message": _PRESENT.sub("current: N", message)}


def _undescribed(table: Obj) -> Obj:
    if not table.get("columnDefinitions"):
        return table
    columns = [
        {key: value for key, value in column.items() if key != "description"}
        for column in table["columnDefinitions"]
    ]
    return {**table, "columnDefinitions": columns}


def without_nulls(obj: Obj) -> Obj:
    """Return an answer as protobuf says it, which has no null."""
    return {key: _without_nulls(value) for key, value in obj.items() if value is not None}


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return without_nulls(value)
    return [_without_nulls(v) for v in value] if isinstance(value, list) else value
