"""Renders a neutral configuration as the files and environment of one engine and version; contradictions in it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from seatrial_base.catalog.engine_options import PREFIXES, TOPICS, find_spellings, option_env, topic_of
from seatrial_base.catalog.engine_versions import version_text, within
from seatrial_base.errors import RenderError
from seatrial_base.findings import Finding, Place
from seatrial_lint.engines.config import PRESENT, flatten, neutral_text
from seatrial_lint.engines.properties import MAX_CHARS, env_problems
from seatrial_lint.engines.templates import TemplateVariables, WrittenOption, render_template, render_variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from seatrial_base.catalog.engine_options import Absence, Spelling, SpellingTable
    from seatrial_base.catalog.engine_versions import DialectName
    from seatrial_lint.engines.config import Leaf, ServingConfig

# DJL 0.26: lmi_dist_rb_properties.validate_quantize.
LAST_LMI_DIST_THAT_REFUSES_BOTH = (8,)
# TGI 1.2: server/cli.py, "Only 1 can be set" but for bitsandbytes.
FIRST_TGI_WITH_TYPED_BITSANDBYTES = (1, 2)
# TGI 2.3: launcher, "prefill >= input" holds without prefill chunking.
LAST_TGI_WITHOUT_CHUNKS = (2, 3)
Form = Literal["properties", "env", "both"]
PROPERTIES_FILE = "serving.properties"
HEADER = "Rendered by Seatrial."
# Topic of what a spec passes as it is.
EXTRA = "extra"
# An empty JSON object says nothing.
NOTHING = "{}"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Fields that can't stand together."""

    fields: tuple[str, ...]
    message: str
    hint: str


def conflicts(config: ServingConfig, table: SpellingTable) -> Iterator[Conflict]:
    """Yield every contradiction that the engine would refuse, or resolve in silence."""
    drafted, prompt, whole = config.speculative_decoding, config.max_input_len, config.max_model_len
    if drafted and drafted.model is None and drafted.method in ("draft_model", "eagle", "eagle3"):
        fields = ("speculative_decoding.method", "speculative_decoding.model")
        hint = "name the draft model, or use the method ngram"
        yield Conflict(fields, f"{drafted.method} needs a draft model, but none is set", hint)
    if config.smoothquant and config.quantization != "smoothquant":
        message = "SmoothQuant settings have no effect without it"
        yield Conflict(("smoothquant", "quantization"), message, "set quantization to smoothquant")
    if prompt is not None and whole is not None and prompt >= whole:
        message = f"a prompt of {prompt} tokens leaves no room for output in {whole}"
        yield Conflict(("max_input_len", "max_model_len"), message, f"lower max_input_len below {whole}")
    if config.streaming and config.dynamic_batching and config.dynamic_batching.batch_size > 1:
        message = "a dynamic batch can't be streamed"
        yield Conflict(("streaming", "dynamic_batching"), message, "leave streaming out")
    for check in _BY_DIALECT.get(table.dialect.name, ()):
        yield from check(config, table)


def _of_tgi(config: ServingConfig, table: SpellingTable) -> Iterator[Conflict]:
    yield from _typed_quantization(config, table)
    if config.quantization == "exl2" and (config.tensor_parallel_degree or 1) > 1:
        message = "exl2 weights can't be sharded"
        yield Conflict(("quantization", "tensor_parallel_degree"), message, "set tensor_parallel_degree to 1")
    whole, prefill, prompt = config.max_batch_total_tokens, config.max_num_batched_tokens, config.max_input_len
    for name, tokens in (("max_model_len", config.max_model_len), ("max_num_batched_tokens", prefill)):
        if whole is not None and tokens is not None and tokens > whole:
            message = f"{tokens} tokens exceed the {whole} of a whole batch"
            yield Conflict((name, "max_batch_total_tokens"), message, f"raise max_batch_total_tokens to {tokens}")
    whole_prompts = table.version[:2] <= LAST_TGI_WITHOUT_CHUNKS
    if whole_prompts and prefill is not None and prompt is not None and prefill < prompt:
        message = f"{prefill} prefill tokens are below the longest prompt, {prompt}"
        yield Conflict(("max_num_batched_tokens", "max_input_len"), message, f"set it to at least {prompt}")


