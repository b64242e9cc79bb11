"""Reads the table of `seatrial predict`: a deployment under a load each row, and what is wrong with a row."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal, get_args

from seatrial.documents.plan import UNPREDICTED
from seatrial.planner.predict.memory import memory_bound, with_options
from seatrial.planner.tables import options, published_names
from seatrial_base.catalog.engine_options import effect_of, refusing_range
from seatrial_base.catalog.engines import Family, find_engine
from seatrial_base.catalog.images import resolve_image
from seatrial_base.catalog.jumpstart import HOME
from seatrial_base.catalog.models import nearest_models, resolve_model, sister_model, unsupported_format
from seatrial_base.errors import SpecError
from seatrial_base.field_facts import made_of
from seatrial_base.findings import Finding, Place
from seatrial_base.printer import MOST_LISTED
from seatrial_base.units import as_number
from seatrial_load.documents.request import Start

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seatrial.planner.predict.copy_model import Speculation
    from seatrial.planner.tables.published_names import KvPrecision, NamedEngine, PublishedInstance
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.engines import Engine
    from seatrial_base.catalog.instances import Instance

# Column, default, least, most: what is absurd is refused, so that a row takes milliseconds and a typing error is
# reported.
COUNTS: dict[str, tuple[int | None, int, int]] = {
    "tp_degree": (0, 1, 64),
    "accelerators": (0, 1, 4_096),
    "instance_count": (1, 1, 1_000),
    "input_tokens": (None, 1, 1_000_000),
    "output_tokens": (None, 1, 100_000),
    "concurrency": (None, 1, 4_096),
    "copies_per_instance": (1, 1, 64),
    "max_num_seqs": (0, 1, 100_000),
    "batch_size": (1, 1, 4_096),
    "max_batch_delay_ms": (100, 0, 60_000),
    "moe_ep": (1, 1, 4_096),
    "attention_dp": (1, 1, 4_096),
}
_MEANS = ("input_tokens", "output_tokens")  # a published length is often the mean of many requests: 1581.3
_BATCHING = ("continuous", "dynamic")
Load = Literal["published", "steady", "saturated"]
_NO_CONCURRENCY = ("", "inf", "infinity", "unlimited", "max")
MOST_COLUMNS = 1_000
MOST_CHARACTERS = 1_000
"""Of a cell: the longest name of a model has 193."""
REQUIRED = ("model", "instance_type", "input_tokens", "output_tokens", "concurrency")
RATE = "rate_per_s"
_MOST_PER_S = 100_000.0
_STARTS: tuple[Start, ...] = get_args(Start)
DEFAULT_ENGINE = "lmi"  # the planner's first choice, in the version that it takes
_READ_APART = {"tp_degree", "concurrency", *options.SPELLINGS}
# Columns that are read, or that change nothing here, though an option of an engine is named so.
_READ = frozenset(
    {*COUNTS, *REQUIRED, *options.COLUMNS, *(name for names in options.SPELLINGS.values() for name in names)}
    | {"engine", "precision", "quantization", "batching", "start", "model_id", "dtype", "max_model_len"}
)


class Cells:
    """One row's cells on the way to numbers; what is wrong gathers in `problems`."""

    def __init__(self, cells: Mapping[str, str], where: str, models: _NearestModels) -> None:
        self._cells, self._where, self._models = {**cells}, where, models
        self.problems: list[Finding] = []
        self.notes: list[str] = []

    def count(self, name: str) -> int:
        """Return a whole number; the default where the cell is left out, and 0 where it is wrong."""
        default, least, most = COUNTS[name]
        text = self._text(name)
        if not text and (default is not None or name not in self._cells):
            return default or 0
        if not text:
            return self._wrong(name, "SEA222", "the cell is empty", f"write a whole number from {least:,} to {most:,}")
        number = as_number(text)
        if number is None or not (number.is_integer() or (name in _MEANS and math.isfinite(number))):
            return self._wrong(name, "SEA222", f"{_quoted(text)} is not a whole number")
        if not least <= number <= most:
            return self._wrong(name, "SEA222", f"{_quoted(text)} is not between {least:,} and {most:,}")
        return round(number)

    def concurrency(self, load: Load) -> int:
        """Return the requests in flight; under a saturated load, which has as many as run at once, 0."""
        if load == "saturated":
            return 0
        text = self._text("concurrency").lower()
        if self._text(RATE):
            return self._wrong(RATE, "SEA222", "the row has a concurrency, too", "write one of them") if text else 0
        if RATE in self._cells and "concurrency" not in self._cells:
            return self._wrong(RATE, "SEA222", "the cell is empty", "write requests per second")
        if text in _NO_CONCURRENCY and "concurrency" in self._cells:
            message = f"{_quoted(text)} is not a whole number" if text else "the cell is empty"
            hint = "`--load saturated` predicts the throughput with all requests queued at once"
            return self._wrong("concurrency", "SEA222", message, hint)
        return self.count("concurrency")

    def rate_per_s(self, load: Load) -> float:
        """Return the requests per second that arrive at random on the endpoint; 0 where the row has none."""
        text = self._text(RATE) if load != "saturated" else ""
        rate = as_number(text) if text else 0.0
        if rate is None or (text and not 0 < rate <= _MOST_PER_S):
            self._wrong(RATE, "SEA222", f"{_quoted(text)} is not a rate above 0, up to {_MOST_PER_S:,.0f}")
            return 0.0
        return rate

    def start(self) -> Start | None:
        """Return how clients begin, where the row says so."""
        text = self._text("start").lower()
        start = next((each for each in _STARTS if each == text), None)
        if text and start is None:
            self._wrong("start", "SEA222", f"{_quoted(text)} is not one of {', '.join(_STARTS)}")
        elif start and self._text(RATE):
            self._wrong("start", "SEA222", "requests that arrive at a rate have no start", "leave it empty")
        return start

    def prefix_hit_rate(self) -> float:
        """Return the share of the prompt tokens that the engine finds in its prefix cache; 0 where it is left out."""
        text = self._text("prefix_hit_rate")
        share = as_number(text) if text else 0.0
        if share is None or not 0 <= share < 1:
            self._wrong("prefix_hit_rate", "SEA222", f"{_quoted(text)} is not a share from 0 to below 1")
            return 0.0
        return share

    def batching(self) -> Literal["continuous", "dynamic"]:
        """Return how requests are batched."""
        text = self._text("batching").lower()
        if text and text not in _BATCHING:
            self._wrong("batching", "SEA222", f"{_quoted(text)} is not one of {', '.join(_BATCHING)}")
        return "dynamic" if text == "dynamic" else "continuous"

    def model(self) -> tuple[Architecture, str | None] | None:
        """Return the model, and the quantization of its checkpoint."""
        name = self._named("model")
        resolved = _model(name) if name else None
        if name and resolved is None and (resolved := _sister(name)) is not None:
            self.notes.append(f"{_quoted(name)} is taken as {resolved[0].id}")
        if name and resolved is None:
            near, weights = self._models.like(name), unsupported_format(name)
            if weights is not None:
                self._wrong("model", "SEA223", f"{weights} weights can't be predicted")
                return None
            hint = (
                f"similar in the catalog: {near}"
                if near
                else "write a hub id of the catalog, or a name as `Llama 2 7B`"
            )
            self._wrong("model", "SEA223", f"the architecture of {_quoted(name)} is unknown", hint)
        return resolved

    def known_precisions(self) -> list[str]:
        """Return the columns that name a precision; one that names another thing is a problem, whatever the model."""
        written = [name for name in ("precision", "quantization") if self._text(name)]
        for name in written:
            within = published_names.precision_within(self._text(name))
            if within is not None and not published_names.is_precision(self._text(name)):
                self.notes.append(f"{_quoted(self._text(name))} is taken as {within}")
                self._cells[name] = within
        known = [name for name in written if published_names.is_precision(self._text(name))]
        for name in written:
            if name not in known:
                allowed = ", ".join(published_names.PRECISIONS_SHOWN)
                self._wrong(name, "SEA222", f"{_quoted(self._text(name))} is not one of {allowed}")
        return known

    def quantization(self, architecture: Architecture, checkpoint: str | None) -> str | None:
        """Return how the weights are stored: what `precision` or `quantization` say, or what the checkpoint has."""
        known = self.known_precisions()
        stored_as = [published_names.read_precision(self._text(name), architecture, checkpoint) for name in known]
        if len(set(stored_as)) > 1:
            both = " and ".join(_quoted(self._text(name)) for name in known)
            self._wrong("precision", "SEA222", f"precision and quantization contradict each other: {both}")
        stored = stored_as[0] if stored_as else checkpoint
        if published_names.is_for_experts_alone(stored) and not architecture.expert_params:
            self._wrong("precision", "SEA223", f"{stored} is known for experts only, and {architecture.id} has none")
        return stored

    def kv_precision(self, engine: NamedEngine, quantization: str | None) -> KvPrecision:
        """Return how the KV cache is stored."""
        text = self._text("kv_precision")
        precision = published_names.read_kv_precision(text, engine.facts.family, quantization)
        if precision is None:
            self._wrong("kv_precision", "SEA222", f"{_quoted(text)} is not one of auto, bf16, fp16, fp8")
        return precision or "16bit"

    def engine(self, default: NamedEngine) -> NamedEngine:
        """Return the engine; a row without one has the default."""
        name, version = self._text("engine"), self._text("engine_version")
        named = published_names.read_engine_name(name) if name else (default.facts.family, default.version)
        if named is None and (named := published_names.engine_within(name)) is not None:
            self.notes.append(f"{_quoted(name)} is taken as {named[0]}")
        if named is None:
            hint = f"families: {', '.join(get_args(Family))}"
            self._wrong("engine", "SEA223", f"the engine {_quoted(name)} is unknown", hint)
            return default
        written = version or named[1]
        engine = published_names.read_engine_version(named[0], written)
        if engine is None or published_names.is_tag(written):
            self.notes.append(f"{_quoted(written)} names no release: it is taken as the newest {named[0]}")
        return engine or published_names.newest_engine(named[0])

    def engine_on(self, place: PublishedInstance | None, named: NamedEngine) -> NamedEngine:
        """Return the engine of a place: on AWS Neuron its own, which compiles shapes, whatever the row calls it."""
        if place is None or named.facts.compiled_shapes == place.on_neuron:
            return named
        if place.on_neuron:
            newest = published_names.NEWEST
            return published_names.NamedEngine(find_engine("neuron", newest), newest)
        self._wrong("engine", "SEA223", "the engine neuron needs AWS Neuron", "name an instance type as ml.inf2.xlarge")
        return named

    def place(self) -> PublishedInstance | None:
        """Return the instance type, or those that have the accelerator."""
        name = self._named("instance_type")
        places = published_names.read_place(name) if name else ()
        if name and not places:
            near = published_names.places_like(name)
            hint = f"similar in the catalog: {near}" if near else "write a SageMaker instance type, as `ml.g5.2xlarge`"
            self._wrong("instance_type", "SEA223", f"{_quoted(name)} is not in the catalog", hint)
        elif len(places) > 1:
            names = " or ".join(str(each.accelerator) for each in places)
            self._wrong("instance_type", "SEA223", f"{_quoted(name)} may be {names}", "write which one")
        return places[0] if len(places) == 1 else None

    def degree(self, place: PublishedInstance | None, accelerators: int) -> int:
        """Return the tensor parallel degree; it may be left out where there is one accelerator."""
        degree, wrong = self.count("tp_degree"), len(self.problems)
        if self._text("tp_degree"):
            return degree
        has = accelerators or (1 if place is None else place.count)
        if has > 1 and wrong == len(self.problems):
            hint = "it may be left out where there is one accelerator"
            self._wrong("tp_degree", "SEA222", f"the cell is empty, and there are {has} accelerators", hint)
        return 1

    def groups(self, name: options.Column) -> int:
        """Return how many groups of accelerators share experts, or attend each to sequences of its own."""
        written = {each: text for each in options.SPELLINGS[name] if (text := self._text(each))}
        numbers = {each: options.read_groups(text) for each, text in written.items()}
        for each, number in numbers.items():
            if number is None:
                self._wrong(each, "SEA222", f"{_quoted(written[each])} is neither a whole number nor true or false")
        if len({*numbers.values()} - {None, options.EVERY}) > 1:
            cells = " and ".join(f"{each} {text}" for each, text in written.items())
            self._wrong(name, "SEA222", f"{cells} contradict each other")
        return max((number for number in numbers.values() if number is not None), default=1)

    def options_of(self, engine: NamedEngine) -> Engine:
        """Return the engine with the columns that bound its KV cache; what else changes its speed is noted."""
        left_out = list[str]()
        for name, cell in self._cells.items():
            text, effect = cell.strip(), effect_of(name)
            if not text or effect is None or name in _READ:
                continue
            if refusing := refusing_range(name, text):
                self._wrong(name, "SEA222", f"{_quoted(text)} is out of range", f"valid: {refusing.shown}")
            counts = memory_bound(engine.facts, name, text) or effect.how == "neutral" or text.lower() in effect.assumed
            left_out += [] if counts else [name]
        if left_out:
            self.notes.append(f"{UNPREDICTED[0].lower()}{UNPREDICTED[1:]}{', '.join(left_out)}")
        return with_options(engine.facts, self._cells)

    def parallelism(
        self,
        place: PublishedInstance | None,
        architecture: Architecture | None,
        degree: int,
        copies: int,
        accelerators: int,
    ) -> options.Parallelism:
        """Return how a copy is spread over its accelerators; what the row names otherwise is noted."""
        moe_ep, attention_dp = self.groups("moe_ep"), self.groups("attention_dp")
        if place is None or architecture is None:
            return options.Parallelism(degree)
        if place.on_neuron:
            if (moe_ep, attention_dp) != (1, 1):
                self.notes.append("moe_ep and attention_dp are left out: on AWS Neuron they are not modelled")
            return options.Parallelism(degree)
        largest = max(each.accelerator_count for each in place.candidates)
        arranged = options.arrange(
            architecture,
            degree,
            moe_ep=moe_ep,
            attention_dp=attention_dp,
            accelerators=accelerators,
            most=min(accelerators or largest, largest) // max(1, copies),
        )
        self.notes += arranged.notes
        return arranged

    def instance(self, place: PublishedInstance, degree: int, copies: int, accelerators: int) -> Instance | None:
        """Return an instance type with accelerators enough whose speed is known.

        Args:
            accelerators: Accelerators that the row counts, over all instances perhaps; 0 where it doesn't.
        """
        largest, need = max(place.candidates, key=lambda each: each.accelerator_count), degree * max(1, copies)
        if accelerators and degree > accelerators:
            self._wrong("tp_degree", "SEA224", f"{degree} accelerators are needed, but the row counts {accelerators}")
            return None
        smallest = place.smallest(max(need, min(accelerators, largest.accelerator_count)))
        if smallest is None:
            what = f"{degree}" if copies <= 1 else f"{copies} copies of {degree}"
            has = f"{largest.instance_type} has {largest.accelerator_count}"
            self._wrong("tp_degree", "SEA224", f"{what} accelerators are needed, but {has}")
            return None
        if smallest.flops_16bit is None or smallest.memory_bandwidth_bytes_s is None:
            message = f"FLOPS and memory bandwidth of the {smallest.accelerator} are unknown"
            self._wrong("instance_type", "SEA223", message)
        return smallest

    def _text(self, name: str) -> str:
        return self._cells.get(name, "").strip()

    def _named(self, name: str) -> str:
        text = self._text(name)
        if not text and name in self._cells:
            self._wrong(name, "SEA222", "the cell is empty")
        return text

    def _wrong(self, name: str, rule: str, message: str, hint: str = "") -> int:
        self.problems.append(Finding(rule, Place.at(self._where, name), message, hint))
        return 0


