"""More clients of the OpenAI path, in an environment of their own: `make test-clients` installs them and runs this."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pytest

from seatrial_load.aws.credentials import Credentials
from seatrial_load.aws.sigv4 import bearer_token

if TYPE_CHECKING:
    from pathlib import Path

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
VLLM: Final = "763104351884.dkr.ecr.us-east-1.amazonaws.com/vllm:0.26.0-gpu-py312-cu130-ubuntu22.04-sagemaker"
PYTHON: Final = os.environ.get("SEATRIAL_OPENAI_CLIENTS", "")
GUIDELLM: Final = os.environ.get("SEATRIAL_GUIDELLM", "")

LANGCHAIN: Final = """
import json, os
from langchain_openai import ChatOpenAI
where = dict(base_url=os.environ["URL"], api_key=os.environ["TOKEN"])
client = ChatOpenAI(**where, model="org/model", max_tokens=4, max_retries=0)
whole = client.invoke("hello")
streamed = list(client.stream("hello"))
told = [each for each in streamed if each.content]
print(json.dumps([bool(whole.content), whole.usage_metadata["output_tokens"], len(told)]))
"""
LITELLM: Final = """
import json, os, litellm
where = dict(api_base=os.environ["URL"], api_key=os.environ["TOKEN"], num_retries=0)
asked = dict(**where, model="openai/org/model", max_tokens=4, messages=[{"role": "user", "content": "hello"}])
whole = litellm.completion(**asked)
streamed = list(litellm.completion(**asked, stream=True))
told = [each for each in streamed if each.choices and each.choices[0].delta.content]
print(json.dumps([bool(whole.choices[0].message.content), whole.usage.completion_tokens, len(told)]))
"""


def served(laptop: Laptop, host: str) -> tuple[str, str, str]:
    """Return a new component of vLLM's container, its base URL and a token."""
    component = laptop.component(host, laptop.model(image=VLLM, SM_VLLM_MAX_MODEL_LEN="2048"))
    root = Credentials(laptop.local.access_key_id, laptop.local.secret_access_key)
    url = f"{laptop.local.endpoint_url}/endpoints/{host}/inference-components/{component}/openai/v1"
    return component, url, bearer_token(root, "us-east-1", datetime.now(UTC), expires_s=900)


@pytest.mark.skipif(not PYTHON, reason="opt-in: make test-clients")
@pytest.mark.parametrize("script", [LANGCHAIN, LITELLM], ids=["langchain-openai", "litellm"])
def test_a_client_asks_and_streams(laptop: Laptop, host: str, script: str) -> None:
    component, url, token = served(laptop, host)
    environ = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "URL": url, "TOKEN": token}
    ran = subprocess.run([PYTHON, "-c", script], env=environ, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    has_text, output_tokens, told = json.loads(ran.stdout.splitlines()[-1])
    assert (has_text, output_tokens) == (True, 4)
    assert told in {3, 4}  # a token without text has no content
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)


@pytest.mark.skipif(
    not GUIDELLM, reason="opt-in: SEATRIAL_GUIDELLM names the command (uv pip install guidellm, 5.6 GB)"
)
def test_a_peers_load_generator_measures_every_request(laptop: Laptop, host: str, tmp_path: Path) -> None:
    component, url, token = served(laptop, host)
    prompts, report = tmp_path / "prompts.jsonl", tmp_path / "report.json"
    rows = [{"prompt": f"the boat goes {number}", "output_tokens_count": 16} for number in range(40)]
    prompts.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    target = f"kind=openai_http,target={url.removesuffix('/v1')},api_key={token},model=org/model"
    options = {
        "--backend": f"{target},request_format=/v1/chat/completions,validate_backend=false",
        "--profile": "kind=concurrent,streams=4",
        "--constraint": "kind=max_requests,count=20",
        "--data": f"kind=json_file,path={prompts}",
        "--output": f"kind=json,path={report}",
    }
    command = [GUIDELLM, "run", "--disable-console", *(part for option in options.items() for part in option)]
    environ = {**os.environ, "HF_HUB_OFFLINE": "1"}
    ran = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr.replace(token, "")
    (measured,) = json.loads(report.read_text())["benchmarks"]
    totals = measured["metrics"]["request_totals"]
    assert (totals["successful"], totals["errored"]) == (20, 0)
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)
