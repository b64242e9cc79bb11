"""The custom resource that puts the deployed endpoint through its sea trial."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from aws_cdk import CustomResource, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import custom_resources as cr
from constructs import Construct

from seatrial.errors import SpecError
from seatrial.spec.trial import LONGEST_BUDGET_MINUTES
from seatrial.units import S_PER_MINUTE, exported
from seatrial_cdk.archive_file import archive_file
from seatrial_cdk.smoke_benchmark.announce_permission import grant_announce
from seatrial_cdk.smoke_benchmark.model_permission import grant_describe_model
from seatrial_cdk.smoke_benchmark.runtime.trial_store import FOLDERS, LATEST, PASSED, RELEASED, RUNS, TRIALS
from seatrial_cdk.smoke_benchmark.runtime_code import runtime_archive
from seatrial_cdk.smoke_benchmark.scaling_permission import grant_describe_scaling, grant_suspend_scaling
from seatrial_cdk.smoke_benchmark.trial_function import TrialFunction, log_group_of
from seatrial_cdk.unnamed_resources import allow_unnamed

if TYPE_CHECKING:
    from seatrial_cdk.llm_endpoint import LlmEndpoint
    from seatrial_cdk.smoke_benchmark.trial_results import TrialResults
    from seatrial_cdk.trial_fleet.trial_fleet import TrialFleet

RUNNER_MARGIN_S = 60.0
LONGEST_RUN_S = 900.0  # Lambda lets no function run longer; a longer trial goes on in the next run
FRAMEWORK_MARGIN_S = 300.0
LOOKS = 60  # for the result within the budget; each is one call of a short function
LONGEST_PAUSE_S = 20  # between two looks: a trial that has paused waits for one
ONE_VCPU_MEMORY_MB = 1769  # Lambda gives one full vCPU at this size; one process of ours uses no more


class SmokeBenchmark(Construct):
    """Trial of the live endpoint whenever what is deployed changes; a failed one rolls the deployment back.

    While it measures, nothing scales the copies: the policy of before would act on the trial's load. A trial that is
    longer than a function may run goes on in the next run, from its checkpoint; `is_complete` orders that one, also
    where a function died. The metrics of each trial are in namespace `Seatrial`, its end is an event of source
    `seatrial` on the default bus.

    Request properties (CloudFormation sends each as a string):
        EndpointName, InferenceComponentName, EndpointConfigName, ModelName: What must be live.
        Image: The container image that must be live.
        PlanDigest: The trial runs again exactly when it, EndpointConfigName or ModelName changes.
        Request: The trial request as JSON without `target` and `expected`.
        Mode: `rollback` fails the deployment when the trial is not passed, `report` only reports.
        BudgetSeconds: The trial measures no longer than this.
        FallbackTarget: Scaling target per copy where no trial answers.

    Response attributes (strings; `unknown` where there is no value):
        TargetConcurrencyPerCopy: Requests in flight per copy to scale at; always a number.
        KneeConcurrencyPerCopy: Where throughput no longer pays for latency.
        OutputTokensPerSecond, TtftP50Ms, TtftP95Ms, TpotP95Ms, E2eP95Ms: Measured at the knee, else at the gate.
        UsdPerMillionOutputTokens, BlendedUsdPerMillionTokens: At the level that the target comes from.
        TrialUsd: What the copies cost while the trial ran.
        Comparison: With the last release: `same`, `better`, `worse` or `incomparable`.
        Verdict: `pass`, `fail`, `inconclusive` or `error`.
        Verified: `true` when a trial of this plan was passed.
        ResultUri: S3 URI of the result document.
        ReportUri: S3 URI of the short report beside it.

    Args:
        endpoint: What is tried.
        results: Where results are kept.
        trial_request: The `Request` property.
        plan_digest: The `PlanDigest` property.
        mode: The `Mode` property.
        image: The `Image` property.
        budget_minutes: The trial measures no longer than this, 50 at most: CloudFormation waits an hour.
        fallback_target: The `FallbackTarget` property.
        query_interval: Pause between two looks for the result; default: a sixtieth of the budget, 20 s at most.
        fleet: Makes the trial where its levels need more than one function; default: one function makes it.

    Raises:
        SpecError: SEA505 when the budget exceeds 50 minutes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: LlmEndpoint,
        results: TrialResults,
        trial_request: str,
        plan_digest: str,
        mode: Literal["rollback", "report"],
        image: str,
        budget_minutes: float,
        fallback_target: float,
        query_interval: Duration | None = None,
        fleet: TrialFleet | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        budget_s = _budget_s(budget_minutes)
        pause_s = query_interval.to_seconds() if query_interval else min(math.ceil(budget_s / LOOKS), LONGEST_PAUSE_S)
        with archive_file("runtime.zip", runtime_archive()) as path:
            code = lambda_.Code.from_asset(path)
            self.runner = _runner(self, code, endpoint, results, budget_s)
            self.on_event = _on_event(self, code, results)
            self.is_complete = _is_complete(self, code, endpoint, results)
        self.resource = CustomResource(
            self,
            "Resource",
            resource_type="Custom::SmokeBenchmark",
            service_token=_provider(self, budget_s, pause_s).service_token,
            service_timeout=Duration.seconds(budget_s + 2 * FRAMEWORK_MARGIN_S),
            properties={
                "EndpointName": endpoint.endpoint_name,
                "InferenceComponentName": endpoint.inference_component_name,
                "EndpointConfigName": endpoint.config.attr_endpoint_config_name,
                "ModelName": endpoint.model.attr_model_name,
                "Image": image,
                "PlanDigest": plan_digest,
                "Request": trial_request,
                "Mode": mode,
                "BudgetSeconds": f"{budget_s:g}",
                "FallbackTarget": exported(fallback_target),
            },
        )
        self.resource.node.add_dependency(endpoint.component, results)
        if fleet:
            self._hand_over_to(fleet)

    def _hand_over_to(self, fleet: TrialFleet) -> None:
        for starter in (self.on_event, self.is_complete):
            fleet.start_from(starter)
        self.resource.node.add_dependency(fleet)

    def attribute(self, name: str) -> str:
        """Return a response attribute as a token."""
        return self.resource.get_att_string(name)


