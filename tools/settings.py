"""The settings of ``hublet serve``: flags over ``HUBLET_*`` over a YAML file over defaults.

Owns where a value comes from and how it is read; which values can be is `hub.config`'s business.
Everything is looked at before anything is refused: one start names all problems.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeAlias

import click

from hub.config import Config, ConfigError
from hub.meta.codec import yaml
from hub.meta.codec.json import encode, kind_of
from hub.meta.errors import ApiError
from snapshot.errors import TargetUnclear
from snapshot.points import parse_target
from tools.duration import parse_duration

Value: TypeAlias = str | bool | float | Path | tuple[str, ...] | None
Reader: TypeAlias = Callable[[object, str], Value]
CONFIG_FLAG, CONFIG_VARIABLE = "--config", "HUBLET_CONFIG"
DEFAULT = "default"
_BLOCK, _BLOCK_VERSION = "bootstrap", 1
_IN_BLOCK = {
    f"bootstrap.{path}": f"bootstrap-{path.replace('.', '-')}"
    for path in ("source", "snapshot.url", "snapshot.to", "takeover")
}
"""The block of the file that stands for several settings: path and setting."""
_YES, _NO = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0"})


class _ValueProblemError(ValueError):
    """A value of another type than the setting's; the message names the place in it."""


def _text(value: object, key: str) -> str:
    if isinstance(value, str):
        return value
    raise _ValueProblemError(f"{key}: must be text, not {kind_of(value)}")


def _path(value: object, key: str) -> Path:
    if not _text(value, key):
        raise _ValueProblemError(f"{key}: must not be empty")
    return Path(str(value))


def _path_if_any(value: object, key: str) -> Path | None:
    return _path(value, key) if value else None


def _boolean(value: object, key: str) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).lower()
    if isinstance(value, str) and word in _YES | _NO:
        return word in _YES
    raise _ValueProblemError(f"{key}: {value!r} must be true or false")


def _span(value: object, key: str) -> float:
    try:
        return parse_duration("" if isinstance(value, bool) else str(value))
    except ValueError as error:
        raise _ValueProblemError(f"{key}: {error}") from None


def _words(value: object, key: str) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(_text(word, f"{key}[{at}]") for at, word in enumerate(value))
    return tuple(word.strip() for word in _text(value, key).split(",") if word.strip())


def _seconds(value: object, key: str) -> int:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    text = str(value) if is_whole or isinstance(value, str) else ""
    if not (text.isascii() and text.isdigit()):
        raise _ValueProblemError(f"{key}: {value!r} must be a number of seconds")
    return int(text)


def _users(value: object, key: str) -> tuple[str, ...]:
    users = _words(value, key)
    for user in users:
        if "*" in user[:-1]:
            raise _ValueProblemError(f"{key}: {user!r} may have one *, and only at its end")
    return users


def _address(value: object, key: str) -> str:
    given = _text(value, key)
    try:
        given.rpartition(":")[0].encode("idna")  # as the resolver will
    except UnicodeError as error:
        raise _ValueProblemError(f"{key}: {given!r} has a host that is no name") from error
    return given


def _target(value: object, key: str) -> str:
    given = str(value) if isinstance(value, int) else _text(value, key)
    try:
        parse_target(given)
    except TargetUnclear as error:
        raise _ValueProblemError(
            f"{key}: {given!r} must be latest, a revision (1200), a time (2026-12-01T03:15:00Z) or "
            "a position (@57)"
        ) from error
    return given


def _no_advice(_: str) -> str:
    return ""


