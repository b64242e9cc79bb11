"""Writes `seatrial_base/catalog/data/operators.json`: how fast accelerators run the operators of a model.

    uv run --isolated --with aiconfigurator-core==0.12.0 --with pandas --with pyarrow --with scipy==1.17.1 \
        python scripts/operator_tables.py [SYSTEMS_FOLDER]

Reads the operator tables of aiconfigurator-core (Apache-2.0), which are measured kernel by kernel on real GPUs, and
fits the few constants of `catalog.operators` on each: one row per accelerator, operator and precision. The
folder is that of the installed package without an argument. Rows that beat the memory bandwidth are left out: their
operands were in the cache. Nothing of the package is read at run time.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from seatrial_base.catalog import instances, precision
from seatrial_base.catalog.instances import INSTANCES
from seatrial_base.catalog.operators import Kind, Link, Operator, chosen_share
from seatrial_base.catalog.precision import find_precision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

OUT: Final = (
    Path(__file__).parents[1] / "packages" / "seatrial-base" / "seatrial_base" / "catalog" / "data" / "operators.json"
)
SOURCE: Final = "aiconfigurator-core 0.12.0 (Apache-2.0), tables of {version}"
ENGINES: Final = ("vllm", "sglang", "trtllm")


@dataclass(frozen=True)
class Gpu:
    """A GPU of the tables: its folder there, the catalog's name of it, and its data sheet (bytes/s, dense FLOP/s)."""

    folder: str
    name: str
    bandwidth: float
    flops_16: float
    flops_8: float | None
    flops_4: float | None

    def flops(self, bits: int) -> float:
        """Return the peak for operands of some bits; that of 16 where there is no such arithmetic."""
        return {16: self.flops_16, 8: self.flops_8, 4: self.flops_4}[bits] or self.flops_16


FOLDERS: Final = {
    "a100_sxm": "NVIDIA A100 80GB SXM4",
    "l40s": "NVIDIA L40S",
    "h100_sxm": "NVIDIA H100 SXM5 80GB",
    "h200_sxm": "NVIDIA H200 SXM 141GB",
    "b200_sxm": "NVIDIA B200 SXM",
    "b300_sxm": "NVIDIA B300 SXM",
    "rtx_pro_6000_server": "NVIDIA RTX PRO 6000 Blackwell Server",
}
PRODUCTS: Final = {"16-bit": ("bfloat16",), "fp8": ("fp8",), "nvfp4": ("nvfp4",)}
EXPERTS: Final = {
    "16-bit": ("bfloat16",),
    "fp8": ("fp8_block",),
    "nvfp4": ("nvfp4",),
    "mxfp4": ("w4a16_mxfp4", "w4a8_mxfp4_mxfp8"),
    "int4": ("int4_wo",),
}
LEAST_PRODUCT_BYTES: Final = 8e6  # smaller weights stay in the cache between two runs
SIDES: Final = (1024, 30_000)  # of a weight matrix
EXPERT_SHAPE: Final = ["num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size"]
# Accelerators on which engines run FlashInfer's kernels where their own are slower, and the weights of which they do:
# MXFP4's are TensorRT-LLM's. Elsewhere an engine has its own or none.
FLASHINFER: Final = ("NVIDIA B200 SXM", "NVIDIA B300 SXM")
SHARED_EXPERTS: Final = ("mxfp4",)
FUSED: Final = {"vllm": "trtllm"}  # whose all-reduce it runs there
ROUTING: Final = "power_law_1.01"
LEAST_EXPERTS: Final = 32
# Hidden and inner size of experts with two matrices: Nemotron 3's, whose kernels TensorRT-LLM alone names `nongated`.
UNGATED: Final = ((2048, 5120), (2688, 1856))
LEAST_EXPERT_POINTS: Final = 50
LARGEST_OWN_ERROR: Final = 0.3
CONTEXTS: Final = (128, 33_000)
HEAD_DIM: Final = 128
LEAST_PREFILL_FLOPS: Final = 1e10  # below, the launch of the kernel counts
MESSAGES: Final = (1024, 2**26)  # elements of 16 bits
DEGREES: Final = (2, 4, 8)
S_PER_MS: Final = 1e-3
NVLINK: Final = (
    "NVIDIA A100 80GB SXM4",
    "NVIDIA H100 SXM5 80GB",
    "NVIDIA H200 SXM 141GB",
    "NVIDIA B200 SXM",
    "NVIDIA B300 SXM",
)
# Accelerators whose all-reduce is that of another one's table, and what each hop through the host's memory adds: that
# of the A10G was fitted on its rows (TGI's and vLLM's at degree 4 agree), and says nothing of the L40S itself.
BORROWED_LINKS: Final = {"NVIDIA A10G": ("NVIDIA L40S", 2e-5)}


