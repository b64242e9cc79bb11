"""One endpoint by InvokeEndpointWithResponseStream, by SageMaker's OpenAI path, and by GuideLLM on the OpenAI path.

    python -m benchmarks.both_paths.run [--rounds 3] [--requests 60] [--guidellm COMMAND]

It starts an embedded AWS, deploys a component of vLLM's container (simulated: the local engine answers), measures each
way in turn, round by round, and prints a table. The ways share the machine's cores with the engine: compare what stands
in one table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, TypedDict

import boto3

from seatrial_laptop import lifecycle
from seatrial_load.aws.credentials import Credentials
from seatrial_load.aws.sigv4 import bearer_token
from seatrial_load.documents.request import Load, Objective, TrialRequest, TrialTarget, Workload
from seatrial_load.documents.result import TrialResult
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.run import run_trial

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mypy_boto3_sagemaker import SageMakerClient

    from seatrial_laptop.lifecycle import LocalAws
    from seatrial_load.documents.request import Api

IMAGE: Final = "763104351884.dkr.ecr.us-east-1.amazonaws.com/vllm:0.26.0-gpu-py312-cu130-ubuntu22.04-sagemaker"
ROLE: Final = "arn:aws:iam::000000000000:role/serving"
REGION: Final = "us-east-1"
STREAMS: Final = 4
INPUT_TOKENS: Final = 64
OUTPUT_TOKENS: Final = 64
WAIT_S: Final = 120.0
HEAD: Final = f"{'way':12}{'TTFT p50 ms':>12}{'TTFT p95 ms':>12}{'TPOT p50 ms':>12}  output tok/s, each round"


class GuideLlmDistribution(TypedDict):
    """What GuideLLM tells of a metric, as far as it is read here."""

    mean: float
    percentiles: Mapping[str, float]


class GuideLlmBenchmark(TypedDict):
    """One of GuideLLM's benchmarks: metric to outcome of the requests to what is told."""

    metrics: Mapping[str, Mapping[str, GuideLlmDistribution]]


@dataclass(frozen=True, slots=True)
class Round:
    """One way, once: medians and percentiles over its requests, in ms, and output tokens per second."""

    ttft_p50_ms: float
    ttft_p95_ms: float
    tpot_p50_ms: float
    output_tok_s: float


def measured(endpoint: str, component: str, api: Api, *, requests: int) -> Round:
    """Measure one way with the trial's own client.

    Args:
        endpoint: The endpoint's name.
        component: Its component.
        api: Which path.
        requests: How many are measured.
    """
    result = run_trial(
        _request(endpoint, component, api, requests), tools=Tools(calibrates=False, asks_cloudwatch=False)
    )
    if not isinstance(result, TrialResult) or len(result.levels) != 1:
        because = result.verdict.because if isinstance(result, TrialResult) else "the trial paused"
        raise RuntimeError(f"nothing was measured: {because}")
    (level,) = result.levels
    ttft, tpot, tok_s = level.ttft_ms, level.tpot_ms, level.output_tok_s
    if level.succeeded < level.requests or ttft is None or tpot is None or tok_s is None:
        raise RuntimeError(f"{level.requests - level.succeeded} requests failed: {'; '.join(level.first_errors)}")
    return Round(ttft.p50, ttft.p95, tpot.p50, tok_s)