def _typed_quantization(config: ServingConfig, table: SpellingTable) -> Iterator[Conflict]:
    if config.quantization is None or config.dtype in (None, "auto"):
        return
    at_load = config.quantization.startswith("bitsandbytes") and table.version >= FIRST_TGI_WITH_TYPED_BITSANDBYTES
    if not at_load if table.dialect.engine == "tgi" else table.version <= LAST_LMI_DIST_THAT_REFUSES_BOTH:
        message = f"{table.called} refuses dtype and quantization together"
        yield Conflict(("dtype", "quantization"), message, "leave dtype out")


def _queue(config: ServingConfig, table: SpellingTable) -> Iterator[Conflict]:
    counts_running = any(row.kind == "with_running" for row in table.of_field("max_queued_requests"))
    if counts_running and config.max_queued_requests is not None and config.max_num_seqs is None:
        message = f"{table.called} limits running and waiting requests together, but max_num_seqs is missing"
        yield Conflict(("max_queued_requests", "max_num_seqs"), message, "set max_num_seqs as well")


def _of_lmi_dist(config: ServingConfig, table: SpellingTable) -> Iterator[Conflict]:
    yield from _typed_quantization(config, table)
    if config.lora and config.speculative_decoding:
        message = "lmi-dist refuses LoRA and speculative decoding together"
        yield Conflict(("lora", "speculative_decoding"), message, "leave one of them out")
    drafted = config.speculative_decoding
    degree = drafted.draft_tensor_parallel_degree if drafted else None
    if degree not in (None, 1, config.tensor_parallel_degree):
        fields = ("speculative_decoding.draft_tensor_parallel_degree", "tensor_parallel_degree")
        message = f"lmi-dist shards a draft model over 1 GPU or over the model's own, not over {degree}"
        yield Conflict(fields, message, "set it to 1 or to tensor_parallel_degree")


def _smoothquant_type(config: ServingConfig, _: SpellingTable) -> Iterator[Conflict]:
    if config.quantization == "smoothquant" and config.dtype == "bf16":
        yield Conflict(("dtype", "quantization"), "DeepSpeed's SmoothQuant refuses bf16", "set dtype to fp16")


def _one_adapter(config: ServingConfig, _: SpellingTable) -> Iterator[Conflict]:
    adapters = (config.lora.adapters if config.lora else None) or ()
    if len(adapters) > 1:
        message = f"SGLang's container passes one adapter at start, not {len(adapters)}"
        yield Conflict(("lora.adapters",), message, "load the others through the server's API, or use vllm or tgi")


_BY_DIALECT = {
    "tgi": (_of_tgi, _queue),
    "tgi-neuronx": (_queue,),
    "vllm": (_queue,),
    "lmi-dist": (_of_lmi_dist,),
    "lmi-deepspeed": (_smoothquant_type,),
    "sglang": (_one_adapter,),
}


@dataclass(frozen=True, slots=True)
class Note:
    """What an engine can't do or does differently.

    `field`: the neutral field; empty when it concerns the whole.
    """

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


@dataclass(frozen=True, slots=True)
class _Line:
    """What is written of one option: its topic and neutral name, the key and the variable, the text."""

    topic: str
    option: str
    key: str | None
    env: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """A configuration in an engine's spelling."""

    files: dict[str, str]
    env: dict[str, str]
    notes: tuple[Note, ...]


