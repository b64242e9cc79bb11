"""Values that the container doesn't take: words, numbers out of range, and limits that constrain each other."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.engine_options import PLUGINS, RANGES, all_spellings, find_spellings, parser_names
from seatrial_base.catalog.engine_versions import missing_dialect_text, within
from seatrial_base.errors import RenderError
from seatrial_base.findings import Edit
from seatrial_lint.engines.parse import is_object, read_value
from seatrial_lint.engines.properties import env_problems
from seatrial_lint.lint.known import is_known_option, nearest_of
from seatrial_lint.lint.rules import finding, revalue, rule, spelled_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial_base.catalog.engine_options import Spelling, SpellingTable
    from seatrial_base.catalog.engine_versions import DialectName, Version
    from seatrial_base.findings import Finding
    from seatrial_lint.lint.rules import NeutralField, Subject
    from seatrial_lint.lint.target import NamedOption, TargetContainer

_SHORT = {"float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float32": "fp32", "float": "fp32"}
_LONG = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
_OPEN_FIELDS = ("quantization", "kv_cache_dtype", "speculative_decoding.method", "rope_scaling.kind")
# tnx_properties.py, TnXDtypeName: both spellings are read. vLLM reads both too, but hf_properties.py does not.
_BOTH_TYPES = ("lmi-neuronx",)
# Their lists of values grow with vLLM and SGLang.
_OPEN = ("lmi-async", "lmi-vllm", "vllm", "sglang")
# DJL Serving, RollingBatchEnum by branch: first and last LMI number, and what they take.
_ROLLING_BATCH: tuple[tuple[str, str | None, tuple[str, ...]], ...] = (
    ("5", "9", ("auto", "disable", "vllm", "lmi-dist", "trtllm", "scheduler", "deepspeed")),
    ("10", "14", ("auto", "disable", "vllm", "lmi-dist", "trtllm", "scheduler", "tnx")),
    ("15", "16", ("auto", "disable", "vllm", "trtllm", "tnx", "lmi-dist")),
    ("17", None, ("auto", "disable", "vllm", "trtllm", "lmi-dist")),
)
_FORMATS = ("json", "jsonlines", "sse", "json_chat", "jsonlines_chat", "sse_chat", "3p", "3p_stream", "none")
# VLLM, EngineArgs: human_readable_int.
_COUNTED = ("max_model_len", "max_num_batched_tokens")
_LAST_DEEPSPEED_ENGINE = (9,)
# Pydantic, bool.
_BOOLEANS = ("1", "0", "true", "false", "t", "f", "yes", "no", "y", "n", "on", "off")
_VLLM = ("lmi-async", "lmi-vllm", "vllm")
# vllm-project/vllm, model_executor/layers/quantization/__init__.py, QUANTIZATION_METHODS, v0.8.4 to v0.11: beside the
# ones that the catalog spells.
_VLLM_QUANTIZATIONS = frozenset(
    [
        *("aqlm", "awq_marlin", "gptq_marlin", "gptq_marlin_24", "marlin", "squeezellm", "deepspeedfp", "tpu_int8"),
        *("fbgemm_fp8", "modelopt", "modelopt_fp4", "nvfp4", "ggml", "gguf", "hqq", "experts_int8", "neuron_quant"),
        *("ipex", "quark", "moe_wna16", "torchao", "auto-round", "rtn", "inc", "mxfp4", "petit_nvfp4", "ptpc_fp8"),
        *("bitblas", "gptq_bitblas", "qqq", "compressed-tensors", "bitsandbytes", "fp_quant", "cpu_awq"),
    ]
)
# trt_llm_user_guide.md.
_TRTLLM_QUANTIZATIONS = ("smoothquant", "awq", "fp8", "static_int8", "w4a8_awq")
# PyModel.java, load: Integer.parseInt takes no blank, while Python's int does.
_PARSED_BY_JAVA = ("tensor_parallel_degree", "pipeline_parallel_degree")
_KINDS = {
    "int": "a whole number",
    "with_running": "a whole number",
    "float": "a number",
    "flag": "true or false",
    "json": "a JSON object",
    "seconds": "whole seconds",
    "milliseconds": "whole milliseconds",
}
_WITH_PARSERS: Final = ("lmi-async", "lmi-vllm", "vllm", "sglang")
_PARSERS: Final = {"tool_call_parser": "tool call parser", "reasoning_parser": "reasoning parser"}
# TGI 2.4 brought prefill chunking; before it a prompt must fit one prefill.
LAST_WITHOUT_CHUNKS = "2.3"
# huggingface/text-generation-inference v0.9.3 to v1.4.5 launcher/src/main.rs: defaults before TGI 2.0 read the model's.
LAST_WITH_FIXED_DEFAULTS = "1"
DEFAULT_PROMPT, DEFAULT_TOTAL, DEFAULT_PREFILL = 1024, 2048, 4096
# TGI 2.0 to 2.4: min(max_position_embeddings, 4096).
LARGEST_DEFAULT_TOTAL, LAST_WITH_LARGEST = 4096, "2"
_Limit = tuple["NeutralField", int]


@rule("SEA317")
def foreign_dtype(subject: Subject) -> Iterator[Finding]:
    """A type spelled as another engine spells it."""
    target = subject.target
    if target is None or target.dialect in _BOTH_TYPES:
        return
    option = subject.option("DTYPE" if target.engine == "tgi" else "dtype")
    if option is None or option.space == "server":
        return
    written = option.value.strip().lower()
    spelled = (_SHORT if target.engine == "lmi" else _LONG).get(written)
    takes = "auto, fp32, fp16, bf16" if target.engine == "lmi" else "float16, bfloat16"
    if spelled is None or (target.engine == "tgi" and spelled not in ("float16", "bfloat16")):
        return
    edit = revalue(subject.source, option.entry, spelled)
    message = f"{target.called} does not start with {option.value}; valid: {takes}"
    yield finding(subject, "SEA317", option.entry, message, f"write {spelled}", edit)


def _has_own_rule(subject: Subject, rows: list[Spelling], option: NamedOption) -> bool:
    """Return whether another rule reports what is wrong with a value."""
    target = subject.target
    is_lmi = target is not None and target.engine == "lmi"
    return (
        option.name in ("rolling_batch", "output_formatter")
        or (target is not None and target.engine == "vllm" and option.value.lower() == "false")
        or _is_short(target, option)
        or _is_flag(target, rows, option)
        or _is_others(subject, option)
        or _is_frayed(subject, option)
        or (option.name.lower() == "dtype" and option.value.strip().lower() in (_SHORT if is_lmi else _LONG))
    )


@rule("SEA318")
def spelled(subject: Subject) -> Iterator[Finding]:
    """A value that no spelling of this key reads."""
    target = subject.target
    for option in subject.options if target else ():
        rows = [row for row in spelled_by(option, subject.table) if row.fixed is None and row.field]
        if not rows or target is None or _has_own_rule(subject, rows, option):
            continue
        if any(_reads(row, option) for row in rows) or not (
            _wrong_kind(rows, option) or _wrong_word(target, rows, option)
        ):
            continue
        words = tuple(sorted({word for row in rows for word in (*row.values.values(), *row.reads)}))
        nearest = nearest_of(option.value, words)
        message = f"{option.value!r} is not valid in {target.called}; valid: {_allowed(rows)}"
        yield finding(
            subject,
            "SEA318",
            option.entry,
            message,
            f"did you mean {nearest}?" if nearest else "use another value, or leave the key out",
        )


def _is_flag(target: TargetContainer | None, rows: list[Spelling], option: NamedOption) -> bool:
    """Return whether a flag is written otherwise than `true`: as an empty value, or as pydantic reads it."""
    words = {word.lower() for row in rows for word in (*row.translation.values(), *row.reads)}
    is_flag = any(row.kind in ("flag", "inverted_flag") for row in rows) or (words and words <= {"true", "false"})
    if target is None or not is_flag:
        return False
    if target.engine in ("vllm", "sglang"):
        # sagemaker_args.py; older images: image_age.
        return option.value.strip().lower() in ("", "true", "false")
    return target.engine == "lmi" and option.value.strip().lower() in _BOOLEANS


def _is_others(subject: Subject, option: NamedOption) -> bool:
    """Return whether an image that is not told may read the value: `rolling_batch=auto` is TensorRT-LLM in its own."""
    target = subject.target
    if target is None or option.space != "option":
        return False
    if option.name in ("quantize", "quantization") and target.dialect in _VLLM and option.value in _VLLM_QUANTIZATIONS:
        return True
    tables = (_table(name, target.version) for name in target.others)
    rows = [row for table in tables for row in spelled_by(option, table)]
    return any(_reads(row, option) for row in rows) or (bool(target.others) and option.value in _TRTLLM_QUANTIZATIONS)


@cache
def _table(dialect: DialectName, version: Version) -> SpellingTable | None:
    try:
        return find_spellings(dialect, ".".join(map(str, version)))
    except RenderError:
        return None


def _is_short(target: TargetContainer | None, option: NamedOption) -> bool:
    """Return whether a number is written as vLLM's command line takes it beside plain digits: `32K`, `25.6k`."""
    counts = target is not None and target.engine == "vllm" and option.name in _COUNTED
    return counts and re.fullmatch(r"[0-9]+(\.[0-9]+)?[kmgt]|[0-9]+[KMGT]", option.value.strip()) is not None