@cache
def _model(name: str) -> tuple[Architecture, str | None] | None:
    return resolve_model(name)


@cache
def _sister(name: str) -> tuple[Architecture, str | None] | None:
    return None if unsupported_format(name) is not None else sister_model(name)


class _NearestModels:
    """Models of the catalog that are written like others; only the first hundred names of a table get some."""

    def __init__(self) -> None:
        self._similar: dict[str, str] = {}

    def like(self, name: str) -> str:
        if name not in self._similar and len(self._similar) < MOST_LISTED:
            self._similar[name] = ", ".join(nearest_models(name))
        return self._similar.get(name, "")


def _quoted(text: str) -> str:
    shown = text if len(text) <= 40 else f"{text[:39]}…"  # noqa: PLR2004 (a message stays on its line)
    return f"{shown!r}"


@dataclass(frozen=True, slots=True)
class RowSpec:
    """What one row asks: a deployment and its load.

    Attributes:
        engine_version: Its version, `NEWEST` where the row leaves it open.
        concurrency: Requests in flight on the endpoint; 0 for as many as run at once, and where they arrive at a rate.
        rate_per_s: Requests that arrive at random on the endpoint each second; 0 for a closed loop.
        start: How the clients of a closed loop begin; `None` for that of `--load`.
        max_num_seqs: Sequences that the engine batches at most; 0 for its default.
        batching: `dynamic` waits for a batch and keeps it until its longest request ends.
        batch_size: Requests of a dynamic batch at most.
        max_batch_delay_ms: How long the first request of a dynamic batch waits for others.
        kv_precision: How the KV cache is stored.
        assumed_hits: The share is an assumption: the row names a prefix cache and no share.
        guessed: What was taken for another thing than what the row names: a sister model, a release for a tag.
    """

    architecture: Architecture
    engine: Engine
    engine_version: str
    instance: Instance
    degree: int
    instance_count: int
    copies_per_instance: int
    input_tokens: int
    output_tokens: int
    concurrency: int
    max_num_seqs: int
    batching: Literal["continuous", "dynamic"]
    batch_size: int
    max_batch_delay_ms: int
    quantization: str | None
    rate_per_s: float = 0.0
    start: Start | None = None
    kv_precision: KvPrecision = "16bit"
    prefix_hit_rate: float = 0.0
    assumed_hits: bool = False
    speculation: Speculation | None = None
    expert_parallel_degree: int = 1
    attention_data_parallel_degree: int = 1
    guessed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CsvRow:
    """One row: its cells as they were written, and what they ask.

    Attributes:
        cells: By column; cells beyond the header are left out.
        spec: What the row asks; `None` where something is wrong with it.
        optimization: What its optimizations were read as; empty for a plain row.
    """

    cells: Mapping[str, str]
    spec: RowSpec | None
    problems: tuple[Finding, ...] = ()
    optimization: str = ""