def render_config(
    config: ServingConfig,
    dialect: DialectName,
    version: str,
    form: Form,
    *,
    header: str = HEADER,
    templates: Path | None = None,
) -> Rendered:
    """Render a configuration.

    Args:
        version: The container's version, as `catalog.engine_versions.read_version` reads it.
        form: `properties`: a packaged `serving.properties`; `env`: environment variables; `both`: the file, and the
            same options in the environment except the model, which would be loaded a second time.
        templates: Folder of templates that override ours file by file; default: none.

    Raises:
        RenderError: SEA307 for a version or dialect that doesn't exist, SEA308 for fields that the engine has no
            option for, SEA309 for contradictions, SEA310 for a form that can't carry it, SEA302 and SEA304 as for
            any environment and extra options; every problem at once.
    """
    table = find_spellings(dialect, version)
    spelled = spell(config, table)
    problems = [*_form_problems(table, form), *_missing(table, spelled), *_conflicts(config, table, spelled)]
    if problems := [*problems, *_extra_problems(config, table, spelled)]:
        raise RenderError(problems)
    # Extra options last and sorted.
    lines = [_Line(topic_of(row.option), row.option, row.key, row.env, text) for row, text in spelled.pairs]
    lines += (_Line(EXTRA, "", *extra_names(name, table), config.extra[name]) for name in sorted(config.extra))
    files: dict[str, str] = {}
    if form != "env":
        options = ((line.topic, WrittenOption(line.key, line.text, line.option)) for line in lines if line.key)
        template = f"{table.dialect.engine}/{PROPERTIES_FILE}.j2"
        files[PROPERTIES_FILE] = render_template(template, _by_topic(header, options), own=templates)
    env = _env(table, lines, form, header, templates) if form != "properties" else {}
    notes, last = [Note(*note) for note in spelled.notes], table.dialect.last_image
    if last is not None and not within(table.version, None, last):
        newest = version_text(table.dialect.engine, tuple(map(int, last.split("."))))
        notes.insert(0, Note("", f"No image of {table.dialect.batcher} was published after {newest}."))
    return Rendered(files, env, tuple(notes))


def extra_names(name: str, table: SpellingTable) -> tuple[str | None, str]:
    """Return the key and the environment variable of an extra option."""
    if table.dialect.engine == "lmi":
        return f"option.{name}", option_env(f"option.{name}")
    return None, PREFIXES.get(table.dialect.engine, "") + name.upper()


def _env(
    table: SpellingTable, lines: Iterable[_Line], form: Form, header: str, templates: Path | None
) -> dict[str, str]:
    where = f"container environment for {table.called}"
    # Alongside a file, neither the model nor what only a file holds is in the environment.
    written = [
        (line, line.env)
        for line in lines
        if line.env
        and (form == "env" or (line.env != "HF_MODEL_ID" and len(line.text) <= MAX_CHARS and "\n" not in line.text))
    ]
    plain = {name: line.text for line, name in written}
    broken = [
        Finding("SEA302", Place.at(where, name), f"an environment variable holds one line, not {text!r}")
        for name, text in plain.items()
        if "\n" in text or "\r" in text
    ]
    if problems := [*broken, *env_problems(plain, where)]:
        raise RenderError(problems)
    options = ((line.topic, WrittenOption(name, line.text, line.option)) for line, name in written)
    env = render_variables(f"{table.dialect.engine}/container.env.j2", _by_topic(header, options), own=templates)
    if problems := [*env_problems(env, where)]:
        raise RenderError(problems)
    return env


def _by_topic(header: str, options: Iterable[tuple[str, WrittenOption]]) -> TemplateVariables:
    topics: dict[str, list[WrittenOption]] = {topic: [] for topic in (*TOPICS, EXTRA)}
    for topic, option in options:
        topics[topic].append(option)
    return TemplateVariables(header, topics)


def _form_problems(table: SpellingTable, form: Form) -> Iterator[Finding]:
    if form != "env" and table.dialect.engine != "lmi":
        message = f"{table.called} reads no serving.properties"
        yield Finding("SEA310", Place(field="form"), message, "render the environment (form env)")
    if form != "properties" and not within(table.version, table.dialect.env_since, None):
        first = version_text(table.dialect.engine, (int(table.dialect.env_since or "0"),))
        message = f"{table.called} can't set its engine through the environment"
        hint = f"render serving.properties (form properties), or use {first} or newer"
        yield Finding("SEA310", Place(field="form"), message, hint)