def gpu_of(folder: str, name: str) -> Gpu:
    """Return a GPU with the catalog's data sheet: shares of another one would be wrong where they are multiplied."""
    sheet = next(instance for instance in INSTANCES.rows if instance.accelerator == name)
    if sheet.memory_bandwidth_bytes_s is None or sheet.flops_16bit is None:
        raise SystemExit(f"the catalog has no data sheet of {name}")
    return Gpu(
        folder, name, sheet.memory_bandwidth_bytes_s, sheet.flops_16bit, sheet.flops_8bit, instances.flops_4bit(name)
    )


def bits_of(name: str) -> float:
    """Return the bits of a weight."""
    found = find_precision(None if name == "16-bit" else name)
    return precision.BITS_16BIT if found is None else found.bits


def operand_bits(name: str) -> int:
    """Return the width of the operands."""
    found = find_precision(None if name == "16-bit" else name)
    return 16 if found is None else found.arithmetic_bits


def newest(folder: Path, table: str) -> tuple[pd.DataFrame, str] | None:
    """Return a table with the newest version of each engine, and those versions."""
    frames, versions = [], []
    for engine in ENGINES:
        found = _versions(folder, engine, table)
        if found:
            frames.append(_numbers(pd.read_parquet(found[-1])))
            versions.append(f"{engine} {found[-1].parent.name}")
    return (pd.concat(frames), ", ".join(versions)) if frames else None


def _versions(folder: Path, engine: str, table: str) -> list[Path]:
    """Return an engine's tables, the oldest version first; `1.3.0rc10` is newer than `1.3.0rc9`."""

    def release(path: Path) -> tuple[int, ...]:
        return tuple(int(number) for number in re.findall(r"\d+", path.parent.name))

    return sorted(folder.glob(f"{engine}/*/{table}.parquet"), key=release)


def _numbers(frame: pd.DataFrame) -> pd.DataFrame:
    texts = {"framework", "version", "device", "op_name", "kernel_source", "distribution", "backend"}
    for column in frame.columns:
        if column not in texts and not column.endswith("dtype"):
            frame[column] = pd.to_numeric(frame[column], errors="coerce")
    return frame


def logistic(value: float, low: float, high: float) -> float:
    """Return a number between two bounds."""
    return low + (high - low) / (1 + float(np.exp(-value)))


def roofline(fitted: Sequence[float] | Numbers, read_s: Numbers, arithmetic_s: Numbers) -> Numbers:
    """Return latency + ((read / em) ** q + (arithmetic / ec) ** q) ** (1 / q)."""
    latency, memory, compute, sharpness = _bounded(fitted)
    inside: Numbers = (read_s / memory) ** sharpness + (arithmetic_s / compute) ** sharpness
    seconds: Numbers = latency + inside ** (1 / sharpness)
    return seconds


def _bounded(fitted: Sequence[float] | Numbers) -> tuple[float, float, float, float]:
    return (
        float(np.exp(fitted[0])),
        logistic(fitted[1], 0.3, 0.97),
        logistic(fitted[2], 0.05, 0.95),
        logistic(fitted[3], 1.0, 4.0),
    )


def fitted_row(
    gpu: Gpu, operator: Kind, name: str, measured: tuple[Numbers, Numbers, Numbers], version: str
) -> Operator:
    """Fit the constants of one operator on read, arithmetic and measured seconds."""
    read_s, arithmetic_s, latency_s = measured
    start = [np.log(8e-6), 1.5, 0.0, 0.0]

    def off(fitted: Numbers) -> Numbers:
        prior = [0.5 * (fitted[0] - start[0])]
        return np.concatenate([np.log(roofline(fitted, read_s, arithmetic_s) / latency_s), prior])

    found = least_squares(off, start, loss="soft_l1", f_scale=0.2)
    latency, memory, compute, sharpness = _bounded(found.x)
    error = float(np.mean(np.abs(roofline(found.x, read_s, arithmetic_s) / latency_s - 1)))
    source = SOURCE.format(version=version)
    return Operator(
        accelerator=gpu.name,
        operator=operator,
        precision=name,
        latency_s=three_digits(latency),
        memory_efficiency=three_digits(memory),
        compute_efficiency=three_digits(compute),
        sharpness=three_digits(sharpness),
        half_length=0.0,
        points=len(latency_s),
        error=round(error, 3),
        source=source,
    )


