"""The artifacts of an optimization job in the stack of an endpoint."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aws_cdk import CustomResource, Duration
from constructs import Construct

from seatrial.deployment.optimization_job import jobs_name
from seatrial_cdk.jobs.request_checks import check_environment, check_request
from seatrial_cdk.jobs.runtime.jobs import FOLDER
from seatrial_cdk.place import StackPlace

if TYPE_CHECKING:
    from seatrial.deployment.optimization_job import OptimizationJobRequest
    from seatrial_cdk.endpoint.serving_container import ServingContainer

RESOURCE_TYPE = "Custom::OptimizedWeights"
LONGEST_ANSWER_S = 120
RESPONSE_VERSION = "2"
"""Another one asks anew for the attributes: an earlier release's answer has no KeyArn."""


class OptimizedWeights(Construct):
    """Where a completed job's artifacts are; a deployment fails within seconds when the job is not completed.

    The environment's `OptimizationService` answers; its function is found by its name, so that no stack exports
    anything. Compiled artifacts are refused when SageMaker recommends another image than the one that serves: they
    would not load. For others the deployment goes on with the locked image, and `ImageAdvice` tells the line that a
    spec needs for the recommended one.

    Response attributes (strings):
        ArtifactUri: S3 prefix of the artifacts.
        Bucket, Attempt: Its bucket, and its last folder.
        JobName: The attempt that made them.
        RecommendedImage: URI of the image that SageMaker recommends.
        ImageAdvice: What the spec needs for it.
        KeyArn: Key that the artifacts are encrypted with, which the role that reads them may use.

    Args:
        request: What the job makes.
        endpoint: Name of the spec, for messages.
        image: The image that serves; default: that of the request.

    Raises:
        SpecError: SEA439 with all that SageMaker would refuse, and tokens in what the digest is made of.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        request: OptimizationJobRequest,
        endpoint: str,
        image: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        check_request(self, request)
        check_environment(self, request.environment)
        self.request = request
        function = f"function:{jobs_name(request.environment)}"
        self.resource = CustomResource(
            self,
            "Resource",
            resource_type=RESOURCE_TYPE,
            service_token=StackPlace.of(self).arn("lambda", function),
            service_timeout=Duration.seconds(LONGEST_ANSWER_S),
            properties={
                "Phase": "artifacts",
                "Digest": request.digest,
                "Name": request.name,
                "Image": image or request.image,
                "NeedsImage": "true" if request.needs_image else "false",
                "MaxHours": f"{request.max_hours:g}",
                "Endpoint": endpoint,
                "Environment": request.environment,
                "ResponseVersion": RESPONSE_VERSION,
            },
        )
        self.image_advice = self.resource.get_att_string("ImageAdvice")
        self.recommended_image = self.resource.get_att_string("RecommendedImage")

    def mounted(self, container: ServingContainer) -> ServingContainer:
        """Return a container with these artifacts as its weights.

        Args:
            container: What else it reads.
        """
        prefix = f"s3://{self.resource.get_att_string('Bucket')}/{FOLDER}/{self.request.digest}/"
        return replace(
            container,
            weights_s3_uri=f"{prefix}{self.resource.get_att_string('Attempt')}/",
            readable_s3_uri=prefix,
            accept_eula=False,
            hub_content_arn=None,
            readable_key_arn=self.resource.get_att_string("KeyArn"),
        )
