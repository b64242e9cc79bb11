"""The published rows of today's engines in `measured/`, as deployments under a load."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import resolve_model

if TYPE_CHECKING:
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.engines import Family
    from seatrial_base.catalog.instances import Instance

FOLDER = Path(__file__).parent / "measured_rows"
PUBLIC = "public"  # many sources with few rows each
FILES = ("gpu_sweeps", "gpu_runs", "gpu_at_hand", "sagemaker_endpoints", "trtllm_saturation", PUBLIC)
OPTIMIZED = "sagemaker_endpoints_optimised"
ENGINES: dict[str, Family] = {"vLLM": "vllm", "SGLang": "sglang", "TensorRT-LLM": "trtllm"}
_ACCELERATORS = {"A100 SXM4 80GB": "ml.p4de.24xlarge", "L40S": "ml.g6e.48xlarge"}
_MODELS = {"Mixtral 8x7B": "mistralai/Mixtral-8x7B-v0.1", "Mixtral 8x22B": "mistralai/Mixtral-8x22B-v0.1"}


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """One published row: a copy of a model under a closed loop, or with all requests queued at once.

    Attributes:
        file: Where it stands in `measured/`.
        source: Who published it.
        quantization: Of the weights, as `seatrial_base.catalog.precision` names it.
        concurrency: Requests in flight; `None` where all were queued at once.
        prefix_hit_rate: Share of the prompt tokens that the engine found in its cache.
        ttft_ms: Time to first token, mean or median; `None` where it was not published, as those that follow.
        tpot_ms: Time per output token after the first.
        published_mean_ms: Mean of end-to-end latency, where it was published.
        e2e_p50_ms: Median of end-to-end latency.
        e2e_p90_ms: 90th percentile of it.
        output_tok_s: Output tokens per second.
        optimization: `eagle3` or `prefix-cache`; empty for a plain deployment.
        is_doubted: The source's own figures contradict its conditions.
        use_case: The prompts of AWS's benchmark suite; empty elsewhere.
        expert_parallel_degree: Groups that the experts are dealt out to.
        attention_data_parallel_degree: Groups of accelerators that attend to sequences of their own.
    """

    file: str
    source: str
    engine: Family
    engine_version: str
    model: str
    architecture: Architecture
    quantization: str | None
    instance: Instance
    degree: int
    input_tokens: int
    output_tokens: int
    concurrency: int | None
    prefix_hit_rate: float
    ttft_ms: float | None
    tpot_ms: float | None
    published_mean_ms: float | None
    e2e_p50_ms: float | None
    e2e_p90_ms: float | None
    output_tok_s: float | None
    optimization: str = ""
    use_case: str = ""
    is_doubted: bool = False
    expert_parallel_degree: int = 1
    attention_data_parallel_degree: int = 1

    @property
    def dense(self) -> bool:
        """Whether the model has no experts."""
        return self.architecture.experts is None

    @property
    def accelerator(self) -> str:
        """The accelerator's name."""
        return self.instance.accelerator

    @property
    def precision(self) -> str:
        """The weights' precision in words."""
        return self.quantization or "16-bit"

    @property
    def e2e_mean_ms(self) -> float | None:
        """Mean end-to-end latency, as published or of published TTFT and TPOT."""
        if self.ttft_ms is None or self.tpot_ms is None:
            return self.published_mean_ms
        return self.ttft_ms + self.tpot_ms * (self.output_tokens - 1)

    @property
    def is_direct(self) -> bool:
        """Whether accelerators on PCIe talked to each other directly, as those of no instance type on AWS do.

        TensorRT-LLM's pages are of such a machine; so fast an all-reduce would be wrong for ml.g6e.
        """
        return self.file == "trtllm_saturation" and self.accelerator == "NVIDIA L40S" and self.degree > 1

    @property
    def has_queued(self) -> bool:
        """Whether requests waited longer than they ran: a limit that the source does not give kept them out."""
        return self.e2e_mean_ms is not None and self.ttft_ms is not None and self.ttft_ms > self.e2e_mean_ms / 2

    @property
    def is_comparable(self) -> bool:
        """Whether it ran as an endpoint would: a fit sees no other row, and no band comes from one."""
        return not self.is_direct and not self.has_queued and not self.is_doubted


@cache
def read_rows() -> tuple[MeasuredRow, ...]:
    """Read every row of `FILES` whose model and instance type the catalog knows and that used no speculation."""
    return tuple(row for file in FILES for row in _read(file))


@cache
def read_optimized() -> tuple[MeasuredRow, ...]:
    """Read the rows with EAGLE-3 or prefix caching, which `fit_speculation` fits and no other fit sees."""
    return tuple(_read(OPTIMIZED))


def _read(file: str) -> list[MeasuredRow]:
    with (FOLDER / f"{file}.csv").open(encoding="utf-8", newline="") as lines:
        found = (_row(file, cells) for cells in csv.DictReader(lines))
        return [row for row in found if row is not None]


def _row(file: str, cells: dict[str, str]) -> MeasuredRow | None:
    resolved = resolve_model(_MODELS.get(cells["model"], cells["model"]))
    instance = find_instance(_ACCELERATORS.get(cells["instance_type"], cells["instance_type"]))
    if resolved is None or instance is None:
        return None
    degree = int(cells["tp_degree"])
    return MeasuredRow(
        file=file,
        source=cells["source"],
        engine=ENGINES[cells["engine"]],
        engine_version=cells["engine_version"],
        model=cells["model"],
        architecture=resolved[0],
        quantization=_quantization(cells["precision"], cells["model"]),
        instance=instance,
        degree=degree,
        input_tokens=round(float(cells["input_tokens"])),
        output_tokens=round(float(cells["output_tokens"])),
        concurrency=None if cells["concurrency"] == "inf" else round(float(cells["concurrency"])),
        # Three prompts in turn, 30 requests a level: all but the first three are in vLLM's prefix cache.
        prefix_hit_rate=0.9 if file in ("sagemaker_endpoints", OPTIMIZED) else 0.0,
        ttft_ms=_number(cells["ttft_ms"]),
        tpot_ms=_number(cells["tpot_ms"]),
        published_mean_ms=_mean_ms(cells["note"]),
        e2e_p50_ms=_number(cells["e2e_p50_s"], 1000),
        e2e_p90_ms=_number(cells["e2e_p90_s"], 1000),
        output_tok_s=_number(cells["output_tok_s"]),
        optimization=cells.get("optimisation", "") if file == OPTIMIZED else "",
        use_case=cells["note"].partition("use_case=")[2].partition(";")[0] if file == OPTIMIZED else "",
        is_doubted="flag=source" in cells["note"],
        expert_parallel_degree=_parallel(cells["note"], "moe_ep", degree),
        attention_data_parallel_degree=_parallel(cells["note"], "attention_dp", degree),
    )


def _mean_ms(note: str) -> float | None:
    found = re.search(r"\bmean=([\d.]+) ms", note)
    return float(found[1]) if found else None


def _parallel(note: str, name: str, degree: int) -> int:
    """Return a degree that a note tells, at most the row's: one row has `attention_dp=16` beside a degree of 4."""
    found = re.search(rf"\b{name}=(\d+)", note)
    return min(int(found[1]), degree) if found else 1


def _quantization(precision: str, model: str) -> str | None:
    if precision in ("bf16", "fp16"):
        return None
    if precision == "fp4":
        return "mxfp4" if "gpt-oss" in model else "nvfp4"
    return precision


def _number(text: str, factor: float = 1.0) -> float | None:
    return float(text) * factor if text else None
