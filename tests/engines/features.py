"""Representative configurations: one feature each, for every dialect and version that can say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_lint.engines.config import ServingConfig, SmoothQuant, SpeculativeDecoding
from seatrial_lint.engines.engine_options import Adapter, Lora, RopeScaling

if TYPE_CHECKING:
    from seatrial_base.catalog.engine_versions import DialectName

PLAIN = ServingConfig(
    model_id="org/model",
    revision="abc123",
    trust_remote_code=True,
    tensor_parallel_degree=4,
    dtype="bf16",
    max_model_len=4096,
    max_num_seqs=64,
    max_num_batched_tokens=2048,
    max_queued_requests=100,
)
UNCHUNKED = {"chunked_prefill": False, "max_num_batched_tokens": 4096}  # vLLM wants room for a whole sequence then
TIMED = {"model_loading_timeout_s": 1200, "predict_timeout_s": 480}
EAGLE = SpeculativeDecoding(method="eagle3", model="org/draft", draft_tokens=4)
DRAFT = SpeculativeDecoding(model="org/small", draft_tokens=5, draft_tensor_parallel_degree=1)
ADAPTERS = Lora(max_adapters=4, max_rank=32, adapters=(Adapter(name="sql", path="org/sql"),))
YARN = RopeScaling(kind="yarn", factor=4, original_max_position_embeddings=32768, theta=1e6)


COMPILED = ServingConfig(
    model_id="org/model",
    revision="abc123",
    trust_remote_code=True,
    tensor_parallel_degree=8,
    dtype="bf16",
    max_input_len=3840,
    max_model_len=4096,
    max_num_seqs=32,
    max_queued_requests=100,
)


def _with(config: ServingConfig, **fields: object) -> ServingConfig:
    return config.model_copy(update=fields)


def _mixtral() -> ServingConfig:
    return ServingConfig(model_id="mistralai/Mixtral-8x7B-v0.1", tensor_parallel_degree=8, max_num_seqs=32)


def _neuron() -> ServingConfig:
    return ServingConfig(
        model_id="org/model",
        tensor_parallel_degree=24,
        dtype="fp16",
        quantization="static_int8",
        max_model_len=4096,
        max_num_seqs=8,
        group_query_attention="shard-over-batch",
        model_loading_timeout_s=3600,
    )


def _smoothquant() -> ServingConfig:
    return ServingConfig(
        model_id="org/model",
        tensor_parallel_degree=4,
        quantization="smoothquant",
        smoothquant=SmoothQuant(alpha=0.8, per_token=True, per_channel=True),
        max_input_len=1024,
        max_output_len=512,
        max_num_seqs=64,
    )


ROPE_LINEAR = RopeScaling(kind="linear", factor=2)

# Name of the golden file, dialect, version, configuration.
FEATURES: tuple[tuple[str, DialectName, str, ServingConfig], ...] = (
    ("lmi-async.plain", "lmi-async", "lmi27", _with(PLAIN, **TIMED)),
    ("lmi-async.eagle", "lmi-async", "lmi27", _with(PLAIN, speculative_decoding=EAGLE)),
    ("lmi-async.rope", "lmi-async", "lmi27", _with(PLAIN, rope_scaling=YARN)),
    ("lmi-async.rope.lmi16", "lmi-async", "lmi16", _with(PLAIN, rope_scaling=YARN)),
    ("lmi-async.eager", "lmi-async", "lmi27", _with(PLAIN, enforce_eager=True, prefix_caching=False)),
    ("lmi-async.lora", "lmi-async", "lmi27", _with(PLAIN, lora=Lora(max_adapters=4, max_rank=32))),
    ("lmi-vllm.plain", "lmi-vllm", "lmi27", _with(PLAIN, output_format="jsonlines", kv_cache_dtype="fp8_e4m3")),
    ("lmi-vllm.draft.lmi13", "lmi-vllm", "lmi13", _with(PLAIN, speculative_decoding=DRAFT)),
    ("lmi-dist.draft.lmi12", "lmi-dist", "lmi12", _with(PLAIN, speculative_decoding=DRAFT)),
    ("lmi-dist.awq.lmi14", "lmi-dist", "lmi14", _with(PLAIN, quantization="awq")),
    ("lmi-trtllm.mixtral.lmi8", "lmi-trtllm", "0.26.0", _mixtral()),
    ("lmi-trtllm.smoothquant.lmi15", "lmi-trtllm", "0.33.0", _smoothquant()),
    ("lmi-trtllm.rope.lmi10", "lmi-trtllm", "0.28.0", _with(_mixtral(), rope_scaling=ROPE_LINEAR)),
    ("lmi-neuronx.gqa.lmi11", "lmi-neuronx", "0.29.0", _neuron()),
    ("lmi-deepspeed.smoothquant.lmi9", "lmi-deepspeed", "0.27.0", _with(_mixtral(), quantization="smoothquant")),
    ("tgi.plain", "tgi", "3.3.6", _with(PLAIN, max_input_len=3584, prefix_caching=False)),
    (
        "tgi.ngram",
        "tgi",
        "2.4.0",
        _with(PLAIN, speculative_decoding=SpeculativeDecoding(method="ngram", draft_tokens=3)),
    ),
    ("tgi.rope.1.4.5", "tgi", "1.4.5", _with(PLAIN, max_input_len=2048, rope_scaling=ROPE_LINEAR)),
    ("tgi.lora", "tgi", "3.3.6", _with(PLAIN, lora=Lora(adapters=ADAPTERS.adapters), enforce_eager=True)),
    ("vllm.plain", "vllm", "0.26.0", _with(PLAIN, max_queued_requests=None, **UNCHUNKED)),
    ("vllm.eagle", "vllm", "0.26.0", _with(PLAIN, max_queued_requests=None, speculative_decoding=EAGLE)),
    ("vllm.lora", "vllm", "0.26.0", _with(PLAIN, max_queued_requests=None, lora=ADAPTERS, enforce_eager=True)),
    ("tgi-neuronx.plain", "tgi-neuronx", "0.3.0", COMPILED),
    ("vllm-neuronx.plain", "vllm-neuronx", "0.4.5", _with(COMPILED, max_input_len=None, max_queued_requests=None)),
    ("sglang.plain", "sglang", "0.5.20", _with(PLAIN, prefix_caching=False, gpu_memory_utilization=0.85)),
    ("sglang.eagle", "sglang", "0.5.20", _with(PLAIN, speculative_decoding=EAGLE, rope_scaling=YARN)),
    ("sglang.lora", "sglang", "0.5.20", _with(PLAIN, lora=ADAPTERS, enforce_eager=True)),
)
