"""The manual names every flag, variable, metric and exit code that there is, and no other."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hub.http.metrics import CREDENTIALS
from hub.http.tally import Cut, Handshake
from tests.hubs import running_hub
from tools import asking, failures, hublet, restore
from tools.joining import get
from tools.simulate import cli as simulate
from tools.store import store

ROOT = Path(__file__).resolve().parents[2]
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
RESTORE = (ROOT / "docs" / "hub-restore.md").read_text()
ERRORS = (ROOT / "docs" / "errors.md").read_text()
COMMANDS = {f"hublet {name}": command for name, command in hublet.main.commands.items()}
COMMANDS["hublet get"] = get.commands["token"]
COMMANDS["hublet store"] = store.commands["verify"]  # its commands have the same options
SHARED = {"--help", "-h"}


def section(page: str, title: str) -> str:
    """Return what stands under a heading of the second level."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found is not None, f"no section {title!r}"
    return found[1]


def rows(text: str, *, start: str) -> list[str]:
    """Return the rows of the tables of a section whose first cell begins so."""
    return re.findall(rf"^\| `?{start}.*$", text, flags=re.MULTILINE)


def options(command: click.Command) -> Iterator[click.Option]:
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not SHARED & set(parameter.opts):
            yield parameter


def flags(command: click.Command) -> set[str]:
    every = {flag for each in options(command) for flag in (*each.opts, *each.secondary_opts)}
    return {flag for flag in every if flag.startswith("--")}


def variables(command: click.Command) -> set[str]:
    return {str(option.envvar) for option in options(command) if option.envvar}


def flags_in(text: str) -> set[str]:
    """Return the flags in the first cells of a section's tables."""
    cells = [row.split(" | ")[0] for row in rows(text, start="--")]
    return {flag for cell in cells for flag in re.findall(r"--[a-z0-9-]+", cell)}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_flag_of_a_command_is_in_its_table(name: str) -> None:
    text = section(OPERATIONS, f"`{name}`")
    assert flags_in(text) == flags(COMMANDS[name])
    assert variables(COMMANDS[name]) <= set(re.findall(r"HUBLET_[A-Z0-9_]+", text))


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_defaults_in_the_tables_are_those_of_the_flags(name: str) -> None:
    text = section(OPERATIONS, f"`{name}`")
    for option in options(COMMANDS[name]):
        default = option.default
        if (
            isinstance(default, (str, int, Path))
            and not isinstance(default, bool)
            and default != ""
        ):
            row = next(row for row in rows(text, start="--") if f"`{option.opts[0]}" in row)
            assert re.search(rf"\| `?{re.escape(str(default))}`? \|", row), row


def test_every_flag_of_hub_restore_is_in_its_table_with_its_commands() -> None:
    text = section(RESTORE, "Options")
    commands = restore.cli.commands
    for row in rows(text, start="--"):
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        flag = cells[0].strip("` ").split(" ")[0]
        having = {name for name, command in commands.items() if flag in flags(command)}
        told = set(commands) if cells[1] == "all" else set(cells[1].split(", "))
        assert having == told, flag
    assert flags_in(text) == set().union(*(flags(each) for each in commands.values()))
    known = set().union(*(variables(each) for each in commands.values()))
    assert known <= set(re.findall(r"HUBLET_[A-Z0-9_]+", text))
    for name in commands:
        assert f"hub-restore {name} " in RESTORE
        assert re.search(rf"^\| .*`{name}`.* \|", section(RESTORE, "Verbs"), re.MULTILINE), name


