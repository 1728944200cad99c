"""The text of a ProgramSpec (proto/program.proto), from Python's values."""

import dataclasses
import difflib
import math
import os
import re
from typing import (Any, Dict, Iterable, List, Mapping, NamedTuple, Optional,
                    Sequence, Tuple, Union)

from muster._errors import ConfigError

Replication = Union[str, Mapping[str, Any]]
# A rule and its settings: ("adam", {"learning_rate": 1e-3}).
Rule = Tuple[str, Mapping[str, Any]]

_MODES = ("async", "sync", "bounded_staleness")
# Shorter than in training.proto.
_ALIASES = {"replicas": "replicas_to_aggregate"}
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def quoted(text: str) -> str:
    """A string of protobuf's text format that stands for exactly `text`."""
    return '"%s"' % "".join(
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b'"\\'
        else "\\%03o" % byte for byte in text.encode("utf-8"))


def _scalar(what: str, value: Any) -> str:
    """A number or bool as text; `what` names it in an error."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    # NumPy's, too.
    if hasattr(value, "__index__"):
        return str(value.__index__())
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ConfigError("%s: wanted a number, found %r" %
                          (what, value)) from None
    if not math.isfinite(number):
        raise ConfigError("%s: wanted a finite number, found %r" %
                          (what, value))
    return repr(number)


def one_of(what: str, name: Any, known: Iterable[str]) -> str:
    """`name`, which is one of `known`. Errors: ConfigError with the nearest."""
    known = list(known)
    if name in known:
        return str(name)
    near = difflib.get_close_matches(str(name), known, 1)
    raise ConfigError("%s: wanted one of %s, found %r%s" % (
        what, ", ".join(known), name,
        "; did you mean %r?" % near[0] if near else ""))


def _fields(what: str, values: Mapping[str, Any]) -> str:
    """A message of numbers, bools, names of enumerators and messages."""
    parts = []
    for key, value in values.items():
        name = _ALIASES.get(key, key)
        inner = "%s.%s" % (what, key)
        if not isinstance(key, str) or not _WORD.match(name):
            raise ConfigError("%s: wanted the name of a field, found %r" %
                              (what, key))
        if isinstance(value, Mapping):
            parts.append("%s { %s}" % (name, _fields(inner, value)))
        elif isinstance(value, str) and _WORD.match(value):
            parts.append("%s: %s" % (name, value))
        else:
            parts.append("%s: %s" % (name, _scalar(inner, value)))
    return "".join(part + " " for part in parts)


def replication_text(replication: Replication) -> str:
    """The fields of a ReplicationSpec, from "sync" or {"sync": {...}}."""
    if isinstance(replication, str):
        replication = {replication: {}}
    if not isinstance(replication, Mapping) or len(replication) != 1:
        raise ConfigError(
            "replication: wanted one of %s, or one with settings as "
            "{\"sync\": {\"replicas\": 2}}, found %r" %
            (", ".join(_MODES), replication))
    (mode, settings), = replication.items()
    one_of("replication", mode, _MODES)
    if not isinstance(settings, Mapping):
        raise ConfigError("replication: wanted a dict of settings for %r, "
                          "found %r" % (mode, settings))
    return _fields("replication", {mode: settings})


def rule_text(rule: Rule) -> str:
    """The fields of an OptimizerSpec."""
    name, settings = rule
    if not isinstance(name, str) or not name:
        raise ConfigError("optimizer: wanted the name of an update rule, as "
                          "\"adam\", found %r" % (name,))
    parts = ["name: %s " % quoted(name)]
    for key, value in settings.items():
        if isinstance(value, bool):
            kind = "b"
        elif isinstance(value, str):
            kind = "s"
        else:
            kind = "i" if hasattr(value, "__index__") else "f"
        text = (quoted(value) if kind == "s" else
                _scalar("optimizer.%s" % key, value))
        parts.append("attr { name: %s %s: %s } " % (quoted(key), kind, text))
    return "".join(parts)


_INITIAL = {"uniform": "UNIFORM", "zeros": "ZEROS"}
# As worker/training has it.
_SCALE = 0.05


class TableSettings(NamedTuple):
    """What `job.table` is given, as fields of a TableSpec."""
    pattern: str
    # None: the model's.
    rule: Optional[Rule]
    # Of the first values.
    initial: str
    scale: float
    max_rows: int


def table_settings(pattern: str, optimizer: Optional[str],
                   attributes: Mapping[str, Any], initial: Optional[str],
                   scale: Optional[float], max_rows: int) -> TableSettings:
    """Checks them. Errors: ConfigError."""
    if not isinstance(pattern, str) or not pattern:
        raise ConfigError("table: wanted a pattern of names, as \"user|item\", "
                          "found %r" % (pattern,))
    if optimizer is None and attributes:
        raise ConfigError("table('%s'): %s: of which rule? Give optimizer=, "
                          "too" % (pattern, ", ".join(sorted(attributes))))
    what = "table('%s'): " % pattern
    return TableSettings(
        pattern, None if optimizer is None else (optimizer, attributes),
        _INITIAL[one_of(what + "initial", initial or "uniform", _INITIAL)],
        _number(what + "scale", _SCALE if scale is None else scale, 0, False),
        _number(what + "max_rows", max_rows, 0, True))


def _first_values_text(settings: TableSettings) -> str:
    return "initial: %s scale: %s " % (settings.initial,
                                       _scalar("scale", settings.scale))


def table_text(settings: TableSettings) -> str:
    """The fields of a TableSpec."""
    text = "pattern: %s " % quoted(settings.pattern)
    if settings.rule is not None:
        text += "optimizer { %s} " % rule_text(settings.rule)
    return "%s%smax_rows: %d " % (text, _first_values_text(settings),
                                  settings.max_rows)


def table_def_text(name: str, dim: int, settings: Optional[TableSettings],
                   seed: int) -> str:
    """The fields of a TableDef that its first values are made of."""
    return "name: %s dim: %d %sseed: %d" % (
        quoted(name), dim, _first_values_text(settings or table_settings(
            ".*", None, {}, None, None, 0)), seed % 2 ** 64)


_TOKEN = re.compile(r"""#[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|"""
                    r"""[A-Za-z_][A-Za-z0-9_]*|[{}<>]|[^\s\w]|[0-9]\w*""",
                    re.DOTALL)


