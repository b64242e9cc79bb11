"""Values that the container doesn't take."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.engine_options import PLUGINS, all_spellings, find_spellings, parser_names
from seatrial_base.catalog.engine_versions import missing_dialect_text, within
from seatrial_base.errors import RenderError
from seatrial_lint.engines.parse import is_object, read_value
from seatrial_lint.lint.known import is_known_option, nearest_of
from seatrial_lint.lint.rules import finding, revalue, rule
from seatrial_lint.lint.subject import spelled_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.catalog.engine_options import Spelling, SpellingTable
    from seatrial_base.catalog.engine_versions import DialectName, Version
    from seatrial_base.findings import Finding
    from seatrial_lint.lint.names import NamedOption
    from seatrial_lint.lint.subject import Subject
    from seatrial_lint.lint.target import TargetContainer

_SHORT = {"float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float32": "fp32", "float": "fp32"}
_LONG = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
_OPEN_FIELDS = ("quantization", "kv_cache_dtype", "speculative_decoding.method", "rope_scaling.kind")
# tnx_properties.py, TnXDtypeName: both spellings are read. vLLM reads both too, but hf_properties.py beside it refuses.
_BOTH_TYPES = ("lmi-neuronx",)
_TGI_TYPES = ("float16", "bfloat16")
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
    if spelled is None or (target.engine == "tgi" and spelled not in _TGI_TYPES):
        return
    edit = revalue(subject.source, option.entry, spelled)
    message = f"{target.called} does not start with {option.value}; valid: {takes}"
    yield finding(subject, "SEA317", option.entry, message, f"write {spelled}", edit)


def _has_own_rule(subject: Subject, rows: list[Spelling], option: NamedOption) -> bool:
    """Say whether another rule tells what is wrong with a value."""
    target = subject.target
    return (
        option.name in ("rolling_batch", "output_formatter")
        or (target is not None and target.engine == "vllm" and option.value.lower() == "false")
        or _is_short(target, option)
        or _is_flag(target, rows, option)
        or _is_others(subject, option)
        or _is_frayed(subject, option)
        or (target is not None and _is_dtype(target, option))
    )


def _is_misspelled(target: TargetContainer, rows: list[Spelling], option: NamedOption) -> bool:
    if any(_reads(row, option) for row in rows):
        return False
    return _wrong_kind(rows, option) or _wrong_word(target, rows, option)


@rule("SEA318")
def spelled(subject: Subject) -> Iterator[Finding]:
    """A value that no spelling of this key reads."""
    target = subject.target
    for option in subject.options if target else ():
        rows = [row for row in spelled_by(option, subject.table) if row.fixed is None and row.field]
        if not rows or target is None or _has_own_rule(subject, rows, option):
            continue
        if _is_misspelled(target, rows, option):
            message = f"{option.value!r} is not valid in {target.called}; valid: {_allowed(rows)}"
            words = tuple(sorted({word for row in rows for word in (*row.values.values(), *row.reads)}))
            nearest = nearest_of(option.value, words)
            yield finding(
                subject,
                "SEA318",
                option.entry,
                message,
                f"did you mean {nearest}?" if nearest else "use another value, or leave the key out",
            )


def _is_flag(target: TargetContainer | None, rows: list[Spelling], option: NamedOption) -> bool:
    """Say whether a flag is written otherwise than `true`: as an empty value, or as pydantic reads it."""
    words = {word.lower() for row in rows for word in (*row.translation.values(), *row.reads)}
    is_flag = any(row.kind in ("flag", "inverted_flag") for row in rows) or (words and words <= {"true", "false"})
    if target is None or not is_flag:
        return False
    if target.engine in ("vllm", "sglang"):
        # sagemaker_args.py; older images: image_age.
        return option.value.strip().lower() in ("", "true", "false")
    return target.engine == "lmi" and option.value.strip().lower() in _BOOLEANS


def _is_others(subject: Subject, option: NamedOption) -> bool:
    """Say whether an image that is not told may read the value: `rolling_batch=auto` is TensorRT-LLM in its own."""
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
    """Say whether a number is written as vLLM's command line takes it beside plain digits: `32K`, `25.6k`."""
    counts = target is not None and target.engine == "vllm" and option.name in _COUNTED
    return counts and re.fullmatch(r"[0-9]+(\.[0-9]+)?[kmgt]|[0-9]+[KMGT]", option.value.strip()) is not None


def _is_dtype(target: TargetContainer, option: NamedOption) -> bool:
    if option.name.lower() != "dtype":
        return False
    return option.value.strip().lower() in (_SHORT if target.engine == "lmi" else _LONG)


def _reads(row: Spelling, option: NamedOption) -> bool:
    return read_value(row, option.value) is not None or option.value in row.unset


def _wrong_kind(rows: list[Spelling], option: NamedOption) -> bool:
    kinds = {row.kind for row in rows}
    if "json" in kinds:
        return not is_object(option.value)
    return not kinds & {"text", "json"} and not any(row.kind.startswith("pair") for row in rows)


def _wrong_word(target: TargetContainer, rows: list[Spelling], option: NamedOption) -> bool:
    """Say whether a word is wrong: any other one in a closed list, one that only others take in an open list."""
    texts = [row for row in rows if row.kind == "text" and (row.values or row.leave)]
    if not texts:
        return False
    is_open = target.dialect in _OPEN and texts[0].field in _OPEN_FIELDS
    return not is_open or option.value in _words(texts[0].field or "")


@cache
def _words(field: str) -> frozenset[str]:
    rows = [row for row in all_spellings() if row.field == field]
    return frozenset(word for row in rows for word in (*row.values.values(), *row.values, *row.reads))


def _allowed(rows: list[Spelling]) -> str:
    words = [word for row in rows for word in (*row.translation.values(), *row.reads, *row.unset)]
    plain = [_KINDS[row.kind] for row in rows if row.kind in _KINDS and not row.translation]
    return ", ".join(dict.fromkeys((*plain, *words))) or "another one"


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


def _is_refused_choice(target: TargetContainer, chosen: NamedOption) -> bool:
    """Say whether the rules on the values of rolling_batch and engine tell of it."""
    if chosen.name == "rolling_batch":
        taken = next((names for since, until, names in _ROLLING_BATCH if within(target.version, since, until)), ())
        return chosen.value not in taken
    return chosen.name == "engine" and target.version > _LAST_DEEPSPEED_ENGINE


@rule("SEA318")
def dialect_exists(subject: Subject) -> Iterator[Finding]:
    """A batcher that this version does not have."""
    target = subject.target
    if target is None or subject.table is not None:
        return
    chosen = subject.option("rolling_batch") or subject.option("engine", "server") or subject.option("async_mode")
    if chosen is None or _is_refused_choice(target, chosen):
        # Where nothing written chooses it, it is an older version than is known.
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
    """Say whether quotes or a blank make another value of one that was meant."""
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
    """Say whether an option takes a plain word, so that neither quotes nor blanks can be meant."""
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
