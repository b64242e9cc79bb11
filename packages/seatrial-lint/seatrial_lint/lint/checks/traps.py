"""Traps from the engines' sources and issue trackers, as rows of data: what stands together, and what comes of it.

Below them what older images of a container read otherwise than newer ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.engine_versions import version_text, within
from seatrial_base.catalog.rows import CatalogTable
from seatrial_lint.lint.known import takes_value
from seatrial_lint.lint.rules import finding, rule
from seatrial_lint.lint.subject import hub_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.catalog.engine_versions import EngineName, Version
    from seatrial_base.findings import Finding, Severity
    from seatrial_lint.lint.names import NamedOption
    from seatrial_lint.lint.subject import Subject

_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?")
_COMPARED = re.compile(r"([<>])(.+)")
# aws/deep-learning-containers@1c1aacc0ac (pull 5757, 2026-03-17), sagemaker_entrypoint.sh of vLLM and SGLang: from then
# on, `true` is a bare flag, `false` is left out, and vLLM's model is found without SM_VLLM_MODEL.
FIRST_WITH_FLAGS: dict[EngineName, Version] = {"vllm": (0, 17, 1), "sglang": (0, 5, 9)}
# aws/deep-learning-containers@dceae13291 (pull 6564, 2026-08-19), sagemaker_args.py: a JSON array is split.
FIRST_WITH_LISTS: Version = (0, 27, 1)
_MODEL = {"vllm": "SM_VLLM_MODEL", "sglang": "SM_SGLANG_MODEL_PATH"}


@dataclass(frozen=True, slots=True, eq=False)
class Trap:
    """One trap.

    Attributes:
        rule: The rule's ID.
        dialects: Those that have it.
        when: Names (`|` between several that mean one thing) and what their value must be: `*` for any, words with `|`
            between them, `!` before words that it must not be, `~` before a part of the text, `>2` or `<2`, or `<` and
            another name, for numbers, `hub` for a repository of the hub, `capital` for True or FALSE.
        message: What the container does; `{version}`, `{key}` and `{value}` are filled in.
        fix: How to mend it.
        source: Where it was read, with commit, issue or pull request.
        without: Names none of which is written.
        since: First version; `None` for every.
        until: Last version, a prefix.
        severity: How bad it is; `None` for the rule's own.
    """

    rule: str
    dialects: tuple[str, ...]
    when: dict[str, str]
    message: str
    fix: str
    source: str
    date: str
    without: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    severity: str | None = None
    named: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Note the names of the first condition, by which rows are found."""
        object.__setattr__(self, "named", tuple(next(iter(self.when)).split("|")))


TRAPS: Final = CatalogTable(Trap, "engine_options.json#traps", key="named")


@rule(
    "SEA344",
    "SEA345",
    "SEA346",
    "SEA347",
    "SEA348",
    "SEA349",
    "SEA354",
    "SEA355",
    "SEA356",
    "SEA357",
    "SEA358",
    "SEA359",
    "SEA375",
    "SEA376",
    "SEA377",
)
def every(subject: Subject) -> Iterator[Finding]:
    """Rows that hold for a configuration."""
    target = subject.target
    if target is None:
        return
    written = {option.name: option for option in subject.options}
    for row in dict.fromkeys(row for name in written for row in TRAPS.having(name)):
        holds = target.dialect in row.dialects and within(target.version, row.since, row.until)
        if holds and (at := _place(row, written)):
            words = {"version": target.called, "key": at.entry.key, "value": at.value}
            message, fix = (_filled(text, words) for text in (row.message, row.fix))
            yield finding(subject, row.rule, at.entry, message, fix, severity=_severity(row.severity))


def _severity(text: str | None) -> Severity | None:
    return "error" if text == "error" else "warning" if text == "warning" else "note" if text == "note" else None


def _filled(text: str, words: dict[str, str]) -> str:
    for name, word in words.items():
        text = text.replace(f"{{{name}}}", word)
    return text


