"""Settings: which of flag, variable, file and default counts, and that all problems are named."""

from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner

from hub.config import Config, ConfigError
from tools import failures, hublet
from tools.settings import SETTINGS, Effective, resolve


def in_file(tmp_path: Path, text: str) -> str:
    path = tmp_path / "hublet.yaml"
    path.write_text(text)
    return str(path)


def source_of(effective: Effective, key: str) -> tuple[object, str]:
    return getattr(effective.config, key.replace("-", "_")), effective.sources[key]


def test_every_field_of_the_configuration_is_a_setting() -> None:
    assert {setting.name for setting in SETTINGS} == {field.name for field in fields(Config)}


def test_flags_count_before_variables_before_the_file_before_defaults(tmp_path: Path) -> None:
    file = in_file(tmp_path, "listen: 0.0.0.0:1\nurl: https://file:1\nhttp2: h2\ndata-dir: /file\n")
    given = {"config": file, "listen": "0.0.0.0:3"}
    variables = {"HUBLET_LISTEN": "0.0.0.0:2", "HUBLET_URL": "https://variable:2"}
    found = resolve(given, variables)
    assert source_of(found, "listen") == ("0.0.0.0:3", "--listen")
    assert source_of(found, "url") == ("https://variable:2", "HUBLET_URL")
    assert source_of(found, "http2") == ("h2", file)
    assert source_of(found, "data-dir") == (Path("/file"), file)
    assert source_of(found, "log-level") == ("info", "default")
    assert resolve({}, {"HUBLET_CONFIG": file}).config.http2 == "h2"


def test_without_anything_the_defaults_are_in_force() -> None:
    found = resolve({}, {})
    assert found.config == Config()
    assert set(found.sources.values()) == {"default"}


def test_an_empty_variable_is_none(tmp_path: Path) -> None:
    assert resolve({}, {"HUBLET_LISTEN": "", "HUBLET_CONFIG": ""}).config == Config()


@pytest.mark.parametrize(
    ("written", "users"),
    [
        ("[a, 'b*']", ("a", "b*")),
        ("a, b*,", ("a", "b*")),
        ("[]", ()),
        ("''", ()),
    ],
)
def test_a_list_is_one_in_yaml_or_words_between_commas(
    tmp_path: Path, written: str, users: tuple[str, ...]
) -> None:
    file = in_file(tmp_path, f"auto-approve-users: {written}\n")
    assert resolve({"config": file}, {}).config.auto_approve_users == users
    flag = resolve({"auto_approve_users": "x, y"}, {})
    assert flag.config.auto_approve_users == ("x", "y")


@pytest.mark.parametrize(
    ("word", "value"), [("true", True), ("Yes", True), ("1", True), ("off", False), ("0", False)]
)
def test_a_boolean_is_a_word_in_the_environment(word: str, *, value: bool) -> None:
    assert resolve({}, {"HUBLET_AUTO_ACCEPT": word}).config.auto_accept is value


def problems(given: dict[str, object], variables: dict[str, str]) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        resolve(given, variables)
    return list(refused.value.problems)


def test_all_problems_are_named_at_once_with_key_and_source(tmp_path: Path) -> None:
    file = in_file(
        tmp_path,
        "lisen: x\nauto-approve-users: [a, 2]\nhttp2: h3\nhttp2: h4\nkey-file: 7\n",
    )
    found = problems(
        {"config": file, "url": "http://x", "data_dir": ""},
        {"HUBLET_AUTO_ACCEPT": "maybe", "HUBLET_LOG_LEVEL": "loud"},
    )
    assert found == [
        f'config: {file}: line 4: key "http2" already set in map',
        f"lisen: there is no such setting, is listen meant? ({file})",
        "data-dir: must not be empty (--data-dir)",
        f"key-file: must be text, not number ({file})",
        f"auto-approve-users[1]: must be text, not number ({file})",
        "auto-accept: 'maybe' must be true or false (HUBLET_AUTO_ACCEPT)",
        f"http2: 'h4' must be auto, ngh2 or h2 ({file})",
        "url: 'http://x' must be https://HOST:PORT (--url)",
        "log-level: 'loud' must be debug, info, warning or error (HUBLET_LOG_LEVEL)",
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- a\n", "the body must be an object, not array"),
        ("a: [\n", "did not find expected node content"),
    ],
)
def test_a_file_that_is_no_mapping_is_named(tmp_path: Path, text: str, says: str) -> None:
    file = in_file(tmp_path, text)
    (problem,) = problems({"config": file}, {})
    assert problem.startswith(f"config: {file}: ")
    assert says in problem


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = str(tmp_path / "none.yaml")
    assert problems({"config": file}, {}) == [
        f"config: {file} cannot be read: No such file or directory"
    ]