def _request(endpoint: str, component: str, api: Api, requests: int) -> TrialRequest:
    load = Load(
        concurrency_levels=(STREAMS,), requests_per_concurrency=max(1, requests // STREAMS),
        warmup_requests=STREAMS, budget_s=300.0, request_timeout_s=60.0,
    )  # fmt: skip
    workload = Workload(input_tokens=INPUT_TOKENS, output_tokens=OUTPUT_TOKENS, schema="openai_chat", api=api)
    return TrialRequest(
        endpoint="chat",
        environment="local",
        plan_digest="0123456789abcdef",
        target=TrialTarget(endpoint_name=endpoint, inference_component=component, region=REGION),
        expected=None,
        workload=workload,
        load=load,
        objectives=(Objective(metric="error_rate", statistic="value", bound=0.0, sense="at_most"),),
        gate_concurrency=STREAMS,
        copy_count=1,
        mode="rollback",
        usd_per_hour_per_copy=None,
        fallback_target_concurrency=1.0,
        target_utilization=0.8,
    )


def measured_by_guidellm(command: str, url: str, token: str, *, requests: int, folder: Path) -> Round:
    """Measure the OpenAI path with GuideLLM, which is told prompts of the same length.

    Args:
        command: GuideLLM's.
        url: The component's base URL.
        token: A bearer token; it is on the command line of a process of this user for the time of the round.
        requests: How many are measured.
        folder: Where prompts and report are kept.
    """
    prompts, report = folder / "prompts.jsonl", folder / "report.json"
    text = "boat " * INPUT_TOKENS
    rows = [{"prompt": f"{number} {text}", "output_tokens_count": OUTPUT_TOKENS} for number in range(2 * requests)]
    prompts.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    target = f"kind=openai_http,target={url.removesuffix('/v1')},api_key={token},model=org/model"
    options = {
        "--backend": f"{target},request_format=/v1/chat/completions,validate_backend=false",
        "--profile": f"kind=concurrent,streams={STREAMS}",
        "--constraint": f"kind=max_requests,count={requests}",
        "--data": f"kind=json_file,path={prompts}",
        "--output": f"kind=json,path={report}",
    }
    whole = [command, "run", "--disable-console", *(part for option in options.items() for part in option)]
    ran = subprocess.run(
        whole, env={**os.environ, "HF_HUB_OFFLINE": "1"}, cwd=folder, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise RuntimeError(ran.stderr.replace(token, "TOKEN")[-2000:])
    return guidellm_round(json.loads(report.read_text()))


def guidellm_round(report: Mapping[str, Sequence[GuideLlmBenchmark]]) -> Round:
    """Return what GuideLLM's report tells of its successful requests.

    Its time per output token is that of the gaps between tokens (`inter_token_latency_ms`), which is our TPOT.
    """
    (benchmark,) = report["benchmarks"]
    told = benchmark["metrics"]
    ttft = told["time_to_first_token_ms"]["successful"]["percentiles"]
    gaps = told["inter_token_latency_ms"]["successful"]["percentiles"]
    return Round(ttft["p50"], ttft["p95"], gaps["p50"], told["output_tokens_per_second"]["successful"]["mean"])


def table(rounds: Mapping[str, Sequence[Round]]) -> str:
    """Return a line for each way: medians over its rounds, and the throughput of each."""
    lines = [HEAD]
    for way, each in rounds.items():
        middle = [median(getattr(one, name) for one in each) for name in ("ttft_p50_ms", "ttft_p95_ms", "tpot_p50_ms")]
        rates = ", ".join(f"{one.output_tok_s:,.0f}" for one in each)
        lines.append(f"{way:12}{middle[0]:>12.1f}{middle[1]:>12.1f}{middle[2]:>12.2f}  {rates}")
    return "\n".join(lines)


def deployed(sagemaker: SageMakerClient) -> tuple[str, str]:
    """Deploy an endpoint with a component of vLLM's container, and return their names."""
    container = {
        "Image": IMAGE,
        "Environment": {
            "SM_VLLM_MODEL": "org/model",
            "SM_VLLM_MAX_NUM_SEQS": f"{STREAMS}",
            "SM_VLLM_MAX_MODEL_LEN": "2048",
        },
    }
    sagemaker.create_model(ModelName="model", ExecutionRoleArn=ROLE, PrimaryContainer=container)  # type: ignore[arg-type]
    sagemaker.create_endpoint_config(
        EndpointConfigName="config",
        ExecutionRoleArn=ROLE,
        ProductionVariants=[
            {
                "VariantName": "main",
                "InstanceType": "ml.g5.2xlarge",
                "InitialInstanceCount": 1,
                "ManagedInstanceScaling": {"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 2},
            },
        ],
    )
    sagemaker.create_endpoint(EndpointName="chat", EndpointConfigName="config")
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName="chat", WaiterConfig={"Delay": 1})
    resources = {"NumberOfAcceleratorDevicesRequired": 1.0, "MinMemoryRequiredInMb": 1024}
    sagemaker.create_inference_component(
        InferenceComponentName="chat-model", EndpointName="chat", VariantName="main",
        Specification={"ModelName": "model", "ComputeResourceRequirements": resources},  # type: ignore[typeddict-item]
        RuntimeConfig={"CopyCount": 1},
    )  # fmt: skip
    ends_s = time.monotonic() + WAIT_S
    while time.monotonic() < ends_s:
        told = sagemaker.describe_inference_component(InferenceComponentName="chat-model")
        if not told["InferenceComponentStatus"].endswith("ing"):
            if told["InferenceComponentStatus"] == "Failed":
                raise RuntimeError(told.get("FailureReason", "the component failed"))
            return "chat", "chat-model"
        time.sleep(0.2)
    raise TimeoutError("chat-model")


def rounds_of(local: LocalAws, *, rounds: int, requests: int, guidellm: str) -> Iterator[tuple[str, Round]]:
    """Yield each way of each round, in turn."""
    endpoint, component = deployed(boto3.Session(region_name=REGION).client("sagemaker"))
    root = Credentials(local.access_key_id, local.secret_access_key)
    url = f"{local.endpoint_url}/endpoints/{endpoint}/inference-components/{component}/openai/v1"
    for _ in range(rounds):
        yield "invoke", measured(endpoint, component, "invoke", requests=requests)
        yield "openai", measured(endpoint, component, "openai", requests=requests)
        if guidellm:
            token = bearer_token(root, REGION, datetime.now(UTC), expires_s=900)
            with tempfile.TemporaryDirectory() as folder:
                yield (
                    "guidellm",
                    measured_by_guidellm(guidellm, url, token, requests=requests, folder=Path(folder)),
                )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--guidellm", default="", help="GuideLLM's command; left out without it")
    asked = parser.parse_args()
    found: dict[str, list[Round]] = {}
    with tempfile.TemporaryDirectory() as folder:
        local = lifecycle.start_embedded_aws(state_dir=Path(folder))
        os.environ.update(lifecycle.environment(local))
        try:
            for way, each in rounds_of(local, rounds=asked.rounds, requests=asked.requests, guidellm=asked.guidellm):
                found.setdefault(way, []).append(each)
        finally:
            lifecycle.stop_embedded_aws(Path(folder))
    sys.stdout.write(f"{table(found)}\n")


if __name__ == "__main__":
    main()
