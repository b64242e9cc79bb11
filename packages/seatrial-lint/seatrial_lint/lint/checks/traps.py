"""Traps from the engines' sources and issue trackers, as rows of data; older images, and effects of keys left out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.engine_versions import version_text, within
from seatrial_base.catalog.rows import CatalogTable, Sourced
from seatrial_lint.lint.known import takes_value
from seatrial_lint.lint.rules import finding, key_of, rule
from seatrial_lint.lint.target import is_accelerate_trap
from seatrial_lint.weights import MOUNT, hub_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.catalog.engine_versions import EngineName, Version
    from seatrial_base.findings import Finding, Severity
    from seatrial_lint.lint.rules import Subject
    from seatrial_lint.lint.target import NamedOption

_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?")
_COMPARED = re.compile(r"([<>])(.+)")
# aws/deep-learning-containers@1c1aacc0ac (pull 5757, 2026-03-17), sagemaker_entrypoint.sh of vLLM and SGLang: from then
# on, `true` is a bare flag, `false` is left out, and vLLM's model is found without SM_VLLM_MODEL.
FIRST_WITH_FLAGS: dict[EngineName, Version] = {"vllm": (0, 17, 1), "sglang": (0, 5, 9)}
# aws/deep-learning-containers@dceae13291 (pull 6564, 2026-08-19), sagemaker_args.py: a JSON array is split.
FIRST_WITH_LISTS: Version = (0, 27, 1)
_MODEL = {"vllm": "SM_VLLM_MODEL", "sglang": "SM_SGLANG_MODEL_PATH"}
# deepjavalibrary/djl-serving 0.28.0-dlc and 0.29.0-dlc serving/docker/lmi.Dockerfile: vLLM 0.4.2 has Marlin kernels for
# GPTQ, 0.5.3 for AWQ (vllm-project/vllm pulls 3922 and 6612).
_FIRST_WITH_MARLIN = {"gptq": (10,), "awq": (11,)}
_NEEDS_DEGREE = {
    "vllm": ("SM_VLLM_TENSOR_PARALLEL_SIZE", "the vLLM container"),
    "sglang": ("SM_SGLANG_TP", "the SGLang container"),
    "tgi": ("SM_NUM_GPUS", "TGI"),
}
_FROZEN = {
    "tgi": "TGI is in maintenance mode since December 2025: small fixes, no new models",
    "lmi-trtllm": "LMI 15 has the last image with TensorRT-LLM",
    "lmi-neuronx": "LMI 11 has the last image for Neuron",
}


@dataclass(frozen=True, slots=True, eq=False)
class Trap(Sourced):
    """One trap.

    Attributes:
        when: Names (`|` between several that mean one thing) and what their value must be: `*` for any, words with `|`
            between them, `!` before words that it must not be, `~` before a part of the text, `>2` or `<2`, or `<` and
            another name, for numbers, `hub` for a repository of the hub, `capital` for True or FALSE.
        message: What the container does; `{version}`, `{key}` and `{value}` are filled in.
        source: Where it was read, with commit, issue or pull request.
        without: Names none of which is written.
        until: Last version, a prefix.
        severity: How bad it is; `None` for the rule's own.
    """

    rule: str
    dialects: tuple[str, ...]
    when: dict[str, str]
    message: str
    fix: str
    without: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    severity: Severity | None = None
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
    "SEA393",
    "SEA398",
    "SEA399",
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
            message, fix = row.message, row.fix
            for name, word in words.items():
                message, fix = message.replace(f"{{{name}}}", word), fix.replace(f"{{{name}}}", word)
            yield finding(subject, row.rule, at.entry, message, fix, severity=row.severity)


def _place(row: Trap, written: dict[str, NamedOption]) -> NamedOption | None:
    if any(name in written for name in row.without):
        return None
    places = [(_first(names, written), wanted) for names, wanted in row.when.items()]
    holds = all(option and _is(option.value, wanted, written) for option, wanted in places)
    return places[0][0] if holds else None


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
    since = f"images read it as a flag since {version_text(target.engine, first)}"
    handed_on = [
        (option, written)
        for option in subject.options
        if option.space == "option" and (written := option.value.strip().lower()) in ("true", "false")
        if not takes_value(option.name)
    ]
    # vLLM's server has an argument without a name, `model_tag`, that takes one stray word and is not read.
    starts = target.engine == "vllm" and len(handed_on) == 1
    for option, written in handed_on:
        outcome = ("is set all the same" if written == "false" else "starts") if starts else "does not start"
        message = f"{target.called} passes {written} on as a value and {outcome}; {since}"
        fix = "leave the value empty" if written == "true" else "leave it out"
        severity: Severity | None = ("warning" if written == "false" else "note") if starts else None
        yield finding(subject, "SEA318", option.entry, message, fix, severity=severity)


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


@rule("SEA321")
def default_batch_size(subject: Subject) -> Iterator[Finding]:
    """Async LMI batches 32 sequences where nothing is written, and its documentation says 256."""
    target = subject.target
    if target is None or target.dialect != "lmi-async" or "max_num_seqs" in subject.fields:
        return
    if subject.option("max_rolling_batch_size") or subject.option("max_num_seqs"):
        return
    message = "the default of max_rolling_batch_size is 32 in the asynchronous handler, not 256 as documented"
    yield finding(subject, "SEA321", None, message, f"write {key_of(subject, 'max_rolling_batch_size')}")


@rule("SEA336")
def single_gpu_default(subject: Subject) -> Iterator[Finding]:
    """Containers that use one GPU by default."""
    target, instance = subject.target, subject.instance
    if target is None or target.engine not in _NEEDS_DEGREE or instance is None or instance.accelerator_count == 1:
        return
    if "tensor_parallel_degree" in subject.fields or subject.text("SHARDED").lower() == "true":
        return
    key, container = _NEEDS_DEGREE[target.engine]
    if subject.option("data_parallel_size") or subject.option("pipeline_parallel_size"):
        return
    message = f"{container} uses 1 of the {instance.accelerator_count} GPUs of {instance.instance_type}"
    yield finding(subject, "SEA336", None, message, f"write {key}={instance.accelerator_count}")


@rule("SEA339")
def marlin(subject: Subject) -> Iterator[Finding]:
    """Naming a checkpoint's quantization turns vLLM's faster kernels off."""
    target = subject.target
    if target is None or target.dialect not in ("lmi-async", "lmi-vllm", "vllm"):
        return
    for name in ("quantize", "quantization"):
        option = subject.option(name, "option")
        first = _FIRST_WITH_MARLIN.get(option.value) if option else None
        if option and first and (target.engine != "lmi" or target.version >= first):
            message = f"vLLM reads {option.value} from the checkpoint; setting it disables the faster Marlin kernels"
            yield finding(subject, "SEA339", option.entry, message, "leave it out")


@rule("SEA333")
def compiled_at_start(subject: Subject) -> Iterator[Finding]:
    """TensorRT-LLM builds its engine at every start from a hub model."""
    target, model = subject.target, subject.fields.get("model_id")
    if target is None or target.dialect != "lmi-trtllm" or model is None or not hub_id(model.value):
        return
    if subject.text("backend") == "pytorch":
        return
    message = "TensorRT-LLM compiles this model at every start, which takes many minutes"
    fix = "compile it ahead of time, or raise both startup timeouts"
    yield finding(subject, "SEA333", model.option.entry, message, fix)


@rule("SEA334")
def accelerate(subject: Subject) -> Iterator[Finding]:
    """`rolling_batch=disable` alone leads away from vLLM."""
    target, option = subject.target, subject.option("rolling_batch")
    written = {one.name: one.value for one in subject.options}
    if target is None or target.engine != "lmi" or option is None or not is_accelerate_trap(written, target.version):
        return
    message = f"without option.async_mode, {target.called} loads the model with Hugging Face Accelerate, not vLLM"
    fix = (
        f"write {key_of(subject, 'async_mode')}=true and {key_of(subject, 'entryPoint')}="
        "djl_python.lmi_vllm.vllm_async_service as well, or leave it out"
    )
    yield finding(subject, "SEA334", option.entry, message, fix)


@rule("SEA341")
def missing_tgi_model(subject: Subject) -> Iterator[Finding]:
    """TGI without a model."""
    target = subject.target
    if target is None or target.engine != "tgi" or subject.option("MODEL_ID"):
        return
    message = "TGI does not start without HF_MODEL_ID"
    yield finding(subject, "SEA341", None, message, f"write HF_MODEL_ID; for weights from S3, {MOUNT}")


@rule("SEA342", handler="any")
def frozen(subject: Subject) -> Iterator[Finding]:
    """Containers that get no new versions."""
    target = subject.target
    if target and (because := _FROZEN.get(target.dialect)):
        yield finding(subject, "SEA342", None, because, "move to LMI with vLLM: seatrial convert --to lmi")


@rule("SEA365", handler="any")
def revision(subject: Subject) -> Iterator[Finding]:
    """A hub model without revision."""
    field = subject.fields.get("model_id")
    if field and hub_id(field.value) and "revision" not in subject.fields:
        message = f"the main branch of {field.value} can move: a restart may load another model"
        yield finding(subject, "SEA365", field.option.entry, message, "set the commit as revision")