def _missing(table: SpellingTable, spelled: SpelledConfig) -> Iterator[Finding]:
    for one in spelled.missing:
        because = f": {one.absence.because.removesuffix('.')}" if one.absence else ""
        known = f"it has {', '.join(one.known)}" if one.known else "leave it out, or choose another engine or version"
        hint = one.absence.hint if one.absence and one.absence.hint else known
        message = f"{table.called} has no option for {one.text or 'it'}{because}"
        yield Finding("SEA308", Place(field=one.field), message, hint)


def _conflicts(config: ServingConfig, table: SpellingTable, spelled: SpelledConfig) -> Iterator[Finding]:
    for conflict in conflicts(config, table):
        yield Finding("SEA309", Place(field=" and ".join(conflict.fields)), conflict.message, conflict.hint)
    for first, second, key in doubled(spelled):
        message = f"{table.called} writes both as {key}"
        yield Finding("SEA309", Place(field=f"{first} and {second}"), message, "leave one of them out")


def _extra_problems(config: ServingConfig, table: SpellingTable, spelled: SpelledConfig) -> Iterator[Finding]:
    flat = flatten(config)
    written = {row.key or row.env for row, _ in spelled.pairs}
    # By key and by variable, the first row of a field that is set, or of a name that is written.
    chosen = [row for row in table.rows if row.field in flat or (row.key or row.env) in written]
    rows = {name: row for row in reversed(chosen) for name in (row.key, row.env)}
    for name in config.extra:
        key, env = extra_names(name, table)
        row = rows.get(key or env) or rows.get(env)
        if row is not None:
            value = f" ({neutral_text(flat[row.field])})" if row.field in flat else ""
            message = f"{name} is how {table.called} spells {row.field or 'the dialect itself'}{value}"
            yield Finding("SEA304", Place(field=f"extra.{name}"), message, "leave it out of extra")


@dataclass(frozen=True, slots=True)
class SpelledConfig:
    """A configuration in an engine's spelling.

    Attributes:
        pairs: Each spelling that is written with its text, in the order of the file.
        notes: Field and what to tell people of it.
        missing: What the engine can't say and would be missed.
    """

    pairs: tuple[tuple[Spelling, str], ...]
    notes: tuple[tuple[str, str], ...]
    missing: tuple[Missing, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """What an engine has no option for.

    Attributes:
        field: The neutral field.
        text: Its value; empty for a sub-model.
        known: The values that the engine does have.
        absence: What the catalog says of it; `None` when it says nothing.
    """

    field: str
    text: str
    known: tuple[str, ...]
    absence: Absence | None


@dataclass(slots=True)
class _Draft:
    # Index of the row to its text.
    texts: dict[int, str] = field(default_factory=dict)
    notes: list[tuple[str, str]] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)


def spell(config: ServingConfig, table: SpellingTable) -> SpelledConfig:
    """Choose for each field that is set the spelling of a dialect and version."""
    flat = flatten(config)
    draft = _Draft()
    for name in flat:
        if not _written_by_parent(name, table):
            _say(name, flat, table, draft)
    taken = {table.rows[index].key or table.rows[index].env for index in draft.texts}
    for index, row in enumerate(table.rows):
        wanted = row.fixed is not None and (row.when is None or row.when in flat)
        if wanted and row.fixed is not None and (row.key or row.env) not in taken:
            draft.texts[index] = row.fixed
    pairs = tuple((row, draft.texts[index]) for index, row in enumerate(table.rows) if index in draft.texts)
    return SpelledConfig(pairs, tuple(dict.fromkeys(draft.notes)), tuple(draft.missing))