def _reads(row: Spelling, option: NamedOption) -> bool:
    return read_value(row, option.value) is not None or option.value in row.unset


def _wrong_kind(rows: list[Spelling], option: NamedOption) -> bool:
    kinds = {row.kind for row in rows}
    if "json" in kinds:
        return not is_object(option.value)
    return "text" not in kinds and not any(row.kind.startswith("pair") for row in rows)


def _allowed(rows: list[Spelling]) -> str:
    words = [word for row in rows for word in (*row.translation.values(), *row.reads, *row.unset)]
    plain = [_KINDS[row.kind] for row in rows if row.kind in _KINDS and not row.translation]
    return ", ".join(dict.fromkeys((*plain, *words))) or "another one"


def _wrong_word(target: TargetContainer, rows: list[Spelling], option: NamedOption) -> bool:
    """Return whether a word is wrong: any other one in a closed list, one that only others take in an open list."""
    texts = [row for row in rows if row.kind == "text" and (row.values or row.leave)]
    if not texts:
        return False
    is_open = target.dialect in _OPEN and texts[0].field in _OPEN_FIELDS
    return not is_open or option.value in _words(texts[0].field or "")


@cache
def _words(field: str) -> frozenset[str]:
    rows = [row for row in all_spellings() if row.field == field]
    return frozenset(word for row in rows for word in (*row.values.values(), *row.values, *row.reads))


