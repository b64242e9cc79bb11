"""AWS::S3::Bucket of MiniStack, with what it leaves out: tags, and the refusal to delete a bucket that holds objects.

CDK's auto-delete function empties a bucket only when it finds its tag there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from botocore.exceptions import ClientError

from seatrial_laptop.aws.json_document import Document, children, text
from seatrial_laptop.aws.runtime.artifacts import own_s3

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_s3.type_defs import TagTypeDef

    from seatrial_laptop.aws.json_document import Handlers


BUCKET: Final = "AWS::S3::Bucket"
Created = tuple[str, Document]
"""A physical ID and the attributes for Fn::GetAtt."""


def bucket_type(theirs: Handlers) -> Handlers:
    """Return MiniStack's table of the bucket with our creation, update and deletion around its own."""
    each = BucketType(theirs)
    return {**theirs, "create": each.create, "update": each.update, "delete": each.delete}


@dataclass(frozen=True, slots=True)
class BucketType:
    """The bucket type around MiniStack's; its methods are called on worker threads."""

    theirs: Handlers

    def create(self, logical_id: str, properties: Document, stack: str) -> Created:
        """Create the bucket with its tags."""
        return _tagged(self._call("create", logical_id, properties, stack), properties)

    def update(self, physical_id: str, old: Document, new: Document, stack: str) -> Created:
        """Update the bucket and its tags."""
        return _tagged(self._call("update", physical_id, old, new, stack), new)

    def delete(self, physical_id: str, properties: Document) -> None:
        """Delete the bucket; one that is gone already is fine.

        Raises:
            ClientError: BucketNotEmpty, it holds objects.
        """
        try:
            own_s3().delete_bucket(Bucket=physical_id)
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchBucket":
                raise
        cast("Callable[..., None]", self.theirs["delete"])(physical_id, properties)

    def _call(self, verb: str, *arguments: object) -> Created:
        return cast("Callable[..., Created]", self.theirs[verb])(*arguments)


def _tagged(created: Created, properties: Document) -> Created:
    tags: list[TagTypeDef] = [
        {"Key": text(tag, "Key"), "Value": text(tag, "Value")} for tag in children(properties, "Tags")
    ]
    if tags:
        own_s3().put_bucket_tagging(Bucket=created[0], Tagging={"TagSet": tags})
    else:
        own_s3().delete_bucket_tagging(Bucket=created[0])
    return created
