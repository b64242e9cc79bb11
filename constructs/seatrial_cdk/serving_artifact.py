"""The packaged files of a serving configuration, as an asset that SageMaker accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import AssetStaging, FileAssetPackaging, Stack
from constructs import Construct

from seatrial.engines.rendered import refuse_credentials
from seatrial.packaging import tar_gz_bytes
from seatrial_cdk.archive_file import archive_file

if TYPE_CHECKING:
    from collections.abc import Mapping


class ServingArtifact(Construct):
    """A gzipped tar archive in the stack's asset bucket, under a key that ends with `.tar.gz`.

    CDK's own `Asset` keeps only the last suffix of a key (aws/aws-cdk#30257), and SageMaker documents `.tar.gz`; so
    the archive is staged here, and its hash is handed over with the first half of the suffix.

    Args:
        files: Texts by file name.

    Raises:
        RenderError: SEA374 with every file that holds a credential.
    """

    def __init__(self, scope: Construct, construct_id: str, *, files: Mapping[str, str]) -> None:
        super().__init__(scope, construct_id)
        refuse_credentials(files, where="archive of the serving configuration")
        stack = Stack.of(self)
        content = tar_gz_bytes({name: text.encode() for name, text in files.items()})
        with archive_file("model.tar.gz", content) as path:
            staged = AssetStaging(self, "Stage", source_path=path)
        location = stack.synthesizer.add_file_asset(
            file_name=staged.relative_staged_path(stack),
            packaging=FileAssetPackaging.FILE,
            source_hash=f"{staged.asset_hash}.tar",
        )
        self.bucket_name = location.bucket_name
        self.object_key = location.object_key
        self.s3_uri = f"s3://{location.bucket_name}/{location.object_key}"
