"""The SageMaker Python SDK as a client of the embedded AWS: runs where the extra `sagemaker` is installed."""

from __future__ import annotations

import importlib.util
import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from typing import Any

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("sagemaker") is None, reason="opt-in: uv sync --extra local --extra sagemaker"
)


def test_the_sdk_describes_and_invokes_what_is_deployed(laptop: Any, host: str, chat: str) -> None:  # noqa: ANN401 (the fixture's class lives in conftest.py)
    from sagemaker.core.resources import Endpoint, InferenceComponent  # noqa: PLC0415 (seven seconds)

    component = InferenceComponent.get(inference_component_name=chat, region=laptop.local.region)
    endpoint = Endpoint.get(endpoint_name=host, region=laptop.local.region)
    assert (component.inference_component_status, endpoint.endpoint_status) == ("InService", "InService")
    body = json.dumps({"inputs": "Where does the boat go?", "parameters": {"max_new_tokens": 4}})
    answer = endpoint.invoke(body=body, content_type="application/json", inference_component_name=chat)
    assert json.loads(answer.body.read())["generated_text"]