def read_rows(
    content: bytes, where: str, *, engine: NamedEngine | None = None, load: Load = "published"
) -> tuple[tuple[str, ...], list[CsvRow]]:
    """Read a CSV table; return its columns and its rows, both in their order.

    Args:
        engine: The engine of rows that name none; `DEFAULT_ENGINE` by default.
        load: How requests are sent; a saturated load needs no concurrency.

    Raises:
        SpecError: SEA220 when it is no table, SEA221 when a column is missing or duplicated. What is wrong with a row
            stays with the row.
    """
    required = tuple(name for name in REQUIRED if load != "saturated" or name != "concurrency")
    records = _records(content, where)
    if not records:
        raise SpecError.of(
            "SEA220", "the table is empty", hint=f"give a header with {', '.join(required)}", where=where
        )
    (line, head), *body = records
    columns = tuple(name.strip() for name in head)
    if RATE in columns:
        required = tuple(name for name in required if name != "concurrency")
    problems = _head_problems(columns, required, f"{where}:{line}")
    if problems:
        raise SpecError(problems)
    default = engine or read_engine(DEFAULT_ENGINE)
    models = _NearestModels()
    return columns, [_read(columns, values, f"{where}:{number}", default, load, models) for number, values in body]


def refuse_problems(rows: Iterable[CsvRow]) -> None:
    """Refuse a table in which something is wrong with a row.

    Raises:
        SpecError: SEA222 to SEA224, every problem with its line and column.
    """
    problems = [problem for row in rows for problem in row.problems]
    if problems:
        raise SpecError(problems)


