"""The custom resources that ask for trials: before an update, after it, and of an endpoint that something else made."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, get_args
from weakref import WeakKeyDictionary

import jsii
from aws_cdk import Annotations, CustomResource, Duration, IStableStringProducer, Lazy, Stack, TagManager, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from seatrial import __version__
from seatrial.deployment.trial import ONLY_THE_STACK_KNOWS, slo_objectives
from seatrial.specs.endpoint import LONGEST_BUDGET_MINUTES, TrialSpec
from seatrial_base.bounds import (
    IMAGE_PULL_S,
    INSTANCE_START_S,
    LONGEST_ANSWER_S,
    LONGEST_TRIAL_S,
    trial_timeout_s,
)
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import licence_of
from seatrial_base.errors import BenchError, SpecError
from seatrial_base.field_facts import made_of
from seatrial_base.findings import Finding, Place
from seatrial_base.frozen_model import digest
from seatrial_base.units import S_PER_MINUTE, as_exported
from seatrial_cdk.observability.endpoint_alarms import rollback_alarms_are_off
from seatrial_cdk.trials.runtime.attributes import ATTRIBUTES, attribute_names
from seatrial_cdk.trials.runtime.properties import TrialProperties, write_properties
from seatrial_cdk.trials.runtime.served_record import RECORD_TYPE
from seatrial_cdk.trials.trial_service import function_arn
from seatrial_cdk.value_checks import RULE, in_unit
from seatrial_load.documents.request import Gate, Load, PayloadSchema, TrialRequest, TrialTarget, Workload
from seatrial_load.documents.request_checks import check_trial_request
from seatrial_load.documents.served_record import UNKNOWN, ServedModel
from seatrial_load.documents.strict_json import write_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from constructs import IDependable

    from seatrial.deployment.document import Deployment
    from seatrial.specs.endpoint import Slo
    from seatrial_cdk.endpoint.endpoint_interface import ComponentEndpoint, ILlmEndpoint
    from seatrial_cdk.observability.endpoint_alarms import EndpointAlarms
    from seatrial_cdk.trials.runtime.properties import Phase
    from seatrial_cdk.trials.trial_service import TrialService


COMMIT = re.compile("[0-9a-f]{40}")
RECORD_MINUTES = 15  # Lambda calls a function that failed again after one and two minutes
DIGEST_DIGITS = 16
RELEASE_S = 300
"""AWS says "a few minutes" (SageMaker API reference, DeleteEndpoint)."""
DEFAULT_BUDGET_MINUTES = 10
WHERE = "ExistingEndpointTrial"
SHARE_OF_TARGET = 0.8  # of the knee: the default of scaling.target_utilization
_DIGESTS: WeakKeyDictionary[ComponentEndpoint, str] = WeakKeyDictionary()


@jsii.implements(IStableStringProducer)
class _ComponentDigest:
    """Tells of what else than its specification a change makes CloudFormation update the component.

    It is made during synthesis, when alarms and tags are known.
    """

    def __init__(self, endpoint: ComponentEndpoint) -> None:
        self._endpoint = endpoint

    def produce(self) -> str:
        """Return the digest of the component's update policy and tags."""
        component = self._endpoint.component
        tags = TagManager.of(component)
        parts = {"DeploymentConfig": component.deployment_config, "Tags": tags.render_tags() if tags else []}
        resolved: object = Stack.of(component).resolve(parts)
        return sha256(json.dumps(resolved, sort_keys=True).encode()).hexdigest()[:DIGEST_DIGITS]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSettings:
    """How the configurations of an endpoint are tried.

    Attributes:
        trial_request: The trial request as JSON without `target` and `expected`.
        plan_digest: The trial runs again exactly when it changes, or what is deployed.
        mode: `rollback` fails the deployment when the trial is not passed, `report` only reports.
        update: How an update is tried: as a candidate beside the live component, in place, or not at all.
        budget_minutes: The trial measures no longer than this, 50 at most.
        start_s: How long a candidate may download and start on an instance, in seconds.
        instance_s: How long the instance for it may take to start and to pull its image, in seconds; only where no
            accelerators are free.
        accelerators: Of one instance; 0 where instances differ, or have none.
        copy_count: Copies where nothing serves yet.
        most_copies: Copies that the endpoint has room for.
        fallback_target: Scaling target per copy where no trial answers.
        release_s: How long a deletion waits until AWS has released the grants and network interfaces that a deleted
            endpoint leaves, for which SageMaker needs the roles, in seconds; 0 where it leaves none.
        removal: Whether the logs of containers are deleted with the stack; they end after a month anyway.
        alarms: Names of the alarms that stop a load beside users.
        rolls_back: Whether these alarms roll this deployment back; if not, its update waits until they have ended.
        replaces: Components of the endpoint's former generations, the newest first: the new one gets no fewer copies.
        is_embedded: Whether copies run on the embedded AWS, which starts them at once.
    """

    environment: str
    trial_request: str
    plan_digest: str
    mode: Literal["rollback", "report"]
    update: Literal["candidate", "in_place", "verify_only"]
    budget_minutes: float
    start_s: float
    instance_s: float = INSTANCE_START_S + IMAGE_PULL_S
    accelerators: int = 0
    copy_count: int
    most_copies: int
    fallback_target: float
    release_s: int = 0
    removal: Literal["destroy", "retain"] = "retain"
    alarms: Sequence[str] = ()
    rolls_back: bool = True
    replaces: Sequence[str] = ()
    is_embedded: bool = False

    @property
    def budget_s(self) -> int:
        """The budget in seconds, rounded up: CloudFormation counts whole ones.

        Raises:
            SpecError: SEA505 when the budget exceeds 50 minutes.
        """
        if self.budget_minutes > LONGEST_BUDGET_MINUTES:
            message = f"budget {self.budget_minutes:g} minutes exceeds {LONGEST_BUDGET_MINUTES:g} minutes"
            hint = "reduce concurrency levels, or requests per level"
            raise SpecError.of("SEA505", message, field="trial.budget_minutes", hint=hint)
        return math.ceil(self.budget_minutes * S_PER_MINUTE)

    @property
    def candidate_start_s(self) -> float:
        """How long a candidate may take to start, in seconds: within CloudFormation's hour the trial comes after it."""
        return max(0.0, min(self.start_s, LONGEST_TRIAL_S - self.budget_s))

    @property
    def late_start(self) -> str:
        """Why CloudFormation's hour may end before a candidate on a new instance is tried; empty when it does not."""
        wanted_s, left_s = self.start_s + self.instance_s, LONGEST_TRIAL_S - self.budget_s
        if self.update != "candidate" or wanted_s <= left_s or self.is_embedded:
            return ""
        fits = math.floor((LONGEST_TRIAL_S - wanted_s) / S_PER_MINUTE)
        lower = f"trial.budget_minutes to {fits} or less, or " if fits >= 1 else ""
        return (
            f"SEA505: budget {self.budget_minutes:g} minutes leaves a candidate {left_s / S_PER_MINUTE:.0f} minutes to "
            f"start; on a new instance it may take {wanted_s / S_PER_MINUTE:.0f}: set {lower}trial.update to in_place"
        )

    @classmethod
    def of(cls, deployment: Deployment, alarms: EndpointAlarms) -> TrialSettings:
        """Return how a deployment is tried, whose trial is not off."""
        trial, plan, hosting = deployment.endpoint.trial, deployment.plan, deployment.endpoint.hosting
        environment, instance = deployment.environment, find_instance(plan.instance_type.value)
        leaves_grants = environment.kms_key_arn is not None or environment.network.subnet_ids
        return made_of(
            cls,
            trial,
            environment,
            deployment,
            environment=environment.name,
            plan_digest=plan.digest,
            mode="report" if trial.mode == "report" else "rollback",
            start_s=plan.download_timeout_s.value + plan.startup_timeout_s.value,
            instance_s=max(INSTANCE_START_S, hosting.provision_timeout_s or 0) + IMAGE_PULL_S,
            accelerators=0 if instance is None or hosting.instance_pools else instance.accelerator_count,
            copy_count=plan.copy_count.value,
            most_copies=max(plan.copy_count.value, deployment.endpoint.scaling.max_copies),
            fallback_target=plan.target_concurrency_per_copy.value,
            release_s=RELEASE_S if leaves_grants else 0,
            alarms=alarms.rollback_names,
            rolls_back=not rollback_alarms_are_off(alarms),
            replaces=deployment.former_components,
        )

    def custom_resource(
        self, scope: Construct, endpoint: ComponentEndpoint, *, resource_type: str, phase: Phase, longest_s: int
    ) -> CustomResource:
        """Define the custom resource of a phase, which the environment's trial service answers.

        Both phases have the same properties, so that what updates one updates the other. `Trial` alone has the names of
        its attributes: a release with more of them has them answered again, without which an output could not read
        them, and touches no copy.

        Args:
            resource_type: Its CloudFormation type.
            longest_s: How long CloudFormation waits for it, in seconds.

        Raises:
            SpecError: SEA505 when the budget exceeds 50 minutes.
        """
        # One token for both custom resources of an endpoint.
        if (component := _DIGESTS.get(endpoint)) is None:
            component = _DIGESTS[endpoint] = Lazy.string(_ComponentDigest(endpoint))
        properties = made_of(
            TrialProperties,
            self,
            phase=phase,
            endpoint_name=endpoint.endpoint_name,
            inference_component_name=endpoint.component_name,
            endpoint_config_name=endpoint.endpoint_config_name,
            model_name=endpoint.model_name,
            specification=endpoint.specification_json,
            component=component,
            request=self.trial_request,
            # Within CloudFormation's hour, and rounded as exports are: a computed number is the same on every machine.
            start_s=as_exported(self.candidate_start_s),
            instance_s=as_exported(self.instance_s),
            fallback_target=as_exported(self.fallback_target),
            alias=endpoint.alias_name or "",
            attributes=attribute_names() if phase == "deployed" else (),
        )
        return _custom_resource(scope, resource_type, self.environment, properties, longest_s=longest_s)


