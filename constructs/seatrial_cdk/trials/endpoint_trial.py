"""The two custom resources of an endpoint: `CandidateTrial` before an update, `SmokeBenchmark` after."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

import jsii
from aws_cdk import Annotations, CustomResource, Duration, IStableStringProducer, Lazy, Stack, TagManager, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from seatrial.specs.endpoint import LONGEST_BUDGET_MINUTES
from seatrial_base.bounds import (
    IMAGE_PULL_S,
    INSTANCE_START_S,
    LONGEST_ANSWER_S,
    LONGEST_TRIAL_S,
    trial_timeout_s,
)
from seatrial_base.errors import SpecError
from seatrial_base.units import S_PER_MINUTE, exported
from seatrial_cdk.trials.runtime.attributes import attribute_names
from seatrial_cdk.trials.trial_service import function_arn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_cdk.endpoint.component_endpoint import ComponentEndpoint


DIGEST_DIGITS = 16


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


_DIGESTS: WeakKeyDictionary[ComponentEndpoint, str] = WeakKeyDictionary()


def _component_digest(endpoint: ComponentEndpoint) -> str:
    """Return the token of a digest: one for both custom resources of an endpoint."""
    found = _DIGESTS.get(endpoint)
    if found is None:
        found = _DIGESTS[endpoint] = Lazy.string(_ComponentDigest(endpoint))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSettings:
    """How the configurations of an endpoint are tried.

    Attributes:
        environment: The environment's name.
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

    def custom_resource(
        self,
        scope: Construct,
        endpoint: ComponentEndpoint,
        *,
        resource_type: str,
        phase: Literal["candidate", "deployed"],
        longest_s: int,
    ) -> CustomResource:
        """Define the custom resource of a phase, which the environment's trial service answers.

        Args:
            scope: What it belongs to.
            endpoint: Whose configurations are tried.
            resource_type: Its CloudFormation type.
            phase: Before the update of what serves, or after it.
            longest_s: How long CloudFormation waits for it, in seconds.

        Raises:
            SpecError: SEA505 when the budget exceeds 50 minutes.
        """
        return CustomResource(
            scope,
            "Resource",
            resource_type=resource_type,
            service_token=function_arn(Stack.of(scope), self.environment),
            service_timeout=Duration.seconds(longest_s),
            properties={**self._properties(endpoint, phase)},
        )

    def _properties(self, endpoint: ComponentEndpoint, phase: Literal["candidate", "deployed"]) -> dict[str, str]:
        """Return the properties of a custom resource: both are the same, so that what updates one updates the other.

        `Trial` alone has the names of its attributes: a release with more of them has them answered anew, without which
        an output could not read them, and touches no copy.
        """
        return {
            "Phase": phase,
            "EndpointName": endpoint.endpoint_name,
            "InferenceComponentName": endpoint.component_name,
            "EndpointConfigName": endpoint.endpoint_config_name,
            "ModelName": endpoint.model_name,
            "Specification": endpoint.specification_json,
            "Component": _component_digest(endpoint),
            "CopyCount": f"{self.copy_count}",
            "MostCopies": f"{self.most_copies}",
            "PlanDigest": self.plan_digest,
            "Request": self.trial_request,
            "Mode": self.mode,
            "Update": self.update,
            "BudgetSeconds": f"{self.budget_s:g}",
            "StartSeconds": f"{self.candidate_start_s:g}",
            "InstanceSeconds": f"{self.instance_s:g}",
            "InstanceAccelerators": f"{self.accelerators}",
            "FallbackTarget": exported(self.fallback_target),
            "Alarms": ",".join(self.alarms),
            "Replaces": ",".join(self.replaces),
            "Alias": endpoint.alias_name or "",
            "Removal": self.removal,
            "ReleaseSeconds": f"{self.release_s}",
            **({} if self.rolls_back else {"RollbackAlarms": "off"}),
            **({"Attributes": ",".join(attribute_names())} if phase == "deployed" else {}),
        }


class CandidateTrial(Construct):
    """Trial of a new configuration as a candidate component beside the live one, which no user reaches.

    CloudFormation updates endpoint and component after it, so a trial that fails leaves them as they are. The component
    takes its copy count from here: the live one on an update, the planned one where nothing serves yet. Scale-in is
    suspended from here until `SmokeBenchmark` has proven the update; scale-out never is.

    It is deleted after endpoint and component, and before the roles: while AWS releases grants and network interfaces
    of a deleted endpoint, the roles must keep their rights (SageMaker API reference, DeleteEndpoint).

    Request properties: those of `TrialSettings.custom_resource`.

    Response attributes (strings):
        CopyCount: The copies that the update carries.
        Verdict: `pass`, `fail`, `inconclusive`, `error` or `not tried`.
        ResultUri: S3 URI of the result document.

    Args:
        endpoint: Whose configurations are tried.
        settings: How.

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
        copies = Token.as_number(self.resource.get_att("CopyCount"))
        endpoint.component.runtime_config = sagemaker.CfnInferenceComponent.InferenceComponentRuntimeConfigProperty(
            copy_count=copies
        )
        for later in (endpoint.endpoint, endpoint.component):
            later.node.add_dependency(self.resource)
        for role in (endpoint.instance_role, endpoint.model_role):
            if isinstance(role.node.default_child, iam.CfnRole):
                self.resource.node.add_dependency(role.node.default_child)


class SmokeBenchmark(Construct):
    """Trial of the live endpoint whenever what is deployed changes; a failed one rolls the deployment back.

    The environment's `TrialService` makes it; its function is found by its name, so that no stack exports anything.
    CloudFormation refuses another function for a resource that is there: the service keeps its name.

    What an update deploys is tried by `CandidateTrial` before; here it is verified then: by names, and by a handful of
    requests. Where there was no room for a candidate it is loaded beside its users.

    Request properties: those of `TrialSettings.custom_resource`.

    Response attributes (strings; `unknown` where there is no value):
        TargetConcurrencyPerCopy: Requests in flight per copy to scale at; always a number.
        KneeConcurrencyPerCopy: The knee that the target comes from; of a pass without one, the gate.
        SloKneeConcurrencyPerCopy: Where the SLO begins to be missed; `at least` where no measured load misses it.
        SaturationKneeConcurrencyPerCopy: Where more load stops paying.
        TargetKnee: Which knee the target comes from: `slo`, `saturation` or `gate`.
        OutputTokensPerSecond, TtftP50Ms, TtftP95Ms, TpotP95Ms, E2eP95Ms: Measured at the knee, else at the gate.
        UsdPerMillionOutputTokens, BlendedUsdPerMillionTokens: At the level that the target comes from.
        TrialUsd: What the copies cost while the trial ran.
        Comparison: With the last release: `same`, `better`, `worse` or `incomparable`.
        Verdict: `pass`, `fail`, `inconclusive` or `error`.
        Verified: `true` when a trial of this plan was passed.
        ResultUri: S3 URI of the result document.
        ReportUri: S3 URI of the short report beside it.
        ResultsBucket: The environment's bucket of results.

    Args:
        endpoint: What is tried.
        settings: How.

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
