"""Writes one engine's configuration as another's: what both can say is kept, and what can't be kept is listed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from seatrial_base.catalog.engine_options import find_spellings
from seatrial_base.catalog.engine_versions import DIALECT_NAMES, existing_dialects, version_text, within
from seatrial_base.errors import RenderError
from seatrial_base.secrets import redacted
from seatrial_lint.engines.config import flatten, neutral_text, unflatten
from seatrial_lint.engines.neutral import PROPERTIES_FILE, render_config
from seatrial_lint.engines.parse import parse
from seatrial_lint.engines.properties import escape_key, escape_property, write_env
from seatrial_lint.lint.checks.traps import FIRST_WITH_FLAGS
from seatrial_lint.lint.checks.values import DEFAULT_PROMPT, LAST_WITH_FIXED_DEFAULTS
from seatrial_lint.lint.known import carries, judge
from seatrial_lint.lint.lint import Given, lint_sources
from seatrial_lint.lint.read import read_content
from seatrial_lint.lint.redaction import secret_in
from seatrial_lint.lint.target import guess, handler_of, newest_build, read_options
from seatrial_lint.weights import MOUNT, hub_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seatrial_base.catalog.engine_options import SpellingTable
    from seatrial_base.catalog.engine_versions import DialectName, EngineName
    from seatrial_base.catalog.instances import Instance
    from seatrial_lint.engines.config import ServingConfig
    from seatrial_lint.engines.neutral import Form, Rendered
    from seatrial_lint.engines.parse import Parsed
    from seatrial_lint.lint.source import ConfigSource, SourceEntry
    from seatrial_lint.lint.target import TargetContainer


DEGREE = "tensor_parallel_degree"
_EMBEDDINGS = ("text-embedding", "text_embedding", "feature-extraction", "sentence-similarity", "text-similarity")
_COMPILED = ("trtllm", "trt-llm", "trt_llm", "tensorrt", "compiled", "/engines")
_VLLM = ("lmi-async", "lmi-vllm", "lmi-dist", "vllm", "vllm-neuronx")
# Read by libraries that every container has, or by the process: huggingface_hub and transformers (their documentation,
# "Environment variables"), PyTorch, NCCL, CUDA, OpenMP, the AWS SDK.
_EVERYWHERE = (
    *("HF_HOME", "HF_HUB_", "HF_ENDPOINT", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_", "TOKENIZERS_PARALLELISM"),
    *("PYTORCH_", "TORCH_", "TORCHINDUCTOR_", "NCCL_", "CUDA_", "OMP_", "AWS_", "LD_", "PYTHON"),
)
_CHOOSES = frozenset(["engine", "rolling_batch", "entrypoint", "mpi_mode", "async_mode"])
_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN")


@dataclass(frozen=True, slots=True)
class Lost:
    """What could not be kept.

    Attributes:
        key: The key as it was written; the neutral field where several keys say it.
        line: Its line; 0 when it has none.
    """

    key: str
    line: int
    because: str

    def __str__(self) -> str:
        line = f" (line {self.line})" if self.line else ""
        return redacted(f"{self.key}{line}: {self.because}")


def check_portable(source: ConfigSource, origin: TargetContainer, table: SpellingTable) -> None:
    """Refuse what no configuration of another container can mean.

    Raises:
        RenderError: SEA387 for a handler of the user's, an engine of the Java side, embeddings and compiled engines.
    """
    options = {option.name: option.value for option in read_options(origin.engine, source.entries)}
    if origin.engine == "lmi":
        written: Mapping[str, str] = {one: options[one] for one in ("engine", "entryPoint") if one in options}
        handler = handler_of(written, has_model_py="model_py" in source.facts)
        if handler == "user":
            called = written.get("entryPoint") or "model.py"
            raise _refused(f"the handler {called} reads the options, no other container runs it", "convert it by hand")
        if handler == "java":
            running = f"engine={written.get('engine', '')} runs in the model server, without one of these engines"
            raise _refused(running, "for embeddings, use the container of Text Embeddings Inference (TEI)")
    task = options.get("task", options.get("HF_TASK", ""))
    if task in _EMBEDDINGS and table.dialect.engine in ("tgi", "sglang"):
        raise _refused(f"{table.called} does not serve {task}", "use the container of Text Embeddings Inference (TEI)")
    model = options.get("model_id", options.get("HF_MODEL_ID", ""))
    # Compiled already: mounted, or called so, and not on the hub.
    is_compiled = not model or (not hub_id(model) and any(word in model.lower() for word in _COMPILED))
    if origin.dialect == "lmi-trtllm" != table.dialect.name and is_compiled:
        message = f"compiled engines of TensorRT-LLM can't be loaded by {table.called}"
        raise _refused(message, "give the checkpoint that they were compiled from as option.model_id")


def chooses_dialect(key: str) -> bool:
    """Return whether a key chooses how LMI runs its engine: another container is chosen by its image."""
    return key.lower().removeprefix("option.").removeprefix("option_") in _CHOOSES


def _refused(message: str, hint: str) -> RenderError:
    return RenderError.of("SEA387", message, hint=hint)


def adapted(
    parsed: Parsed, origin: TargetContainer, table: SpellingTable, instance: Instance | None
) -> tuple[ServingConfig, list[Lost]]:
    """Return the fields as the other container means them, and what that loses."""
    config, lost = _with_source(parsed, table)
    degree, of_degree = _degree(parsed, origin, table, instance)
    prompt, whole = config.max_input_len, config.max_model_len
    # A short sequence needs a bound in a TGI whose default prompt is longer than that.
    has_default = table.dialect.name == "tgi" and within(table.version, None, LAST_WITH_FIXED_DEFAULTS)
    if not prompt and has_default and whole and 1 < whole <= DEFAULT_PROMPT:
        prompt = whole - 1
    return config.model_copy(update={DEGREE: degree, "max_input_len": prompt}), lost + of_degree


def _with_source(parsed: Parsed, table: SpellingTable) -> tuple[ServingConfig, list[Lost]]:
    """LMI alone downloads from S3 (its `s3url` and `model_id`); the others find weights where SageMaker mounts them."""
    config, model = parsed.config, parsed.config.model_id or ""
    if not model and table.dialect.engine != "lmi":
        return config.model_copy(update={"model_id": MOUNT}), []
    if table.dialect.engine == "lmi" or not model.startswith(("s3://", "djl://")):
        return config, []
    because = f"{table.called} does not download it; mount it as ModelDataSource, it is then at {MOUNT}"
    return config.model_copy(update={"model_id": MOUNT}), [Lost(*_written(parsed, "model_id"), because)]


def _degree(
    parsed: Parsed, origin: TargetContainer, table: SpellingTable, instance: Instance | None
) -> tuple[int | None, list[Lost]]:
    """Return over how many accelerators the other container shards, so that it is the same number.

    Where none is written, LMI takes every GPU (deepjavalibrary/djl-serving, PyEnv.getTensorParallelDegree), the other
    containers take one.
    """
    degree, place = parsed.config.tensor_parallel_degree, _written(parsed, DEGREE)
    if _on_neuron(origin.dialect, parsed.config) != table.dialect.name.endswith("neuronx"):
        cores, other = ("NeuronCores", "GPUs") if _on_neuron(origin.dialect, parsed.config) else ("GPUs", "NeuronCores")
        return None, [Lost(*place, f"it counts {cores}; set the number of {other}")]
    if (
        degree is not None
        or origin.engine == table.dialect.engine
        or "lmi" not in (origin.engine, table.dialect.engine)
    ):
        return degree, []
    if table.dialect.engine == "lmi":
        return 1, []
    if instance is not None:
        return instance.accelerator_count, []
    because = f"LMI uses every GPU, {table.called} uses one GPU unless the number is set; give --instance-type"
    return None, [Lost(*place, because)]


def _on_neuron(dialect: str, config: ServingConfig) -> bool:
    return dialect.endswith("neuronx") or config.extra.get("device") == "neuron"


def _written(parsed: Parsed, field: str) -> tuple[str, int]:
    entry = next((one for one in parsed.entries if one.field == field), None)
    return (entry.key, entry.line) if entry else (field, 0)


def flag_text(text: str, origin: TargetContainer, table: SpellingTable) -> str | None:
    """Return a passed option's text as the other container takes it; `None` for what it would leave out.

    vLLM's and SGLang's containers take `true`, in older images an empty text, for a flag, and leave `false` out.
    """
    written = "true" if text == "" and origin.engine in ("vllm", "sglang") else text
    if table.dialect.engine not in ("vllm", "sglang"):
        return written
    if written.lower() == "false":
        return None
    return "" if written.lower() == "true" and table.version < FIRST_WITH_FLAGS[table.dialect.engine] else written


def process_variables(
    entries: Mapping[str, SourceEntry], origin: TargetContainer, table: SpellingTable, form: Form
) -> tuple[dict[str, str], list[Lost]]:
    """Return the variables that are none of the container's options and stay as they are, and those that can't."""
    kept: dict[str, str] = {}
    lost: list[Lost] = []
    for name, entry in entries.items():
        because = _not_passed_on(name, origin, table)
        if because is None:
            continue
        if not because and form == "properties":
            because = "a serving.properties holds no environment variable; set it in the environment"
        if because:
            lost.append(Lost(name, entry.line, because))
        else:
            kept[name] = entry.value
    return kept, lost


def _not_passed_on(name: str, origin: TargetContainer, table: SpellingTable) -> str | None:
    """Return why a variable is not passed on: empty when it is, `None` when it is an option of the container."""
    if name in _TOKENS:
        return "tokens are not copied; use Secrets Manager"
    if name.startswith("VLLM_"):
        return "" if table.dialect.name in _VLLM else "it is read by vLLM only"
    if name == "SERVING_ENGINE":
        return "the model server reads no SERVING_ENGINE: it chooses nothing"
    if name.startswith("SERVING_") and origin.engine == "lmi":
        return "" if table.dialect.engine == "lmi" else "it is read by the model server of LMI only"
    if name.startswith("SAGEMAKER_"):
        return ""
    return "" if name.startswith(_EVERYWHERE) else None


# What one field causes; any other problem ends the conversion.
_DROPPABLE = ("SEA304", "SEA308", "SEA309")
# Without these members, what is left would mean another method or kind: the whole goes.
_WHOLE = {"speculative_decoding.method": "speculative_decoding", "rope_scaling.kind": "rope_scaling"}
_SOURCE = frozenset(["model_id", "revision"])
# What is left out can make something else wrong; more than two were never seen.
_ROUNDS = 5
_NEVER_COPIED = "secrets are not copied; use Secrets Manager"


@dataclass(frozen=True, slots=True)
class Converted:
    """A configuration in another engine's spelling.

    Attributes:
        rendered: Its files, environment and notes.
        origin: What it was read as.
        called: What it is written for.
        kept: Neutral fields and options that are said again.
        lost: What could not be kept, in the order of the lines.
    """

    rendered: Rendered
    origin: TargetContainer
    called: str
    kept: tuple[str, ...]
    lost: tuple[Lost, ...]


def convert_config(
    source: ConfigSource,
    to: DialectName,
    to_version: str | None = None,
    *,
    engine: EngineName | None = None,
    version: str | None = None,
    form: Form = "env",
    instance: Instance | None = None,
) -> Converted:
    """Write a configuration for another container.

    Args:
        to_version: Its version; the newest that has this dialect by default.
        instance: What it runs on; tells how many GPUs `every GPU` is.

    Raises:
        RenderError: SEA307, SEA310 or SEA302 when no configuration of that form can be written at all, SEA387 when
            none can mean the same.
        ValueError: When nothing tells the container that it was written for.
    """
    origin = guess(source, engine, version)
    if origin is None:
        raise ValueError("the source container is unknown")
    number = to_version or ".".join(map(str, newest_build(to)))
    table = find_spellings(to, number)
    check_portable(source, origin, table)
    entries = {entry.key: entry for entry in source.entries}
    gone = [Lost(key, one.line, _NEVER_COPIED) for key, one in entries.items() if secret_in(key, one.value)]
    open_ones = _without_keys(entries, {one.key for one in gone})
    beside: dict[str, str] = {}
    if source.kind != "serving.properties":
        spellings = find_spellings(origin.dialect, ".".join(map(str, origin.version)))
        known = {key: entry for key, entry in open_ones.items() if not spellings.of_env(key)}
        beside, left = process_variables(known, origin, table, form)
        gone += left
        open_ones = _without_keys(open_ones, {*beside, *(one.key for one in left)})
    parsed = _parsed(source, origin, {key: entry.value for key, entry in open_ones.items()})
    meant, changed = adapted(parsed, origin, table, instance)
    config, foreign = _portable(parsed, meant, origin, table)
    config, dropped, rendered = _sound(config, table, number, form)
    missing = {**dropped, **_unsaid(config, rendered, table)}
    lost = [*gone, *foreign, *changed, *_where(missing, parsed)]
    placed = dict.fromkeys(replace(one, line=entries[one.key].line if one.key in entries else 0) for one in lost)
    fields = {entry.key: entry.field for entry in reversed(parsed.entries) if entry.field}
    not_kept = {*missing, *(fields.get(one.key, one.key) for one in changed)}
    names = {*_names(parsed.config)} - not_kept
    kept = (*(name for name in _names(config) if name in names), *beside)
    rendered = replace(rendered, env={**rendered.env, **beside})
    return Converted(rendered, origin, table.called, kept, tuple(sorted(placed, key=lambda one: (one.line, one.key))))


def _without_keys(entries: Mapping[str, SourceEntry], gone: set[str]) -> dict[str, SourceEntry]:
    return {key: entry for key, entry in entries.items() if key not in gone}


def default_dialect(to: str, version: str | None) -> DialectName:
    """Return the dialect that a container's name means: for LMI the newest way to run vLLM that a version has.

    Raises:
        ValueError: When the name is neither a dialect nor a container.
    """
    known: dict[str, DialectName] = {name: name for name in DIALECT_NAMES}
    if to in known:
        return known[to]
    order: tuple[DialectName, ...] = ("lmi-async", "lmi-dist", "lmi-vllm")
    if to != "lmi":
        raise ValueError(f"{to} is not a container; valid: lmi, tgi, vllm, sglang, or {', '.join(DIALECT_NAMES)}")
    existing = existing_dialects("lmi", version) if version else order
    return next((name for name in order if name in existing), "lmi-vllm")


def _parsed(source: ConfigSource, origin: TargetContainer, values: Mapping[str, str]) -> Parsed:
    version = ".".join(map(str, origin.version))
    if source.kind != "serving.properties":
        return parse(origin.dialect, version, env=values)
    text = "".join(f"{escape_key(key)}={escape_property(value)}\n" for key, value in values.items())
    return parse(origin.dialect, version, properties=text)


def _portable(
    parsed: Parsed, meant: ServingConfig, origin: TargetContainer, table: SpellingTable
) -> tuple[ServingConfig, list[Lost]]:
    """Take out what only the origin knows: keys without a meaning, and options that the other container lacks."""
    # LMI's `max` of the degree is reported with the degree.
    gone = [
        Lost(entry.key, entry.line, entry.because)
        for entry in parsed.unknown
        if (entry.field, entry.value) != (DEGREE, "max") and not chooses_dialect(entry.key)
    ]
    extra: dict[str, str] = {}
    for entry in parsed.entries:
        name = (entry.field or "").removeprefix("extra.")
        is_extra = name != entry.field and name in parsed.config.extra
        if not is_extra or entry.because or chooses_dialect(entry.key):
            continue
        text = flag_text(parsed.config.extra[name], origin, table)
        because = _not_portable(name, origin, table)
        if because or text is None:
            gone.append(
                Lost(entry.key, entry.line, because or f"{table.called} leaves false out and takes the default")
            )
        else:
            extra[name] = text
    return meant.model_copy(update={"extra": extra}), gone


def _not_portable(name: str, origin: TargetContainer, table: SpellingTable) -> str:
    """Return why an option that has no neutral field can't be taken along; empty when it can."""
    written = name.upper() if origin.engine == "tgi" else name
    read_by_origin = judge(origin, written)
    if read_by_origin:
        return f"{written} {read_by_origin.because}"
    engines = {origin.engine, table.dialect.engine}
    # Both pass on vLLM's own arguments.
    shares_names = len(engines) == 1 or engines <= {"lmi", "vllm"}
    other = replace(origin, engine=table.dialect.engine, version=table.version, dialect=table.dialect.name)
    carried = shares_names and carries(other, written)
    return "" if carried else f"{table.called} has no equivalent option"


