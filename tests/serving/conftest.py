from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from seatrial.plan.document import Cost, Decision, Image, MemoryFit, Plan
from seatrial.spec.load import LoadedSpec, load_spec

if TYPE_CHECKING:
    from pathlib import Path

LMI_IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
TGI_IMAGE = (
    "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-tgi-inference:2.7.0-tgi3.3.6-gpu-py311-cu124"
)


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
        uri = TGI_IMAGE if engine == "tgi" else LMI_IMAGE
        repository, _, tag = uri.partition("/")[2].partition(":")
        why = "chosen for the test"
        return Plan(
            endpoint="chat",
            environment="dev",
            spec_digest="0" * 16,
            model_name="org/model",
            architecture="org/model",
            engine=Decision(value=engine, because=why),
            engine_version=Decision(value="3.3.6" if engine == "tgi" else "0.36.0", because=why),
            image=Decision(value=Image(uri=uri, repository=repository, tag=tag), because=why),
            inference_ami_version=Decision(value=None, because=why),
            instance_type=Decision(value="ml.g5.12xlarge", because=why),
            accelerators_per_instance=4,
            instance_count=Decision(value=1, because=why),
            tensor_parallel_degree=Decision(value=4, because=why),
            copies_per_instance=Decision(value=1, because=why),
            copy_count=Decision(value=1, because=why),
            max_copies=1,
            max_instances=1,
            copies_replaced_at_once=None,
            surge_instances=Decision(value=1, because=why),
            max_model_len=Decision(value=512, because=why),
            max_num_seqs=Decision(value=64, because=why),
            max_num_batched_tokens=Decision(value=max_num_batched_tokens, because=why),
            max_queued_requests=Decision(value=100, because=why),
            dtype=Decision(value=dtype, because=why),
            quantization=quantization,
            cpu_cores_per_copy=4,
            memory_min_mb=Decision(value=1024, because=why),
            startup_timeout_s=Decision(value=1200, because=why),
            download_timeout_s=Decision(value=1200, because=why),
            target_concurrency_per_copy=Decision(value=32.0, because=why),
            gate_concurrency_per_copy=Decision(value=8, because=why),
            concurrency_levels=Decision(value=(1, 8, 64), because=why),
            memory=MemoryFit(
                accelerator_memory_bytes=1,
                weights_bytes=1,
                reserve_bytes=0,
                kv_room_bytes=0,
                kv_bytes_per_token=1,
                kv_limited_batch=0,
            ),
            curve=(),
            uncertainty=0.5,
            cost=Cost(
                usd_per_hour=None,
                usd_per_hour_per_copy=None,
                usd_per_million_output_tokens=None,
                blended_usd_per_million_tokens=None,
                price_source=None,
                price_date=None,
            ),
            rejected=(),
        )

    return make