def read_engine(text: str) -> NamedEngine:
    """Read an engine with its version, as `tgi-1.1`; `DEFAULT_ENGINE` has none.

    Raises:
        SpecError: SEA223 when there is no such engine, or no version is written.
    """
    named = published_names.read_engine_name(text)
    if text == DEFAULT_ENGINE:
        planned = resolve_image("lmi", None, HOME).build.version
        return published_names.NamedEngine(find_engine("lmi", planned), planned)
    engine = published_names.read_engine_version(*named) if named and named[1] else None
    if engine is not None:
        return engine
    hint = f"write family and version, as `tgi-1.1` or `lmi-15`; families: {', '.join(get_args(Family))}"
    raise SpecError.of("SEA223", f"the engine {text!r} is unknown", hint=hint, where="--engine")


def _records(content: bytes, where: str) -> list[tuple[int, list[str]]]:
    """Return the records of a CSV text, blank ones left out, each with the line on which it starts."""
    records, line = [], 1
    try:
        reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        for values in reader:
            if any(value.strip() for value in values):
                records.append((line, values))
            line = reader.line_num + 1
    except UnicodeDecodeError as error:
        raise SpecError.of(
            "SEA220", f"the table is not UTF-8: {error.reason} at byte {error.start}", where=where
        ) from None
    except csv.Error as error:
        raise SpecError.of("SEA220", f"the table is not CSV: {error}", where=f"{where}:{line}") from None
    return records