def _advise_address(given: str) -> str:
    """Return what helps with an address that cannot be: the range of ports, or an example."""
    host, _, port = given.rpartition(":")
    if host and port.removeprefix("-").isdecimal():
        return ", with a port from 0 (any free one) to 65535"
    return ", for example 127.0.0.1:6443 or [::1]:6443"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its field in `Config`, and how it is given."""

    name: str
    read: Reader
    help: str
    metavar: str = "TEXT"
    advise: Callable[[str], str] = _no_advice
    """What to add when `Config` refuses a value that was given as text."""

    @property
    def key(self) -> str:
        """Return its name in the file and in messages."""
        return self.name.replace("_", "-")

    @property
    def flag(self) -> str:
        """Return its flag."""
        return f"--{self.key}"

    @property
    def variable(self) -> str:
        """Return its environment variable."""
        return f"HUBLET_{self.name.upper()}"


SETTINGS = (
    Setting("data_dir", _path, "Where the hub keeps its files.", "DIR"),
    Setting("listen", _address, "Address and port to serve on.", "ADDR:PORT", _advise_address),
    Setting("url", _text, "What clients are told, https://HOST:PORT.", "URL"),
    Setting(
        "key_file",
        _path_if_any,
        "The hub key; outside the data directory.  [default: DATA_DIR.key]",
        "FILE",
    ),
    Setting(
        "object_store", _text, "Ship every change to file:///dir or s3://bucket/prefix.", "URL"
    ),
    Setting(
        "auto_approve_users",
        _users,
        "Bootstrap users whose first certificate requests need no person, comma separated.",
        "LIST",
    ),
    Setting(
        "bootstrap_source",
        _text,
        "Where the state comes from: the directory or else the bucket, a new hub, the directory "
        "only, the bucket only.",
        "[Auto|Empty|Volume|Snapshot]",
    ),
    Setting(
        "bootstrap_snapshot_url",
        _text,
        "With source Snapshot: a prefix that is moved here.  [default: the object store]",
        "URL",
    ),
    Setting(
        "bootstrap_snapshot_to",
        _target,
        "With source Snapshot: what an empty directory is restored to.",
        "[latest|REVISION|TIME|@POSITION]",
    ),
    Setting(
        "bootstrap_takeover",
        _text,
        "When the prefix may be taken from another directory.",
        "[Never|IfReleased|Claimed|Force]",
    ),
    Setting("place", _text, "What tells this volume from a clone of it."),
    Setting(
        "strict_fencing",
        _seconds,
        "Refuse writes after so many seconds without an answer of the object store; 0: never.",
        "SECONDS",
    ),
    Setting("detach", _boolean, "Run without the object store that the directory has shipped to."),
    Setting("auto_accept", _boolean, "Accept every new cluster."),
    Setting(
        "seal",
        _words,
        "Resources sealed at rest beside Secrets and works, comma separated.",
        "LIST",
    ),
    Setting(
        "durable",
        _words,
        "Resources whose writes are answered when they are in the bucket, comma separated.",
        "LIST",
    ),
    Setting(
        "audit_log",
        _text,
        "Record every request in this file, as JSON lines; - is standard output.",
        "FILE",
    ),
    Setting(
        "restore_grace",
        _span,
        "How long after a restore nothing is destroyed for what the state does not know.",
        "TIME",
    ),
    Setting("http2", _text, "HTTP/2 library.", "[auto|ngh2|h2]"),
    Setting("log_level", _text, "JSON lines on stderr.", "[debug|info|warning|error]"),
)
_BY_KEY = {setting.key: setting for setting in SETTINGS}
_DEFAULTS: Mapping[str, object] = {field.name: field.default for field in fields(Config)}


@dataclass(frozen=True, slots=True)
class Effective:
    """A configuration that can be, and where each of its settings came from."""

    config: Config
    sources: Mapping[str, str]

    def lines(self) -> list[str]:
        """Return it as a YAML file, the source of each setting as a comment."""
        shown = {s.key: encode(_plain(self._shown(s))).decode() for s in SETTINGS}
        pairs = {key: f"{key}: {value}" for key, value in shown.items()}
        width = max(map(len, pairs.values()))
        return [f"{pair:<{width}}  # {self.sources[key]}" for key, pair in pairs.items()]

    def _shown(self, setting: Setting) -> object:
        if setting.name == "key_file":
            return self.config.hub_key_path()
        if setting.name == "url":
            _, port = self.config.address()
            return self.config.public_url(port) if port else self.config.url
        return getattr(self.config, setting.name)


def add_settings(command: click.Command) -> None:
    """Give a command the flag of each setting, and ``--config``."""
    file = _Option(
        [CONFIG_FLAG],
        envvar=CONFIG_VARIABLE,
        show_envvar=True,
        metavar="FILE",
        help="A YAML file of settings, named like the flags.",
    )
    command.params += [file, *map(_option, SETTINGS)]


def resolve(given: Mapping[str, object], environment: Mapping[str, str]) -> Effective:
    """Return what is in force.

    `given` has the values of the flags that stand on the command line, by their names in `Config`
    (and "config"). Raises ConfigError with everything that is wrong.
    """
    problems: list[str] = []
    values: dict[str, Value] = {}
    sources = dict.fromkeys(_BY_KEY, DEFAULT)
    place = given.get("config") or environment.get(CONFIG_VARIABLE)
    in_file, paths = _read_file(Path(str(place)), problems) if place else ({}, {})
    for setting in SETTINGS:
        for source, value in (
            (setting.flag, given.get(setting.name)),
            (setting.variable, environment.get(setting.variable) or None),
            (str(place), in_file.get(setting.key)),
        ):
            if value is None:
                continue
            sources[setting.key] = source
            if source in (setting.flag, setting.variable):
                paths.pop(setting.key, None)
            try:
                values[setting.name] = setting.read(value, paths.get(setting.key, setting.key))
            except _ValueProblemError as problem:
                problems.append(f"{problem} ({source})")
            break
    try:
        config = Config(**values)  # type: ignore[arg-type]  # each reader returns its field's type
    except ConfigError as error:
        problems += [_sourced(_advised(each, values), sources, paths) for each in error.problems]
    if problems:
        raise ConfigError(*problems)
    return Effective(config, sources)


def _read_file(path: Path, problems: list[str]) -> tuple[Mapping[str, object], dict[str, str]]:
    """Return the settings of a file, and the path of those that stand in a block of it."""
    try:
        faults: list[str] = []
        found = yaml.decode(path.read_bytes(), faults)
    except OSError as error:
        problems.append(f"config: {path} cannot be read: {error.strerror}")
        return {}, {}
    except ApiError as error:
        problems.append(f"config: {path}: {error.message.rpartition('yaml: ')[2]}")
        return {}, {}
    lines = "\n".join(faults).removeprefix(yaml.FAULTS_HEAD).splitlines()
    problems += [f"config: {path}: {line.strip()}" for line in lines]
    flat = {key: value for key, value in found.items() if key != _BLOCK}
    problems += [_unknown(key, [*_BY_KEY, _BLOCK], path) for key in flat if key not in _BY_KEY]
    if _BLOCK not in found:
        return flat, {}
    in_block = _read_block(found[_BLOCK], path, problems)
    for key, (at, _) in in_block.items():
        if key in flat:
            problems.append(f"{at}: {key} is given too; give one of them ({path})")
    nested = {key: value for key, (_, value) in in_block.items()}
    return flat | nested, {key: at for key, (at, _) in in_block.items()}


def _read_block(block: object, path: Path, problems: list[str]) -> dict[str, tuple[str, object]]:
    """Return the settings of a ``bootstrap`` block, each with its path in the file.

    The block is ``{version: 1, source: ..., snapshot: {url: ..., to: ...}, takeover: ...}``.
    """
    if not isinstance(block, dict):
        problems.append(f"{_BLOCK}: must be a block of settings, not {kind_of(block)} ({path})")
        return {}
    leaves = {f"{_BLOCK}.{key}": value for key, value in block.items()}
    version = leaves.pop(f"{_BLOCK}.version", _BLOCK_VERSION)
    if isinstance(version, bool) or version != _BLOCK_VERSION:
        problems.append(f"{_BLOCK}.version: {version!r} must be {_BLOCK_VERSION} ({path})")
    snapshot = leaves.pop(f"{_BLOCK}.snapshot", {})
    if isinstance(snapshot, dict):
        leaves |= {f"{_BLOCK}.snapshot.{key}": value for key, value in snapshot.items()}
    else:
        problems.append(
            f"{_BLOCK}.snapshot: must be a block of url and to, not {kind_of(snapshot)} ({path})"
        )
    problems += [_unknown(each, _IN_BLOCK, path) for each in leaves if each not in _IN_BLOCK]
    return {_IN_BLOCK[at]: (at, value) for at, value in leaves.items() if at in _IN_BLOCK}


def _unknown(key: str, known: Iterable[str], path: Path) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    hint = f", is {close[0]} meant?" if close else ""
    return f"{key}: there is no such setting{hint} ({path})"


def _advised(problem: str, values: Mapping[str, Value]) -> str:
    setting = _BY_KEY.get(problem.partition(":")[0])
    given = values.get(setting.name) if setting else None
    return problem + (setting.advise(given) if setting and isinstance(given, str) else "")


def _sourced(problem: str, sources: Mapping[str, str], paths: Mapping[str, str]) -> str:
    key, _, what = problem.partition(":")
    source = sources.get(key, DEFAULT)
    return problem if source == DEFAULT else f"{paths.get(key, key)}:{what} ({source})"


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


class _Option(click.Option):
    """A flag whose variable is in the help; `resolve` reads it and so knows the source."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:  # noqa: ARG002  click's seam
        return None


def _option(setting: Setting) -> click.Option:
    default = _DEFAULTS[setting.name]
    is_flag = isinstance(default, bool)
    shown = "" if default == () else default
    return _Option(
        [f"{setting.flag}/--no-{setting.key}" if is_flag else setting.flag],
        envvar=setting.variable,
        show_envvar=True,
        default=str(shown) if isinstance(shown, Path) else shown,
        show_default=shown not in ("", None),
        metavar=None if is_flag else setting.metavar,
        help=setting.help,
    )