def three_digits(value: float) -> float:
    """Return a number rounded to three significant digits."""
    return float(f"{value:.3g}")


def products(gpu: Gpu, folder: Path) -> list[Operator]:
    """Fit matrix products of the sizes that language models have."""
    table = newest(folder / "gemm", "gemm_perf")
    if table is None:
        return []
    frame, version = table
    rows: list[Operator] = []
    for name, kinds in PRODUCTS.items():
        best = frame[frame.gemm_dtype.isin(kinds)].groupby(["m", "n", "k"]).latency.min().reset_index()
        width = bits_of(name) / 8
        best = best[(best.n * best.k * width > LEAST_PRODUCT_BYTES) & best.n.between(*SIDES)]
        best = best[best.k.between(*SIDES)]
        if best.empty:
            continue
        moved = best.n * best.k * width + best.m * best.k * min(2, width) + best.m * best.n * 2
        read_s, latency_s = moved / gpu.bandwidth, best.latency * S_PER_MS
        arithmetic_s = 2 * best.m * best.n * best.k / gpu.flops(operand_bits(name))
        keep = latency_s > 0.98 * read_s
        measured = tuple(each[keep].to_numpy(float) for each in (read_s, arithmetic_s, latency_s))
        rows.append(fitted_row(gpu, "product", name, measured, version))
    return rows


def experts(gpu: Gpu, folder: Path) -> list[Operator]:
    """Fit the experts of one layer: read are those that any token chose, for the fastest of all engines and for each.

    On `FLASHINFER` no engine has a row of its own of `SHARED_EXPERTS`.
    """
    kernels = _expert_kernels(gpu, folder / "moe")
    rows: list[Operator] = []
    for name in EXPERTS:
        mine = [kernel for kernel in kernels if kernel.precision == name]
        shared = gpu.name in FLASHINFER and name in SHARED_EXPERTS
        trtllm = [kernel for kernel in mine if kernel.engine == "trtllm"] if shared and name == "mxfp4" else []
        rows += _fitted_experts(gpu, name, trtllm or mine, "")
        if not shared:
            own = [row for kernel in mine for row in _fitted_experts(gpu, name, [kernel], kernel.engine)]
            rows += [row for row in own if _is_chosen(gpu, row, rows)]
    return rows


def _is_chosen(gpu: Gpu, own: Operator, rows: Sequence[Operator]) -> bool:
    """Tell whether an engine would run its own kernels: on `FLASHINFER` not where they take twice the fastest's time.

    Where the form fits them badly, the fastest of all engines are the better guess, too.
    """
    fastest = next(row for row in rows if row.precision == own.precision and not row.engine)
    has_others = gpu.name in FLASHINFER and own.latency_s > 2 * fastest.latency_s
    return own.error <= LARGEST_OWN_ERROR and not has_others


@dataclass(frozen=True)
class ExpertKernels:
    """The measured experts of one engine at one precision."""

    engine: str
    precision: str
    version: str
    frame: pd.DataFrame


def _expert_kernels(gpu: Gpu, folder: Path) -> list[ExpertKernels]:
    """Return of each engine and precision the newest version that has enough kernels."""
    found: list[ExpertKernels] = []
    for engine in ENGINES:
        tables = [(path.parent.name, _numbers(pd.read_parquet(path))) for path in _versions(folder, engine, "moe_perf")]
        for name, kinds in EXPERTS.items():
            own = kinds[-1:] if name == "mxfp4" and gpu.name in FLASHINFER else kinds
            usable = [(version, _usable(frame, own)) for version, frame in reversed(tables)]
            newest_one = next(
                ((version, frame) for version, frame in usable if len(frame) >= LEAST_EXPERT_POINTS), None
            )
            if newest_one is not None:
                found.append(ExpertKernels(engine, name, *newest_one))
    return found


