"""Keys that contradict each other, those of several files too; restrictions of speculative decoding."""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING

from seatrial_base.catalog.engine_versions import within
from seatrial_lint.engines.neutral import FIRST_TGI_WITH_TYPED_BITSANDBYTES
from seatrial_lint.lint.redaction import shown
from seatrial_lint.lint.rules import finding, key_like, key_of, rename, rule
from seatrial_lint.lint.target import is_above_one
from seatrial_lint.weights import hub_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.findings import Finding
    from seatrial_lint.lint.rules import Subject
    from seatrial_lint.lint.target import NamedOption

# vLLM's names of what LMI always sets under its own (vllm_rb_properties.handle_lmi_vllm_config_conflicts).
_OWN_NAMES = {
    "max_num_seqs": "max_rolling_batch_size",
    "tensor_parallel_size": "tensor_parallel_degree",
    "pipeline_parallel_size": "pipeline_parallel_degree",
}
_FIRST_PASSED_ON = (14,)
_BOTH_WAYS = ("bitsandbytes", "bitsandbytes-nf4", "bitsandbytes-fp4")
_WEIGHTS = ("s3_uri", "model_data_url", "artifact_url")
_WITH_DRAFT_MODEL = ("draft_model", "eagle", "eagle3", "medusa", "mlp_speculator")


@rule("SEA319")
def own_names(subject: Subject) -> Iterator[Finding]:
    """VLLM's name of what LMI sets itself."""
    target = subject.target
    if target is None or target.dialect not in ("lmi-async", "lmi-vllm") or target.version < _FIRST_PASSED_ON:
        return
    for name, own in _OWN_NAMES.items():
        option, beside = subject.option(name), subject.option(own)
        if option is None or (beside and beside.value == option.value):
            continue
        key = key_like(option, own)
        message = f"LMI always sets {own}: vLLM does not start if {name} differs"
        edit = None if beside else rename(subject.source, option.entry, key)
        yield finding(subject, "SEA319", option.entry, message, f"write {key} only", edit)


@rule("SEA319")
def modes(subject: Subject) -> Iterator[Finding]:
    """Batching modes of LMI that exclude each other."""
    rolling, batch = subject.text("rolling_batch"), subject.option("batch_size", "server")
    is_async = subject.text("async_mode").lower() == "true"
    if is_async and rolling not in ("", "disable"):
        option = subject.option("rolling_batch")
        message = f"the asynchronous handler does its own batching and excludes rolling_batch={rolling}"
        yield finding(subject, "SEA319", option.entry if option else None, message, "write rolling_batch=disable")
    if batch and is_above_one(batch.value) and rolling not in ("", "disable"):
        message = f"batch_size={batch.value} selects dynamic batching and disables rolling_batch={rolling}"
        yield finding(subject, "SEA319", batch.entry, message, "leave batch_size out, or write rolling_batch=disable")


@rule("SEA319", handler="any")
def two_names(subject: Subject) -> Iterator[Finding]:
    """Two names of one option that say different things."""
    first: dict[tuple[str, str], NamedOption] = {}
    for option in subject.options:
        known = first.setdefault((option.space, option.name), option)
        if known.entry.key != option.entry.key and known.value != option.value:
            message = (
                f"{known.entry.key}={known.value} on line {known.entry.line} sets the same option to another value"
            )
            yield finding(subject, "SEA319", option.entry, message, "keep one of them")


@rule("SEA319")
def tgi_conflicts(subject: Subject) -> Iterator[Finding]:
    """What TGI refuses together."""
    target = subject.target
    if target is None or target.engine != "tgi":
        return
    old, new = subject.option("MAX_INPUT_LENGTH"), subject.option("MAX_INPUT_TOKENS")
    if old and new and within(target.version, "2.0.0", None):
        message = "TGI does not start with both MAX_INPUT_LENGTH and MAX_INPUT_TOKENS"
        yield finding(subject, "SEA319", old.entry, message, "leave MAX_INPUT_LENGTH out")
    dtype, quantize = subject.option("DTYPE"), subject.option("QUANTIZE")
    is_typed = target.version >= FIRST_TGI_WITH_TYPED_BITSANDBYTES
    if dtype and quantize and not (is_typed and quantize.value in _BOTH_WAYS):
        message = f"TGI does not start with both DTYPE and QUANTIZE={quantize.value}"
        yield finding(subject, "SEA319", dtype.entry, message, "leave DTYPE out")
    shards = subject.fields.get("tensor_parallel_degree")
    if quantize and quantize.value == "exl2" and shards and (shards.number or 1) > 1:
        yield finding(subject, "SEA319", quantize.entry, "TGI can't shard exl2 weights", "write SM_NUM_GPUS=1")