def _rendered(
    config: ServingConfig, to: DialectName, version: str, form: Form
) -> tuple[ServingConfig, dict[str, str], Rendered]:
    """Render, leaving out one after the other what the other container refuses."""
    dropped: dict[str, str] = {}
    while True:
        try:
            return config, dropped, render_config(config, to, version, form)
        except RenderError as error:
            refused = [problem for problem in error.problems if problem.rule in _DROPPABLE and problem.field]
            if len(refused) < len(error.problems):
                raise
            fields = ((problem.field.split(" and ")[0], problem.message) for problem in refused)
            because = {_WHOLE.get(name, name): message for name, message in fields}
            smaller = _without(config, because)
            if smaller == config:
                raise
            dropped |= because
            config = smaller


def _sound(
    config: ServingConfig, table: SpellingTable, number: str, form: Form
) -> tuple[ServingConfig, dict[str, str], Rendered]:
    """Render, leaving out what the lint calls wrong in the result too."""
    config, dropped, rendered = _rendered(config, table.dialect.name, number, form)
    for _ in range(_ROUNDS):
        wrong = _lint_problems(config, rendered, table, number)
        if not wrong:
            break
        config, more, rendered = _rendered(_without(config, wrong), table.dialect.name, number, form)
        dropped |= wrong | more
    return config, dropped, rendered


