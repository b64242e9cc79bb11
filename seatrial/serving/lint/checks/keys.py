"""Keys that the container doesn't read: unknown, renamed, removed, dropped, in the wrong case, or written twice."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from seatrial.catalog.dialects import within
from seatrial.catalog.rows import read_rows
from seatrial.serving.lint.known import is_known_option, judge
from seatrial.serving.lint.known_keys import SERVER_KEYS
from seatrial.serving.lint.names import PREFIXES, NamedOption
from seatrial.serving.lint.nearest import nearest_of
from seatrial.serving.lint.rules import found, key_like, remove, rename

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.serving.lint.finding import Finding
    from seatrial.serving.lint.subject import Subject
    from seatrial.serving.lint.target import TargetContainer

FOREIGN = ("OPTION_", "SERVING_", "SM_VLLM_", "SM_SGLANG_")


@dataclass(frozen=True, slots=True)
class Renamed:
    """An option that has another name in some versions."""

    dialects: tuple[str, ...]
    name: str
    to: str
    since: str
    because: str
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """Options that are read or passed over, and have no effect."""

    dialects: tuple[str, ...]
    names: tuple[str, ...]
    because: str
    fix: str
    source: str
    date: str
    since: str | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class Successor:
    """What to write instead of an option that is gone."""

    name: str
    instead: str


def unknown(subject: Subject) -> Iterator[Finding]:
    """SEA313, SEA315, SEA337: a key that this version does not read."""
    target = subject.target
    if target is None or _custom_code(subject):
        return
    for option in subject.options:
        if option.space == ("env" if target.engine == "tgi" else "option") and not _told(target, option):
            yield from _judged(subject, target, option)


def _judged(subject: Subject, target: TargetContainer, option: NamedOption) -> Iterator[Finding]:
    verdict = judge(target, option.name)
    if verdict is None:
        return
    cased = _in_known_case(target, option.name)
    if cased:
        key = _cased_key(option, cased)
        message = f"case matters: {target.called} reads {option.name}, but the key is {cased}"
        yield found(subject, "SEA337", option.entry, message, f"write {key}", rename(subject.source, option.entry, key))
    elif verdict.kind == "elsewhere":
        instead = _successors().get(option.name, "leave it out")
        yield found(subject, "SEA315", option.entry, f"{option.name} {verdict.because}", instead)
    else:
        nearest = key_like(option, verdict.nearest) if verdict.nearest else ""
        fix = f"did you mean {nearest}?" if nearest else "leave it out"
        yield found(subject, "SEA313", option.entry, f"{option.name} {verdict.because}", fix)


def _told(target: TargetContainer, option: NamedOption) -> bool:
    return bool(_renamed_to(target, option.name) or _dropped(target, option.name))


def _custom_code(subject: Subject) -> bool:
    """Say whether the user's own handler reads the options, so that any name may be right."""
    entry_point = subject.text("entryPoint")
    return "model_py" in subject.source.facts or (bool(entry_point) and not entry_point.startswith("djl_python."))


def _in_known_case(target: TargetContainer, name: str) -> str:
    if target.engine != "lmi":
        return ""
    if name != name.lower() and is_known_option(target, name.lower()):
        return name.lower()
    return next((known for known in ("entryPoint", "pythonExecutable") if known.lower() == name.lower() != known), "")


def _cased_key(option: NamedOption, name: str) -> str:
    return (
        f"option.{name}" if option.entry.form == "properties" else f"OPTION_{name.upper() if name.islower() else name}"
    )


def renamed(subject: Subject) -> Iterator[Finding]:
    """SEA314: a key that has a newer name."""
    for option in subject.options if subject.target else ():
        row = _renamed_to(subject.target, option.name) if subject.target else None
        if row is None or (row.name == "MAX_INPUT_LENGTH" and subject.option(row.to)):
            continue  # the two together are refused, and told as that
        key = key_like(option, row.to)
        edit = None if subject.option(row.to) else rename(subject.source, option.entry, key)
        yield found(subject, "SEA314", option.entry, row.because, f"write {key}", edit)


def dropped(subject: Subject) -> Iterator[Finding]:
    """SEA316: a key that has no effect in this form."""
    target = subject.target
    for option in subject.options if target else ():
        if target and (row := _dropped(target, option.name)):
            yield found(subject, "SEA316", option.entry, row.because, row.fix)
        elif target and option.space == "env":
            yield from _foreign(subject, target, option)
        elif option.space == "server" and option.entry.form == "properties":
            yield from _without_prefix(subject, option)
        if target and target.engine == "vllm":
            yield from _left_out(subject, option)


