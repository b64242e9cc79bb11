"""What CDK's auto-delete-objects needs of the embedded AWS: tags, the S3 calls of its function, an honest deletion."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import seatrial_laptop
from seatrial_laptop import lifecycle

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
TAG = {"Key": "aws-cdk:auto-delete-objects", "Value": "true"}
EMPTY = """
const { S3 } = require("@aws-sdk/client-s3");
(async () => {
  const s3 = new S3({}), Bucket = process.argv[1];
  const found = await s3.listObjectVersions({ Bucket });
  const Objects = [...found.Versions, ...found.DeleteMarkers];
  await s3.deleteObjects({ Bucket, Delete: { Objects } });
  const missing = await s3.getBucketTagging({ Bucket: "no-such-bucket" }).catch((error) => error.name);
  await s3.putBucketPolicy({ Bucket, Policy: JSON.stringify({ Version: "2012-10-17", Statement: [] }) });
  const { Policy } = await s3.getBucketPolicy({ Bucket });
  const { TagSet } = await s3.getBucketTagging({ Bucket });
  console.log(JSON.stringify({ keys: Objects.map((entry) => entry.Key), missing, Policy: JSON.parse(Policy), TagSet }));
})();
"""


def test_a_bucket_is_tagged_and_deleted_only_when_it_is_empty(laptop: Laptop) -> None:
    stack, bucket, key = laptop.name("bucket-stack"), laptop.name("tagged"), "a/<1>&'x.json"
    properties = {"BucketName": bucket, "Tags": [TAG], "VersioningConfiguration": {"Status": "Enabled"}}
    template = json.dumps({"Resources": {"Bucket": {"Type": "AWS::S3::Bucket", "Properties": properties}}})
    laptop.cloudformation.create_stack(StackName=stack, TemplateBody=template)
    assert laptop.stack_settled(stack) == "CREATE_COMPLETE"
    for body in (b"1", b"2"):
        laptop.s3.put_object(Bucket=bucket, Key=key, Body=body)
    laptop.s3.delete_object(Bucket=bucket, Key=key)

    laptop.cloudformation.delete_stack(StackName=stack)
    assert laptop.stack_settled(stack) == "DELETE_FAILED"
    modules = Path(seatrial_laptop.__path__[0]) / "lambda_modules"
    done = subprocess.run(
        ["node", "-e", EMPTY, bucket],  # noqa: S607 (the Node of this environment, by PATH)
        env={**lifecycle.child_variables(laptop.local), "NODE_PATH": str(modules)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == {
        "keys": [key, key, key],
        "missing": "NoSuchBucket",
        "Policy": {"Version": "2012-10-17", "Statement": []},
        "TagSet": [TAG],
    }
    laptop.cloudformation.delete_stack(StackName=stack)
    assert laptop.stack_settled(stack) == "DELETE_COMPLETE"
