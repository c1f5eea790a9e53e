"""kubectl and a kind of one's own: the recorded tour of the widget, with the texts it printed."""

import json
import re
import uuid
from pathlib import Path

import pytest

from hub.meta import Obj
from tests.clients.cli import Kubectl
from tests.hubs import InProcess, running_hub
from tests.server.support import named
from tests.server.widgets import define, widget, widget_definition

pytestmark = pytest.mark.asyncio(loop_scope="module")
NAME = "widgets.demo.example.com"
FULL = f"customresourcedefinition.apiextensions.k8s.io/{NAME}"
PARTS = [{"name": "a", "size": 1}, {"name": "b", "size": "20%"}]
EXPLAINED = """\
GROUP:      demo.example.com
KIND:       Widget
VERSION:    v1

FIELD: spec <Object>


DESCRIPTION:
    <empty>
FIELDS:
  color	<string> -required-
  enum: red, green, blue
    The colour.

  parts	<[]Object>
    <no description>

  replicas	<integer>
    How many.


"""


def text(obj: Obj, **more: object) -> str:
    return json.dumps({**obj, **more})


def sized(name: str, color: str) -> str:
    obj = widget(name, color, replicas=2, parts=PARTS)
    obj["metadata"]["namespace"] = "tour"
    return text(obj, apiVersion="demo.example.com/v1", kind="Widget")


async def test_a_kind_is_defined_used_and_deleted(kubectl: Path, tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        await _tour(Kubectl(kubectl, hub.kubeconfig, tmp_path), hub)


async def _tour(k: Kubectl, hub: InProcess) -> None:
    await hub.admin.create("/api/v1/namespaces", named("tour"))
    made = await k.ok("create", "-f", "-", stdin=text(widget_definition()))
    assert made.out == f"{FULL} created\n"
    waited = await k.ok("wait", "--for=condition=Established", f"crd/{NAME}", "--timeout=10s")
    assert waited.out == f"{FULL} condition met\n"
    created = await k.ok("create", "-f", "-", stdin=sized("w1", "red"))
    assert created.out == "widget.demo.example.com/w1 created\n"
    await _is_listed(k)
    await _is_checked_and_replaced(k)
    await _is_scaled(k)
    assert (await k.ok("explain", "widget.spec")).out == EXPLAINED
    everything = await k.ok("get", "all", "-n", "tour")
    # without a prefix: no other kind of this hub is in the category
    assert everything.rows()[-1][:2] == ["w1", "3"]
    described = await k.ok("describe", "widget", "w1", "-n", "tour")
    assert "API Version:  demo.example.com/v1\nKind:         Widget\n" in described.out
    gone = await k.ok("delete", "widget", "w1", "--cascade=foreground", "-n", "tour")
    # 1.32 does not say from where
    assert gone.out.replace(" from tour namespace", "") == 'widget.demo.example.com "w1" deleted\n'
    deleted = await k.ok("delete", "crd", NAME)
    assert deleted.out == f'customresourcedefinition.apiextensions.k8s.io "{NAME}" deleted\n'
    unknown = await k.run("get", "widgets", "-n", "tour")
    # kubectl has the kind in its cache
    assert unknown.err.startswith("Error from server (NotFound): Unable to list")


async def _is_listed(k: Kubectl) -> None:
    plain = await k.ok("get", "widgets", "-n", "tour")
    assert [row[:2] for row in plain.rows()] == [["NAME", "REPLICAS"], ["w1", "2"]]
    wide = await k.ok("get", "wd", "-o", "wide", "-n", "tour")
    assert [row[:3] for row in wide.rows()] == [["NAME", "REPLICAS", "COLOR"], ["w1", "2", "red"]]


async def _is_checked_and_replaced(k: Kubectl) -> None:
    bad = await k.run("create", "-f", "-", stdin=sized("w2", "pink"))
    assert (bad.code, bad.err) == (
        1,
        (
            'The Widget "w2" is invalid: \n'
            '* spec.color: Unsupported value: "pink": supported values: "red", "green", "blue"\n'
            "* <nil>: Invalid value: null: some validation rules were not checked because the"
            " object was invalid; correct the existing errors to complete validation\n"
        ),
    )
    replaced = await k.ok("replace", "-f", "-", stdin=sized("w1", "green"))
    assert replaced.out == "widget.demo.example.com/w1 replaced\n"
    green = await k.ok("get", "widgets", "--field-selector", "spec.color=green", "-n", "tour")
    assert green.rows()[1][:2] == ["w1", "2"]


async def _is_scaled(k: Kubectl) -> None:
    scaled = await k.ok("scale", "widget/w1", "--replicas=5", "-n", "tour")
    assert scaled.out == "widget.demo.example.com/w1 scaled\n"
    other = ("scale", "widget/w1", "--replicas=6", "--current-replicas=1", "-n", "tour")
    assert (await k.run(*other)).err == "error: Expected replicas to be 1, was 5\n"
    above = await k.run("scale", "widget/w1", "--replicas=11", "-n", "tour")
    assert above.err == (
        'The Widget "w1" is invalid: spec.replicas: Invalid value: 11: spec.replicas in body should'
        " be less than or equal to 10\n"
    )
    patch = ("--subresource=scale", "--type=merge", "-p", '{"spec":{"replicas":3}}', "-n", "tour")
    assert (await k.ok("patch", "widget", "w1", *patch)).out == "scale.autoscaling/w1 patched\n"
    shown = await k.ok("get", "widget", "w1", "--subresource=scale", "-o", "yaml", "-n", "tour")
    assert shown.out.startswith("apiVersion: autoscaling/v1\nkind: Scale\nmetadata:\n")
    plain = await k.ok("get", "widget", "w1", "--subresource=scale", "-n", "tour")
    assert [row[0] for row in plain.rows()] == ["NAME", "w1"]
    assert shown.out.endswith("spec:\n  replicas: 3\nstatus:\n  replicas: 0\n")


async def test_a_kind_shows_among_the_resources(k: Kubectl, hub: InProcess) -> None:
    group = f"shown-{uuid.uuid4().hex[:8]}.example.com"
    await define(hub.admin, widget_definition(group))
    found = await k.ok("api-resources", f"--api-group={group}")
    assert re.split(r"\s+", found.out.splitlines()[1].strip()) == [
        *("widgets", "wd", f"{group}/v1", "true", "Widget")
    ]


async def test_definitions_are_listed_with_the_time_of_their_creation(k: Kubectl) -> None:
    name = "managedclusters.cluster.open-cluster-management.io"
    found = await k.ok("get", "crd", name)
    head, row = found.out.splitlines()
    assert re.split(r"\s{2,}", head) == ["NAME", "CREATED AT"]
    assert re.fullmatch(rf"{re.escape(name)}\s+\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row)
    assert (await k.ok("explain", "crd.spec.names")).out.count("<string>") >= 4


async def test_an_applied_definition_is_configured(k: Kubectl) -> None:
    definition = widget_definition(f"applied-{uuid.uuid4().hex[:8]}.example.com")
    name = f"crd/{definition['metadata']['name']}"
    await k.ok("apply", "-f", "-", stdin=text(definition))
    await k.ok("wait", "--for=condition=Established", name, "--timeout=10s")
    assert (await k.ok("apply", "-f", "-", stdin=text(definition))).out.endswith(" unchanged\n")
    definition["spec"]["names"]["categories"] = ["all", "mine"]
    assert (await k.ok("apply", "-f", "-", stdin=text(definition))).out.endswith(" configured\n")