def _head_problems(columns: tuple[str, ...], required: tuple[str, ...], where: str) -> list[Finding]:
    if len(columns) > MOST_COLUMNS:
        message = f"the table has {len(columns):,} columns, and at most {MOST_COLUMNS:,} are read"
        return [
            Finding("SEA220", Place.at(where), message, f"keep {', '.join(required)} and what you need beside them")
        ]
    missing = [
        Finding("SEA221", Place.at(where, name), "the column is missing", f"the table needs {', '.join(required)}")
        for name in required
        if name not in columns
    ]
    twice = sorted(name for name, count in Counter(columns).items() if count > 1)
    return missing + [Finding("SEA221", Place.at(where, name), "duplicate column") for name in twice]


def _rank(problem: Finding) -> int:
    """Order the problems of a row: numbers first, as they are documented, then words and names."""
    named = ("engine", "engine_version", "model", "instance_type")
    return list(COUNTS).index(problem.field) if problem.field in COUNTS else len(COUNTS) + (problem.field in named)


def _size_problems(cells: Mapping[str, str], columns: int, fields: int, where: str) -> tuple[Finding, ...]:
    if fields != columns:
        message = f"the row has {fields} fields, the header {columns}"
        return (Finding("SEA222", Place.at(where), message, "quote a field that holds a comma"),)
    message, hint = f"the cell has more than {MOST_CHARACTERS:,} characters", "shorten it"
    long = [name for name, cell in cells.items() if len(cell) > MOST_CHARACTERS]
    return tuple(Finding("SEA222", Place.at(where, name), message, hint) for name in long)