def test_config_show_prints_a_file_that_means_the_same(tmp_path: Path) -> None:
    runner = CliRunner()
    flags = ["config", "show", "--auto-accept", "--data-dir", str(tmp_path / "data")]
    variables = {"HUBLET_LISTEN": "0.0.0.0:7443", "HUBLET_AUTO_APPROVE_USERS": "a,b"}
    shown = runner.invoke(hublet.main, flags, env=variables)
    assert shown.exit_code == 0, shown.output
    by_key = dict(line.split(": ", 1) for line in shown.output.splitlines())
    assert list(by_key) == [setting.key for setting in SETTINGS]
    assert by_key["listen"].startswith('"0.0.0.0:7443" ')
    assert by_key["listen"].endswith("  # HUBLET_LISTEN")
    assert by_key["url"].startswith('"https://127.0.0.1:7443" ')
    assert by_key["key-file"].startswith(f'"{tmp_path / "data.key"}" ')
    assert by_key["auto-accept"].endswith("  # --auto-accept")
    again = resolve({"config": in_file(tmp_path, shown.output)}, {}).config
    assert (again.listen, again.auto_approve_users, again.auto_accept) == (
        "0.0.0.0:7443",
        ("a", "b"),
        True,
    )


@pytest.mark.parametrize("command", [["serve"], ["config", "show"]])
def test_a_command_names_every_problem_and_ends_with_2(command: list[str]) -> None:
    flags = [*command, "--listen", "6443", "--http2", "h3", "--no-auto-accept"]
    refused = CliRunner().invoke(hublet.main, flags, env={"HUBLET_URL": "hub"})
    assert refused.exit_code == failures.EXIT_CONFIG
    assert refused.stderr.splitlines() == [
        "error: http2: 'h3' must be auto, ngh2 or h2 (--http2)",
        (
            "error: listen: '6443' must be ADDRESS:PORT, for example 127.0.0.1:6443 or [::1]:6443"
            " (--listen)"
        ),
        "error: url: 'hub' must be https://HOST:PORT (HUBLET_URL)",
    ]


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize(
    "command", [[], ["serve"], ["config"], ["config", "show"], ["simulate"], ["demo"]]
)
def test_every_command_explains_itself(command: list[str], flag: str) -> None:
    shown = CliRunner().invoke(hublet.main, [*command, flag])
    assert shown.exit_code == 0, shown.output
    assert "Usage:" in shown.output
    assert '[default: ""]' not in shown.output
    assert "[default: ]" not in shown.output


def test_the_help_of_serve_names_every_variable() -> None:
    said = " ".join(CliRunner().invoke(hublet.main, ["serve", "--help"]).output.split())
    for setting in SETTINGS:
        assert f"[env var: {setting.variable}" in said


@pytest.mark.parametrize("listen", ["localhost:65536", "[::1]:99999", "127.0.0.1:-1"])
def test_a_port_out_of_range_is_called_so(listen: str) -> None:
    assert problems({"listen": listen}, {}) == [
        (
            f"listen: {listen!r} must be ADDRESS:PORT, with a port from 0 (any free one) to 65535"
            " (--listen)"
        )
    ]


@pytest.mark.parametrize("listen", ["6443", "localhost", "localhost:http", ":6443"])
def test_an_address_that_is_none_gets_an_example(listen: str) -> None:
    assert problems({}, {"HUBLET_LISTEN": listen}) == [
        (
            f"listen: {listen!r} must be ADDRESS:PORT, for example 127.0.0.1:6443 or [::1]:6443"
            " (HUBLET_LISTEN)"
        )
    ]


