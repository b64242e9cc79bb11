"""An endpoint that may have no copy: it scales out under load and in without, goes to zero, and a request wakes it."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.endpoint import Endpoint, Task, batch_of, refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.acceptance.target import Target

pytestmark = pytest.mark.acceptance

LOAD = 6
"""Requests in flight at a time."""
MOST = 2
CHANGES = {
    **batch_of(8),
    "scaling": {
        "min_copies": 0,
        "max_copies": MOST,
        "target_utilization": 0.1,
        "scale_in_cooldown_s": 60,
        "instance_scale_in": {"cooldown_minutes": 5},
    },
    "trial": {"mode": "off"},
}
CLOCK_SPEED = 240


@pytest.fixture(scope="module")
def doze(target: Target) -> Iterator[Endpoint]:
    """Deploy an endpoint that nobody asks; a trial of it would say nothing of scaling."""
    endpoint = Endpoint(target, "doze")
    ended = endpoint.deploy(**CHANGES)
    assert ended.exit_code == 0, ended.last_lines
    yield endpoint
    target.destroy(target.folder / f"cdk.out.{endpoint.name}")


def instances(endpoint: Endpoint) -> int:
    """Return the instances of an endpoint."""
    client = endpoint.target.client("sagemaker")
    (variant,) = client.describe_endpoint(EndpointName=endpoint.endpoint_name)["ProductionVariants"]
    return int(variant.get("CurrentInstanceCount", 0))


def is_asleep(endpoint: Endpoint) -> bool:
    """Tell whether it has no copy and gets none: an alarm that is still raised for a lack of copies brings one back."""
    raised = endpoint.target.client("cloudwatch").describe_alarms(AlarmNamePrefix=endpoint.stack, StateValue="ALARM")
    return endpoint.copies() == 0 and not raised["MetricAlarms"]


def answers(endpoint: Endpoint) -> bool:
    """Tell whether a request is answered; one that no copy takes is refused."""
    return refusal(endpoint.ask)["code"] == "none"


@contextmanager
def loaded(endpoint: Endpoint) -> Iterator[None]:
    """Keep requests in flight while the block runs."""
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            answers(endpoint)

    tasks = [Task(ask) for _ in range(LOAD)]
    try:
        yield
    finally:
        over.set()
        for task in tasks:
            task.result()


def test_it_goes_to_zero_wakes_scales_out_and_in(doze: Endpoint) -> None:
    target = doze.target
    with target.hurry(CLOCK_SPEED):
        target.until(lambda: is_asleep(doze), "an idle endpoint without copies")
        target.until(lambda: instances(doze) == 0, "an endpoint without copies has no instance")
        assert "no capacity" in refusal(doze.ask)["words"], "nobody is there to answer"
        target.until(lambda: answers(doze), "a request wakes it")
        with loaded(doze):
            target.until(lambda: doze.copies() == MOST, "load adds a copy")
        target.until(lambda: is_asleep(doze), "an idle endpoint without copies, and nothing that brings one back")
