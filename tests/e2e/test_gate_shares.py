"""A level that several functions load together, on the embedded AWS: they measure what one process measures.

The numbers of a real engine depend on what else this machine does, so both load a runtime API that takes the same time
for every answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial_cdk.trials.runtime.order import Order
from seatrial_load.documents.result import TrialResult
from seatrial_load.trial.run import run_trial
from tests.e2e.gate import Gate, deploy_arguments
from tests.e2e.paced_runtime import TOKEN_S, paced_runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial_laptop.demo.embedded_aws import EmbeddedAws
    from seatrial_load.documents.result import LevelResult
    from tests.e2e.conftest import RunCdk, Workspace

pytestmark = pytest.mark.e2e

REQUESTS_PER_CONCURRENCY = 4
LEVELS = [2, 8]  # requests in flight: one function of two sockets, and four
OUTPUT_TOKENS = 16
NOISE = 0.15
"""How far the throughput of several functions may be from a single process's, and both from what the runtime gives."""


@pytest.fixture(scope="module")
def runtime_url() -> Iterator[str]:
    with paced_runtime() as runtime:
        yield runtime.url


@pytest.fixture(scope="module")
def gate(
    cloud: EmbeddedAws, cdk: RunCdk, workspace: Workspace, runtime_url: str, remove_stacks: Callable[[], None]
) -> Iterator[Gate]:
    trial = {
        "mode": "report",
        "concurrency_levels": LEVELS,
        "requests_per_concurrency": REQUESTS_PER_CONCURRENCY,
        "max_requests_per_concurrency": REQUESTS_PER_CONCURRENCY,
        "confidence": 0,
        "search": "sweep",
        "budget_minutes": 4,
    }
    workload = {"input_tokens": 48, "output_tokens": OUTPUT_TOKENS, "concurrency": LEVELS[-1]}
    workspace.write("shares", workload=workload, trial=trial)
    deploying = Gate(cloud, "shares", workspace.folder / "shares.out")
    try:
        ended = cdk(*deploy_arguments(workspace, deploying, runtime_url=runtime_url, sockets=2))
        assert ended.exit_code == 0, ended.output
        yield deploying
    finally:
        remove_stacks()


@pytest.fixture(scope="module")
def together(gate: Gate) -> TrialResult:
    return gate.result()


@pytest.fixture(scope="module")
def alone(gate: Gate, together: TrialResult, runtime_url: str) -> TrialResult:
    """Measure the same with one process, after the functions: two loads at a time would spoil both."""
    order = Order(
        {
            "RequestType": "Create",
            "RequestId": "alone",
            "StackId": gate.stack_name,
            "LogicalResourceId": "TrialResource",
            "ResponseURL": "",
            "ResourceProperties": gate.properties(),
        },
        0.0,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", gate.cloud.local.endpoint_url)
        patch.setenv("AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME", runtime_url)
        patch.setenv("AWS_ACCESS_KEY_ID", gate.cloud.local.access_key_id)
        patch.setenv("AWS_SECRET_ACCESS_KEY", gate.cloud.local.secret_access_key)
        result = run_trial(order.trial_request(gate.cloud.region))
    assert isinstance(result, TrialResult)
    return result


def test_a_level_gets_as_many_functions_as_it_needs(together: TrialResult) -> None:
    assert [level.concurrency for level in together.levels] == LEVELS
    assert [level.client and (level.client.workers, level.client.streams) for level in together.levels] == [
        (1, 2),
        (4, 8),
    ]
    assert together.live.proven


def test_several_functions_count_every_request_that_one_process_counts(
    together: TrialResult, alone: TrialResult
) -> None:
    assert [counts(level) for level in together.levels] == [counts(level) for level in alone.levels]
    assert {level.output_tokens_mean for level in (*together.levels, *alone.levels)} == {OUTPUT_TOKENS}


@pytest.mark.parametrize("index", [0, 1])
def test_several_functions_measure_what_one_process_measures(
    together: TrialResult, alone: TrialResult, index: int
) -> None:
    shared, whole = together.levels[index], alone.levels[index]
    for level in (shared, whole):
        assert level.tpot_ms
        assert level.tpot_ms.p50 == pytest.approx(1000 * TOKEN_S, rel=NOISE)
    assert shared.output_tok_s == pytest.approx(whole.output_tok_s, rel=NOISE)


def counts(level: LevelResult) -> tuple[int, int, int]:
    return level.requests, level.succeeded, level.ramp_requests
