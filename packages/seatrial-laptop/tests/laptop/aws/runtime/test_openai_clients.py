"""More clients of the OpenAI path, in an environment of their own: `make test-clients` installs them and runs this."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from seatrial_load.aws.bearer_token import bearer_token
from seatrial_load.aws.credentials import Credentials

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
VLLM: Final = "763104351884.dkr.ecr.us-east-1.amazonaws.com/vllm:0.26.0-gpu-py312-cu130-ubuntu22.04-sagemaker"
PYTHON: Final = os.environ.get("SEATRIAL_OPENAI_CLIENTS", "")
pytestmark = pytest.mark.skipif(not PYTHON, reason="opt-in: make test-clients")

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


@pytest.mark.parametrize("script", [LANGCHAIN, LITELLM], ids=["langchain-openai", "litellm"])
def test_a_client_asks_and_streams(laptop: Laptop, host: str, script: str) -> None:
    component = laptop.component(host, laptop.model(image=VLLM, SM_VLLM_MAX_MODEL_LEN="2048"))
    root = Credentials(laptop.local.access_key_id, laptop.local.secret_access_key)
    url = f"{laptop.local.endpoint_url}/endpoints/{host}/inference-components/{component}/openai/v1"
    token = bearer_token(root, "us-east-1", datetime.now(UTC), expires_s=300)
    environ = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "URL": url, "TOKEN": token}
    ran = subprocess.run([PYTHON, "-c", script], env=environ, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    has_text, output_tokens, told = json.loads(ran.stdout.splitlines()[-1])
    assert (has_text, output_tokens) == (True, 4)
    assert told in {3, 4}  # a token without text has no content
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)
