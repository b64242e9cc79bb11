"""The bucket from which SageMaker Projects take the templates of products."""

from __future__ import annotations

from typing import Literal

from aws_cdk import RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from seatrial_cdk.acknowledgements import acknowledge

STUDIO = "https://*.sagemaker.aws"
ACKNOWLEDGED = {"S1": "The bucket has templates alone; CloudTrail data events log who reads them."}


class ProjectTemplates(Construct):
    """A private bucket of templates, which Studio reads with its user's rights from the browser.

    Studio shows the templates that have the tag `sagemaker:studio-visibility: true` below the location that the tag
    `sagemaker:projectS3TemplatesLocation` of its domain names (SageMaker AI developer guide, "Use an Amazon S3
    template", asks for both tags and for CORS). `seatrial products upload` puts them there.

    Args:
        kms_key_arn: Key that encrypts the objects; default: S3's own key.
        removal: `destroy` empties and deletes the bucket with the stack.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        removal: Literal["destroy", "retain"],
        kms_key_arn: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        destroy = removal == "destroy"
        key = kms.Key.from_key_arn(self, "Key", kms_key_arn) if kms_key_arn else None
        self.bucket = s3.Bucket(
            self,
            "Resource",
            encryption=s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=key,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            versioned=True,
            removal_policy=RemovalPolicy.DESTROY if destroy else RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
            auto_delete_objects=destroy,
            cors=[
                s3.CorsRule(
                    allowed_methods=[s3.HttpMethods.GET, s3.HttpMethods.HEAD],
                    allowed_origins=[STUDIO],
                    allowed_headers=["*"],
                    exposed_headers=["ETag"],
                )
            ],
        )
        acknowledge(self.bucket, ACKNOWLEDGED)
