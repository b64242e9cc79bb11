"""Values out of the range that the engine takes, limits that constrain each other, and limits of the service."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.engine_versions import within
from seatrial_base.catalog.rows import CatalogTable
from seatrial_base.findings import Edit
from seatrial_lint.engines.properties import env_problems
from seatrial_lint.lint.rules import finding, rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial_base.catalog.engine_versions import Version
    from seatrial_base.findings import Finding
    from seatrial_lint.lint.names import NamedOption
    from seatrial_lint.lint.subject import NeutralField, Subject
    from seatrial_lint.lint.target import TargetContainer

# TGI 2.4 brought prefill chunking; before it a prompt must fit one prefill.
LAST_WITHOUT_CHUNKS = "2.3"


@dataclass(frozen=True, slots=True)
class Range:
    """What a number may be.

    Attributes:
        dialects: Those that refuse another.
        names: Options, without prefix.
        least: Smallest value that is taken; `None` for no end.
        most: Largest value; `None` for no end.
        above: The value that is not taken any more below `least`: the range is open there.
        but: Single values that are taken beside the range.
        values: The only values that are taken; empty for a range.
        since: First version; `None` for every.
        until: Last version, a prefix.
    """

    dialects: tuple[str, ...]
    names: tuple[str, ...]
    source: str
    date: str
    least: float | None = None
    most: float | None = None
    above: float | None = None
    but: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    since: str | None = None
    until: str | None = None

    def takes(self, number: float) -> bool:
        """Say whether a number is taken."""
        if number in self.but or number in self.values:
            return True
        low = (self.least is not None and number < self.least) or (self.above is not None and number <= self.above)
        return not (self.values or low or (self.most is not None and number > self.most))

    @property
    def shown(self) -> str:
        """The range for people."""
        if self.values:
            return ", ".join(f"{value:g}" for value in self.values)
        low = f"{self.least:g} or more" if self.least is not None else f"above {self.above:g}"
        both = f"{low}, at most {self.most:g}" if self.most is not None else low
        return f"{both}, or {', '.join(f'{value:g}' for value in self.but)}" if self.but else both


RANGES: Final = CatalogTable(Range, "engine_options.json#ranges", key="names")


@rule("SEA318")
def out_of_range(subject: Subject) -> Iterator[Finding]:
    """A number that the engine refuses."""
    target = subject.target
    for option in subject.options if target else ():
        row = _broken_range(target, option) if target and option.space != "server" else None
        if target and row:
            message = f"{option.value.strip()} is out of range: {target.called} does not start with it"
            yield finding(subject, "SEA318", option.entry, message, f"valid: {row.shown}")


def _broken_range(target: TargetContainer, option: NamedOption) -> Range | None:
    """Return the first range of a target that an option's number is outside of."""
    number = _number(option)
    held = (
        row
        for row in RANGES.having(option.name)
        if target.dialect in row.dialects and within(target.version, row.since, row.until)
    )
    return None if number is None else next((row for row in held if not row.takes(number)), None)


def _number(option: NamedOption) -> float | None:
    try:
        number = float(option.value.strip())
    except ValueError:
        return None
    return number if abs(number) < 1e15 else None  # noqa: PLR2004 (longer digits are no setting)


@rule("SEA322")
def tgi_token_limits(subject: Subject) -> Iterator[Finding]:
    """TGI's token limits. Prompt < total <= batch total; prefill <= batch total; prompt <= prefill."""
    target = subject.target
    if target is None or target.engine != "tgi":
        return
    prompt, total = _limit(subject, "max_input_len"), _limit(subject, "max_model_len")
    prefill, batch = _limit(subject, "max_num_batched_tokens"), _limit(subject, "max_batch_total_tokens")
    yield from _beyond_defaults(subject, prompt, total, prefill)
    orders = [
        (prompt, "not below", total, operator.ge, "at most", -1),
        (total, "above", batch, operator.gt, "at most", 0),
        (prefill, "above", batch, operator.gt, "at most", 0),
    ]
    if within(target.version, "0", LAST_WITHOUT_CHUNKS):
        orders.append((prefill, "below", prompt, operator.lt, "at least", 0))
    for limit, relation, other, is_broken, bound, margin in orders:
        if limit and other and is_broken(limit[1], other[1]):
            entry, beside = limit[0].option.entry, other[0].option.entry
            message = f"{entry.key}={limit[1]} is {relation} {beside.key}={other[1]}, and TGI does not start"
            yield finding(subject, "SEA322", entry, message, f"write {bound} {other[1] + margin}")
    for name in ("MAX_BATCH_SIZE", "VALIDATION_WORKERS"):
        option = subject.option(name)
        if option and option.value.strip() == "0":
            yield finding(subject, "SEA322", option.entry, f"{name} must be above 0, or TGI does not start", "write 1")