def merged(text: str, field: str, inner: str) -> str:
    """A message's text with `inner` in its message `field`, which may be there
    already: two of the same are an error of protobuf's."""
    depth, named = 0, False
    for token in _TOKEN.finditer(text):
        word = token.group()
        if word in "{<":
            if named and depth == 0:
                return "%s %s%s" % (text[:token.end()], inner,
                                    text[token.end():])
            depth += 1
        elif word in "}>":
            depth -= 1
        if depth == 0 and not word.startswith("#"):
            named = word == field or (named and word == ":")
    return "%s\n%s { %s}" % (text, field, inner)


@dataclasses.dataclass
class Settings:
    """What `muster.init` is given, by the same names; None: not said."""

    train_dir: Optional[Any] = None
    ps: Optional[Any] = None
    workers: Optional[Any] = None
    cluster: Optional[Any] = None
    task_index: Optional[Any] = None
    job_name: Optional[str] = None
    namespace: Optional[str] = None
    certs_dir: Optional[Any] = None
    allow_insecure_network: Optional[bool] = None
    link: Optional[str] = None
    max_wait: Optional[float] = None
    progress_every: Optional[float] = None
    replication: Replication = "async"
    epochs: Optional[float] = None
    steps: Optional[int] = None
    seconds: Optional[float] = None
    save_every_steps: Optional[int] = None
    save_every_seconds: Optional[float] = None
    keep: Optional[int] = None
    seed: int = 0
    training: str = ""


