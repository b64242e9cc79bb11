"""What a few of LMI's keys together say of its batching."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial_base.catalog.engine_versions import Version

ASYNC_BY_DEFAULT = (17,)  # LMI 17: LmiConfigRecommender turns the asynchronous handler on


def is_accelerate_trap(written: dict[str, str], number: Version) -> bool:
    """Say whether `rolling_batch=disable` stands alone where that leads to Hugging Face Accelerate, not vLLM."""
    meant = written.get("quantize", "") in ("bitsandbytes4", "bitsandbytes8") or batches_dynamically(written)
    generates = written.get("task", "text-generation") in ("", "text-generation")
    alone = not meant and generates and not written.keys() & {"entryPoint", "device_map"}
    not_async = written.get("async_mode", "").lower() != "true"
    return written.get("rolling_batch") == "disable" and number >= ASYNC_BY_DEFAULT and alone and not_async


def batches_dynamically(written: dict[str, str]) -> bool:
    """Say whether whole requests are batched."""
    return is_above_one(written.get("batch_size", written.get("max_dynamic_batch_size", "1")))


def is_above_one(text: str) -> bool:
    """Say whether a text is a whole number above 1."""
    digits = text.strip()
    return digits.isascii() and digits.isdigit() and digits.lstrip("0") not in ("", "1")
