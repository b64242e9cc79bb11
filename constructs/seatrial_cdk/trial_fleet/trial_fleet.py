"""A state machine that runs a trial with as many functions as its levels need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from seatrial_cdk.archive_file import archive_file
from seatrial_cdk.smoke_benchmark.announce_permission import grant_announce
from seatrial_cdk.smoke_benchmark.model_permission import grant_describe_model
from seatrial_cdk.smoke_benchmark.runtime.fleet_size import SOCKETS_PER_FUNCTION
from seatrial_cdk.smoke_benchmark.runtime.trial_store import LATEST, PASSED, RELEASED, RUNS, TRIALS
from seatrial_cdk.smoke_benchmark.runtime_code import runtime_archive
from seatrial_cdk.smoke_benchmark.scaling_permission import grant_describe_scaling, grant_suspend_scaling
from seatrial_cdk.smoke_benchmark.trial_function import TrialFunction
from seatrial_cdk.trial_fleet.fleet_course import FleetCourse
from seatrial_cdk.unnamed_resources import allow_unnamed

if TYPE_CHECKING:
    from seatrial_cdk.llm_endpoint import LlmEndpoint
    from seatrial_cdk.smoke_benchmark.trial_results import TrialResults

ONE_VCPU_MEMORY_MB = 1769  # Lambda gives one full vCPU at this size (Lambda developer guide, memory)
LONGEST_FUNCTION_MINUTES = 15


class TrialFleet(Construct):
    """The trial of an endpoint by a fleet: AWS Step Functions spreads each level over Lambda functions.

    A level's functions wait for one common time before they load, each its share, and write what they measured; one
    step merges it. The trial's documents are those of the runner, so that who waits for one need not know who measured.

    The history of an execution is AWS Step Functions' own, kept for 90 days; the functions' logs are in groups of
    their own. The machine has no log group: delivering to one asks for rights on every group of the account.

    Args:
        endpoint: What is tried.
        results: Where results are kept, and what the steps tell each other.
        budget_s: The trial measures no longer than this.
        sockets_per_function: Requests that one function keeps in flight; fewer make more functions.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: LlmEndpoint,
        results: TrialResults,
        budget_s: int,
        sockets_per_function: int = SOCKETS_PER_FUNCTION,
    ) -> None:
        super().__init__(scope, construct_id)
        longest = Duration.minutes(LONGEST_FUNCTION_MINUTES)
        self.sockets_per_function = sockets_per_function
        environment = {"RESULTS_BUCKET": results.bucket.bucket_name, "SOCKETS_PER_FUNCTION": f"{sockets_per_function}"}
        with archive_file("runtime.zip", runtime_archive()) as path:
            code = lambda_.Code.from_asset(path)
            self.steps = TrialFunction(
                self,
                "Steps",
                module="fleet_steps",
                code=code,
                timeout=longest,
                environment=environment,
                memory_mb=ONE_VCPU_MEMORY_MB,
                keep_logs=results.removal == "retain",
            )
            self.worker = TrialFunction(
                self,
                "Worker",
                module="fleet_worker",
                code=code,
                timeout=longest,
                environment=environment,
                memory_mb=ONE_VCPU_MEMORY_MB,
            )
        self._grant(endpoint, results)
        course = FleetCourse(self, "Course", steps=self.steps.function, worker=self.worker.function)
        self.state_machine = sfn.StateMachine(
            self,
            "Resource",
            state_machine_type=sfn.StateMachineType.STANDARD,
            definition_body=sfn.DefinitionBody.from_chainable(course.definition),
            timeout=Duration.seconds(budget_s).plus(longest),
        )

    def start_from(self, starter: TrialFunction) -> None:
        """Let a function start the fleet, and tell it when and where (`fleet_start.trial_start`)."""
        starter.function.add_environment("TRIAL_FLEET", self.state_machine.state_machine_arn)
        starter.function.add_environment("SOCKETS_PER_FUNCTION", f"{self.sockets_per_function}")
        self.state_machine.grant_start_execution(starter.role)

    def _grant(self, endpoint: LlmEndpoint, results: TrialResults) -> None:
        """Allow the steps what the runner may; the workers load and exchange documents, no more."""
        steps, worker = self.steps.role, self.worker.role
        for role in (steps, worker):
            endpoint.grant_invoke(role)
        endpoint.grant_describe(steps)
        grant_describe_model(endpoint, steps)
        grant_describe_scaling(steps)
        grant_suspend_scaling(endpoint, steps)
        grant_announce(steps)
        steps.add_to_principal_policy(allow_unnamed("cloudwatch:GetMetricData"))
        results.grant_read(steps, (TRIALS, RUNS, RELEASED))
        results.grant_write(steps, (TRIALS, RUNS, LATEST, PASSED, RELEASED))
        results.grant_read(worker, (RUNS,))
        results.grant_write(worker, (RUNS,))
