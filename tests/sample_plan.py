"""A plan written out by hand, for the tests of what reads plans: no planner made it."""

from __future__ import annotations

from typing import TypeVar

from seatrial.documents.plan import Alternative, Cost, Decision, Image, Plan
from seatrial.documents.prediction import Band, LevelRegime, MemoryFit, PredictedKnee, Regime

Value = TypeVar("Value")

LMI_IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
MEMORY = MemoryFit(
    accelerator_memory_bytes=24_000_000_000,
    weights_bytes=13_476_839_424,
    activation_bytes=200_000_000,
    reserve_bytes=2_200_000_000,
    kv_room_bytes=8_000_000_000,
    kv_bytes_per_token=524_288,
    kv_limited_batch=29,
)
REGIME = Regime(
    arithmetic_intensity_flops_per_byte=9.5,
    machine_balance_flops_per_byte=116.0,
    critical_batch_size=116,
    bound_by="memory",
    growth_limit="kv",
    sentence="At 16 requests in flight a step is bound by memory. The KV room holds 29 sequences; more requests wait.",
    per_level=(
        LevelRegime(
            concurrency=1,
            bound_by="memory",
            share_of_step=(("memory", 0.9), ("compute", 0.0), ("host", 0.1), ("link", 0.0)),
        ),
        LevelRegime(
            concurrency=32,
            bound_by="kv",
            share_of_step=(("memory", 0.7), ("compute", 0.2), ("host", 0.1), ("link", 0.0)),
        ),
    ),
)
COST = Cost(
    usd_per_hour=1.515,
    usd_per_hour_per_copy=1.515,
    usd_per_million_output_tokens=1.2,
    blended_usd_per_million_tokens=0.3,
    discount=0.0,
    price_source="by hand",
    price_date="2026-11-21",
)
BAND = Band(throughput=0.3, latency=0.3, measured=False, because="±30% is an assumption until a trial runs.")
PARETO = (
    Alternative(
        instance_type="ml.g5.2xlarge",
        tensor_parallel_degree=1,
        copies_per_instance=1,
        copy_count=1,
        instance_count=1,
        usd_per_hour=1.515,
        usd_per_million_output_tokens=1.2,
        output_tok_s=350.0,
        highest_tok_s=480.0,
        ms_per_token_alone=33.0,
        chosen=True,
    ),
)


def decided(value: Value) -> Decision[Value]:
    """Return a decision without a reason of its own."""
    return Decision(value=value, because="written by hand")


def image_of(uri: str) -> Image:
    """Return the parts of an image's address."""
    repository, _, tag = uri.partition("/")[2].partition(":")
    return Image(uri=uri, repository=repository, tag=tag)


def sample_plan(**fields: object) -> Plan:
    """Return a plan of one copy of Llama 2 7B on one ml.g5.2xlarge, some of its fields replaced."""
    return _PLAN.model_copy(update=fields)


_PLAN = Plan(
    endpoint="chat",
    environment="dev",
    spec_digest="0123456789abcdef",
    model_name="Llama-2-7b-chat-hf",
    architecture="Llama-2-7b-hf",
    engine=decided("lmi"),
    engine_version=decided("27"),
    image=decided(image_of(LMI_IMAGE)),
    inference_ami_version=decided(None),
    instance_type=decided("ml.g5.2xlarge"),
    accelerators_per_instance=1,
    instance_count=decided(1),
    tensor_parallel_degree=decided(1),
    copies_per_instance=decided(1),
    copy_count=decided(1),
    max_copies=2,
    max_instances=2,
    copies_replaced_at_once=None,
    surge_instances=decided(1),
    trial_update=decided("candidate"),
    max_model_len=decided(4096),
    max_num_seqs=decided(24),
    max_num_batched_tokens=decided(4096),
    max_queued_requests=decided(48),
    dtype=decided("fp16"),
    quantization=None,
    cpu_cores_per_copy=6.5,
    memory_min_mb=decided(16384),
    startup_timeout_s=decided(900),
    download_timeout_s=decided(600),
    knee=PredictedKnee(concurrency=16, detector="slo"),
    target_concurrency_per_copy=decided(12.8),
    gate_concurrency_per_copy=decided(16),
    concurrency_levels=decided((1, 4, 16)),
    memory=MEMORY,
    curve=(),
    band=BAND,
    regime=REGIME,
    cost=COST,
    pareto=PARETO,
    rejected=(),
)
