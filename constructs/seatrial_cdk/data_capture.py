"""Capture of requests and answers to S3, by sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from aws_cdk import aws_sagemaker as sagemaker

if TYPE_CHECKING:
    from seatrial_cdk.output_location import OutputLocation

CAPTURES = "captures/"
MODES = {"input": "Input", "output": "Output"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCapture:
    """What SageMaker keeps of requests and answers.

    Attributes:
        destination: Where it is written; default: `captures/` of a private bucket of the endpoint's own.
        sampling_percentage: Share of the requests, 1 to 100 percent.
        capture: What is kept of a request.
    """

    destination: OutputLocation | None = None
    sampling_percentage: int = 100
    capture: tuple[Literal["input", "output"], ...] = ("input", "output")


def capture_config(
    capture: DataCapture, destination: OutputLocation
) -> sagemaker.CfnEndpointConfig.DataCaptureConfigProperty:
    """Define the capture; JSON is kept as text, not as base64.

    Args:
        capture: What is kept.
        destination: Where it is written.
    """
    config = sagemaker.CfnEndpointConfig
    return config.DataCaptureConfigProperty(
        enable_capture=True,
        initial_sampling_percentage=capture.sampling_percentage,
        destination_s3_uri=destination.s3_uri,
        kms_key_id=destination.key_arn,
        capture_options=[config.CaptureOptionProperty(capture_mode=MODES[each]) for each in capture.capture],
        capture_content_type_header=config.CaptureContentTypeHeaderProperty(json_content_types=["application/json"]),
    )
