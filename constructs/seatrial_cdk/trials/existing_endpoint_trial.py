"""The trial of an endpoint that something else made and updates."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, get_args

from aws_cdk import Annotations, CustomResource, Duration, Stack
from constructs import Construct

from seatrial.deployment.trial import ONLY_THE_STACK_KNOWS, slo_objectives
from seatrial.specs.endpoint import LONGEST_BUDGET_MINUTES, TrialSpec
from seatrial_base.bounds import trial_timeout_s
from seatrial_base.errors import BenchError, SpecError
from seatrial_base.field_facts import made_of
from seatrial_base.findings import Finding, Place
from seatrial_base.frozen_model import digest
from seatrial_base.units import S_PER_MINUTE, exported
from seatrial_cdk.trials.trial_service import function_arn
from seatrial_cdk.value_checks import RULE
from seatrial_load.documents.request import Gate, Load, PayloadSchema, TrialRequest, TrialTarget, Workload
from seatrial_load.documents.request_checks import check_trial_request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seatrial.specs.endpoint import Slo
    from seatrial_cdk.endpoint.endpoint_interface import ILlmEndpoint
    from seatrial_cdk.trials.trial_service import TrialService

DEFAULT_BUDGET_MINUTES = 10
WHERE = "ExistingEndpointTrial"
SHARE_OF_TARGET = 0.8  # of the knee: the default of scaling.target_utilization


class ExistingEndpointTrial(Construct):
    """Trial of an endpoint with an inference component that something else made, beside its users.

    It is made on creation, and again whenever its arguments change: nothing else tells of an update of the endpoint, so
    change `revision` with it. What is live can't be proven, and no candidate is created. Scale-in is suspended while it
    runs. The trial service gets the right to invoke and scale this endpoint (`TrialService.grant_trial`).

    Response attributes: those of `SmokeBenchmark`.

    Args:
        endpoint: What is tried, as `LlmEndpoint.from_attributes` names it, with its inference component.
        trials: The trial service of an environment, in the endpoint's account and region.
        slo: Its objectives.
        input_tokens: Length of a prompt, in tokens.
        output_tokens: Length of an answer, in tokens.
        concurrency_levels: Requests in flight per copy, ascending; the objectives must hold at the last of them.
        copy_count: Copies that run.
        schema: What `/invocations` speaks.
        manner: `in_place` adds load beside the users' requests; `verify_only` sends a few single requests.
        mode: `report` only reports; `rollback` fails the deployment of this construct.
        alarms: Names of alarms that stop the load.
        budget_minutes: The trial measures no longer than this, 50 at most.
        revision: Any text; another one repeats the trial.

    Raises:
        SpecError: SEA439, SEA501 and SEA505, with every argument that no trial can be made of.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: ILlmEndpoint,
        trials: TrialService,
        slo: Slo,
        input_tokens: int,
        output_tokens: int,
        concurrency_levels: Sequence[int],
        copy_count: int = 1,
        schema: PayloadSchema = "openai_chat",
        manner: Literal["in_place", "verify_only"] = "verify_only",
        mode: Literal["report", "rollback"] = "report",
        alarms: Sequence[str] = (),
        budget_minutes: float = DEFAULT_BUDGET_MINUTES,
        revision: str = "",
    ) -> None:
        super().__init__(scope, construct_id)
        request = TrialRequest(
            endpoint=construct_id,
            environment=trials.environment,
            plan_digest="",
            target=TrialTarget(endpoint_name="", inference_component=None, region=""),
            expected=None,
            workload=Workload(input_tokens=input_tokens, output_tokens=output_tokens, schema=schema),
            load=made_of(
                Load,
                TrialSpec(),
                concurrency_levels=tuple(concurrency_levels),
                budget_s=budget_minutes * S_PER_MINUTE,
            ),
            objectives=tuple(slo_objectives(slo)),
            gate_concurrency=max(concurrency_levels, default=1),
            copy_count=copy_count,
            mode=mode,
            usd_per_hour_per_copy=None,
            fallback_target_concurrency=float(max(concurrency_levels, default=1)),
            target_utilization=SHARE_OF_TARGET,
            gate=made_of(Gate, TrialSpec()),
        )
        _check(request, manner, budget_minutes)
        if endpoint.inference_component_name is None:
            message = "SEA448: the endpoint has no inference component, so it can't be tried."
            Annotations.of(self).add_error(f"{message} Name it with LlmEndpoint.from_attributes.")
        trials.grant_trial(endpoint, alarms)
        self.resource = CustomResource(
            self,
            "Resource",
            resource_type="Custom::SmokeBenchmark",
            service_token=function_arn(Stack.of(self), trials.environment),
            service_timeout=Duration.seconds(trial_timeout_s(int(budget_minutes * S_PER_MINUTE))),
            properties={**_properties(endpoint, request, manner, alarms, revision)},
        )
        self.resource.node.add_dependency(trials)

    def attribute(self, name: str) -> str:
        """Return a response attribute as a token."""
        return self.resource.get_att_string(name)


def _check(request: TrialRequest, manner: str, budget_minutes: float) -> None:
    """Refuse arguments that no trial can be made of, all at once."""
    chosen = (
        ("manner", manner, ("in_place", "verify_only")),
        ("mode", request.mode, ("report", "rollback")),
        ("schema", request.workload.schema, get_args(PayloadSchema)),
    )
    problems = [
        Finding(RULE, Place.at(WHERE, name), f"is {value!r}; it is {' or '.join(choices)}")
        for name, value, choices in chosen
        if value not in choices
    ]
    if budget_minutes > LONGEST_BUDGET_MINUTES:
        message = f"budget {budget_minutes:g} minutes exceeds {LONGEST_BUDGET_MINUTES:g} minutes"
        problems.append(Finding("SEA505", Place.at(WHERE, "budget_minutes"), message, "reduce concurrency_levels"))
    try:
        check_trial_request(request)
    except BenchError as error:
        problems += error.problems
    if problems:
        raise SpecError(problems)


def _properties(
    endpoint: ILlmEndpoint, request: TrialRequest, update: str, alarms: Sequence[str], revision: str
) -> Mapping[str, str]:
    fields: dict[str, object] = json.loads(request.to_json())
    told = {key: value for key, value in fields.items() if key not in ONLY_THE_STACK_KNOWS}
    plan_digest = digest(json.dumps([told, update, *alarms, revision], sort_keys=True))
    return {
        "Phase": "deployed",
        "EndpointName": endpoint.endpoint_name,
        "InferenceComponentName": endpoint.inference_component_name or "",
        "EndpointConfigName": "",
        "ModelName": "",
        "CopyCount": f"{request.copy_count}",
        "PlanDigest": plan_digest,
        "Request": json.dumps({**told, "plan_digest": plan_digest}, sort_keys=True),
        "Mode": request.mode,
        "Update": update,
        "BudgetSeconds": f"{request.load.budget_s:g}",
        "FallbackTarget": exported(request.fallback_target_concurrency),
        "Alarms": ",".join(alarms),
    }
