"""The parts of a deployed endpoint: trial, scaling, alarms, alias, outputs, schedule, router, further models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aws_cdk import Annotations, CfnOutput, Duration, Stack, Tags
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_ssm as ssm
from constructs import Construct

import seatrial
import seatrial_cdk
from seatrial.deployment.alias import AliasValue, alias_name
from seatrial.packaging import zip_bytes
from seatrial_base.errors import SpecError
from seatrial_cdk.endpoint.endpoint_interface import ComponentEndpoint
from seatrial_cdk.endpoint.execution_role import NO_OPTIONS, RoleOptions, role_arguments
from seatrial_cdk.endpoint.inference_component import AdapterComponent, AddedComponent
from seatrial_cdk.endpoint.planned_endpoint import optimized_container, planned_copies
from seatrial_cdk.endpoint.serving_container import archive_file
from seatrial_cdk.observability.endpoint_alarms import (
    ENGINES_WITH_METRICS,
    ContainerAlarms,
    EndpointAlarms,
    ReservationAlarm,
)
from seatrial_cdk.observability.endpoint_dashboard import define_endpoint_dashboard
from seatrial_cdk.observability.on_call import on_call_of
from seatrial_cdk.place import TOKEN_MARKER
from seatrial_cdk.policy import acknowledge, allow, policy_document
from seatrial_cdk.scaling.endpoint_scaling import define_scaling, start_minutes
from seatrial_cdk.service_function import handler_module, log_group_of, packed_modules
from seatrial_cdk.trials.endpoint_trial import CandidateTrial, ModelRecord, SmokeBenchmark, TrialSettings
from seatrial_cdk.trials.trials_stack import TrialSchedule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from constructs import IDependable

    from seatrial.deployment.document import Deployment
    from seatrial.specs.endpoint import EndpointSpec
    from seatrial_cdk.endpoint.endpoint_interface import DefinedEndpoint, ILlmEndpoint
    from seatrial_cdk.observability.endpoint_alarms import OnCall
    from seatrial_cdk.scaling.endpoint_scaling import EndpointScaling


# The name that deployed functions have; `handler_module` makes a module of it, wherever the source is.
HANDLER = "seatrial_cdk.traffic_router.runtime.handler.handler"
LONGEST_REQUEST_S = 75  # SageMaker answers within 60 s; the rest is for the start and the connection
MEMORY_MB = 256
ACKNOWLEDGED = {"L1": "The function runs on the Python version that its code is tested with."}


class TrafficRouter(Construct):
    """A function with a URL that splits requests over the components of an endpoint by weight.

    Callers sign requests to its URL with IAM (`grant_invoke`). The body is sent as it is, and the answer comes in one
    piece; header `x-seatrial-session` keeps a session at one component, header `x-seatrial-component` of the answer
    names it. The function may invoke these components and nothing else.

    Args:
        endpoint_name: Name of the endpoint.
        components: The components with their weights; each is there before the function.
        role_options: Path and permissions boundary of the function's role.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint_name: str,
        components: Sequence[tuple[ILlmEndpoint, float]],
        role_options: RoleOptions = NO_OPTIONS,
    ) -> None:
        super().__init__(scope, construct_id)
        logs = log_group_of(self)
        arns = (arn for each, _ in components for arn in (each.endpoint_arn, each.inference_component_arn) if arn)
        calls = allow(["sagemaker:InvokeEndpoint"], [*dict.fromkeys(arns)])
        writing = allow(["logs:CreateLogStream", "logs:PutLogEvents"], [logs.log_group_arn])
        self.role = iam.Role(
            self,
            "Role",
            description=f"Router of {endpoint_name}",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            **role_arguments(role_options),
            inline_policies={"Route": policy_document([calls, writing])},
        )
        weights = {
            each.inference_component_name: weight for each, weight in components if each.inference_component_name
        }
        with archive_file("router.zip", router_archive()) as path:
            self.function = lambda_.Function(
                self,
                "Function",
                description=f"Splits requests over the components of {endpoint_name}",
                runtime=lambda_.Runtime.PYTHON_3_13,
                architecture=lambda_.Architecture.ARM_64,
                handler=HANDLER,
                code=lambda_.Code.from_asset(path),
                role=self.role,
                timeout=Duration.seconds(LONGEST_REQUEST_S),
                memory_size=MEMORY_MB,
                log_group=logs,
                environment={"ENDPOINT_NAME": endpoint_name, "WEIGHTS": Stack.of(self).to_json_string(weights)},
            )
        self.url = self.function.add_function_url(auth_type=lambda_.FunctionUrlAuthType.AWS_IAM)
        for component, _ in components:
            self.function.node.add_dependency(component)
        acknowledge(self, ACKNOWLEDGED)
        CfnOutput(self, "Url", value=self.url.url)

    def grant_invoke(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow sending requests to the URL."""
        return self.url.grant_invoke_url(grantee)


def router_archive() -> bytes:
    """Return the zip archive of the function, laid out as the packages are; equal sources give equal bytes."""
    core, library = Path(seatrial.__path__[0]), Path(seatrial_cdk.__path__[0])
    shared = [core / "__init__.py", core / "deployment" / "__init__.py", core / "deployment" / "traffic.py"]
    own = [library / name for name in ("__init__.py", "endpoint/__init__.py", "endpoint/router_function.py")]
    entry = handler_module(HANDLER, "seatrial_cdk.endpoint.router_function")
    return zip_bytes({**packed_modules(core, shared), **packed_modules(library, own), **entry})


class EndpointAlias(Construct):
    """The alias of an endpoint; it moves only after everything that must hold before traffic comes.

    Its value is JSON with `endpoint_name`, `inference_component_name`, which is null where the model is in the
    production variant, `weights` by component where requests are split, and `openai_base_url`, which OpenAI clients
    take (not where the endpoint is asynchronous). A failed trial leaves it where it was.

    Args:
        endpoint: What the alias names.
        after: What must be there first: the trial, scaling, the other components.
        weights: Share of the requests of each component, by its name; default: all go to the endpoint's own.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: DefinedEndpoint | AddedComponent,
        after: Iterable[IDependable] = (),
        weights: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        alias = endpoint.alias_name
        if alias is None or ("/" in alias and not alias.startswith(("/", TOKEN_MARKER))):
            message = f"SEA447: the alias_name of {endpoint.node.path} is {alias}. Give one as /seatrial/dev/chat."
            Annotations.of(self).add_error(message)
        value = AliasValue(
            endpoint_name=endpoint.endpoint_name,
            inference_component_name=endpoint.inference_component_name,
            weights=weights or {},
            openai_base_url=endpoint.openai_base_url or "",
        )
        self.parameter = ssm.CfnParameter(
            self,
            "Resource",
            name=endpoint.alias_name,
            type="String",
            value=value.to_json(),
            description=f"Endpoint and component that serve {endpoint.base_name}",
        )
        self.parameter.node.add_dependency(endpoint.serving_resource, *after)


class EndpointOutputs(Construct):
    """Stack outputs and SSM parameters, one for each value.

    Programs of other stacks read a parameter by its name (`ssm.StringParameter.value_for_string_parameter`): no stack
    exports anything, and the endpoint can be replaced while they use it.

    Args:
        values: Values, or tokens of them, by name; `endpoint_values` has those of an endpoint.
        outputs: Make a stack output of each.
        stack_wide: Each output belongs to `scope`: in a stack it is called by its name alone, so that a stack has one
            of these; else the construct's path stands in front of the name.
        parameters: Path of SSM parameters, as `/seatrial/dev/chat`: each is called by it, a slash and its name;
            default: no parameters.

    Raises:
        SpecError: SEA447 when the path has no slash in front, or one behind it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        values: Mapping[str, str],
        outputs: bool = True,
        stack_wide: bool = False,
        parameters: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        if parameters is not None and (not parameters.startswith("/") or parameters.endswith("/")):
            message = f"the path of parameters is {parameters!r}"
            raise SpecError.of(
                "SEA447", message, hint="begin it with a slash and end it without, as in /seatrial/dev/chat"
            )
        for name, value in values.items():
            if outputs:
                CfnOutput(scope if stack_wide else self, name, value=value)
            if parameters is not None:
                ssm.CfnParameter(self, f"{name}Parameter", name=f"{parameters}/{name}", type="String", value=value)


def endpoint_values(
    endpoint: DefinedEndpoint, *, plan_digest: str, trial: SmokeBenchmark | None = None
) -> dict[str, str]:
    """Return the outputs of a stack on an endpoint, by name."""
    component, base_url = endpoint.inference_component_name, endpoint.openai_base_url
    values = {
        "EndpointName": endpoint.endpoint_name,
        **({} if component is None else {"InferenceComponentName": component}),
        **({} if base_url is None else {"OpenAiBaseUrl": base_url}),
        "EndpointConfigName": endpoint.endpoint_config_name,
        "ModelName": endpoint.model_name,
        "PlanDigest": plan_digest,
    }
    return values if trial is None else values | trial.outputs()


INFO_METADATA = "aws:cdk:info"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestParts:
    """A further model of an endpoint with what belongs to it; without scaling the number of its copies is fixed."""

    component: AddedComponent
    alarms: EndpointAlarms
    scaling: EndpointScaling | None
    alias: EndpointAlias
    adapters: tuple[AdapterComponent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointParts:
    """What belongs to an endpoint.

    Attributes:
        candidate: The trial before an update; `None` without trials.
        trial: The trial of what is deployed; `None` without trials.
        scaling: The scaling of its copies or instances; `None` when their number is fixed.
        schedule: The schedule of its trials; `None` without one.
        guests: The further models on its instances.
        router: The function that splits requests for callers without the client; `None` without one.
    """

    alarms: EndpointAlarms
    candidate: CandidateTrial | None
    trial: SmokeBenchmark | None
    scaling: EndpointScaling | None
    alias: EndpointAlias
    schedule: TrialSchedule | None
    guests: tuple[GuestParts, ...] = ()
    adapters: tuple[AdapterComponent, ...] = ()
    router: TrafficRouter | None = None


def define_parts(
    scope: Construct,
    endpoint: DefinedEndpoint,
    deployment: Deployment,
    *,
    suffix: str = "",
    topic: str | None = None,
    alias_scope: Construct | None = None,
) -> EndpointParts:
    """Define what belongs to the endpoint of a deployment.

    Args:
        suffix: Behind each construct ID but the alias's; a later generation has resources of its own.
        topic: ARN of the topic of the alarms; default: that of the environment.
        alias_scope: What the alias belongs to, which stays in each generation; default: `scope`.
    """
    spec, environment, names = deployment.endpoint, deployment.environment, alias_scope or scope
    on_call = on_call_of(scope, deployment, deployment, topic)
    alarms, watched = _define_alarms(scope, suffix, endpoint, deployment, on_call, deployment)
    for variant in endpoint.further_variants():
        _alarms_of(scope, f"Alarms{suffix}{variant.variant_name}", variant, spec, on_call)
    # The embedded AWS has no metric math in alarms.
    if (ends_at := spec.hosting.reservation_end) is not None and not environment.is_embedded:
        ReservationAlarm(
            scope,
            f"Reservation{suffix}",
            endpoint=endpoint,
            ends_at=ends_at,
            notice_days=spec.hosting.capacity_reservation_notice_days,
            on_call=on_call,
        )
    candidate = trial = schedule = router = None
    if isinstance(endpoint, ComponentEndpoint) and spec.trial.mode != "off":
        candidate, trial = _define_trials(scope, endpoint, deployment, alarms, suffix=suffix)
        if watched is not None:
            watched.node.add_dependency(trial)
    scaling = define_scaling(scope, f"Scaling{suffix}", endpoint, deployment, trial)
    guests: tuple[GuestParts, ...] = ()
    adapters: tuple[AdapterComponent, ...] = ()
    weights: dict[ComponentEndpoint | AddedComponent, float] = {}
    if isinstance(endpoint, ComponentEndpoint):
        guests = tuple(_define_guest(scope, endpoint, deployment, each, topic, names) for each in deployment.guests)
        weights = _split_traffic(endpoint, guests, deployment)
        if spec.hosting.router:
            router = TrafficRouter(
                scope,
                f"Router{suffix}",
                endpoint_name=endpoint.endpoint_name,
                components=[*weights.items()],
                role_options=endpoint.role_options,
            )
        adapters = _define_adapters(endpoint, deployment)
    after = [each for each in (trial, scaling, *weights) if each is not None and each is not endpoint]
    records = () if environment.audit is None else _define_records(scope, suffix, endpoint, deployment, trial, guests)
    alias = EndpointAlias(
        names,
        "Alias",
        endpoint=endpoint,
        after=[*after, *records],
        weights={each.component_name: weight for each, weight in weights.items()},
    )
    define_endpoint_dashboard(scope, f"Dashboard{suffix}", endpoint, deployment, trial, container_alarms=watched)
    if isinstance(endpoint, ComponentEndpoint) and trial is not None and environment.trial_schedule is not None:
        schedule = TrialSchedule(
            scope,
            f"Schedule{suffix}",
            endpoint=endpoint,
            environment=environment.name,
            expression=environment.trial_schedule,
            window_minutes=environment.trial_window_minutes,
            role_path=environment.security.role_path,
            topic_arns=on_call.topic_arns[1:],
        )
    return EndpointParts(
        alarms=alarms,
        candidate=candidate,
        trial=trial,
        scaling=scaling,
        alias=alias,
        schedule=schedule,
        guests=guests,
        adapters=adapters,
        router=router,
    )


def _define_alarms(  # noqa: PLR0917 (private)
    scope: Construct, suffix: str, endpoint: ILlmEndpoint, model: Deployment, on_call: OnCall, host: Deployment
) -> tuple[EndpointAlarms, ContainerAlarms | None]:
    """Define the alarms of a model, and those on its containers where its host publishes their metrics."""
    spec, engine, metrics = model.endpoint, model.plan.engine.value, host.endpoint.hosting.metrics
    alarms = _alarms_of(scope, f"Alarms{suffix}", endpoint, spec, on_call, start_minutes(model))
    if model.environment.is_embedded:  # which has no PromQL alarms
        return alarms, None
    bound_ms = spec.slo.ttft_ms.p95
    if metrics is not None and metrics.detailed and engine in ENGINES_WITH_METRICS:
        name = f"ContainerAlarms{suffix}"
        return alarms, ContainerAlarms(scope, name, endpoint=endpoint, ttft_p95_ms=bound_ms, on_call=on_call)
    if endpoint.inference_component_name is not None and bound_ms is not None:
        mend = f"nor does it collect metrics of {engine}"
        if engine in ENGINES_WITH_METRICS:
            mend = "set hosting.metrics: {detailed: true}, which is billed, to have one"
        because = "SageMaker publishes no time to first token of inference components"
        alarms.node.add_metadata(INFO_METADATA, f"SEA141: no alarm watches slo.ttft_ms.p95: {because}; {mend}")
    return alarms, None


def _alarms_of(  # noqa: PLR0917 (private)
    scope: Construct, construct_id: str, watched: ILlmEndpoint, spec: EndpointSpec, on_call: OnCall, start: int = 1
) -> EndpointAlarms:
    return EndpointAlarms(
        scope,
        construct_id,
        endpoint=watched,
        slo=spec.slo,
        output_tokens=spec.workload.output_tokens,
        on_call=on_call,
        start_minutes=start,
    )


def _define_trials(
    scope: Construct, endpoint: ComponentEndpoint, deployment: Deployment, alarms: EndpointAlarms, *, suffix: str
) -> tuple[CandidateTrial, SmokeBenchmark]:
    settings = TrialSettings.of(deployment, alarms)
    candidate = CandidateTrial(scope, f"Candidate{suffix}", endpoint=endpoint, settings=settings)
    trial = SmokeBenchmark(scope, f"Trial{suffix}", endpoint=endpoint, settings=settings)
    alarms.tell_after(trial)
    follow = f"seatrial trial watch {deployment.endpoint.name} -e {deployment.environment.name}"
    # As `Annotations.add_info` writes it, without its stack trace: that has the folders of this machine.
    message = f"CloudFormation tells nothing of a trial while it runs; follow it: {follow}"
    trial.node.add_metadata(INFO_METADATA, message)
    return candidate, trial


def _define_records(  # noqa: PLR0917 (private)
    scope: Construct,
    suffix: str,
    endpoint: DefinedEndpoint,
    deployment: Deployment,
    trial: SmokeBenchmark | None,
    guests: tuple[GuestParts, ...],
) -> tuple[ModelRecord, ...]:
    """Define the record of every model of an endpoint: its own, its guests', and its variants' of other specs."""
    served = [(deployment, endpoint.inference_component_name or "", trial)]
    served += [(each, deployment.component_of(each), None) for each in deployment.guests]
    served += [(each, "", None) for each in deployment.variants]
    after: list[IDependable] = [endpoint.serving_resource, *(each.component for each in guests)]
    after += [] if trial is None else [trial]
    return tuple(
        ModelRecord(
            scope,
            f"Record{suffix}-{model.endpoint.name}",
            endpoint_name=endpoint.endpoint_name,
            component=component,
            deployment=model,
            trial=tried,
            after=after,
        )
        for model, component, tried in served
    )


def define_outputs(
    scope: Construct,
    endpoint: DefinedEndpoint,
    deployment: Deployment,
    trial: SmokeBenchmark | None,
    *,
    stack_wide: bool = False,
) -> EndpointOutputs:
    """Define the outputs of a stack on the endpoint of a deployment, as the environment's `outputs` says.

    Args:
        scope: What it belongs to; it stays in each generation, as the names of SSM parameters do.
        stack_wide: The stack has this endpoint alone.
    """
    environment = deployment.environment
    alias = alias_name(environment.name, deployment.endpoint.name)
    return EndpointOutputs(
        scope,
        "Outputs",
        values=endpoint_values(endpoint, plan_digest=deployment.plan.digest, trial=trial),
        stack_wide=stack_wide,
        parameters=alias.rpartition("/")[0] if environment.outputs == "both" else None,
    )


def _split_traffic(
    host: ComponentEndpoint, guests: tuple[GuestParts, ...], deployment: Deployment
) -> dict[ComponentEndpoint | AddedComponent, float]:
    """Return the weight of each component of a deployment's traffic; empty where its model takes all requests.

    The host learns its siblings, which its callers may invoke too.
    """
    names = [deployment.endpoint.name, *(guest.endpoint.name for guest in deployment.guests)]
    components: list[ComponentEndpoint | AddedComponent] = [host, *(guest.component for guest in guests)]
    by_spec = dict(zip(names, components, strict=True))
    weights = {by_spec[share.spec]: share.weight for share in deployment.endpoint.hosting.traffic or ()}
    host.siblings = tuple(each.component_name for each in weights if each is not host)
    return weights


def _define_adapters(base: ComponentEndpoint | AddedComponent, deployment: Deployment) -> tuple[AdapterComponent, ...]:
    return tuple(
        AdapterComponent(base, f"Adapter-{each.name}", base=base, name=each.name, artifact_s3_uri=each.s3_uri)
        for each in deployment.endpoint.serving.adapters
    )


def _define_guest(  # noqa: PLR0917 (private)
    scope: Construct,
    host: ComponentEndpoint,
    deployment: Deployment,
    guest: Deployment,
    topic: str | None,
    alias_scope: Construct,
) -> GuestParts:
    spec, component = guest.endpoint, deployment.component_of(guest)
    # An inference component can't be moved to another endpoint or renamed: a later generation is another resource.
    construct_id = component.removeprefix(f"{deployment.environment.name}-")
    added = AddedComponent(
        scope,
        construct_id,
        endpoint=host,
        name=component.removeprefix(f"{deployment.endpoint_name}-"),
        container=optimized_container(scope, guest),
        copies=planned_copies(guest.plan, spec.hosting),
        alias_name=alias_name(deployment.environment.name, spec.name),
        weights_key=host.weights_key,
        role_options=host.role_options,
    )
    on_call = on_call_of(scope, deployment, guest, topic)
    alarms, _ = _define_alarms(added, "", added, guest, on_call, deployment)
    scaling = define_scaling(added, "Scaling", added, guest, None)
    alias = EndpointAlias(
        alias_scope, f"Alias-{spec.name}", endpoint=added, after=[each for each in (scaling,) if each is not None]
    )
    for tag, value in spec.tags.items():
        Tags.of(added).add(tag, value)
    return GuestParts(
        component=added,
        alarms=alarms,
        scaling=scaling,
        alias=alias,
        adapters=_define_adapters(added, guest),
    )