def _place(row: Trap, written: dict[str, NamedOption]) -> NamedOption | None:
    """Return the option of the first condition when all hold."""
    if any(name in written for name in row.without):
        return None
    places = [_held(names, wanted, written) for names, wanted in row.when.items()]
    return places[0] if all(places) else None


def _held(names: str, wanted: str, written: dict[str, NamedOption]) -> NamedOption | None:
    option = _first(names, written)
    return option if option and _is(option.value, wanted, written) else None


def _first(names: str, written: dict[str, NamedOption]) -> NamedOption | None:
    return next((written[name] for name in names.split("|") if name in written), None)


def _is(value: str, wanted: str, written: dict[str, NamedOption]) -> bool:
    text = value.strip().lower()
    if wanted in ("*", "hub", "capital"):
        return wanted == "*" or (hub_id(value) if wanted == "hub" else text in ("true", "false") and value != text)
    if compared := _COMPARED.fullmatch(wanted):
        how = compared[1]
        with_what = compared[2]
        other = _first(with_what, written)
        than = with_what if _NUMBER.fullmatch(with_what) else other.value.strip() if other else ""
        if not (_NUMBER.fullmatch(text) and _NUMBER.fullmatch(than)):
            return False
        return float(text) < float(than) if how == "<" else float(text) > float(than)
    if wanted.startswith("~"):
        return wanted[1:].lower() in text
    if wanted.startswith("!"):
        return bool(text) and text not in wanted[1:].lower().split("|")
    return text in wanted.lower().split("|")


@rule("SEA318")
def flags(subject: Subject) -> Iterator[Finding]:
    """`true` or `false` where the image hands it on as a value."""
    target = subject.target
    first = FIRST_WITH_FLAGS.get(target.engine) if target else None
    if target is None or first is None or target.version >= first or "neuron" in target.dialect:
        return
    for option in subject.options:
        written = option.value.strip().lower()
        if option.space != "option" or written not in ("true", "false") or takes_value(option.name):
            continue
        message = f"{target.called} passes {written} on as a value and does not start; {_since(first, target.engine)}"
        fix = "leave the value empty" if written == "true" else "leave it out"
        yield finding(subject, "SEA318", option.entry, message, fix)


def _since(first: Version, engine: EngineName) -> str:
    return f"images read it as a flag since {version_text(engine, first)}"


@rule("SEA316")
def unread_model_name(subject: Subject) -> Iterator[Finding]:
    """A model that the start script does not read under this name."""
    target, written = (
        subject.target,
        next((option for option in subject.options if option.entry.key == "HF_MODEL_ID"), None),
    )
    key = _MODEL.get(target.engine) if target else None
    if target is None or key is None or written is None or "neuron" in target.dialect or subject.text_of(key):
        return
    if target.engine == "vllm" and target.version >= FIRST_WITH_FLAGS["vllm"]:
        return
    message = f"{target.called} does not read HF_MODEL_ID and loads another model or none"
    yield finding(subject, "SEA316", written.entry, message, f"write {key}")


@rule("SEA318")
def several_adapters(subject: Subject) -> Iterator[Finding]:
    """Several adapters in one text."""
    target, option = subject.target, subject.option("lora_modules", "option")
    if target is None or target.engine != "vllm" or option is None or target.version >= FIRST_WITH_LISTS:
        return
    text = option.value.strip()
    several = (
        text.startswith("[") or (text.count("=") > 1 and not text.startswith("{")) or text.count("}") > text.count("{")
    )
    if several or (text.startswith("{") and "}" in text[:-1] and "{" in text[1:]):
        message = f"{target.called} passes the whole text on as one adapter and does not start"
        newest = version_text("vllm", FIRST_WITH_LISTS)
        yield finding(
            subject, "SEA318", option.entry, message, f'write one adapter, {{"name": …, "path": …}}, or use {newest}'
        )
