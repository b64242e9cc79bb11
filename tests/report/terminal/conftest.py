"""A plan with a made-up curve, its spec, and a terminal that writes to a string."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Protocol

import pytest
import yaml
from rich.console import Console

from seatrial.documents.plan import Alternative, CurvePoint, Plan, Rejected
from seatrial.specs.load import load_spec
from tests.sample_plan import BAND, COST, MEMORY, PARETO, REGIME, decided, sample_plan

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from seatrial.specs.load import LoadedSpec

SPEC: dict[str, object] = {
    "name": "chat",
    "model": {"hub_id": "meta-llama/Llama-2-7b-chat-hf"},
    "workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 16},
    "slo": {"ttft_ms": {"p95": 2000}, "tpot_ms": {"p95": 60}},
    "serving": {"instance_types": ["ml.g5.2xlarge"]},
}
LEVELS = (1, 2, 4, 8, 16, 32, 64)


def point(concurrency: int) -> CurvePoint:
    """Return one level of a copy that batches 24 sequences; the other requests wait."""
    running, waiting = min(concurrency, 24), max(0, concurrency - 24)
    tpot_ms, prefill_ms = 21 + 0.6 * running, 60 + 9.0 * running
    service_ms = prefill_ms + 255 * tpot_ms
    ttft_ms = prefill_ms + 250.0 * waiting
    return CurvePoint(
        concurrency=concurrency,
        output_tok_s=running * 256_000 / service_ms,
        ttft_ms=ttft_ms,
        tpot_ms=tpot_ms,
        e2e_latency_ms=ttft_ms + 255 * tpot_ms,
        ms_per_token=(ttft_ms + 255 * tpot_ms) / 256,
        ttft_p95_ms=ttft_ms * 1.4,
        tpot_p95_ms=tpot_ms * 1.2,
        e2e_latency_p95_ms=(ttft_ms + 255 * tpot_ms) * 1.25,
        ms_per_token_p90=(ttft_ms + 255 * tpot_ms) / 256 * 1.2,
        late=0.0,
        limit="kv" if waiting else "memory",
    )


CURVE = tuple(map(point, LEVELS))


@pytest.fixture(scope="session")
def plan() -> Plan:
    larger = Alternative(
        instance_type="ml.g5.12xlarge",
        tensor_parallel_degree=4,
        copies_per_instance=1,
        copy_count=2,
        instance_count=2,
        usd_per_hour=None,
        usd_per_million_output_tokens=None,
        output_tok_s=820.0,
        highest_tok_s=2440.0,
        ms_per_token_alone=17.5,
        chosen=False,
    )
    loser = Rejected(
        instance_type="ml.g6e.2xlarge",
        tensor_parallel_degree=1,
        usd_per_hour=2.8,
        output_tok_s=410.0,
        because="It keeps every objective and costs $2.80 per hour, $1.285 more than the chosen one.",
    )
    return sample_plan(
        curve=CURVE,
        concurrency_levels=decided(LEVELS),
        pareto=(*PARETO, larger),
        rejected=(loser,),
        warnings=("The acceptance rate of drafted tokens is assumed.",),
        memory=MEMORY,
        regime=REGIME,
        band=BAND,
        cost=COST,
    )


@pytest.fixture
def loaded(tmp_path: Path) -> LoadedSpec:
    (tmp_path / "dev.yaml").write_text(yaml.safe_dump({"name": "dev", "region": "us-east-1"}), encoding="utf-8")
    spec = tmp_path / "chat.yaml"
    spec.write_text(yaml.safe_dump(SPEC, sort_keys=False), encoding="utf-8")
    return load_spec(spec, "dev", environments=tmp_path)


class Shown(Protocol):
    def __call__(self, view: RenderableType, *, width: int = ..., encoding: str = ...) -> str: ...


@pytest.fixture
def shown() -> Shown:
    """Return what a terminal of this width and encoding gets, without the blanks at the ends of lines."""

    def printed(view: RenderableType, *, width: int = 80, encoding: str = "utf-8") -> str:
        written = io.BytesIO()
        file = io.TextIOWrapper(written, encoding=encoding, errors="replace")
        Console(file=file, width=width, highlight=False).print(view)
        file.flush()
        lines = written.getvalue().decode(encoding).splitlines()
        return "\n".join(line.rstrip() for line in lines) + "\n"

    return printed
