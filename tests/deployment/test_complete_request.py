"""What `seatrial bench` proves before it loads: the deployed stack's names, and the image that was rendered."""

from __future__ import annotations

from seatrial.deployment.trial import complete_request
from seatrial.documents.live import LiveStack
from seatrial_load.documents.request import Expected, TrialTarget
from tests.sample_plan import LMI_IMAGE
from tests.stacks.conftest import dev


def test_target_and_expected_come_from_the_stack_and_the_image_from_what_was_rendered() -> None:
    outputs = {
        "EndpointName": "dev-chat",
        "InferenceComponentName": "dev-chat-model",
        "EndpointConfigName": "config-2",
        "ModelName": "model-2",
    }
    request = complete_request(dev(), LiveStack(name="seatrial-dev-chat", status="CREATE_COMPLETE", outputs=outputs))
    assert request.target == TrialTarget(
        endpoint_name="dev-chat", inference_component="dev-chat-model", region="us-east-1"
    )
    assert request.expected == Expected(endpoint_config_name="config-2", model_name="model-2", image=LMI_IMAGE)