def _custom_resource(
    scope: Construct, resource_type: str, environment: str, properties: TrialProperties, *, longest_s: int
) -> CustomResource:
    return CustomResource(
        scope,
        "Resource",
        resource_type=resource_type,
        service_token=function_arn(Stack.of(scope), environment),
        service_timeout=Duration.seconds(longest_s),
        properties={**write_properties(properties)},
    )


class CandidateTrial(Construct):
    """Trial of a new configuration as a candidate component beside the live one, which no user reaches.

    CloudFormation updates endpoint and component after it, so a trial that fails leaves them as they are. The component
    takes its copy count from here: the live one on an update, the planned one where nothing serves yet. Scale-in is
    suspended from here until `SmokeBenchmark` has proven the update; scale-out never is.

    It is deleted after endpoint and component, and before the roles: while AWS releases grants and network interfaces
    of a deleted endpoint, the roles must keep their rights (SageMaker API reference, DeleteEndpoint).

    Request properties: those of `seatrial_cdk.trials.runtime.properties`.

    Response attributes (strings):
        CopyCount: The copies that the update carries.
        Verdict: `pass`, `fail`, `inconclusive`, `error` or `not tried`.
        ResultUri: S3 URI of the result document.

    Raises:
        SpecError: SEA505 when the budget exceeds 50 minutes.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, endpoint: ComponentEndpoint, settings: TrialSettings
    ) -> None:
        super().__init__(scope, construct_id)
        self.resource = settings.custom_resource(
            self, endpoint, resource_type="Custom::CandidateTrial", phase="candidate", longest_s=LONGEST_ANSWER_S
        )
        if late := settings.late_start:
            Annotations.of(self).add_warning_v2("seatrial:SEA505", late)
        # The template can't have the live count, and with the planned one an update would take away what scaling added.
        copies = Token.as_number(self.resource.get_att("CopyCount"))
        endpoint.component.runtime_config = sagemaker.CfnInferenceComponent.InferenceComponentRuntimeConfigProperty(
            copy_count=copies
        )
        for later in (endpoint.endpoint, endpoint.component):
            later.node.add_dependency(self.resource)
        for role in (endpoint.instance_role, endpoint.model_role):
            if isinstance(resource := role.node.default_child, iam.CfnRole):
                self.resource.node.add_dependency(resource)


class SmokeBenchmark(Construct):
    """Trial of the live endpoint whenever what is deployed changes; a failed one rolls the deployment back.

    The environment's `TrialService` makes it; its function is found by its name, so that no stack exports anything.
    CloudFormation refuses another function for a resource that is there: the service keeps its name.

    What an update deploys is tried by `CandidateTrial` before; here it is verified then: by names, and by a handful of
    requests. Where there was no room for a candidate it is loaded beside its users.

    Request properties: those of `seatrial_cdk.trials.runtime.properties`.

    Response attributes (strings, `unknown` without a value): [deployment outputs](outputs.md#attributes).

    Raises:
        SpecError: SEA505 when the budget exceeds 50 minutes.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, endpoint: ComponentEndpoint, settings: TrialSettings
    ) -> None:
        super().__init__(scope, construct_id)
        self.resource = settings.custom_resource(
            self,
            endpoint,
            resource_type="Custom::SmokeBenchmark",
            phase="deployed",
            longest_s=trial_timeout_s(settings.budget_s),
        )
        self.resource.node.add_dependency(endpoint.component)

    def attribute(self, name: str) -> str:
        """Return a response attribute as a token."""
        return self.resource.get_att_string(name)

    def outputs(self) -> dict[str, str]:
        """Return the response attributes that are outputs of a stack, as tokens by the names that they have there."""
        named = {each.output: each.name for each in ATTRIBUTES if each.output}
        first = {name: named[name] for name in ("ResultsBucket", "TrialResultUri", "TrialReportUri")}  # as in stacks
        return {output: self.attribute(name) for output, name in (first | named).items()}