@rule("SEA319")
def prefill(subject: Subject) -> Iterator[Finding]:
    """VLLM without chunked prefill must take its longest prompt in one step."""
    tokens, length = subject.fields.get("max_num_batched_tokens"), subject.fields.get("max_model_len")
    chunked = subject.fields.get("chunked_prefill")
    vllm = subject.target is not None and subject.target.dialect in ("lmi-async", "lmi-vllm", "vllm")
    if not (vllm and tokens and chunked and chunked.value == "false"):
        return
    context = subject.architecture.max_context if subject.architecture else None
    longest = length.number if length else context
    if tokens.number is not None and longest is not None and tokens.number < longest:
        whose = "" if length else ", the model's context"
        message = (
            f"{tokens.number} tokens per step are below the sequence length {longest}{whose}, without chunked prefill"
        )
        fix = f"write at least {longest}, or enable chunked prefill"
        yield finding(subject, "SEA319", tokens.option.entry, message, fix)


@rule("SEA319")
def shards(subject: Subject) -> Iterator[Finding]:
    """TGI that is set to shard a model over one GPU."""
    target, sharded, number = subject.target, subject.option("SHARDED"), subject.option("NUM_SHARD")
    if target is None or target.engine != "tgi" or sharded is None or sharded.value.lower() != "true":
        return
    one_gpu = number is None and subject.instance is not None and subject.instance.accelerator_count == 1
    if one_gpu or (number is not None and number.value.strip() in ("0", "1")):
        message = "TGI does not start with SHARDED=true on one GPU"
        yield finding(subject, "SEA319", sharded.entry, message, "leave SHARDED out")


@rule("SEA319")
def tool_calls(subject: Subject) -> Iterator[Finding]:
    """Automatic tool choice, or reasoning, without the parser that it needs."""
    target = subject.target
    if target is None or target.dialect not in ("lmi-async", "lmi-vllm", "lmi-dist", "vllm"):
        return
    pairs = (("enable_auto_tool_choice", "tool_call_parser"), ("enable_reasoning", "reasoning_parser"))
    for flag, parser in pairs:
        option = subject.option(flag, "option")
        off = option is None or option.value.strip().lower() == "false"
        if option and not off and not subject.option(parser, "option") and not subject.option("tool_parser_plugin"):
            key = key_like(option, parser)
            message = f"{target.called} does not start with {flag} without {parser}"
            yield finding(subject, "SEA319", option.entry, message, f"write {key} as well")


# From LMI 9 on, LmiConfigRecommender.java sets the degree to all GPUs.
_LAST_WITHOUT_DEGREE = (8,)


_BITSANDBYTES = {
    "quantize": ("bitsandbytes8", "bitsandbytes4"),
    "load_in_8bit": ("true",),
    "load_in_4bit": ("true",),
}


@rule("SEA319")
def bitsandbytes(subject: Subject) -> Iterator[Finding]:
    """Quantized loading in Accelerate without a device map (hf_properties.py, construct_kwargs_quantize)."""
    target = subject.target
    if target is None or target.dialect != "lmi-python" or target.version > _LAST_WITHOUT_DEGREE:
        return
    if subject.option("device_map") or subject.option("tensor_parallel_degree"):
        return
    for option in subject.options:
        if option.value.lower() in _BITSANDBYTES.get(option.name, ()):
            message = f"{target.called} does not start with {option.name}={option.value} without device_map"
            yield finding(
                subject, "SEA319", option.entry, message, f"write {key_like(option, 'device_map')}=auto as well"
            )


_WITHOUT_ADAPTERS = {
    "lmi-python": "Hugging Face Accelerate loads no adapters",
    "lmi-trtllm": "LMI loads no adapters with TensorRT-LLM",
}


@rule("SEA319", handler="any")
def lora_without_loader(subject: Subject) -> Iterator[Finding]:
    """LoRA where no batcher loads adapters (huggingface.py and rolling_batch.py, add_lora, since DJL 0.28)."""
    target, option = subject.target, subject.option("enable_lora")
    if target is None or option is None or option.value.lower() != "true" or target.version < _FIRST_ADAPTERS:
        return
    because = _WITHOUT_ADAPTERS.get(target.dialect) if subject.handler != "user" else None
    if because:
        message = f"{because}: registering one fails"
        fix = "choose vLLM, or leave enable_lora out"
        yield finding(subject, "SEA319", option.entry, message, fix, severity="warning")