def _usable(frame: pd.DataFrame, kinds: tuple[str, ...]) -> pd.DataFrame:
    """Return the fastest kernel of each size: gated experts, all on each accelerator, routed by a power law.

    Slices of a higher degree than an instance has are so narrow that they would decide the least time of all.
    """
    mine = frame[frame.moe_dtype.isin(kinds) & (frame.moe_ep_size == 1) & (frame.num_experts >= LEAST_EXPERTS)]
    mine = mine[(mine.distribution == ROUTING) & (mine.moe_tp_size <= DEGREES[-1])]
    for hidden, inner in UNGATED:
        mine = mine[(mine.hidden_size != hidden) | (mine.inter_size != inner)]
    return mine.groupby(EXPERT_SHAPE).latency.min().reset_index()


def _fitted_experts(gpu: Gpu, name: str, kernels: Sequence[ExpertKernels], engine: str) -> list[Operator]:
    if not kernels:
        return []
    best = pd.concat([kernel.frame for kernel in kernels]).groupby(EXPERT_SHAPE).latency.min().reset_index()
    one = 3 * best.hidden_size * best.inter_size / best.moe_tp_size
    touched = best.num_experts * chosen_share(best.topk / best.num_experts, best.num_tokens)
    read_s, latency_s = touched * one * bits_of(name) / 8 / gpu.bandwidth, best.latency * S_PER_MS
    arithmetic_s = 2 * best.num_tokens * best.topk * one / gpu.flops(operand_bits(name))
    keep = latency_s > 0.4 * read_s
    measured = tuple(each[keep].to_numpy(float) for each in (read_s, arithmetic_s, latency_s))
    version = ", ".join(f"{kernel.engine} {kernel.version}" for kernel in kernels)
    return [replace(fitted_row(gpu, "experts", name, measured, version), engine=engine)]


def decode_attention(gpu: Gpu, folder: Path) -> list[Operator]:
    """Fit attention of decode steps: one query a sequence, the whole cache is read."""
    table = newest(folder / "attention", "generation_attention_perf")
    if table is None:
        return []
    frame, version = table
    mine = frame[(frame.kv_cache_dtype == "bfloat16") & (frame.head_dim == HEAD_DIM)]
    context = mine.step + mine.isl
    mine, context = mine[context.between(*CONTEXTS)], context[context.between(*CONTEXTS)]
    read_s = mine.batch_size * context * mine.num_key_value_heads * 2 * HEAD_DIM * 2 / gpu.bandwidth
    latency_s = mine.latency * S_PER_MS
    keep = latency_s > read_s
    nothing = np.full(int(keep.sum()), 1e-15)
    measured = (read_s[keep].to_numpy(float), nothing, latency_s[keep].to_numpy(float))
    return [fitted_row(gpu, "decode attention", "16-bit", measured, version)]


def prefill_attention(gpu: Gpu, folder: Path) -> list[Operator]:
    """Fit attention of whole prompts: the reached share of the peak grows with the length, e * s / (s + h)."""
    table = newest(folder / "attention", "context_attention_perf")
    if table is None:
        return []
    frame, version = table
    mine = frame[(frame.kv_cache_dtype == "bfloat16") & (frame.attn_dtype == "bfloat16") & (frame.head_dim == HEAD_DIM)]
    for column in ("step", "window_size"):
        mine = mine[mine[column] <= 0] if column in mine else mine
    flops = 2 * mine.batch_size * mine.isl**2 * mine.num_heads * HEAD_DIM  # causal: half of all pairs
    mine, flops = mine[flops > LEAST_PREFILL_FLOPS], flops[flops > LEAST_PREFILL_FLOPS]
    share, length = (flops / (mine.latency * S_PER_MS) / gpu.flops_16).to_numpy(float), mine.isl.to_numpy(float)

    def shape(fitted: Numbers) -> Numbers:
        reached: Numbers = logistic(fitted[0], 0.05, 0.95) * length / (length + np.exp(fitted[1]))
        return reached

    found = least_squares(lambda fitted: np.log(shape(fitted) / share), [0.0, 6.0], loss="soft_l1", f_scale=0.2)
    error = float(np.mean(np.abs(shape(found.x) / share - 1)))
    efficiency, half = three_digits(logistic(found.x[0], 0.05, 0.95)), three_digits(float(np.exp(found.x[1])))
    source = SOURCE.format(version=version)
    return [
        Operator(
            gpu.name, "prefill attention", "16-bit", 0, 1, efficiency, 1, half, len(share), round(error, 3), source
        )
    ]


