"""What older images of a container read otherwise than newer ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_base.catalog.engine_versions import version_text
from seatrial_lint.lint.known import takes_value
from seatrial_lint.lint.rules import finding, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.catalog.engine_versions import EngineName, Version
    from seatrial_base.findings import Finding
    from seatrial_lint.lint.subject import Subject

# aws/deep-learning-containers@1c1aacc0ac (pull 5757, 2026-03-17), sagemaker_entrypoint.sh of vLLM and SGLang: from then
# on, `true` is a bare flag, `false` is left out, and vLLM's model is found without SM_VLLM_MODEL.
FIRST_WITH_FLAGS: dict[EngineName, Version] = {"vllm": (0, 17, 1), "sglang": (0, 5, 9)}
# aws/deep-learning-containers@dceae13291 (pull 6564, 2026-08-19), sagemaker_args.py: a JSON array is split.
FIRST_WITH_LISTS: Version = (0, 27, 1)
_MODEL = {"vllm": "SM_VLLM_MODEL", "sglang": "SM_SGLANG_MODEL_PATH"}


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
    target, written = subject.target, next((one for one in subject.options if one.entry.key == "HF_MODEL_ID"), None)
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