def _budget_s(budget_minutes: float) -> int:
    """Return the budget in seconds, rounded up: CloudFormation and Lambda count whole ones."""
    if budget_minutes > LONGEST_BUDGET_MINUTES:
        message = f"budget {budget_minutes:g} minutes exceeds {LONGEST_BUDGET_MINUTES:g} minutes"
        hint = "measure fewer concurrency levels, or fewer requests per level"
        raise SpecError.of("SEA505", message, field="trial.budget_minutes", hint=hint)
    return math.ceil(budget_minutes * S_PER_MINUTE)


def _runner(
    scope: SmokeBenchmark, code: lambda_.Code, endpoint: LlmEndpoint, results: TrialResults, budget_s: int
) -> TrialFunction:
    """Define the function that measures.

    A second load beside the first would spoil both: each run has one lease, and a late start is dropped. Lambda itself
    repeats no failed run, `is_complete` does, from the checkpoint.
    """
    runner = TrialFunction(
        scope,
        "Runner",
        module="runner",
        code=code,
        timeout=Duration.seconds(min(budget_s + RUNNER_MARGIN_S, LONGEST_RUN_S)),
        environment={"RESULTS_BUCKET": results.bucket.bucket_name},
        memory_mb=ONE_VCPU_MEMORY_MB,
        async_retries=0,
        max_event_age=Duration.minutes(1),
        keep_logs=results.removal == "retain",
    )
    endpoint.grant_invoke(runner.role)
    endpoint.grant_describe(runner.role)
    grant_describe_model(endpoint, runner.role)
    grant_describe_scaling(runner.role)
    grant_suspend_scaling(endpoint, runner.role)
    grant_announce(runner.role)
    runner.role.add_to_principal_policy(allow_unnamed("cloudwatch:GetMetricData"))
    results.grant_read(runner.role, (TRIALS, RUNS, RELEASED))
    results.grant_write(runner.role, (TRIALS, RUNS, LATEST, PASSED, RELEASED))
    return runner


def _on_event(scope: SmokeBenchmark, code: lambda_.Code, results: TrialResults) -> TrialFunction:
    on_event = TrialFunction(
        scope,
        "OnEvent",
        module="on_event",
        code=code,
        timeout=Duration.minutes(1),
        environment=_environment(scope, results),
    )
    scope.runner.function.grant_invoke(on_event.role)
    results.grant_read(on_event.role, (TRIALS, RUNS, LATEST, PASSED))
    results.grant_write(on_event.role, (RUNS, RELEASED))
    results.grant_empty(on_event.role, FOLDERS)
    iam.Grant.add_to_principal(
        grantee=on_event.role,
        actions=["cloudformation:DescribeStacks"],
        resource_arns=[Stack.of(scope).stack_id],
    )
    return on_event


def _is_complete(
    scope: SmokeBenchmark, code: lambda_.Code, endpoint: LlmEndpoint, results: TrialResults
) -> TrialFunction:
    is_complete = TrialFunction(
        scope,
        "IsComplete",
        module="is_complete",
        code=code,
        timeout=Duration.minutes(1),
        environment=_environment(scope, results),
    )
    scope.runner.function.grant_invoke(is_complete.role)
    results.grant_read(is_complete.role, (TRIALS, RUNS))
    results.grant_write(is_complete.role, (RUNS,))
    results.grant_empty(is_complete.role, FOLDERS)
    grant_suspend_scaling(endpoint, is_complete.role)
    return is_complete


def _environment(scope: SmokeBenchmark, results: TrialResults) -> dict[str, str]:
    """Return the variables of the functions that start runs."""
    return {
        "RESULTS_BUCKET": results.bucket.bucket_name,
        "RUNNER_FUNCTION": scope.runner.function.function_name,
    }


def _provider(scope: SmokeBenchmark, budget_s: int, pause_s: float) -> cr.Provider:
    looks = math.ceil((budget_s + FRAMEWORK_MARGIN_S) / pause_s)  # the framework wants a whole number of them
    return cr.Provider(
        scope,
        "Provider",
        on_event_handler=scope.on_event.function,
        is_complete_handler=scope.is_complete.function,
        query_interval=Duration.seconds(pause_s),
        total_timeout=Duration.seconds(pause_s * looks),
        log_group=log_group_of(scope),
        disable_waiter_state_machine_logging=True,
    )
