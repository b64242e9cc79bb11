"""Restrictions of speculative decoding."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from seatrial_lint.lint.rules import finding, key_of, rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial_base.findings import Finding
    from seatrial_lint.lint.names import NamedOption
    from seatrial_lint.lint.subject import Subject

_WITH_DRAFT_MODEL = ("draft_model", "eagle", "eagle3", "medusa", "mlp_speculator")


@rule("SEA332")
def lmi_dist(subject: Subject) -> Iterator[Finding]:
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
def vllm(subject: Subject) -> Iterator[Finding]:
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
    yield from _draft_degree(subject, option, config)


def _draft_degree(subject: Subject, option: NamedOption, config: Mapping[str, object]) -> Iterator[Finding]:
    size, degree = config.get("draft_tensor_parallel_size"), subject.fields.get("tensor_parallel_degree")
    if isinstance(size, int) and degree and degree.number and size not in (1, degree.number):
        message = f"the draft model runs on 1 GPU or on all {degree.number}, not on {size}"
        yield finding(subject, "SEA332", option.entry, message, f"write 1 or {degree.number}")


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
            subject, "SEA332", draft.entry, message, f"write {key_of(subject, 'use_v2_block_manager')}=true beside it"
        )
