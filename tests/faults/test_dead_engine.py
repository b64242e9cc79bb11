"""The real engine is killed in the middle of a level: the trial ends, its result tells, and the proof after too."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial_load.documents.request import Expected, Workload
from tests.faults.cloud import CONFIG, MODEL
from tests.faults.order import Order
from tests.faults.trials import LOAD, miss_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.cloud import Cloud
    from tests.faults.trials import Trials

    Doomed = Callable[[int], tuple[str, int]]

EXPECTED = Expected(endpoint_config_name=CONFIG, model_name=MODEL)
LONG = Workload(input_tokens=16, output_tokens=256, schema="lmi")
_serial = itertools.count(1)


@pytest.fixture
def doomed(cloud: Cloud) -> Doomed:
    """Return a function that starts a component with so many copies, and tells its name and one engine's number."""

    def serve(copies: int) -> tuple[str, int]:
        name = f"doomed-{next(_serial)}"
        cloud.serve(name, copies=copies)
        return name, cloud.engines(name)[0]

    return serve


def test_what_was_in_flight_and_what_came_after_is_data(trials: Trials, doomed: Doomed) -> None:
    component, pid = doomed(1)
    load = replace(LOAD, requests_per_concurrency=5)
    request = trials.request(target=trials.target(component), workload=LONG, load=load)
    result = trials.run(in_the_middle(pid), request=request)
    level = result.levels[-1]
    assert (trials.hit, level.requests) == (1, 20)
    assert 7 <= level.succeeded <= 13
    # Which of the two a request ends with is a race: a proxy under load may pass on responses that the engine had ended
    # before it was killed (nothing in flight), and requests may break before the runtime API knows that nothing serves.
    assert set(level.errors) <= {"model_error", "not_ready"}
    assert sum(level.errors.values()) == 20 - level.succeeded
    broke = [said for said in level.first_errors if "The container broke the connection: " in said]
    assert {said.partition(":")[0] for said in broke} == set(level.errors) - {"not_ready"}
    assert level.ttft_ms is not None
    assert level.ttft_ms.count == level.succeeded
    assert miss_of(result).startswith("error_rate ")
    assert result.stopped.because == "every level was measured"


def test_the_proof_after_tells_that_nothing_serves(trials: Trials, doomed: Doomed) -> None:
    """What was measured is not lost: the engine's death is data, another deployment in its place would not be."""
    component, pid = doomed(1)
    load = replace(LOAD, requests_per_concurrency=5)
    request = trials.request(target=trials.target(component), workload=LONG, load=load, expected=EXPECTED)
    result = trials.run(in_the_middle(pid), request=request)
    assert (result.live.proven, result.live.copy_count, len(result.levels)) == (False, 0, 2)
    assert f"component {component} runs 0 copies; at least 1 is needed" in result.live.because
    assert result.verdict.status == "fail"
    assert result.verdict.because.startswith(
        f"the deployment changed during the trial: component {component} is Failed, "
    )
    assert miss_of(result).startswith("error_rate ")
    assert (result.target_concurrency_per_copy, result.usd_per_million_output_tokens) == (2.0, None)


def test_of_two_copies_one_dies(trials: Trials, doomed: Doomed) -> None:
    component, pid = doomed(2)
    load, target = replace(LOAD, requests_per_concurrency=4), trials.target(component)
    request = trials.request(target=target, workload=LONG, load=load, expected=EXPECTED, copy_count=2)
    result = trials.run(in_the_middle(pid), request=request)
    level = result.levels[-1]
    assert (level.requests, trials.hit) == (32, 1)
    # A dead copy fails at once and so draws requests, until the endpoint notices: how many depends on the machine.
    assert 8 <= level.succeeded <= 32
    assert set(level.errors) <= {"model_error"}
    assert (result.live.proven, result.live.copy_count) == (False, 1)
    assert result.verdict.status == "fail"
    assert result.target_because.startswith("fallback 2 per copy: the deployment changed during the trial: component ")


def in_the_middle(pid: int) -> Order:
    """Order the death of an engine after two tokens of the level's eleventh request."""
    return Order(fault="kill", pid=pid, skip=10, most=1)