@pytest.mark.parametrize("user", ["a**b", "a**", "*b", "a*b", "**"])
def test_a_wildcard_stands_at_the_end_of_a_user_alone(tmp_path: Path, user: str) -> None:
    says = f"auto-approve-users: {user!r} may have one *, and only at its end"
    assert problems({"auto_approve_users": f"x*,{user}"}, {}) == [f"{says} (--auto-approve-users)"]
    file = in_file(tmp_path, f"auto-approve-users: ['{user}']\n")
    assert problems({"config": file}, {}) == [f"{says} ({file})"]
    assert resolve({"auto_approve_users": "a*,*"}, {}).config.auto_approve_users == ("a*", "*")


@pytest.mark.parametrize("level", ["loud", "INFO", ""])
def test_a_log_level_that_is_none_is_refused_with_the_choices(level: str) -> None:
    assert problems({"log_level": level}, {}) == [
        f"log-level: {level!r} must be debug, info, warning or error (--log-level)"
    ]


@pytest.mark.parametrize("host", ["a..b", ".b", "x" * 64])
def test_a_host_that_no_resolver_takes_is_refused(host: str) -> None:
    assert problems({"listen": f"{host}:1"}, {}) == [
        f"listen: '{host}:1' has a host that is no name (--listen)"
    ]
    for fine in ("[::1]:1", "hub.example.com.:1", "bücher.example:1", "0.0.0.0:1"):
        assert resolve({"listen": fine}, {}).config.listen == fine


# ------------------------------------------------------------------------ the bootstrap block

BLOCK = """\
object-store: s3://new/hub
bootstrap:
  version: 1
  source: Snapshot
  snapshot:
    url: s3://old/hub
    to: 2026-12-01T03:15:00Z
  takeover: Force
"""
FLAT = {
    "bootstrap-source": "Snapshot",
    "bootstrap-snapshot-url": "s3://old/hub",
    "bootstrap-snapshot-to": "2026-12-01T03:15:00Z",
    "bootstrap-takeover": "Force",
}


def test_the_bootstrap_block_of_the_file_means_what_flags_and_variables_mean(
    tmp_path: Path,
) -> None:
    in_block = resolve({"config": in_file(tmp_path, BLOCK)}, {}).config
    store = {"object_store": "s3://new/hub"}
    in_flags = resolve({**store, **{key.replace("-", "_"): FLAT[key] for key in FLAT}}, {}).config
    named = {f"HUBLET_{key.upper().replace('-', '_')}": value for key, value in FLAT.items()}
    in_variables = resolve(store, named).config
    lines = "".join(f"{key}: {value}\n" for key, value in FLAT.items())
    in_lines = resolve(
        {"config": in_file(tmp_path, f"object-store: s3://new/hub\n{lines}")}, {}
    ).config
    assert in_block == in_flags == in_variables == in_lines
    assert in_block.bootstrap_snapshot_to == "2026-12-01T03:15:00Z"


def test_a_flag_counts_before_the_block_and_is_named_when_it_is_wrong(tmp_path: Path) -> None:
    file = in_file(tmp_path, BLOCK)
    found = resolve({"config": file, "bootstrap_takeover": "Never"}, {})
    assert source_of(found, "bootstrap-takeover") == ("Never", "--bootstrap-takeover")
    assert source_of(found, "bootstrap-source") == ("Snapshot", file)
    assert problems({"config": file, "bootstrap_takeover": "Now"}, {}) == [
        (
            "bootstrap-takeover: 'Now' must be Never, IfReleased, Claimed or Force "
            "(--bootstrap-takeover)"
        )
    ]


