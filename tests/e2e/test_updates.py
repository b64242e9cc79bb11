"""Updates of an endpoint that is scaled out and has users which the gate has no time for: `make test-updates`.

What the gate and an account show is `tests/acceptance/test_endpoint.py`. The tests are a chain, and each that needs a
candidate has a batch of its own. `python -m benchmarks.living_endpoint` does the same with more cases, and prints what
users see.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from benchmarks.living_endpoint.cases import Case, batch_of, run_case, scale_out
from benchmarks.living_endpoint.endpoint import STACK, LivingEndpoint, living_endpoint
from seatrial_load.documents.stop import StopReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.living_endpoint.cases import Outcome

opt_in = pytest.mark.skipif("SEATRIAL_ALL_UPDATES" not in os.environ, reason="opt-in: make test-updates")
pytestmark = [pytest.mark.e2e, opt_in]

BEFORE_S = 1.0


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivingEndpoint]:
    """Deploy an endpoint of one planned copy."""
    with living_endpoint(tmp_path_factory.mktemp("living")) as endpoint:
        endpoint.write(**batch_of(4), **SLO)
        first = endpoint.deploy(endpoint.synth("first"))
        assert first.exit_code == 0, first.last_lines()
        yield endpoint


def unnoticed(outcome: Outcome) -> None:
    """Check that no request failed, no copy was taken away, and nothing was left."""
    assert (outcome.failed, outcome.first_failure) == (0, "")
    assert outcome.least_copies >= 3
    assert outcome.left == ()


SLO = {"slo": {"ttft_ms": {"p95": 15_000}, "tpot_ms": {"p95": 5_000}}}


ROLLING = {"scaling": {"min_copies": 2, "max_copies": 5}}
"""Two copies at least, so that an update replaces them one after the other."""


def test_another_rolling_policy_alone_keeps_the_copies(living: LivingEndpoint) -> None:
    """CloudFormation sends the copy count with every update of the component."""
    outcome = run_case(living, Case("policy", {**batch_of(4), **SLO, **ROLLING}), before_s=BEFORE_S)
    unnoticed(outcome)
    assert (outcome.deployed, outcome.copies) == (True, 3)


def test_a_scale_out_meanwhile_is_waited_out_and_its_copy_is_kept(living: LivingEndpoint) -> None:
    outcome = run_case(living, Case("scale-out", batch_of(5), scale_out), before_s=BEFORE_S)
    unnoticed(outcome)
    assert (outcome.deployed, outcome.copies) == (True, 4)


def test_in_place_no_candidate_is_tried_and_load_is_added_beside_the_users(living: LivingEndpoint) -> None:
    changes = {
        **batch_of(16),
        "workload": {"input_tokens": 48, "output_tokens": 16, "concurrency": 8},
        "trial": {"concurrency_levels": [1, 8], "budget_minutes": 5, "update": "in_place"},
    }
    outcome = run_case(living, Case("in place", changes), before_s=15.0)
    unnoticed(outcome)
    assert (outcome.deployed, outcome.tried, outcome.copies) == (True, 0, 3)
    result = living.cloud.result(living.cloud.stack(STACK).output("TrialResultUri"))
    assert result.users is not None
    assert result.users.concurrency_per_copy is not None, result.users.because
    assert (result.request.manner, result.knees, result.verdict.status) == ("in_place", (), "pass")
    assert result.stopped.reason == StopReason.NO_KNEE_SOUGHT
    most = result.request.gate_concurrency - result.users.concurrency_per_copy
    assert 1 <= [level.concurrency for level in result.levels][-1] <= most
    assert result.request.copy_count == 3, "the load follows the live copies"