_FIRST_ADAPTERS = (10,)


@rule("SEA335", handler="any")
def two_models(subject: Subject) -> Iterator[Finding]:
    """A hub id in the environment beside a packaged model loads two models."""
    target = subject.target
    written = next((entry for entry in subject.source.entries if entry.key == "HF_MODEL_ID"), None)
    if target is None or target.engine != "lmi" or written is None or not hub_id(written.value):
        return
    # The file or the address of the model that is packaged or mounted.
    files = (other.source.file for other in subject.beside)
    if place := next(chain(files, (subject.facts[name].value for name in _WEIGHTS if name in subject.facts)), ""):
        message = f"LMI loads {written.value} as a second model besides the one in {place}"
        fix = "leave HF_MODEL_ID out and write option.model_id in serving.properties, or package no model"
        yield finding(subject, "SEA335", written, message, fix)


@rule("SEA343", handler="any")
def overruled(subject: Subject) -> Iterator[Finding]:
    """An environment variable that the packaged file overrules."""
    if subject.target is None or subject.target.engine != "lmi" or subject.source.kind == "serving.properties":
        return
    for other in subject.beside:
        for option in subject.options:
            same = other.option(option.name, option.space)
            if same and same.value != option.value and option.name != "model_id":
                message = (
                    f"{other.source.file} has {shown(same.entry)} on line {same.entry.line}, which takes precedence"
                )
                yield finding(subject, "SEA343", option.entry, message, "keep one of them")


def is_packaged(subject: Subject) -> bool:
    """Return whether LMI would find a file next to the model: it reads that one name only."""
    return subject.source.file.rpartition("/")[2] == "serving.properties"


@rule("SEA332")
def lmi_dist_drafts(subject: Subject) -> Iterator[Finding]:
    """lmi-dist takes LoRA or a draft model, and the draft model on one GPU or all."""
    target, draft = subject.target, subject.option("speculative_draft_model")
    if target is None or target.dialect != "lmi-dist" or draft is None:
        return
    if subject.text("enable_lora").lower() == "true":
        message = "lmi-dist does not start with LoRA and speculative decoding together"
        yield finding(subject, "SEA332", draft.entry, message, "leave one of them out")
    size, degree = subject.option("draft_model_tp_size"), subject.fields.get("tensor_parallel_degree")
    if size and degree and size.value not in ("1", degree.value):
        message = f"the draft model runs on 1 GPU or on all {degree.value}, not on {size.value}"
        yield finding(subject, "SEA332", size.entry, message, f"write 1 or {degree.value}")


@rule("SEA332")
def speculative_config(subject: Subject) -> Iterator[Finding]:
    """What vLLM's speculative_config must hold."""
    option = subject.option("speculative_config")
    config = _object(option) if option else None
    if option is None or config is None:
        return
    method, model = config.get("method"), config.get("model")
    if method in _WITH_DRAFT_MODEL and not model:
        message = f"{method} needs a draft model, but none is set"
        yield finding(subject, "SEA332", option.entry, message, 'set "model": …')
    if not method and not model:
        yield finding(subject, "SEA332", option.entry, "neither method nor model is set", 'set "method": …')
    if "num_speculative_tokens" not in config and method in ("ngram", "draft_model"):
        message = "num_speculative_tokens is missing: vLLM does not start"
        yield finding(subject, "SEA332", option.entry, message, 'set "num_speculative_tokens": 4')
    size, degree = config.get("draft_tensor_parallel_size"), subject.fields.get("tensor_parallel_degree")
    if isinstance(size, int) and degree and degree.number and size not in (1, degree.number):
        degree_message = f"the draft model runs on 1 GPU or on all {degree.number}, not on {size}"
        yield finding(subject, "SEA332", option.entry, degree_message, f"write 1 or {degree.number}")


def _object(option: NamedOption) -> dict[str, object] | None:
    try:
        document = json.loads(option.value)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


@rule("SEA332")
def v2_block_manager(subject: Subject) -> Iterator[Finding]:
    """VLLM 0.6 drafts only with its second block manager."""
    target = subject.target
    draft = subject.option("speculative_draft_model") or subject.option("speculative_model")
    if target is None or target.dialect != "lmi-vllm" or target.version not in ((12,), (13,)) or draft is None:
        return
    if subject.text("use_v2_block_manager").lower() != "true":
        message = f"speculative decoding in {target.called} needs vLLM's second block manager"
        yield finding(
            subject, "SEA332", draft.entry, message, f"write {key_of(subject, 'use_v2_block_manager')}=true as well"
        )