class ModelRecord(Construct):
    """Has the trial service record what serves, for auditors, each time that it or its trial changes.

    Args:
        endpoint_name: On SageMaker.
        component: The inference component; empty where the model is in the production variant.
        deployment: What serves there, in an environment with `audit`.
        trial: Its trial; default: none.
        after: What must be there first.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint_name: str,
        component: str,
        deployment: Deployment,
        trial: SmokeBenchmark | None = None,
        after: Iterable[IDependable] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        tried = {} if trial is None else {name: trial.attribute(name) for name in ("Verdict", "ResultUri")}
        self.resource = CustomResource(
            self,
            "Resource",
            resource_type=RECORD_TYPE,
            service_token=function_arn(Stack.of(self), deployment.environment.name),
            service_timeout=Duration.minutes(RECORD_MINUTES),
            properties={
                "EndpointName": endpoint_name,
                "InferenceComponentName": component,
                "Served": write_document(served_model(deployment)),
                **tried,
            },
        )
        self.resource.node.add_dependency(*after)


def served_model(deployment: Deployment) -> ServedModel:
    """Return what a deployment serves, as far as spec and lock tell."""
    spec, serving, plan = deployment.endpoint.model, deployment.serving, deployment.plan
    named = spec.hub_id or spec.jumpstart_id
    is_commit = spec.revision is not None and COMMIT.fullmatch(spec.revision) is not None
    return ServedModel(
        endpoint=deployment.endpoint.name,
        environment=deployment.environment.name,
        model=named or spec.model_package_arn or spec.s3_uri or UNKNOWN,
        revision=spec.revision or UNKNOWN,
        licence=(licence_of(named) if named else None) or spec.licence or UNKNOWN,
        weights_uri=serving.weights_s3_uri or UNKNOWN,
        weights_digest=f"git:{spec.revision}" if is_commit and serving.weights_s3_uri is None else UNKNOWN,
        engine=serving.engine,
        engine_version=serving.engine_version,
        image=serving.image,
        image_digest=serving.image.partition("@")[2] or UNKNOWN,
        adapters=" ".join(each.s3_uri for each in deployment.endpoint.serving.adapters),
        plan_digest=plan.digest,
        lock_digest=digest(plan.model_dump_json()),
        configuration_digest=json.loads(deployment.trial_request).get("configuration_digest", UNKNOWN),
        promoted_on="" if plan.promoted is None else plan.promoted.result_uri,
        seatrial_version=__version__,
    )


class ExistingEndpointTrial(Construct):
    """Trial of an endpoint with an inference component that something else made, beside its users.

    It is made on creation, and again whenever its arguments change: nothing else reports an update of the endpoint, so
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
        budget_minutes: float | Duration = DEFAULT_BUDGET_MINUTES,
        revision: str = "",
    ) -> None:
        super().__init__(scope, construct_id)
        budget_minutes = in_unit(budget_minutes, "minutes", is_whole=False)
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
        self.resource = _custom_resource(
            self,
            "Custom::SmokeBenchmark",
            trials.environment,
            _existing(endpoint, request, manner, alarms, revision),
            longest_s=trial_timeout_s(int(budget_minutes * S_PER_MINUTE)),
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


def _existing(
    endpoint: ILlmEndpoint,
    request: TrialRequest,
    update: Literal["in_place", "verify_only"],
    alarms: Sequence[str],
    revision: str,
) -> TrialProperties:
    fields_of: dict[str, object] = json.loads(request.to_json())
    fields = {key: value for key, value in fields_of.items() if key not in ONLY_THE_STACK_KNOWS}
    plan_digest = digest(json.dumps([fields, update, *alarms, revision], sort_keys=True))
    return TrialProperties(
        phase="deployed",
        endpoint_name=endpoint.endpoint_name,
        inference_component_name=endpoint.inference_component_name or "",
        endpoint_config_name="",
        model_name="",
        copy_count=request.copy_count,
        plan_digest=plan_digest,
        request=json.dumps({**fields, "plan_digest": plan_digest}, sort_keys=True),
        mode=request.mode,
        update=update,
        budget_s=as_exported(request.load.budget_s),
        fallback_target=as_exported(request.fallback_target_concurrency),
        alarms=alarms,
    )