def _without(config: ServingConfig, names: Iterable[str]) -> ServingConfig:
    gone = tuple(names)
    extra = {name: text for name, text in config.extra.items() if f"extra.{name}" not in gone}
    values = {
        name: value if isinstance(value, tuple) else neutral_text(value)
        for name, value in flatten(config).items()
        if not any(name == one or name.startswith(f"{one}.") for one in gone)
    }
    return unflatten(values, extra)[0]


def _lint_problems(config: ServingConfig, rendered: Rendered, table: SpellingTable, version: str) -> dict[str, str]:
    """Return the fields that the lint calls wrong in what was written, with its reasons; never the model's source."""
    text, name = "".join(rendered.files.values()), PROPERTIES_FILE
    if not text:
        text, name = write_env(rendered.env), "container.env"
    findings = lint_sources(read_content(text.encode(), name), Given(table.dialect.engine, version)).findings
    wrong = {finding.field: finding.message for finding in findings if finding.severity != "note"}
    if not wrong:
        return {}
    written = _read_back(rendered, table).entries
    fields = {one.field: wrong[one.key] for one in written if one.field and one.key in wrong}
    names = {name for name in _names(config) if name not in _SOURCE}
    return {_WHOLE.get(name, name): because for name, because in fields.items() if name in names}


