"""Tables, partial objects and printer columns."""

import datetime as dt

import pytest

from hub.meta import Obj
from hub.meta.jsonpath import JsonPath
from hub.meta.table import (
    Column,
    age,
    cell_at,
    partial_object_metadata,
    render_table,
    since,
)

NOW = dt.datetime(2026, 11, 30, 18, 0, 0, tzinfo=dt.UTC)
CLUSTER: Obj = {
    "kind": "ManagedCluster",
    "metadata": {
        "name": "mc1",
        "creationTimestamp": "2026-11-30T17:59:50Z",
        "labels": {"a.b/c": "x"},
    },
    "spec": {
        "hubAcceptsClient": True,
        "managedClusterClientConfigs": [{"url": "https://a"}, {"url": "https://b"}],
        "leaseDurationSeconds": 60,
        "ratio": 1.5,
        "whole": 2.0,
        "nothing": None,
    },
    "status": {
        "conditions": [
            {"type": "HubAccepted", "status": "True", "n": 1},
            {"type": "ManagedClusterJoined", "status": "False", "n": 2},
            {"status": "Unknown"},
        ]
    },
}
NAME = Column("Name", "string", "name", "What it is called.")
AGE = Column("Age", "date", "", "How old it is.", 1)


def test_a_table_has_definitions_and_rows_with_metadata() -> None:
    table = render_table(
        [NAME, AGE], [(["mc1", "10s"], CLUSTER)], metadata={"resourceVersion": "5"}
    )
    assert table == {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "5"},
        "columnDefinitions": [
            {
                "name": "Name",
                "type": "string",
                "format": "name",
                "description": "What it is called.",
                "priority": 0,
            },
            {
                "name": "Age",
                "type": "date",
                "format": "",
                "description": "How old it is.",
                "priority": 1,
            },
        ],
        "rows": [
            {
                "cells": ["mc1", "10s"],
                "object": {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": CLUSTER["metadata"],
                },
            }
        ],
    }


def test_a_table_includes_what_is_asked_for() -> None:
    def included(include: str) -> object:
        table = render_table(None, [([], CLUSTER)], include=include, metadata={})
        assert table["columnDefinitions"] is None
        return table["rows"][0]["object"]

    assert included("None") is None
    assert included("Object") is CLUSTER
    assert included("Metadata") == partial_object_metadata(CLUSTER)


@pytest.mark.parametrize(
    ("path", "type_", "cell"),
    [
        (".spec.hubAcceptsClient", "boolean", True),
        (".spec.hubAcceptsClient", "string", "true"),
        (".spec.hubAcceptsClient", "integer", None),
        (".spec.managedClusterClientConfigs[*].url", "string", "https://a"),
        (".spec.managedClusterClientConfigs[-1].url", "string", "https://b"),
        (".spec.managedClusterClientConfigs[2].url", "string", None),
        (".spec.managedClusterClientConfigs[0]", "string", '{"url":"https://a"}'),
        ('.status.conditions[?(@.type=="ManagedClusterJoined")].status', "string", "False"),
        (".status.conditions[?(@.type=='None')].status", "string", None),
        ('.status.conditions[?(@.type!="HubAccepted")].status', "string", "False"),
        (".status.conditions[?(@.n==2)].type", "string", "ManagedClusterJoined"),
        (".spec.leaseDurationSeconds", "integer", 60),
        (".spec.leaseDurationSeconds", "number", 60),
        (".spec.leaseDurationSeconds", "string", "60"),
        (".spec.leaseDurationSeconds", "date", None),
        (".spec.ratio", "integer", 1),
        (".spec.ratio", "number", 1.5),
        (".spec.ratio", "string", "1.5"),
        (".spec.whole", "string", "2"),
        (".spec.nothing", "string", None),
        (".spec.absent.deeper", "string", None),
        (".metadata.name", "integer", None),
        (".metadata.name", "boolean", None),
        (".metadata.name", "date", "<invalid>"),
        (".metadata.name", "object", None),
        (r".metadata.labels.a\.b/c", "string", "x"),
        (".metadata.labels['a.b/c']", "string", "x"),
        (".metadata.creationTimestamp", "date", "10s"),
        ("{.metadata.name}", "string", "mc1"),
    ],
)
def test_a_printer_column_prints_as_the_crd_printer_does(
    path: str, type_: str, cell: object
) -> None:
    printed = cell_at(CLUSTER, path, type_, NOW)
    assert printed == cell
    assert type(printed) is type(cell)


def test_an_age_is_unknown_without_a_time() -> None:
    assert age(CLUSTER, NOW) == "10s"
    assert age({}, NOW) == "<unknown>"
    assert age({"metadata": {"creationTimestamp": None}}, NOW) == "<unknown>"
    assert since("soon", NOW) == "<invalid>"
    assert since("2026-11-30T18:01:00Z", NOW) == "<invalid>"


def test_every_value_on_the_path_is_found_in_order() -> None:
    assert JsonPath.parse("$.status.conditions[*].status").find(CLUSTER) == [
        "True",
        "False",
        "Unknown",
    ]
    assert JsonPath.parse(".metadata.labels.*").find(CLUSTER) == ["x"]
    assert JsonPath.parse("").find(CLUSTER) == [CLUSTER]


def test_a_filter_tells_true_from_one() -> None:
    obj: Obj = {"a": [{"v": True, "n": "bool"}, {"v": 1, "n": "int"}, {"v": None, "n": "null"}]}
    for literal, name in (("true", "bool"), ("1", "int"), ("null", "null")):
        assert JsonPath.parse(f".a[?(@.v=={literal})].n").find(obj) == [name]


@pytest.mark.parametrize("path", ["spec", ".a[", ".a[?(@.b>1)]", ".a..b", ".a[1:2]", ".a b"])
def test_a_path_beyond_the_subset_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"is not understood from"):
        JsonPath.parse(path)