@rule("SEA314", "SEA318")
def batching(subject: Subject) -> Iterator[Finding]:
    """Rolling_batch, engine, output_formatter and pipeline degree of LMI, which differ by version."""
    target = subject.target
    if target is None or target.engine != "lmi":
        return
    yield from _rolling_batch(subject, target)
    yield from _engine(subject, target)
    option = subject.option("output_formatter")
    if option and option.value not in _FORMATS and subject.target and subject.target.dialect != "lmi-async":
        message = f"there is no formatter {option.value!r}: {', '.join(_FORMATS)}"
        yield finding(subject, "SEA318", option.entry, message, "use one of them")
    pipeline_option = subject.option("pipeline_parallel_degree")
    if pipeline_option and target.dialect in ("lmi-async", "lmi-vllm") and pipeline_option.value.strip() != "1":
        pipeline_message = f"vLLM in {target.called} needs a pipeline parallel degree of 1"
        fix = "write 1, and set the tensor parallel degree to the number of GPUs"
        yield finding(subject, "SEA318", pipeline_option.entry, pipeline_message, fix)


def _rolling_batch(subject: Subject, target: TargetContainer) -> Iterator[Finding]:
    option = subject.option("rolling_batch")
    taken = next((names for since, until, names in _ROLLING_BATCH if within(target.version, since, until)), ())
    if option is None or not taken or _is_frayed(subject, option):
        return
    if option.value not in taken:
        message = f"valid in {target.called}: {', '.join(taken)}"
        nearest = nearest_of(option.value, taken)
        yield finding(
            subject, "SEA318", option.entry, message, f"did you mean {nearest}?" if nearest else "leave it out"
        )
    elif option.value == "lmi-dist" and target.dialect == "lmi-vllm":
        message = f"lmi-dist was removed in LMI 15: {target.called} runs vLLM instead"
        edit = revalue(subject.source, option.entry, "vllm")
        yield finding(subject, "SEA314", option.entry, message, "write vllm", edit)


def _engine(subject: Subject, target: TargetContainer) -> Iterator[Finding]:
    option = subject.option("engine", "server")
    if option is None or _is_frayed(subject, option):
        return
    name = option.value
    if target.dialect in ("lmi-async", "lmi-vllm") and name != "Python":
        message = f"vLLM in {target.called} needs engine=Python and does not start with {name}"
        yield finding(subject, "SEA318", option.entry, message, "write engine=Python")
    elif name.lower() in ("deepspeed", "fastertransformer") and target.version > _LAST_DEEPSPEED_ENGINE:
        yield finding(subject, "SEA318", option.entry, f"{target.called} has no engine {name}", "write engine=Python")


@rule("SEA318")
def dialect_exists(subject: Subject) -> Iterator[Finding]:
    """A batcher that this version does not have."""
    target = subject.target
    if target is None or subject.table is not None:
        return
    chosen = subject.option("rolling_batch") or subject.option("engine", "server") or subject.option("async_mode")
    if chosen is None:
        # Where nothing written chooses it, it is an older version than is known.
        return
    # The rules on the values of rolling_batch and engine report what they refuse.
    taken = next((names for since, until, names in _ROLLING_BATCH if within(target.version, since, until)), ())
    if (chosen.name == "rolling_batch" and chosen.value not in taken) or (
        chosen.name == "engine" and target.version > _LAST_DEEPSPEED_ENGINE
    ):
        return
    message = missing_dialect_text(target.dialect, target.version)
    yield finding(subject, "SEA318", chosen.entry, message, "give a version that has it: --version")