def _read(  # noqa: PLR0917 (of one row, and of the table)
    columns: tuple[str, ...], values: list[str], where: str, default: NamedEngine, load: Load, models: _NearestModels
) -> CsvRow:
    """Read one record."""
    cells = dict(zip_longest(columns, values[: len(columns)], fillvalue=""))
    if problems := _size_problems(cells, len(columns), len(values), where):
        return CsvRow(cells, None, problems)
    read = Cells(cells, where, models)
    place = read.place()
    counts = {name: read.count(name) for name in COUNTS if name not in _READ_APART}
    accelerators = counts.pop("accelerators")
    degree, concurrency = read.degree(place, accelerators), read.concurrency(load)
    rate_per_s, start = read.rate_per_s(load), read.start()
    engine, model, batching = read.engine_on(place, read.engine(default)), read.model(), read.batching()
    if model is None:
        read.known_precisions()
    quantization = read.quantization(*model) if model else None
    kv_precision = read.kv_precision(engine, quantization)
    copies, prefix_hit_rate = counts["copies_per_instance"], read.prefix_hit_rate()
    facts = read.options_of(engine)
    form = read.parallelism(place, model[0] if model else None, degree, copies, accelerators)
    copies *= form.copies
    instance = read.instance(place, form.degree, copies, accelerators) if place else None
    if read.problems or model is None or instance is None:
        return CsvRow(cells, None, tuple(sorted(read.problems, key=_rank)))
    spec = made_of(
        RowSpec,
        form,
        architecture=replace(model[0], checkpoint_quantization=quantization),
        engine=facts,
        engine_version=engine.version,
        instance=instance,
        concurrency=concurrency,
        rate_per_s=rate_per_s,
        start=start,
        batching=batching,
        quantization=quantization,
        kv_precision=kv_precision,
        prefix_hit_rate=prefix_hit_rate,
        guessed=tuple(read.notes),
        **counts | {"copies_per_instance": copies},
    )
    return _optimized(cells, spec)


def _optimized(cells: Mapping[str, str], spec: RowSpec) -> CsvRow:
    """Return a row with what its column `optimization` changes; without the column, as it is."""
    text = options.cell_of(cells)
    if text is None:
        return CsvRow(cells, spec)
    precision = "".join(cells.get(name, "").strip() for name in ("precision", "quantization"))
    read = options.read_optimization(text, precision=precision, compiled_shapes=spec.engine.compiled_shapes)
    if read.weights is not None:
        shape = replace(spec.architecture, checkpoint_quantization=read.weights)
        spec = replace(spec, architecture=shape, quantization=read.weights)
    assumed = read.prefix_cache and not cells.get("prefix_hit_rate", "").strip()
    speculation = None if read.method is None else options.usual_speculation(read.method, spec.architecture, read.draft)
    changed = replace(
        spec,
        speculation=speculation,
        prefix_hit_rate=options.USUAL_HIT_RATE if assumed else spec.prefix_hit_rate,
        assumed_hits=assumed,
        kv_precision="fp8" if read.kv_fp8 else spec.kv_precision,
    )
    assumptions = options.describe_assumptions(read, changed.speculation, changed.prefix_hit_rate, assumed_hits=assumed)
    return CsvRow(cells, changed, (), assumptions)
