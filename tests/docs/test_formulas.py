"""The numbers of docs/formulas.md, computed again."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.catalog import engines, instances, models
from seatrial.plan.latency import Copy, predict
from seatrial.plan.memory import fit_memory, weights_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatrial.plan.document import MemoryFit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "formulas.md").read_text(encoding="utf-8")
PUBLISHED = ROOT / "tests" / "plan" / "data" / "llama_2_7b_tgi.csv"
ARCHITECTURE, ENGINE = models.find("meta-llama/Llama-2-7b-hf"), engines.find("tgi", "1.1.0")
Errors = tuple[float, float]


def memory_of(instance_type: str, degree: int, tokens: int) -> MemoryFit:
    instance = instances.find(instance_type)
    assert ARCHITECTURE is not None
    assert instance is not None
    return fit_memory(ARCHITECTURE, instance, ENGINE, degree=degree, quantization=None, tokens=tokens)


def errors_of(row: dict[str, str]) -> Errors:
    """Return how far throughput and ms per token are predicted off one published row, as shares."""
    degree, prompt, output = (int(row[name]) for name in ("tp_degree", "input_tokens", "output_tokens"))
    instance, memory = instances.find(row["instance_type"]), memory_of(row["instance_type"], degree, prompt + output)
    assert ARCHITECTURE is not None
    assert instance is not None
    copy = Copy(
        architecture=ARCHITECTURE,
        engine=ENGINE,
        link=instance.link,
        degree=degree,
        flops=float(instance.flops_16bit or 0),
        memory_bandwidth_bytes_s=float(instance.memory_bandwidth_bytes_s or 0),
        weights_bytes=weights_bytes(ARCHITECTURE, None),
        kv_bytes_per_token=memory.kv_bytes_per_token,
        kv_limited_batch=memory.kv_limited_batch,
        max_num_seqs=1_000,
        batched_tokens=ENGINE.default_batched_tokens,
        input_tokens=prompt,
        output_tokens=output,
    )
    point = predict(copy, int(row["concurrency"]))
    throughput, latency = float(row["throughput_tok_s"]), float(row["latency_ms_per_token"])
    return abs(point.output_tok_s / throughput - 1), abs(point.ms_per_token / latency - 1)


def in_percent(errors: Iterable[float]) -> str:
    values = list(errors)
    return f"{sum(values) / len(values) * 100:.1f} %"


def rows_of_the_page(begin: str) -> list[list[str]]:
    lines = re.findall(rf"^\| {begin}.*$", PAGE, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_errors_are_those_of_the_published_table() -> None:
    lines = [line for line in PUBLISHED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    every: list[Errors] = []
    groups: dict[tuple[str, str], list[Errors]] = defaultdict(list)
    for row in csv.DictReader(lines):
        found = errors_of(row)
        every.append(found)
        groups[row["instance_type"], row["input_tokens"]].append(found)

    shown = {cells[0]: cells[2:6] for cells in rows_of_the_page(r"ml\.")}
    assert shown == {
        name: [
            in_percent(error[metric] for error in groups[name, prompt])
            for prompt in ("256", "3840")
            for metric in (0, 1)
        ]
        for name, _ in groups
    }
    (total,) = rows_of_the_page("all 52 rows")
    assert len(every) == 52
    assert total[2] == f"{in_percent(error[0] for error in every)} for throughput"
    assert total[4] == f"{in_percent(error[1] for error in every)} for ms per token"


def test_the_example_is_the_planners_own() -> None:
    fit = memory_of("ml.g5.2xlarge", 1, 4_096)
    one = fit.kv_bytes_per_token * 4_096
    for amount in (fit.accelerator_memory_bytes, fit.weights_bytes, fit.reserve_bytes, fit.kv_room_bytes, one):
        assert f"{amount:,} bytes" in PAGE
    assert f"floor({fit.kv_room_bytes / one:.2f}) = {fit.kv_limited_batch}" in PAGE
