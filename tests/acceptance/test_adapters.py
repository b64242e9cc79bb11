"""An adapter on vLLM's own server, beside a model whose updates are tried in place: no candidate runs."""

from __future__ import annotations

import io
import json
import os
from typing import TYPE_CHECKING

import pytest

from seatrial.packaging import tar_gz_bytes
from tests.acceptance.conftest import ENVIRONMENT_OF_ACCOUNT
from tests.acceptance.endpoint import Endpoint, batch_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.acceptance.target import Target

# A minute and a half of two cores, which the gate has not: `make test-matrix` has it, and so has an account.
pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(
        "SEATRIAL_MATRIX" not in os.environ and ENVIRONMENT_OF_ACCOUNT not in os.environ,
        reason="make test-matrix and make test-aws run it",
    ),
]

KEY, NAME, RANK, HIDDEN = "seatrial-acceptance/zeros.tar.gz", "zeros", 8, 896
"""The hidden size is that of Qwen2.5-0.5B (its config.json)."""
QUERY = "base_model.model.model.layers.0.self_attn.q_proj"


def adapter() -> bytes:
    """Return the archive of a LoRA adapter whose weights are zeros, in PEFT's layout and the format of safetensors."""
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": RANK,
        "lora_alpha": RANK,
        "target_modules": ["q_proj"],
    }
    size, header = 2 * RANK * HIDDEN, {}
    for at, (name, shape) in enumerate({"lora_A": [RANK, HIDDEN], "lora_B": [HIDDEN, RANK]}.items()):
        offsets = [at * size, (at + 1) * size]
        header[f"{QUERY}.{name}.weight"] = {"dtype": "F16", "shape": shape, "data_offsets": offsets}
    head = json.dumps(header).encode()
    weights = len(head).to_bytes(8, "little") + head + bytes(2 * size)
    return tar_gz_bytes({"adapter_config.json": json.dumps(config).encode(), "adapter_model.safetensors": weights})


def changes_of(sequences: int, bucket: str) -> dict[str, object]:
    batch = batch_of(sequences)["serving"]
    assert isinstance(batch, dict)
    overrides = {**batch["overrides"], "lora": {"max_rank": RANK, "max_adapters": 1}}
    adapters = [{"name": NAME, "s3_uri": f"s3://{bucket}/{KEY}"}]
    return {
        "serving": {**batch, "overrides": overrides, "engine": "vllm", "adapters": adapters},
        "scaling": {"min_copies": 1, "max_copies": 2},
        "trial": {
            "update": "in_place",
            "concurrency_levels": [1, 2],
            "requests_per_concurrency": 2,
            "budget_minutes": 5,
        },
    }


@pytest.fixture(scope="module")
def bucket(target: Target) -> Iterator[str]:
    """Return the bucket of the CDK's bootstrap while it holds the adapter."""
    account, s3 = target.client("sts").get_caller_identity()["Account"], target.client("s3")
    name = f"cdk-hnb659fds-assets-{account}-{target.region}"
    s3.upload_fileobj(io.BytesIO(adapter()), name, KEY)
    yield name
    s3.delete_object(Bucket=name, Key=KEY)


@pytest.fixture(scope="module")
def lora(target: Target, bucket: str) -> Iterator[Endpoint]:
    endpoint = Endpoint(target, "lora", is_openai=True)
    ended = endpoint.deploy(**changes_of(8, bucket))
    assert ended.exit_code == 0, ended.last_lines
    yield endpoint
    target.destroy(target.folder / f"cdk.out.{endpoint.name}")


def test_an_adapter_is_loaded_and_answers(lora: Endpoint) -> None:
    name = f"{lora.endpoint_name}-adapter-{NAME}"
    told = lora.target.client("sagemaker").describe_inference_component(InferenceComponentName=name)
    assert told["Specification"]["BaseInferenceComponentName"] == lora.component
    assert (told["InferenceComponentStatus"], told.get("FailureReason", "")) == ("InService", "")
    assert lora.ask(name)


def test_an_update_in_place_is_tried_without_a_candidate(lora: Endpoint, bucket: str) -> None:
    before = lora.model()
    ended, seen = lora.update(changes_of(4, bucket))
    assert ended.exit_code == 0, ended.last_lines
    outputs = lora.outputs()
    assert (outputs["Verdict"], lora.result()["verdict"]["status"]) == ("pass", "pass")
    assert (seen.candidates, seen.failures) == (set(), [])
    assert lora.model() == outputs["ModelName"] != before