def _say(name: str, flat: Mapping[str, Leaf], table: SpellingTable, draft: _Draft) -> None:
    text = neutral_text(flat[name])
    chosen = [i for i, row in enumerate(table.rows) if _says(row, name, flat[name], text)]
    for index in chosen[:1] + [index for index in chosen[1:] if table.rows[index].also]:
        _write(index, name, flat, table, draft)
    if not chosen and not _is_heading(name, flat, table):
        matching = (row for row in table.absences if row.field == name and (not row.values or text in row.values))
        absence = next(matching, None)
        if absence is None or absence.how == "error":
            rows = [row for row in table.of_field(name) if not row.alias]
            known = tuple(dict.fromkeys(value for row in rows for value in (*row.translation, *row.leave)))
            draft.missing.append(Missing(name, text, known, absence))
        elif absence.how == "note":
            draft.notes.append((name, absence.because))


def _write(index: int, name: str, flat: Mapping[str, Leaf], table: SpellingTable, draft: _Draft) -> None:
    """Write a field by one row; a value that is said by silence is only noted."""
    row, text = table.rows[index], neutral_text(flat[name])
    if note := row.leave.get(text, row.note).replace("{value}", text):
        draft.notes.append((name, note))
    if text not in row.leave and (row.key or row.env):
        written = _written(row, name, flat)
        if written != NOTHING:
            draft.texts[index] = written


def _says(row: Spelling, name: str, value: Leaf, text: str) -> bool:
    is_too_long = row.kind == "pair" and isinstance(value, tuple) and len(value) > 1
    if row.field != name or row.alias or is_too_long:
        return False
    return text in row.leave or (
        (not row.leave or bool(row.translation)) and (not row.translation or text in row.translation)
    )


def _is_heading(name: str, flat: Mapping[str, Leaf], table: SpellingTable) -> bool:
    """Return whether a sub-model has nothing to be written for itself, because its members or a fixed key say it."""
    if flat[name] != PRESENT:
        return False
    return any(row.when == name or (row.field or "").startswith(f"{name}.") for row in table.rows)


def _written_by_parent(name: str, table: SpellingTable) -> bool:
    """Return whether a member is written inside its parent's JSON, or its parent can't be said at all."""
    parent, _, member = name.rpartition(".")
    if not parent:
        return False
    known = [row for row in table.rows if row.field == parent]
    in_json = any(member in row.members for row in known)
    return in_json or not any((row.field or "").startswith(parent) or row.when == parent for row in table.rows)


def _written(row: Spelling, name: str, flat: Mapping[str, Leaf]) -> str:
    value = flat[name]
    if row.kind == "json":
        members = {
            row.members[member]: flat[f"{name}.{member}"] for member in row.members if f"{name}.{member}" in flat
        }
        if members.get("method") == "draft_model":
            # The engines' default.
            del members["method"]
        inside = {key: value for key, value in members.items() if not key.startswith("^")}
        beside = {key.removeprefix("^"): value for key, value in members.items() if key.startswith("^")}
        document = {row.wrap: inside} if row.wrap and inside else {} if row.wrap else inside
        return json.dumps(document | beside, separators=(",", ":"))
    if isinstance(value, tuple):
        pairs = [f"{adapter.name}={adapter.path}" for adapter in value]
        return json.dumps(pairs, separators=(",", ":")) if row.kind == "pairs_json" else ",".join(pairs)
    text = neutral_text(value)
    if row.kind == "with_running":
        running = flat.get("max_num_seqs")
        return str(int(text) + (running if isinstance(running, int) else 0))
    return str(int(text) + row.offset) if row.offset else row.translation.get(text, text)


def doubled(spelled: SpelledConfig) -> Iterator[tuple[str, str, str]]:
    """Yield each key that two fields write: the fields and the key."""
    seen: dict[str, str] = {}
    for row, _ in spelled.pairs:
        key, name = row.key or row.env or "", row.field or ""
        if key in seen:
            yield seen[key], name, key
        seen[key] = name