# huggingface/text-generation-inference v0.9.3 to v1.4.5 launcher/src/main.rs: defaults before TGI 2.0 read the model's.
LAST_WITH_FIXED_DEFAULTS = "1"
DEFAULT_PROMPT, DEFAULT_TOTAL, DEFAULT_PREFILL = 1024, 2048, 4096
# TGI 2.0 to 2.4: min(max_position_embeddings, 4096).
LARGEST_DEFAULT_TOTAL, LAST_WITH_LARGEST = 4096, "2"


@dataclass(frozen=True, slots=True)
class _DefaultLimit:
    """A limit that is written, one that is absent with its name and default, and when the first exceeds it."""

    written: str
    absent: str
    name: str
    default: int
    exceeds: Callable[[int, int], bool]


_LARGEST_DEFAULTS = (_DefaultLimit("prompt", "total", "MAX_TOTAL_TOKENS", LARGEST_DEFAULT_TOTAL, operator.ge),)
_FIXED_DEFAULTS = (
    _DefaultLimit("prompt", "total", "MAX_TOTAL_TOKENS", DEFAULT_TOTAL, operator.ge),
    _DefaultLimit("total", "prompt", "MAX_INPUT_LENGTH", DEFAULT_PROMPT, operator.le),
    _DefaultLimit("prompt", "prefill", "MAX_BATCH_PREFILL_TOKENS", DEFAULT_PREFILL, operator.gt),
    _DefaultLimit("prefill", "prompt", "MAX_INPUT_LENGTH", DEFAULT_PROMPT, operator.lt),
)


def _beyond_defaults(
    subject: Subject, prompt: _Limit | None, total: _Limit | None, prefill: _Limit | None
) -> Iterator[Finding]:
    """Yield limits that exceed the default of one that is not written."""
    version = subject.target.version if subject.target else (0,)
    limits = {"prompt": prompt, "total": total, "prefill": prefill}
    for row in _defaults_of(version):
        limit = limits[row.written]
        if limit and not limits[row.absent] and row.exceeds(limit[1], row.default):
            yield _beyond(subject, limit, row.name, row.default)


def _defaults_of(version: Version) -> tuple[_DefaultLimit, ...]:
    if within(version, "2.0", LAST_WITH_LARGEST):
        return _LARGEST_DEFAULTS
    return _FIXED_DEFAULTS if within(version, "0", LAST_WITH_FIXED_DEFAULTS) else ()


def _beyond(subject: Subject, this: _Limit, other: str, default: int) -> Finding:
    entry = this[0].option.entry
    called = subject.target.called if subject.target else "TGI"
    message = f"{entry.key}={this[1]} does not fit {other}, which is {default} when left out: {called} does not start"
    return finding(subject, "SEA322", entry, message, f"write {other} beside it")


_Limit = tuple["NeutralField", int]


def _limit(subject: Subject, field: str) -> _Limit | None:
    neutral = subject.fields.get(field)
    return (neutral, neutral.number) if neutral and neutral.number is not None else None


@rule("SEA302", handler="any")
def unquoted_values(subject: Subject) -> Iterator[Finding]:
    """A number or true without quotes in the Environment of SageMaker's API, which takes texts only."""
    if subject.source.kind != "model definition" or not subject.source.is_fixable:
        return
    for entry in subject.source.entries:
        start, end = entry.value_span
        if start < end and subject.source.text[start] != '"':
            message = f"{entry.value} is not a text: the API refuses the request"
            quoted = Edit(start, end, f'"{subject.source.text[start:end]}"')
            yield finding(subject, "SEA302", entry, message, "put it in quotes", quoted)


@rule("SEA302", handler="any")
def service(subject: Subject) -> Iterator[Finding]:
    """The service's limits on a container's environment."""
    entries = {entry.key: entry for entry in subject.source.entries if entry.form == "env"}
    by_start = {key[:40]: entry for key, entry in entries.items()}
    for problem in env_problems({key: entry.value for key, entry in entries.items()}, subject.source.file):
        hint = problem.hint or "remove variables, or move options to serving.properties"
        yield finding(subject, "SEA302", by_start.get(problem.field), problem.message, hint)