@rule("SEA318")
def whole_text(subject: Subject) -> Iterator[Finding]:
    """Quotes, or a blank at the end, which belong to the value in Java properties and in JSON."""
    target = subject.target
    for option in subject.options if target else ():
        if _is_frayed(subject, option):
            is_quoted = _is_quoted(option.value)
            message = "the quotes belong to the value" if is_quoted else "the blank at the end belongs to the value"
            fix = f"write {option.value[1:-1]}" if is_quoted else "leave the blank out"
            yield finding(subject, "SEA318", option.entry, message, fix)


def _is_frayed(subject: Subject, option: NamedOption) -> bool:
    """Return whether quotes or a blank make another value of one that was meant."""
    target = subject.target
    in_env_file = option.entry.form == "env" and not subject.source.is_json
    if target is None or in_env_file or option.space == "env" or not _is_plain(target, option):
        return False
    value = option.value
    blank = value != value.rstrip() and bool(value.strip())
    return _is_quoted(value) or (
        blank and (option.name in _PARSED_BY_JAVA or not (re.fullmatch(r"\s*-?[0-9.]+\s*", value) is not None))
    )


def _is_quoted(value: str) -> bool:
    return len(value) > 1 and value[0] == value[-1] and value[0] in "'\""


def _is_plain(target: TargetContainer, option: NamedOption) -> bool:
    """Return whether an option takes a plain word, so that neither quotes nor blanks can be meant."""
    if option.space == "server":
        return option.name == "engine"
    return option.name not in ("env", "stop") and is_known_option(target, option.name)


@rule("SEA378")
def unknown_parser(subject: Subject) -> Iterator[Finding]:
    """A parser whose name the engine does not have; it does not start, or refuses each request with tools."""
    target = subject.target
    if target is None or target.dialect not in _WITH_PARSERS:
        return
    for name, what in _PARSERS.items():
        option, known = subject.option(name), parser_names(target.engine, name)
        written = "" if option is None else option.value.strip()
        if option is None or known is None or not written or written in known.names or subject.option(PLUGINS[name]):
            continue
        near = nearest_of(written, known.names)
        edit = revalue(subject.source, option.entry, near) if near else None
        listed = f"known on {known.date}: {', '.join(known.names)}"
        message = f"{written} is no {what} of {target.called}"
        yield finding(subject, "SEA378", option.entry, message, f"write {near}; {listed}" if near else listed, edit)


@rule("SEA318")
def out_of_range(subject: Subject) -> Iterator[Finding]:
    """A number that the engine refuses."""
    target = subject.target
    for option in subject.options if target else ():
        if target is None or option.space == "server":
            continue
        try:
            number = float(option.value.strip())
        except ValueError:
            continue
        rows = (
            row
            for row in RANGES.having(option.name)
            if target.dialect in row.dialects and within(target.version, row.since, row.until) and not row.takes(number)
        )
        # Longer digits are no setting.
        row = next(rows, None) if abs(number) < 1e15 else None  # noqa: PLR2004 (as above)
        if row:
            message = f"{option.value.strip()} is out of range: {target.called} does not start with it"
            yield finding(subject, "SEA318", option.entry, message, f"valid: {row.shown}")


@rule("SEA322")
def tgi_token_limits(subject: Subject) -> Iterator[Finding]:
    """TGI's token limits. Prompt < total <= batch total; prefill <= batch total; prompt <= prefill."""
    target = subject.target
    if target is None or target.engine != "tgi":
        return
    prompt, total = _limit(subject, "max_input_len"), _limit(subject, "max_model_len")
    prefill, batch = _limit(subject, "max_num_batched_tokens"), _limit(subject, "max_batch_total_tokens")
    yield from _beyond_defaults(subject, target, {"prompt": prompt, "total": total, "prefill": prefill})
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


def _limit(subject: Subject, field: str) -> _Limit | None:
    neutral = subject.fields.get(field)
    return (neutral, neutral.number) if neutral and neutral.number is not None else None


def _beyond_defaults(subject: Subject, target: TargetContainer, written: dict[str, _Limit | None]) -> Iterator[Finding]:
    """Yield limits that exceed the default of one that is not written."""
    defaults = _LARGEST_DEFAULTS if within(target.version, "2.0", LAST_WITH_LARGEST) else ()
    for row in _FIXED_DEFAULTS if within(target.version, "0", LAST_WITH_FIXED_DEFAULTS) else defaults:
        given = written[row.written]
        if given and not written[row.absent] and row.exceeds(given[1], row.default):
            entry, left_out = given[0].option.entry, f"{row.name}, which is {row.default} when left out"
            message = f"{entry.key}={given[1]} does not fit {left_out}: {target.called} does not start"
            yield finding(subject, "SEA322", entry, message, f"write {row.name} as well")


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