def test_problems_in_the_block_name_its_path(tmp_path: Path) -> None:
    file = in_file(
        tmp_path,
        "bootstrap:\n  version: 2\n  source: Snapshots\n  sauce: x\n  snapshot-url: s3://b/p\n"
        "  snapshot: {to: yesterday, uri: s3://b/p}\n  takeover: 3\n",
    )
    assert problems({"config": file}, {}) == [
        f"bootstrap.version: 2 must be 1 ({file})",
        f"bootstrap.sauce: there is no such setting, is bootstrap.source meant? ({file})",
        (
            "bootstrap.snapshot-url: there is no such setting, is bootstrap.snapshot.url meant? "
            f"({file})"
        ),
        (
            "bootstrap.snapshot.uri: there is no such setting, is bootstrap.snapshot.url meant? "
            f"({file})"
        ),
        (
            "bootstrap.snapshot.to: 'yesterday' must be latest, a revision (1200), a time "
            f"(2026-12-01T03:15:00Z) or a position (@57) ({file})"
        ),
        f"bootstrap.takeover: must be text, not number ({file})",
        f"bootstrap.source: 'Snapshots' must be Auto, Empty, Volume or Snapshot ({file})",
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bootstrap: Auto\n", "bootstrap: must be a block of settings, not string"),
        ("bootstrap:\n", "bootstrap: must be a block of settings, not null"),
        (
            "bootstrap: {snapshot: s3://b/p}\n",
            "bootstrap.snapshot: must be a block of url and to, not string",
        ),
        ("bootstrap: {version: true}\n", "bootstrap.version: True must be 1"),
        (
            "bootstrap: {takeover: Never}\nbootstrap-takeover: Force\n",
            "bootstrap.takeover: bootstrap-takeover is given too; give one of them",
        ),
    ],
)
def test_a_block_that_cannot_be_is_refused(tmp_path: Path, text: str, says: str) -> None:
    file = in_file(tmp_path, text)
    assert problems({"config": file}, {}) == [f"{says} ({file})"]


@pytest.mark.parametrize("to", ["latest", "1200", "@57", "2026-12-01", "2026-12-01T03:15:00+01:00"])
def test_a_point_to_restore_to_is_read_when_it_is_given(to: str) -> None:
    given = {"object_store": "s3://b/p", "bootstrap_source": "Snapshot"}
    assert resolve({**given, "bootstrap_snapshot_to": to}, {}).config.bootstrap_snapshot_to == to
    (problem,) = problems({**given, "bootstrap_snapshot_to": f"{to}!"}, {})
    assert problem.startswith(f"bootstrap-snapshot-to: '{to}!' must be latest, a revision (1200)")
    assert problem.endswith("(--bootstrap-snapshot-to)")


def test_a_revision_in_the_file_may_be_a_number(tmp_path: Path) -> None:
    text = "object-store: s3://b/p\nbootstrap: {source: Snapshot, snapshot: {to: 1200}}\n"
    found = resolve({"config": in_file(tmp_path, text)}, {}).config
    assert found.bootstrap_snapshot_to == "1200"


def test_what_only_source_snapshot_reads_is_refused_without_it() -> None:
    given: dict[str, object] = {
        "object_store": "s3://b/p",
        "bootstrap_snapshot_url": "s3://b/q",
        "bootstrap_snapshot_to": "7",
        "place": "a/b",
    }
    assert problems(given, {}) == [
        "bootstrap-snapshot-url: needs bootstrap-source Snapshot (--bootstrap-snapshot-url)",
        "bootstrap-snapshot-to: needs bootstrap-source Snapshot (--bootstrap-snapshot-to)",
        "place: 'a/b' must be without / (--place)",
    ]
    assert problems({"strict_fencing": "10", "bootstrap_source": "Snapshot"}, {}) == [
        "bootstrap-source: Snapshot needs an object-store (--bootstrap-source)",
        "strict-fencing: there is nothing to ask without an object store (--strict-fencing)",
    ]


def test_config_show_prints_the_block_as_the_settings_it_stands_for(tmp_path: Path) -> None:
    file = in_file(tmp_path, BLOCK)
    shown = CliRunner().invoke(hublet.main, ["config", "show", "--config", file])
    assert shown.exit_code == 0, shown.output
    by_key = dict(line.split(": ", 1) for line in shown.output.splitlines())
    for key, value in FLAT.items():
        assert by_key[key].split("  # ")[0].strip() == f'"{value}"'
        assert by_key[key].endswith(f"  # {file}")
