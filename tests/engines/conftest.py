from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from seatrial.specs.load import LoadedSpec, load_spec
from tests.sample_plan import LMI_IMAGE, decided, image_of, sample_plan

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.documents.plan import Plan

TGI_IMAGE = (
    "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-tgi-inference:2.7.0-tgi3.3.6-gpu-py311-cu124"
)
VERSIONS = {"tgi": "3.3.6", "vllm": "0.26.0", "sglang": "0.5.20"}


class Loaded(Protocol):
    def __call__(self, extra: str = ..., *, model: str = ..., isolated: bool = ...) -> LoadedSpec: ...


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    def load(
        extra: str = "", *, model: str = "hub_id: org/model\n  revision: abc123", isolated: bool = False
    ) -> LoadedSpec:
        for folder in ("endpoints", "environments"):
            (tmp_path / folder).mkdir(exist_ok=True)
        network = f"network: {{isolated: {str(isolated).lower()}}}\n"
        (tmp_path / "environments" / "dev.yaml").write_text(f"name: dev\nregion: us-east-1\n{network}")
        spec = tmp_path / "endpoints" / "chat.yaml"
        workload = "workload: {input_tokens: 256, output_tokens: 128, concurrency: 8}"
        spec.write_text(f"name: chat\nmodel:\n  {model}\n{workload}\n{extra}")
        return load_spec(spec, "dev", environments=tmp_path / "environments")

    return load


class MakePlan(Protocol):
    def __call__(
        self, engine: str = ..., *, max_num_batched_tokens: int = ..., dtype: str = ..., quantization: str | None = ...
    ) -> Plan: ...


@pytest.fixture
def make_plan() -> MakePlan:
    def make(
        engine: str = "lmi",
        *,
        max_num_batched_tokens: int = 2048,
        dtype: str = "fp16",
        quantization: str | None = None,
    ) -> Plan:
        return sample_plan(
            model_name="org/model",
            architecture="org/model",
            engine=decided(engine),
            engine_version=decided(VERSIONS.get(engine, "0.36.0")),
            image=decided(image_of(TGI_IMAGE if engine == "tgi" else LMI_IMAGE)),
            instance_type=decided("ml.g5.12xlarge"),
            accelerators_per_instance=4,
            tensor_parallel_degree=decided(4),
            max_model_len=decided(512),
            max_num_seqs=decided(64),
            max_num_batched_tokens=decided(max_num_batched_tokens),
            max_queued_requests=decided(100),
            dtype=decided(dtype),
            quantization=quantization,
            cpu_cores_per_copy=4,
            memory_min_mb=decided(1024),
            startup_timeout_s=decided(1200),
            download_timeout_s=decided(1200),
            gate_concurrency_per_copy=decided(8),
            target_concurrency_per_copy=decided(32.0),
            concurrency_levels=decided((1, 8, 64)),
        )

    return make