def links(gpu: Gpu, folder: Path) -> list[Link]:
    """Fit the all-reduce of each degree: latency + 2 (n - 1) / n * bytes / bus bandwidth; keep each engine's sizes."""
    table = newest(folder / "comm", "custom_allreduce_perf")
    if table is None:
        return []
    frame, version = table
    fitted = [link(gpu, frame[frame.num_gpus == degree], degree, version) for degree in DEGREES]
    if gpu.name not in NVLINK:
        return fitted
    own = [_own_link(one, folder / "comm", engine) for engine in ENGINES for one in fitted]
    return [*fitted, *(one for one in own if one is not None)]


def _own_link(fitted: Link, folder: Path, engine: str) -> Link | None:
    """Return an engine's all-reduce with what each size took, in a CUDA graph where it was measured so.

    A size takes no longer than a larger one: where it does, the engine chose the wrong one of its algorithms. vLLM on
    Blackwell fuses TensorRT-LLM's into its graphs (FlashInfer).
    """
    kernels = FUSED.get(engine, engine) if fitted.accelerator in FLASHINFER else engine
    found = _versions(folder, kernels, "custom_allreduce_perf")
    if not found:
        return None
    frame = _numbers(pd.read_parquet(found[-1]))
    mine = frame[(frame.num_gpus == fitted.degree) & ~frame.kernel_source.str.contains("eager")]
    times = mine[mine.message_size >= MESSAGES[0] / 2].groupby("message_size").latency.min().sort_index()
    if times.empty:
        return None
    seconds = np.minimum.accumulate(times.to_numpy(float)[::-1] * S_PER_MS)[::-1]
    return replace(
        fitted,
        engine=engine,
        source=SOURCE.format(version=f"{kernels} {found[-1].parent.name}"),
        message_bytes=tuple(2.0 * size for size in times.index),
        message_s=tuple(three_digits(value) for value in seconds),
    )


def link(gpu: Gpu, frame: pd.DataFrame, degree: int, version: str) -> Link:
    """Fit the all-reduce of one degree on kernels that run in a CUDA graph, as decode steps do."""
    mine = frame[frame.kernel_source.str.contains("graph") & frame.message_size.between(*MESSAGES)]
    moved = 2 * (degree - 1) / degree * 2 * mine.message_size.to_numpy(float)
    latency_s = mine.latency.to_numpy(float) * S_PER_MS

    def off(fitted: Numbers) -> Numbers:
        logs: Numbers = np.log((np.exp(fitted[0]) + moved / np.exp(fitted[1])) / latency_s)
        return logs

    found = least_squares(off, [np.log(8e-6), np.log(100e9)], loss="soft_l1", f_scale=0.2)
    latency, bus = (three_digits(float(np.exp(value))) for value in found.x)
    return Link(gpu.name, degree, latency, bus, SOURCE.format(version=version))


def systems() -> Path:
    """Return the folder of the tables."""
    if len(sys.argv) > 1:
        return Path(sys.argv[1])
    package = importlib.util.find_spec("aiconfigurator_core")
    if package is None or package.origin is None:
        raise SystemExit("aiconfigurator-core is not installed")
    return Path(package.origin).parent / "systems"


def main() -> None:
    """Fit everything and write the data file."""
    rows: list[Operator] = []
    reduces: list[Link] = []
    for gpu in (gpu_of(folder, name) for folder, name in FOLDERS.items()):
        folder = systems() / "data" / gpu.folder
        for fit in (products, experts, decode_attention, prefill_attention):
            rows += fit(gpu, folder)
        reduces += links(gpu, folder)
    for name, (alike, hop_s) in BORROWED_LINKS.items():
        reduces += [replace(row, accelerator=name, hop_s=hop_s) for row in reduces if row.accelerator == alike]
    document = {"rows": [_given(row) for row in rows], "links": [_given(row) for row in reduces]}
    OUT.write_text(_lines(document), encoding="utf-8")


def _given(row: Operator | Link) -> dict[str, object]:
    """Return a row without what is empty."""
    return {name: value for name, value in asdict(row).items() if value not in ("", ())}


def _lines(document: dict[str, list[dict[str, object]]]) -> str:
    parts = (
        f'"{part}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n]" for part, rows in document.items()
    )
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    main()