# A setting, and the variable that `muster run` and `muster task` set.
_ENVIRONMENT = {
    "cluster": "MUSTER_CLUSTER",
    "task_index": "MUSTER_TASK_INDEX",
    "job_name": "MUSTER_JOB_NAME",
    "certs_dir": "MUSTER_CERTS_DIR",
    "allow_insecure_network": "MUSTER_ALLOW_INSECURE_NETWORK",
}
_TRUTH = {"1": True, "true": True, "0": False, "false": False}


def _strings(what: str, value: Any) -> str:
    """"a:1,b:2", from that or from a list."""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) and all(isinstance(v, str) for v in value):
        return ",".join(value)
    raise ConfigError("%s: wanted \"host:port,host:port\" or a list of "
                      "\"host:port\", found %r" % (what, value))


def _path(what: str, value: Any) -> str:
    try:
        path = os.fspath(value)
    except TypeError:
        path = None
    if not isinstance(path, str):
        raise ConfigError("%s: wanted a path, found %r" % (what, value))
    return path


def _number(what: str, value: Any, least: float, whole: bool) -> Any:
    kind = "a whole number" if whole else "a number"
    if isinstance(value, bool) or not isinstance(
            value, (int, float)) and not hasattr(value, "__index__") or (
                whole and not hasattr(value, "__index__")):
        raise ConfigError("%s: wanted %s, found %r" % (what, kind, value))
    if not least <= value < math.inf:
        raise ConfigError("%s: wanted %s of at least %g, found %r" %
                          (what, kind, least, value))
    return value


def with_environment(settings: Settings,
                     environment: Mapping[str, str]) -> Settings:
    """The settings, and those of a launcher where they say nothing. Errors:
    ConfigError if both say something, but not the same."""
    found: Dict[str, Any] = {}
    for name, variable in _ENVIRONMENT.items():
        text = environment.get(variable, "")
        if not text:
            continue
        value = (_TRUTH[one_of(variable, text, _TRUTH)]
                 if name == "allow_insecure_network" else text)
        given = getattr(settings, name)
        if given is None:
            found[name] = value
        elif given != value and str(given) != text:
            raise ConfigError(
                "init(%s=%r) contradicts %s=%s of the environment: leave one "
                "of them out" % (name, given, variable, text))
    return dataclasses.replace(settings, **found)


# Where they say more than this, the process is one of several.
_ALONE = {"SLURM_STEP_NUM_TASKS": "1", "OMPI_COMM_WORLD_SIZE": "1",
          "PMI_SIZE": "1", "WORLD_SIZE": "1", "JOB_COMPLETION_INDEX": ""}


def with_default_task(settings: Settings,
                      environment: Mapping[str, str]) -> Settings:
    """The settings, with a task_index where `ps` alone says where to train:
    that of the chief with a train_dir, else "any"."""
    if (settings.ps is None or settings.workers not in (None, "any") or
            settings.cluster is not None or settings.task_index is not None or
            settings.job_name not in (None, "worker") or
            environment.get("TF_CONFIG") or
            any(environment.get(name, "") not in ("", alone)
                for name, alone in _ALONE.items())):
        return settings
    return dataclasses.replace(
        settings, task_index="any" if settings.train_dir is None else 0)


def place_text(settings: Settings) -> str:
    """Where the job is, for people."""
    for name in ("ps", "cluster"):
        value = getattr(settings, name)
        if value is not None:
            return "%s=%r" % (name, value)
    return "the ps tasks of TF_CONFIG"