def _foreign(subject: Subject, target: TargetContainer, option: NamedOption) -> Iterator[Finding]:
    key = option.entry.key
    own = PREFIXES.get(target.engine, "OPTION_" if target.engine == "lmi" else "")
    if key.startswith(FOREIGN) and not (own and key.startswith((own, "SERVING_"))):
        message = f"{target.called} does not read variables of another container"
        yield found(subject, "SEA316", option.entry, message, "convert the configuration: seatrial convert")
    elif target.engine != "tgi" and (instead := _TGI_ONLY.get(key)) is not None:
        fix = f"write {instead[target.engine]}" if target.engine in instead else "leave it out"
        yield found(subject, "SEA316", option.entry, f"{target.called} does not read this variable of TGI", fix)


def _without_prefix(subject: Subject, option: NamedOption) -> Iterator[Finding]:
    target = subject.target
    if target is None or option.name in SERVER_KEYS or _custom_code(subject):
        return
    if is_known_option(target, option.name):
        message = "without the prefix `option.` it does not reach the engine"
        yield found(subject, "SEA316", option.entry, message, f"write option.{option.name}")
    elif nearest := nearest_of(option.name, tuple(sorted(SERVER_KEYS))):
        message = f"{option.name} is not a key of the model server"
        yield found(subject, "SEA313", option.entry, message, f"did you mean {nearest}?")


def _left_out(subject: Subject, option: NamedOption) -> Iterator[Finding]:
    flags = ("enable_prefix_caching", "enable_chunked_prefill")
    if option.name in flags and option.value.lower() == "false":
        key = f"SM_VLLM_NO_{option.name.upper()}"
        message = "the container drops flags with value false: vLLM's default, on, stays"
        yield found(subject, "SEA316", option.entry, message, f"write {key}=true")


def twice(subject: Subject) -> Iterator[Finding]:
    """SEA320: a key that is written more than once."""
    seen: dict[str, list[NamedOption]] = defaultdict(list)
    options = subject.options or tuple(NamedOption("env", entry.key, entry) for entry in subject.source.entries)
    for option in options:
        seen[option.entry.key].append(option)
    for repeated in (options for options in seen.values() if len(options) > 1):
        yield from _repeated(subject, repeated)


def _repeated(subject: Subject, repeated: list[NamedOption]) -> Iterator[Finding]:
    last = repeated[-1].entry
    for option in repeated[:-1]:
        same = option.value == last.value
        message = f"duplicate on line {last.line}" + ("" if same else f", which takes precedence: {last.value}")
        edit = remove(option.entry) if same else None
        yield found(subject, "SEA320", option.entry, message, "keep one of them", edit)


def _renamed_to(target: TargetContainer, name: str) -> Renamed | None:
    rows = (row for row in _renames() if row.name == name and target.dialect in row.dialects)
    return next((row for row in rows if within(target.version, row.since, None)), None)


def _dropped(target: TargetContainer, name: str) -> Dropped | None:
    rows = (row for row in _drops() if name in row.names and target.dialect in row.dialects)
    return next((row for row in rows if within(target.version, row.since, row.until)), None)


@cache
def _renames() -> tuple[Renamed, ...]:
    return read_rows("lint_rules.json", Renamed, part="renamed")


@cache
def _drops() -> tuple[Dropped, ...]:
    return read_rows("lint_rules.json", Dropped, part="dropped")


@cache
def _successors() -> dict[str, str]:
    return {row.name: row.instead for row in read_rows("lint_rules.json", Successor, part="successors")}


_TGI_ONLY: dict[str, dict[str, str]] = {
    "MAX_TOTAL_TOKENS": {
        "lmi": "OPTION_MAX_MODEL_LEN",
        "vllm": "SM_VLLM_MAX_MODEL_LEN",
        "sglang": "SM_SGLANG_CONTEXT_LENGTH",
    },
    "MAX_INPUT_TOKENS": {},
    "MAX_INPUT_LENGTH": {},
    "MAX_BATCH_TOTAL_TOKENS": {},
    "HF_MODEL_REVISION": {"lmi": "HF_REVISION", "vllm": "SM_VLLM_REVISION", "sglang": "SM_SGLANG_REVISION"},
    "NUM_SHARD": {
        "lmi": "TENSOR_PARALLEL_DEGREE",
        "vllm": "SM_VLLM_TENSOR_PARALLEL_SIZE",
        "sglang": "SM_SGLANG_TP",
    },
    "MESSAGES_API_ENABLED": {},
    "WAITING_SERVED_RATIO": {},
}
