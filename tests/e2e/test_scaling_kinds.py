"""Endpoints of both kinds scale to zero, wake and answer on the embedded AWS; its clock runs fast meanwhile."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from benchmarks.living_endpoint.synthesis import synthesize
from seatrial_laptop.control import change_control, reset_control

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mypy_boto3_sagemaker_runtime import SageMakerRuntimeClient

    from seatrial_laptop.demo.embedded_aws import EmbeddedAws
    from tests.e2e.conftest import RunCdk, Workspace

pytestmark = pytest.mark.e2e

CLOCK_SPEED = 240
LONGEST_S = 120.0
LOAD = 6  # requests in flight at a time
BUCKET, PREFIX = "answers-of-batch", "batch/"
BODY = {"inputs": "hello", "parameters": {"max_new_tokens": 4}}
DOZE = {"min_copies": 0, "max_copies": 2, "target_utilization": 0.1, "scale_in_cooldown_s": 60}
INSTANCES = {"instance_scale_in": {"cooldown_minutes": 5}}
ASYNCHRONOUS = {"output_s3_uri": f"s3://{BUCKET}/{PREFIX}", "max_concurrent_invocations_per_instance": 2}


@pytest.fixture(scope="module")
def deployed(
    cloud: EmbeddedAws,
    cdk: RunCdk,
    state_dir: Path,
    workspace: Workspace,
    remove_stacks: Callable[[], None],
) -> Iterator[EmbeddedAws]:
    """Deploy an endpoint with a component and an asynchronous one, both of which may go to zero."""
    cloud.client("s3").create_bucket(Bucket=BUCKET)
    workspace.write("doze", scaling={**DOZE, **INSTANCES})
    workspace.write("batch", scaling=DOZE, hosting={"kind": "single_model", "asynchronous": ASYNCHRONOUS})
    assembly = synthesize(workspace.folder / "cdk.out", workspace.context())
    try:
        stacks = ("seatrial-local-doze", "seatrial-local-batch")
        ended = cdk("deploy", *stacks, "--app", assembly, "--require-approval", "never", "--progress", "events")
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


def copies(cloud: EmbeddedAws) -> int:
    found = cloud.client("sagemaker").describe_inference_component(InferenceComponentName="local-doze-model")
    return found["RuntimeConfig"]["CurrentCopyCount"]


def instances(cloud: EmbeddedAws, endpoint: str) -> int:
    (variant,) = cloud.client("sagemaker").describe_endpoint(EndpointName=endpoint)["ProductionVariants"]
    return variant.get("CurrentInstanceCount", 0)


def answer(client: SageMakerRuntimeClient) -> bool:
    """Tell whether a request is answered; one that no copy takes is refused."""
    try:
        client.invoke_endpoint(
            EndpointName="local-doze",
            InferenceComponentName="local-doze-model",
            ContentType="application/json",
            Body=json.dumps(BODY),
        )
    except ClientError:
        return False
    return True


def test_a_component_goes_to_zero_wakes_scales_out_and_goes_again(deployed: EmbeddedAws) -> None:
    await_that(lambda: copies(deployed) == 0, "an idle component keeps its copies")
    await_that(lambda: instances(deployed, "local-doze") == 0, "an endpoint without copies keeps its instances")
    client = deployed.client("sagemaker-runtime")  # one for all threads: making one changes the process's environment
    assert not answer(client)
    await_that(lambda: answer(client), "nobody wakes the component")
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            answer(client)

    with ThreadPoolExecutor(LOAD) as pool:
        asking = [pool.submit(ask) for _ in range(LOAD)]
        try:
            await_that(lambda: copies(deployed) == DOZE["max_copies"], "load adds no copy")
        finally:
            over.set()
    assert [each.exception() for each in asking] == [None] * LOAD
    await_that(lambda: copies(deployed) == 0, "an idle component keeps its copies")


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