def cluster_text(settings: Settings) -> str:
    """The fields of a ProgramSpec that say where it runs."""
    lines: List[str] = []

    def add(field: str, text: str) -> None:
        lines.append("%s: %s\n" % (field, text))

    for name, field in (("ps", "ps_hosts"), ("workers", "worker_hosts")):
        value = getattr(settings, name)
        if value is not None:
            add(field, quoted(_strings(name, value)))
    for name in ("cluster", "certs_dir", "train_dir"):
        value = getattr(settings, name)
        if value is not None:
            add(name, quoted(_path(name, value)))
    for name in ("job_name", "namespace", "link", "task_index"):
        value = getattr(settings, name)
        if name == "task_index" and hasattr(value, "__index__"):
            value = str(value)
        if value is not None and not isinstance(value, str):
            raise ConfigError("%s: wanted a string, found %r" % (name, value))
        if value is not None:
            add(name, quoted(value))
    if settings.allow_insecure_network:
        add("allow_insecure_network", "true")
    for name, field in (("max_wait", "max_wait_seconds"),
                        ("progress_every", "progress_every_seconds")):
        value = getattr(settings, name)
        if value is not None:
            add(field, _scalar(name, _number(name, value, 0, False)))
    return "".join(lines)


# Settings that are fields of a message of a TrainingSpec, and whether whole.
_TRAINING = {
    "epochs": ("stop", "epochs", False),
    "steps": ("stop", "steps", True),
    "seconds": ("stop", "seconds", False),
    "save_every_steps": ("checkpoint", "every_steps", True),
    "save_every_seconds": ("checkpoint", "every_seconds", False),
    "keep": ("checkpoint", "keep", True),
}


def training_text(settings: Settings, rule: Rule) -> str:
    """The fields of a TrainingSpec: those of `training`, and the others."""
    if not isinstance(settings.training, str):
        raise ConfigError("training: wanted the text of a TrainingSpec, found "
                          "%r" % (settings.training,))
    text = settings.training
    for name, (message, field, whole) in _TRAINING.items():
        value = getattr(settings, name)
        if value is not None:
            number = _scalar(name, _number(name, value, 0, whole))
            text = merged(text, message, "%s: %s " % (field, number))
    if settings.replication != "async":
        text = merged(text, "replication",
                      replication_text(settings.replication))
    if settings.seed:
        text += "\nseed: %s" % _scalar(
            "seed", _number("seed", settings.seed, -math.inf, True))
    return merged(text, "optimizer", rule_text(rule))


def program_text(settings: Settings, rule: Optional[Rule] = None,
                 tensors: Sequence[Tuple[str, Sequence[int], bool]] = (),
                 epoch_rows: int = 0, step_rows: int = 0,
                 steps_ahead: int = 0, in_order: bool = False,
                 alike: str = "", tables: Sequence[Tuple[str, int]] = (),
                 of_tables: Sequence[TableSettings] = ()) -> bytes:
    """A whole ProgramSpec, UTF-8; without `rule` only where it runs."""
    lines = [cluster_text(settings)]
    if rule is not None:
        lines.append("training {\n%s\n%s}\n" % (
            training_text(settings, rule),
            "".join("table { %s}\n" % table_text(each) for each in of_tables)))
    for name, shape, is_state in tensors:
        lines.append("tensor { name: %s %s%s}\n" % (
            quoted(name), "".join("shape: %d " % size for size in shape),
            "is_state: true " if is_state else ""))
    for name, dim in tables:
        lines.append("table { name: %s dim: %s }\n" % (
            quoted(name), _scalar("dim", _number("table '%s': dim" % name, dim,
                                                 1, True))))
    for field, value in (("epoch_rows", epoch_rows), ("step_rows", step_rows),
                         ("steps_ahead", steps_ahead)):
        if value:
            lines.append("%s: %s\n" % (field, _scalar(field, _number(
                field, value, 0, True))))
    if in_order:
        lines.append("in_order: true\n")
    if alike:
        lines.append("settings: %s\n" % quoted(alike))
    text = "".join(lines)
    if "\0" in text:
        raise ConfigError("training: found a NUL character in it")
    return text.encode("utf-8")