def _read_back(rendered: Rendered, table: SpellingTable) -> Parsed:
    version, properties = ".".join(map(str, table.version)), "".join(rendered.files.values())
    return parse(table.dialect.name, version, properties=properties, env=rendered.env)


def _unsaid(config: ServingConfig, rendered: Rendered, table: SpellingTable) -> dict[str, str]:
    """Return the fields that don't come back when the result is read, but for those that are said by silence."""
    read, notes = flatten(_read_back(rendered, table).config), {note.field: note.message for note in rendered.notes}
    return {
        name: notes.get(name, f"{table.called} has no option for it")
        for name, value in flatten(config).items()
        if name not in read and not _is_default(name, neutral_text(value), table)
    }


def _is_default(name: str, text: str, table: SpellingTable) -> bool:
    if any(text in row.leave for row in table.of_field(name)):
        return True
    absent = [absence for absence in table.absences if absence.field == name and absence.how == "same"]
    return any(not one.values or text in one.values for one in absent)


def _where(missing: Mapping[str, str], parsed: Parsed) -> Iterator[Lost]:
    for name, because in missing.items():
        # Of the field itself or of a member; else of the whole that it is a member of.
        of_it = (entry for entry in parsed.entries if f"{entry.field}.".startswith(f"{name}."))
        of_whole = (one for one in parsed.entries if one.field and f"{name}.".startswith(f"{one.field}."))
        first = next(chain(of_it, of_whole), None)
        yield Lost(first.key, first.line, because) if first else Lost(name, 0, because)


def _names(config: ServingConfig) -> Iterator[str]:
    yield from flatten(config)
    yield from (f"extra.{name}" for name in config.extra)


def origin_text(converted: Converted) -> str:
    """Return what a configuration was read as, for users."""
    return f"{version_text(converted.origin.engine, converted.origin.version)}, {converted.origin.dialect}"
