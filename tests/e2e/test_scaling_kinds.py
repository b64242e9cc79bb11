"""An asynchronous endpoint scales to zero and its backlog starts it; the embedded AWS's clock runs fast meanwhile.

A component's way to zero and back is `tests/acceptance/test_doze.py`.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from benchmarks.living_endpoint.synthesis import synthesize
from seatrial_laptop.control import change_control, reset_control

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seatrial_laptop.demo.embedded_aws import EmbeddedAws
    from tests.e2e.conftest import RunCdk, Workspace

pytestmark = pytest.mark.e2e

CLOCK_SPEED = 240
LONGEST_S = 120.0
BUCKET, PREFIX = "answers-of-batch", "batch/"
BODY = {"inputs": "hello", "parameters": {"max_new_tokens": 4}}
DOZE = {"min_copies": 0, "max_copies": 2, "target_utilization": 0.1, "scale_in_cooldown_s": 60}
ASYNCHRONOUS = {"output_s3_uri": f"s3://{BUCKET}/{PREFIX}", "max_concurrent_invocations_per_instance": 2}


@pytest.fixture(scope="module")
def deployed(
    cloud: EmbeddedAws,
    cdk: RunCdk,
    state_dir: Path,
    workspace: Workspace,
    remove_stacks: Callable[[], None],
) -> Iterator[EmbeddedAws]:
    """Deploy an asynchronous endpoint that may go to zero."""
    cloud.client("s3").create_bucket(Bucket=BUCKET)
    workspace.write("batch", scaling=DOZE, hosting={"kind": "single_model", "asynchronous": ASYNCHRONOUS})
    assembly = synthesize(workspace.folder / "cdk.out", workspace.context())
    try:
        ended = cdk(
            "deploy", "seatrial-local-batch", "--app", assembly, "--require-approval", "never", "--progress", "events"
        )
        assert ended.exit_code == 0, ended.output
        change_control(state_dir, {"clock_speed": CLOCK_SPEED})
        yield cloud
    finally:
        reset_control(state_dir)
        remove_stacks()


def await_that(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LONGEST_S
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def instances(cloud: EmbeddedAws, endpoint: str) -> int:
    (variant,) = cloud.client("sagemaker").describe_endpoint(EndpointName=endpoint)["ProductionVariants"]
    return variant.get("CurrentInstanceCount", 0)


def test_a_queue_goes_to_zero_and_its_backlog_starts_it(deployed: EmbeddedAws) -> None:
    s3 = deployed.client("s3")
    await_that(lambda: instances(deployed, "local-batch") == 0, "an idle queue keeps its instances")
    s3.put_object(Bucket=BUCKET, Key=f"{PREFIX}requests/1.json", Body=json.dumps(BODY))
    told = deployed.client("sagemaker-runtime").invoke_endpoint_async(
        EndpointName="local-batch",
        ContentType="application/json",
        InputLocation=f"s3://{BUCKET}/{PREFIX}requests/1.json",
    )
    key = told["OutputLocation"].removeprefix(f"s3://{BUCKET}/")
    assert key.startswith(PREFIX)

    def written() -> bool:
        return key in {each["Key"] for each in s3.list_objects_v2(Bucket=BUCKET, Prefix=PREFIX).get("Contents", [])}

    await_that(written, "the backlog starts no instance")
    text = s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    assert json.loads(text)["generated_text"]
    await_that(lambda: instances(deployed, "local-batch") == 0, "an idle queue keeps its instances")
