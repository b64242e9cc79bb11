"""Every rule of the planner: the whole message, as a user reads it; # stands for a number that was predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.errors import PlanError
from seatrial.plan.planner import make_plan
from tests.plan.conftest import reads

if TYPE_CHECKING:
    from tests.plan.conftest import Ask

LLAMA_70B = {"hub_id": "meta-llama/Llama-2-70b-hf"}
LACKS = (
    "12.5 GiB short per accelerator of 22.4 GiB: 32.1 GiB weights, 0.4 GiB activations, 2.3 GiB reserve and one "
    "sequence of 512 tokens."
)
ROOMIER = (
    "allow a larger instance type (ml.g6e.12xlarge, ml.g6.48xlarge, ml.g6e.24xlarge, ml.g5.48xlarge), "
    "or set overrides.quantization: fp8 (64.7 GiB of weights)"
)


def only(*instance_types: str, **overrides: object) -> dict[str, object]:
    serving: dict[str, object] = {"instance_types": list(instance_types)}
    return {**serving, "overrides": overrides} if overrides else serving


CASES: dict[str, tuple[dict[str, object], str]] = {
    "SEA110 no instance type is known": (
        {"serving": only("ml.g5.3xlarge", "ml.g55.xlarge")},
        "chat.yaml:9: serving.instance_types: SEA110: not in the catalog: ml.g5.3xlarge, ml.g55.xlarge\n"
        "  hint: similar in the catalog: ml.g5.xlarge, ml.g5.8xlarge, ml.g5.4xlarge",
    ),
    "SEA201 an unknown hub id": (
        {"model": {"hub_id": "meta-llama/Llama-9-7b"}},
        "chat.yaml:3: model.hub_id: SEA201: the architecture of meta-llama/Llama-9-7b is unknown\n"
        "  hint: similar in the catalog: meta-llama/Llama-2-7b-hf, meta-llama/Meta-Llama-3-70B, "
        "meta-llama/Llama-2-70b-hf; give model.architecture, a catalog id of the same shape, model.config_file or "
        "model.shape",
    ),
    "SEA201 weights without a name": (
        {"model": {"s3_uri": "s3://weights/chat/"}},
        "chat.yaml:2: model: SEA201: the architecture can't be read from the weights' location\n"
        "  hint: give model.architecture, a catalog id of the same shape, model.config_file or model.shape",
    ),
    "SEA202 too big for every instance type": (
        {"model": LLAMA_70B, "serving": only("ml.g5.2xlarge", "ml.g5.12xlarge")},
        "chat.yaml:9: serving.instance_types: SEA202: 128.5 GiB of weights fit on no allowed instance type; the "
        "nearest is ml.g5.12xlarge with degree 4: 49.8 GiB short on 4 accelerators. {LACKS}\n"
        f"  hint: {ROOMIER}",
    ),
    "SEA203 too big for the degree": (
        {"model": LLAMA_70B, "serving": only("ml.g5.48xlarge", tensor_parallel_degree=4)},
        "chat.yaml:12: serving.overrides.tensor_parallel_degree: SEA203: 128.5 GiB of weights do not fit on "
        "ml.g5.48xlarge with degree 4: 49.8 GiB short on 4 accelerators. {LACKS}\n"
        f"  hint: {ROOMIER}",
    ),
    "SEA203 too big for the only instance type": (
        {"model": LLAMA_70B, "serving": only("ml.g5.12xlarge")},
        "chat.yaml:9: serving.instance_types: SEA203: 128.5 GiB of weights do not fit on ml.g5.12xlarge with degree "
        "4: 49.8 GiB short on 4 accelerators. {LACKS}\n"
        f"  hint: {ROOMIER}",
    ),
    "SEA204 a degree that divides nothing": (
        {"serving": only("ml.g5.12xlarge", tensor_parallel_degree=3)},
        "chat.yaml:12: serving.overrides.tensor_parallel_degree: SEA204: tensor_parallel_degree 3 does not divide the "
        "32 attention heads and 32 KV heads of meta-llama/Llama-2-7b-hf\n  hint: valid: 1, 2, 4, 8, 16",
    ),
    "SEA204 a degree above the accelerators": (
        {"serving": only("ml.g5.12xlarge", tensor_parallel_degree=8)},
        "chat.yaml:12: serving.overrides.tensor_parallel_degree: SEA204: no allowed instance type has enough "
        "accelerators; the nearest is ml.g5.12xlarge with degree 8: 4 accelerators, too few for degree 8."
        "\n  hint: set it to at most 4",
    ),
    "SEA205 an objective out of reach": (
        {"slo": {"tpot_ms": {"p95": 10}}},
        "the bound is chat.yaml:13: slo.tpot_ms.p95: SEA205: no deployment is predicted to meet the SLO: 10 ms, the "
        "best # ms, for a single request on ml.g5.2xlarge with degree 1\n"
        "  hint: raise the bound to # ms, or allow faster instance types",
    ),
    "SEA205 several objectives out of reach": (
        {
            "slo": {"ttft_ms": {"p50": 1}, "tpot_ms": {"p95": 1}, "e2e_latency_ms": {"p99": 60_000}},
            "serving": only("ml.g5.2xlarge", "ml.g5.12xlarge"),
        },
        "the bound is chat.yaml:16: slo.tpot_ms.p95: SEA205: no deployment is predicted to meet the SLO: 1 ms, the "
        "best # ms, for a single request on ml.g5.12the bound is xlarge with degree 4\n  hint: raise the bound to # "
        "ms, or allow faster instance types\nchat.yaml:14: slo.ttft_ms.p50: SEA205: no deployment is predicted to "
        "meet the "
        "SLO: 1 ms, the best # ms, for a single request on ml.g5.12xlarge with degree 4\n"
        "  hint: raise the bound to # ms, or allow faster instance types",
    ),
    "SEA205 a timeout out of reach": (
        {"trial": {"request_timeout_s": 1}},
        "the bound is chat.yaml:12: trial.request_timeout_s: SEA205: no deployment is predicted to meet the SLO: "
        "1,000 ms, the best # ms, for a single request on ml.g5.2xlarge with degree 1\n"
        "  hint: raise the bound to # s, or allow faster instance types",
    ),
    "SEA205 too few copies": (
        {"workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 400}},
        "chat.yaml: scaling.max_copies: SEA205: no deployment can serve the workload; the nearest is "
        "ml.g5.2xlarge with degree 1: One copy sustains # concurrent requests; the workload needs "
        "4 copies, max_copies is 1.\n  hint: set max_copies to at least 4, or allow faster instance types",
    ),
    "SEA205 more copies than the service has": (
        {"workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 1_000_000}},
        "chat.yaml: scaling.max_copies: SEA205: no deployment can serve the workload; the nearest is "
        "ml.g5.2xlarge with degree 1: One copy sustains # concurrent requests; the workload needs "
        "# copies, max_copies is 1.\n  hint: allow faster instance types, or less traffic",
    ),
    "SEA205 objectives that need more copies": (
        {"slo": {"ttft_ms": {"p95": 500}}, "workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 16}},
        "chat.yaml: scaling.max_copies: SEA205: no deployment can serve the workload; the nearest is "
        "ml.g5.2xlarge with degree 1: One copy sustains # concurrent requests; the workload needs # copies, "
        "max_copies is 1.\n"
        "  hint: set max_copies to at least #, raise the bound to slo.ttft_ms.p95 # ms, or allow faster instance types",
    ),
    "SEA205 too few tokens per second": (
        {"slo": {"output_tok_s": 5000}},
        "chat.yaml:12: slo.output_tok_s: SEA205: no deployment can serve the workload; the nearest is ml.g5.2xlarge "
        "with degree 1: 1 copy: # output tok/s predicted, below slo.output_tok_s 5,000.\n  hint: lower it to #, or "
        "raise max_copies or the workload's traffic",
    ),
    "SEA205 more tokens per second than the traffic can ask for": (
        {
            "slo": {"output_tok_s": 1e9},
            "scaling": {"max_copies": 1000},
            "workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 4},
        },
        "chat.yaml:12: slo.output_tok_s: SEA205: no deployment can serve the workload; the nearest is ml.g5.2xlarge "
        "with degree 1: 4 copies: # output tok/s predicted, below slo.output_tok_s 1,000,000,000.\n  hint: lower it "
        "to #, or raise the workload's traffic",
    ),
    "SEA206 above the budget": (
        {"budget": {"usd_per_hour": 1.5}},
        "chat.yaml:12: budget.usd_per_hour: SEA206: no deployment that meets the SLO is within the budget; the "
        "nearest is ml.g5.2xlarge with degree 1: It costs $1.515 per hour, above the budget of $1.50.\n"
        "  hint: raise the budget to $1.52 per hour, relax the SLO, or allow cheaper instance types",
    ),
    "SEA206 above the budgets of tokens and hours": (
        {"budget": {"usd_per_hour": 1.5, "usd_per_million_output_tokens": 0.01, "blended_usd_per_million_tokens": 2}},
        "chat.yaml:12: budget.usd_per_hour: SEA206: no deployment that meets the SLO is within the budget; the "
        "nearest is ml.g5.2xlarge with degree 1: It costs $1.515 per hour, above the budget of $1.50.\n"
        "  hint: raise the budget to $1.52 per hour, relax the SLO, or allow cheaper instance types\n"
        "chat.yaml:13: budget.usd_per_million_output_tokens: SEA206: no deployment that meets the SLO is within "
        "the budget; the nearest is ml.g5.2xlarge with degree 1: It costs $# per million output tokens, above the "
        "budget of $0.01.\n"
        "  hint: raise the budget to $# per million output tokens, relax the SLO, or allow cheaper instance types",
    ),
    "SEA206 above the budget even with the discount": (
        {"budget": {"usd_per_hour": 1.2, "discount": 0.2}},
        "chat.yaml:12: budget.usd_per_hour: SEA206: no deployment that meets the SLO is within the budget; the "
        "nearest is ml.g5.2xlarge with degree 1: It costs $1.212 per hour (20% off the list price), above the budget "
        "of $1.20.\n  hint: raise the budget to $1.22 per hour, relax the SLO, or allow cheaper instance types",
    ),
    "SEA206 above the guard rail at the most copies": (
        {"rails": {"usd_per_hour": 3.0}, "scaling": {"max_copies": 2}},
        "chat.yaml:12: scaling.max_copies: SEA206: no deployment that meets the SLO is within the budget; the "
        "nearest is ml.g5.2xlarge with degree 1: At max_copies 2 it costs $3.03 per hour, above the environment's "
        "guard rail of $3.00.\n  hint: lower max_copies, or raise the environment's guard rail",
    ),
    "SEA207 a budget without a price": (
        {"serving": only("ml.g4dn.12xlarge"), "budget": {"usd_per_hour": 5}},
        "chat.yaml:9: serving.instance_types: SEA207: no deployment that meets the SLO has a known price; the "
        "nearest is ml.g4dn.12xlarge with degree 2: The price in us-east-1 is unknown, so the budget can't be "
        "checked.\n  hint: remove the budget, or allow an instance type with a known price",
    ),
    "SEA208 a workload above the context": (
        {"workload": {"input_tokens": 4000, "output_tokens": 97, "concurrency": 1}},
        "chat.yaml:5: workload.input_tokens: SEA208: the workload needs 4,097 tokens; the context of "
        "meta-llama/Llama-2-7b-hf is 4,096\n"
        "  hint: shorten input_tokens or output_tokens by 1, or choose a model with a longer context",
    ),
    "SEA208 a longest request above the context": (
        {"workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 16, "max_model_len": 4097}},
        "chat.yaml:8: workload.max_model_len: SEA208: max_model_len 4,097 exceeds the context of "
        "meta-llama/Llama-2-7b-hf, 4,096 tokens\n  hint: set it to at most 4,096",
    ),
    "SEA208 a length above the context": (
        {"serving": only("ml.g5.2xlarge", max_model_len=4097)},
        "chat.yaml:12: serving.overrides.max_model_len: SEA208: max_model_len 4,097 exceeds the context of "
        "meta-llama/Llama-2-7b-hf, 4,096 tokens\n  hint: set it to at most 4,096",
    ),
    "SEA209 latent attention": (
        {"model": {"hub_id": "deepseek-ai/DeepSeek-V3"}},
        "chat.yaml:3: model.hub_id: SEA209: deepseek-ai/DeepSeek-V3 has multi-head latent attention, which is not "
        "supported\n  hint: choose another model",
    ),
    "SEA210 only accelerators that can't be planned": (
        {"serving": only("ml.inf2.xlarge")},
        "chat.yaml:9: serving.instance_types: SEA210: no allowed instance type can be planned; the nearest is "
        "ml.inf2.xlarge with degree 1: AWS Neuron is not supported: LMI images for it ended at 0.29.\n  hint: allow "
        "other instance types",
    ),
    "SEA303 an unknown version": (
        {"serving": {"engine": "tgi", "engine_version": "3.3.7"}},
        "chat.yaml:10: serving.engine_version: SEA303: no image is known for version 3.3.7 of tgi\n"
        "  hint: known: 3.3.6, 3.3.4, 3.2.3; or give the image's URI in serving.image",
    ),
    "SEA303 an unknown region": (
        {"region": "us-iso-west-1"},
        "chat.yaml:8: serving: SEA303: no image is known for 0.36.0-lmi27.0.0-cu130 in us-iso-west-1\n"
        "  hint: known: us-iso-east-1, us-isob-east-1, us-gov-west-1; or give the image's URI in serving.image",
    ),
}


@pytest.mark.parametrize(("fields", "message"), CASES.values(), ids=CASES.keys())
def test_says_what_is_wrong_where_and_how_to_mend_it(fields: dict[str, object], message: str, ask: Ask) -> None:
    loaded = ask(**fields)

    with pytest.raises(PlanError) as caught:
        make_plan(loaded)

    assert reads(str(caught.value), message), str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"budget": {"usd_per_hour": 1.52}},
        {"rails": {"usd_per_hour": 3.03}, "scaling": {"max_copies": 2}},
        {"slo": {"tpot_ms": {"p95": 47}}},
        {"workload": {"input_tokens": 4000, "output_tokens": 96, "concurrency": 1}},
        {"serving": only("ml.g5.2xlarge", max_model_len=4096)},
        {"serving": only("ml.g5.12xlarge", tensor_parallel_degree=4)},
        {"model": LLAMA_70B, "serving": only("ml.g5.48xlarge")},
    ],
)
def test_at_the_boundary_there_is_a_plan(fields: dict[str, object], ask: Ask) -> None:
    assert make_plan(ask(**fields)).copy_count.value == 1