async def test_every_metric_is_in_the_table_with_its_labels(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data", object_store=(tmp_path / "b").as_uri()) as hub:
        await hub.admin.call("GET", "/metrics")  # so that there is a request to tell of
        page = (await hub.admin.call("GET", "/metrics")).body.decode()
    served = {}
    for line in page.splitlines():
        if found := re.match(r"# TYPE (\w+) (\w+)", line):
            served[found[1]] = found[2]
    served = {name: kind for name, kind in served.items() if not name.endswith("_created")}
    labels = {
        name: set(re.findall(r'(\w+)="', found[1])) - {"le"}
        for name in served
        if (found := re.search(rf"^{name}(?:_bucket)?{{(.*?)}}", page, re.MULTILINE))
    }
    told = {
        found[1]: set(found[2].split(",")) if found[2] else set()
        for row in rows(section(OPERATIONS, "Metrics"), start="hublet_")
        if (found := re.match(r"\| `(\w+)(?:{([\w,]+)})?`", row))
    }
    assert set(told) == set(served)
    assert {name: told[name] for name in labels} == labels
    assert {name for name in told if told[name]} == set(labels)


def test_the_commands_of_hublet_store_have_the_same_options_and_are_told_of() -> None:
    text = section(OPERATIONS, "`hublet store`")
    for name, command in store.commands.items():
        assert flags(command) == flags(COMMANDS["hublet store"])
        assert re.search(rf"^\| `{name}` \|", text, re.MULTILINE), name


@pytest.mark.parametrize(
    ("metric", "values"),
    [
        ("hublet_handshake_failures_total", set(Handshake)),
        ("hublet_cut_streams_total", set(Cut)),
        ("hublet_cut_connections_total", {Cut.SLOW_READER, Cut.LATE_REQUEST}),
        ("hublet_authentication_failures_total", set(CREDENTIALS)),
    ],
)
def test_every_value_of_a_label_is_told(metric: str, values: set[str]) -> None:
    (row,) = (r for r in rows(section(OPERATIONS, "Metrics"), start=metric) if metric in r)
    assert set(re.findall(r"`(\w+)`", row)) == values


def test_every_exit_code_of_the_commands_is_documented() -> None:
    serve = section(ERRORS, "hublet serve")
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", serve, flags=re.MULTILINE)}
    codes = {value for name, value in vars(failures).items() if name.startswith("EXIT_")}
    assert told == codes
    people = section(ERRORS, "Commands for the fleet")
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", people, flags=re.MULTILINE)}
    codes = {value for name, value in vars(asking).items() if name.startswith("EXIT_")}
    assert told == codes | {0}
    fleet = section(ERRORS, "hublet simulate and hublet demo")
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", fleet, flags=re.MULTILINE)}
    codes = {value for name, value in vars(simulate).items() if name.startswith("EXIT_")}
    assert told == codes | {0}


def test_every_environment_variable_of_the_manual_exists() -> None:
    commands = [*COMMANDS.values(), *restore.cli.commands.values()]
    known = set().union(*(variables(command) for command in commands))
    known |= {name for name in asking.VARIABLES if name.startswith("HUBLET_")}
    source = (ROOT / "snapshot" / "remote" / "open.py").read_text()
    names = re.search(r"_S3_OPTIONS = \((.*?)\)", source)
    assert names is not None
    known |= {f"HUBLET_S3_{name.upper()}" for name in re.findall(r'"(\w+)"', names[1])}
    assert set(re.findall(r"HUBLET_[A-Z0-9_]+", OPERATIONS + RESTORE)) == known


def test_commands_in_the_manual_use_flags_that_exist() -> None:
    """Every `hublet ...` and `hub-restore ...` in README and docs, in code and in prose."""
    known = {name.split(" ")[1]: flags(command) for name, command in COMMANDS.items()}
    known |= {name: flags(command) for name, command in restore.cli.commands.items()}
    seen = 0
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        text = page.read_text().replace("\\\n", " ")
        for program, name, rest in re.findall(
            r"(?:^ {4}|`)(hublet|hub-restore) ([a-z]+)((?: +[^\s`#]+)*)", text, re.MULTILINE
        ):
            used = set(re.findall(r"(?<!\S)--[a-z0-9-]+", rest))
            group = hublet.main if program == "hublet" else restore.cli
            if name not in group.commands:
                assert not used, f"{page.name}: {program} {name} is no command"
                continue
            seen += 1
            assert used <= known[name], f"{page.name}: {program} {name}{rest}"
    assert seen > 10
