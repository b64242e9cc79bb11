"""Every function that takes a request of CloudFormation dies: the sweep takes it again, and the stack ends.

The functions are processes that die of SIGKILL, at each of the three deliveries of a request; the CDK CLI deploys
meanwhile, and users send their requests. Minutes that somebody waits for are skipped.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import pytest

from benchmarks.living_endpoint.cases import MISSED, Case, batch_of, run_case
from benchmarks.living_endpoint.endpoint import ENDPOINT, STACK, LivingEndpoint, environment_of, living_endpoint
from seatrial.account.clients import clients_of_region
from seatrial.account.reader import Boto3Calls
from seatrial.operations.doctor.diagnose import diagnose
from seatrial.operations.doctor.facts import LOST_MINUTES
from seatrial.operations.doctor.gather import EndpointQuery, examine
from seatrial_base.bounds import LOST_AFTER_S
from tests.e2e.killed_functions import DELIVERIES, killed_functions, let_pass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.living_endpoint.cases import Outcome
    from seatrial_laptop.demo.cdk_cli import ToolOutcome
    from tests.e2e.killed_functions import KilledFunctions

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif("SEATRIAL_ALL_FAILURES" not in os.environ, reason="opt-in: make test-failures"),
]
BEFORE_S = 1.0
NOTED: Final = "/seen.json HTTP"
"""Of the first request that follows the note."""
STARTED: Final = "AWSStepFunctions.StartExecution"
SHORT: Final = {"concurrency_levels": [1, 2, 4], "requests_per_concurrency": 4, "budget_minutes": 5}
LONG: Final = {**SHORT, "budget_minutes": 30, "mode": "report"}
"""It may begin as late as the sweep starts it; with few requests it proves nothing, and refuses nothing."""


@dataclass(frozen=True, slots=True)
class Losing:
    """An endpoint whose trial service can be killed."""

    living: LivingEndpoint
    functions: KilledFunctions

    def find_again(self, waiting: str) -> None:
        """Await the death of every function, see the doctor name what CloudFormation waits for, and let the sweep come.

        Args:
            waiting: The beginning of the logical ID of the custom resource.
        """
        try:
            self.living.until(lambda: self.functions.unsent, "the death at the first delivery")
            self.living.until(lambda: len(self.functions.unsent) == DELIVERIES, "the death at every delivery")
            self.functions.live()
            assert self.diagnoses(LOST_MINUTES - 2) == []
            (told,) = self.diagnoses(LOST_MINUTES + 2)
            assert told.startswith(f"stack {STACK}, {waiting}")
        finally:  # else CloudFormation would wait for an hour
            self.functions.live()
            let_pass(self.living.cloud, LOST_AFTER_S)
            self.living.sweep()
        assert len(self.functions.unsent) == DELIVERIES

    def diagnoses(self, minutes: float) -> list[str]:
        """Return what the doctor names of the stack to somebody who asks so many minutes later."""
        with environment_of(self.living.cloud):
            region = self.living.cloud.region
            account = clients_of_region(region, where=ENDPOINT)
            asked = EndpointQuery(name=ENDPOINT, region=region, calls=Boto3Calls(region), account=account)
            found = diagnose(examine(asked, datetime.now(UTC) + timedelta(minutes=minutes)))
        return [f"{each.place.resource}" for each in found if each.rule == "SEA762"]

    @property
    def status(self) -> str:
        return self.living.cloud.stack(STACK).status

    def create(self, **changes: object) -> ToolOutcome:
        """Deploy the stack that is not there yet; the request for its first trial is lost, and found again."""
        self.living.write(**changes)
        assembly = self.living.synth("first")
        self.functions.die_before(STARTED)
        with ThreadPoolExecutor(1) as beside:
            deployment = beside.submit(self.living.deploy, assembly)
            self.find_again("Trial")
            return deployment.result()


@pytest.fixture(scope="module")
def losing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Losing]:
    functions = killed_functions(tmp_path_factory.mktemp("functions"))
    with living_endpoint(tmp_path_factory.mktemp("living"), functions.settings) as living:
        yield Losing(living, functions)


def unharmed(outcome: Outcome) -> None:
    assert (outcome.failed, outcome.first_failure, outcome.left) == (0, "", ())
    assert outcome.least_copies >= 3


def test_a_creation_whose_budget_is_over_fails_and_is_rolled_back(losing: Losing) -> None:
    ended = losing.create(trial=SHORT)
    assert ended.exit_code != 0
    assert losing.status == "ROLLBACK_COMPLETE"
    events = losing.living.cloud.client("cloudformation").describe_stack_events(StackName=STACK)["StackEvents"]
    (told,) = (each for each in events if each["ResourceStatus"] == "CREATE_FAILED")
    assert told.get("ResourceType") == "Custom::SmokeBenchmark"
    assert "the budget of 300 s ended before the trial started" in told.get("ResourceStatusReason", "")


def test_a_creation_whose_budget_lasts_is_tried_after_all(losing: Losing) -> None:
    ended = losing.create(trial=LONG)
    assert ended.exit_code == 0, ended.last_lines()
    assert losing.living.cloud.stack(STACK).output("TrialResultUri") != "unknown"


@pytest.mark.parametrize(("mark", "batch"), [(NOTED, 4), (STARTED, 5)])
def test_an_update_is_tried_and_deployed_after_all(losing: Losing, mark: str, batch: int) -> None:
    """A candidate's budget begins when it serves, and CloudFormation waits an hour for it."""
    losing.functions.die_before(mark)
    case = Case("lost", {**batch_of(batch), "trial": LONG}, lambda _: losing.find_again("Candidate"))
    outcome = run_case(losing.living, case, before_s=BEFORE_S)
    unharmed(outcome)
    assert (outcome.deployed, outcome.tried, outcome.copies) == (True, 1, 3)


def test_a_rollback_goes_on(losing: Losing) -> None:
    """The request that fails is answered; what CloudFormation asks of the same resource on its way back is lost."""
    losing.functions.die_before(NOTED, but_once=True)
    case = Case(
        "back", {**batch_of(7), "slo": MISSED, "trial": SHORT}, lambda _: losing.find_again("Candidate"), deploys=False
    )
    outcome = run_case(losing.living, case, before_s=BEFORE_S)
    unharmed(outcome)
    assert (outcome.deployed, outcome.tried, losing.status) == (False, 1, "UPDATE_ROLLBACK_COMPLETE")


def test_a_deletion_goes_on(losing: Losing) -> None:
    losing.functions.die_before(NOTED)
    client = losing.living.cloud.client("cloudformation")
    client.delete_stack(StackName=STACK)
    losing.find_again("Trial")
    client.get_waiter("stack_delete_complete").wait(StackName=STACK, WaiterConfig={"Delay": 1, "MaxAttempts": 120})
    assert losing.living.cloud.leftovers(STACK) == []
