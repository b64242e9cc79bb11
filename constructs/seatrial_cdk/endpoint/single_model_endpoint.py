"""A SageMaker endpoint whose production variants have their models: asynchronous, A/B, shadow, captured."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from aws_cdk import Annotations, CfnResource, IResolvable, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from seatrial_base.errors import SpecError
from seatrial_cdk.endpoint.endpoint_interface import (
    INVOKE_ACTIONS,
    ILlmEndpoint,
    allow_bearers,
    allow_reading_alias,
    generations_of,
)
from seatrial_cdk.endpoint.execution_role import NO_OPTIONS, RoleOptions, allow_reading_alarms
from seatrial_cdk.endpoint.inference_component import define_model
from seatrial_cdk.endpoint.llm_endpoint import SpecEndpoint
from seatrial_cdk.endpoint.output_location import (
    CAPTURES,
    OutputBucket,
    asynchronous_config,
    capture_config,
    locations_of,
)
from seatrial_cdk.endpoint.variant_instances import VARIANT_NAME, allow_debugging, production_variant, variants_update
from seatrial_cdk.place import StackPlace
from seatrial_cdk.policy import acknowledge, acknowledge_wildcards, resources_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from aws_cdk import aws_ec2 as ec2
    from aws_cdk import aws_kms as kms

    from seatrial.deployment.document import Deployment
    from seatrial_cdk.endpoint.container_network import ContainerNetwork
    from seatrial_cdk.endpoint.output_location import (
        AsynchronousInference,
        AsynchronousLocations,
        DataCapture,
        OutputLocation,
    )
    from seatrial_cdk.endpoint.variant_instances import ModelVariant, ShadowVariant, TrafficShift
    from seatrial_cdk.policy import Statement

LONGEST_ENDPOINT_NAME, MOST_VARIANTS, MOST_ALARMS, MOST_PERCENT = 63, 10, 10, 100
ASYNCHRONOUS_ACTION = "sagemaker:InvokeEndpointAsync"
OBJECTS = "The keys of requests, answers and captures are not known beforehand; each is below one prefix."
PUBLISHED = {"IAM5[Action::kms:GenerateDataKey*]": "The CDK grants this on the topic's key alone, to publish to it."}


class SingleModelEndpoint(SpecEndpoint):
    """Models, endpoint configuration and endpoint; each variant has a model, which takes its instances whole.

    Only the endpoint has a name of its own: models and configuration can only be replaced. An update keeps the
    instance counts of variants that are scaled, and sets weights, captures and other counts as they are given here.
    SageMaker refuses another instance type for a variant that is scaled: give such a change another `construct_id` and
    `endpoint_name`.

    Args:
        variants: The production variants: one, or several that share the traffic by weight; SEA445 is reported for
            variants that contradict each other.
        shadow: Gets copies of the requests to the only variant.
        asynchronous: Requests are taken by `InvokeEndpointAsync` alone.
        data_capture: What is kept of requests and answers.
        shift: How an update moves traffic; default: some instances at a time, a canary for several variants, or all at
            once where there are few instances.
        endpoint_name: The endpoint's name; default: a name made of the construct's path.
        base_name: The name of the first generation, which the later ones begin with; default: `endpoint_name`.
        environment: The environment of Seatrial, which the resources carry as a tag; default: none.
        alias_name: Name of the SSM parameter that names the endpoint that serves (`EndpointAlias`); default: none.
        vpc: The VPC of the containers; default: the service's own network.
        vpc_subnets: Its subnets; default: the private ones.
        security_groups: Security groups of the containers; default: a new one, in a VPC.
        network: The VPC by IDs, in place of `vpc`.
        weights_key: Key that the weights are encrypted with; default: none.
        role_options: Path and permissions boundary of the new roles.

    Raises:
        SpecError: SEA445 when there is no variant, or two have the same name.
    """

    hosting_kind = "single_model"

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        variants: Sequence[ModelVariant],
        shadow: ShadowVariant | None = None,
        asynchronous: AsynchronousInference | None = None,
        data_capture: DataCapture | None = None,
        shift: TrafficShift | None = None,
        endpoint_name: str | None = None,
        base_name: str | None = None,
        environment: str | None = None,
        alias_name: str | None = None,
        vpc: ec2.IVpc | None = None,
        vpc_subnets: ec2.SubnetSelection | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] | None = None,
        network: ContainerNetwork | None = None,
        weights_key: kms.IKey | None = None,
        role_options: RoleOptions = NO_OPTIONS,
    ) -> None:
        every = [*variants, *((shadow,) if shadow else ())]
        _refuse_unnamed(every, variants)
        given = {f"variants[{each.name}]" if each is not shadow else "shadow": each for each in every}
        more = {"asynchronous": asynchronous, "data_capture": data_capture, "shift": shift}
        super().__init__(
            scope,
            construct_id,
            endpoint_name=endpoint_name,
            longest_name=LONGEST_ENDPOINT_NAME,
            base_name=base_name,
            environment=environment,
            alias_name=alias_name,
            vpc=vpc,
            vpc_subnets=vpc_subnets,
            security_groups=security_groups,
            network=network,
            values={**given, **more},
            variant_name=variants[0].name,
            is_asynchronous=asynchronous is not None,
        )
        self.variants, self.shadow = tuple(variants), shadow
        self._shift = shift
        self._alarm_names: list[str] = []
        self._model_roles: list[iam.IRole] = []
        self._weights_key, self._role_options = weights_key, role_options
        self._locate(asynchronous, data_capture)
        shadows = () if shadow is None else (shadow.beside(self.variants[0]),)
        self.models = {each.name: self._model(each, asynchronous) for each in (*self.variants, *shadows)}
        self.model = self.models[self.variant_name]
        self.model_name = self.model.attr_model_name
        self.config = sagemaker.CfnEndpointConfig(
            self,
            "Config",
            production_variants=[self._property(each) for each in self.variants],
            shadow_production_variants=[self._property(each) for each in shadows] or None,
            kms_key_id=self.variants[0].instances.volume_key_arn,
            async_inference_config=asynchronous_config(asynchronous, self.locations)
            if asynchronous and self.locations
            else None,
            data_capture_config=capture_config(data_capture, self.captures) if data_capture and self.captures else None,
        )
        self.endpoint_config_name = self.config.attr_endpoint_config_name
        self.endpoint = sagemaker.CfnEndpoint(
            self,
            "Resource",
            endpoint_name=self.endpoint_name,
            endpoint_config_name=self.endpoint_config_name,
            deployment_config=variants_update(shift, [each.instances for each in self.variants], ()),
            retain_all_variant_properties=True,
            exclude_retained_variant_properties=_set_by_us(scaled=False),
        )
        self.endpoint.add_resource_dependency(self.config)
        for error in _contradictions(self.variants, shadow, asynchronous, data_capture, shift):
            Annotations.of(self).add_error(f"SEA445: {error}")

    @classmethod
    def _planned(
        cls,
        scope: Construct,
        construct_id: str,
        deployment: Deployment,
        *,
        network: ContainerNetwork,
        key: kms.IKey | None,
        role_options: RoleOptions,
    ) -> Self:
        from seatrial.deployment.alias import alias_name  # noqa: PLC0415 (see `SpecEndpoint`)
        from seatrial_cdk.endpoint import planned_endpoint as planned  # noqa: PLC0415

        environment, hosting = deployment.environment.name, deployment.endpoint.hosting
        variants = [planned.planned_variant(scope, deployment, each, key) for each in hosting.variants or ()]
        requests, capture = hosting.asynchronous, hosting.data_capture
        return cls(
            scope,
            construct_id,
            endpoint_name=deployment.endpoint_name,
            base_name=deployment.base_name,
            environment=environment,
            alias_name=alias_name(environment, deployment.endpoint.name),
            variants=variants or [planned.own_variant(scope, deployment, VARIANT_NAME, key)],
            shadow=planned.planned_shadow(scope, deployment, hosting.shadow, key) if hosting.shadow else None,
            asynchronous=planned.planned_asynchronous(scope, construct_id, requests, key) if requests else None,
            data_capture=planned.planned_capture(capture, key) if capture else None,
            network=network,
            weights_key=key,
            role_options=role_options,
        )

    @property
    def serving_resource(self) -> CfnResource:
        """The endpoint, which scaling waits for."""
        return self.endpoint

    def further_variants(self) -> Iterator[ILlmEndpoint]:
        """Yield the endpoint as seen from each production variant but the first: for alarms of their own."""
        return (self.variant(each.name) for each in self.variants[1:])

    @property
    def fewest_instances(self) -> int:
        """Fewest instances that the variants keep."""
        return sum(each.instances.fewest for each in self.variants)

    def keep_instance_counts(self) -> None:
        """Let an update keep the instance counts that scaling has reached."""
        self.endpoint.exclude_retained_variant_properties = _set_by_us(scaled=True)

    def roll_back_on(self, alarm_names: Sequence[str]) -> None:
        """Roll an update back when one of these alarms is raised meanwhile, or one that was named before.

        SageMaker takes ten alarms: further ones roll nothing back, and the CDK warns of them.

        Args:
            alarm_names: Alarms of this account and region; none of them may depend on this endpoint.
        """
        known = len(self._alarm_names)
        self._alarm_names += alarm_names
        allow_reading_alarms(self, self._model_roles, self._alarm_names[known:MOST_ALARMS])
        if len(self._alarm_names) > MOST_ALARMS:
            message = (
                f"SEA445: SageMaker takes {MOST_ALARMS} alarms, so {len(self._alarm_names) - MOST_ALARMS} of this "
            )
            message += "endpoint roll no update back. Name the important ones in roll_back_on first."
            Annotations.of(self).add_warning_v2("seatrial:SEA445", message)
        self.endpoint.deployment_config = variants_update(
            self._shift, [each.instances for each in self.variants], self._alarm_names[:MOST_ALARMS]
        )

    def variant(self, name: str) -> ILlmEndpoint:
        """Return the endpoint as seen from one of its variants: for its metrics, alarms and scaling.

        Args:
            name: Name of the variant; SEA445 is reported when there is none of this name.
        """
        view = self.node.try_find_child(f"View{name}")
        if isinstance(view, _VariantView):
            return view
        if name not in self.models:
            known = ", ".join(self.models)
            Annotations.of(self).add_error(f"SEA445: no variant is called {name}. The variants are {known}.")
        return _VariantView(self, f"View{name}", endpoint=self, variant_name=name)

    def grant_invoke(self, grantee: iam.IGrantable, *, openai: bool = False) -> iam.Grant:
        """Allow invoking each generation of this endpoint, and reading the alias that names it.

        An asynchronous endpoint allows putting requests and reading answers too; it has no OpenAI path.

        Args:
            openai: With a bearer token too, as OpenAI clients do.
        """
        names = [self.base_name.lower()] if self.alias_name is None else generations_of(self.base_name)
        place = StackPlace.of(self)
        actions = [ASYNCHRONOUS_ACTION] if self.is_asynchronous else [*INVOKE_ACTIONS]
        arns = [place.arn("sagemaker", f"endpoint/{name}") for name in names]
        grant = iam.Grant.add_to_principal(grantee=grantee, actions=actions, resource_arns=arns)
        if openai and not self.is_asynchronous:
            grant = grant.combine(allow_bearers(grantee))
        if self.alias_name is not None:
            grant = grant.combine(allow_reading_alias(self, grantee, self.alias_name))
        principal = grantee.grant_principal
        statements: list[Statement] = []
        if self.locations is not None:
            statements += self.locations.requests.writing(place)
            for read in (self.locations.answers, self.locations.failures):
                statements += () if read is None else read.reading(place)
        for statement in statements:
            principal.add_to_principal_policy(iam.PolicyStatement.from_json(statement))
        if isinstance(principal, Construct):
            acknowledge_wildcards(principal, resources_of(statements), OBJECTS)
        return grant

    def _locate(self, asynchronous: AsynchronousInference | None, capture: DataCapture | None) -> None:
        """Find where answers and captures go; what has no location goes to a bucket of the endpoint's own."""
        needs_bucket = (asynchronous is not None and asynchronous.answers is None) or (
            capture is not None and capture.destination is None
        )
        self.bucket = OutputBucket(self, "Output") if needs_bucket else None
        self.locations: AsynchronousLocations | None = None
        self.captures: OutputLocation | None = None
        if asynchronous is not None:
            self.locations = locations_of(asynchronous, self.bucket)
        if capture is not None:
            own = None if self.bucket is None else self.bucket.location(CAPTURES)
            self.captures = capture.destination or own

    def _model(self, variant: ModelVariant, asynchronous: AsynchronousInference | None) -> sagemaker.CfnModel:
        model, role = define_model(
            Construct(self, f"Variant{variant.name}"),
            variant.container,
            self.network,
            name=self.base_name,
            role=variant.model_role,
            weights_key=self._weights_key,
            role_options=self._role_options,
        )
        self._model_roles.append(role)
        allow_debugging(self, variant.instances, role)
        # What the service does with a model's role: read requests, write answers and captures, notify topics.
        place = StackPlace.of(self)
        statements: list[Statement] = []
        if self.locations is not None:
            statements += self.locations.requests.reading(place)
        written = (*((self.locations.answers, self.locations.failures) if self.locations else ()), self.captures)
        for location in written:
            statements += () if location is None else location.writing(place)
        for statement in statements:
            role.add_to_principal_policy(iam.PolicyStatement.from_json(statement))
        if statements:
            acknowledge_wildcards(role, resources_of(statements), OBJECTS)
        for topic in (asynchronous.success_topic, asynchronous.error_topic) if asynchronous else ():
            if topic is not None:
                topic.grant_publish(role)
                if topic.master_key is not None:
                    acknowledge(role, PUBLISHED)
        return model

    def _property(self, variant: ModelVariant) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
        model_name = self.models[variant.name].attr_model_name
        return production_variant(variant.instances, name=variant.name, model_name=model_name, weight=variant.weight)


class _VariantView(ILlmEndpoint):
    """An endpoint as seen from one of its variants."""

    rolls_back = True

    def __init__(
        self, scope: Construct, construct_id: str, *, endpoint: SingleModelEndpoint, variant_name: str
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            endpoint_name=endpoint.endpoint_name,
            variant_name=variant_name,
            is_asynchronous=endpoint.is_asynchronous,
        )
        self._endpoint, self.environment = endpoint, endpoint.environment

    @property
    def serving_resource(self) -> CfnResource:
        """The endpoint."""
        return self._endpoint.endpoint

    def keep_instance_counts(self) -> None:
        """Let an update keep the instance counts that scaling has reached."""
        self._endpoint.keep_instance_counts()

    def roll_back_on(self, alarm_names: Sequence[str]) -> None:
        """Roll an update of the endpoint back when one of these alarms is raised meanwhile."""
        self._endpoint.roll_back_on(alarm_names)


def _set_by_us(*, scaled: bool) -> list[IResolvable | sagemaker.CfnEndpoint.VariantPropertyProperty]:
    """Return what an update sets as it is given; else it would keep the weights and captures that are live."""
    counts = [] if scaled else ["DesiredInstanceCount"]
    names = [*counts, "DesiredWeight", "DataCaptureConfig"]
    return [sagemaker.CfnEndpoint.VariantPropertyProperty(variant_property_type=name) for name in names]


def _refuse_unnamed(every: Sequence[ModelVariant | ShadowVariant], variants: Sequence[ModelVariant]) -> None:
    """Refuse what has no constructs: an endpoint without variants, and two variants of one name."""
    if not variants:
        raise SpecError.of("SEA445", "the endpoint has no variant", hint="give one ModelVariant or more")
    for name, count in Counter(each.name for each in every).items():
        if count > 1:
            message, hint = f"{count} variants are called {name}", "give each a name of its own"
            raise SpecError.of("SEA445", message, hint=hint)


def _contradictions(
    variants: Sequence[ModelVariant],
    shadow: ShadowVariant | None,
    asynchronous: AsynchronousInference | None,
    capture: DataCapture | None,
    shift: TrafficShift | None,
) -> Iterator[str]:
    if shift is not None and shift.kind == "rolling" and len(variants) > 1:
        yield "SageMaker rolls no update of several variants. Give shift another kind, as canary."
    if len(variants) > MOST_VARIANTS:
        yield f"{len(variants)} variants; SageMaker allows {MOST_VARIANTS}."
    keys = {each.instances.volume_key_arn for each in variants}
    if len(keys) > 1:
        yield "the variants have different volume keys; an endpoint configuration has one."
    if shadow is not None and len(variants) > 1:
        yield "a shadow variant needs exactly one production variant. Remove the others, or the shadow."
    if shadow is not None and asynchronous is not None:
        yield "an asynchronous endpoint has no shadow variant. Remove one of them."
    yield from _wrong_shares([each.weight for each in variants], shadow, capture)


def _wrong_shares(weights: Sequence[float], shadow: ShadowVariant | None, capture: DataCapture | None) -> Iterator[str]:
    """Yield weights and percentages that SageMaker refuses; tokens are not known yet."""
    if not any(map(Token.is_unresolved, weights)) and max(weights) <= 0:
        yield "no variant has a weight above 0, so none gets traffic."
    shadowed = None if shadow is None else shadow.sampling_percentage
    if shadowed not in {None, MOST_PERCENT} and any(map(Token.is_unresolved, (weights[0], shadowed))):
        yield "the share of a shadow variant is calculated from its percentage and the weight. Give numbers, no tokens."
    captured = None if capture is None else capture.sampling_percentage
    for what, share in (("shadow variant", shadowed), ("data capture", captured)):
        if share is not None and not Token.is_unresolved(share) and not 1 <= share <= MOST_PERCENT:
            yield f"the sampling percentage of the {what} is {share:g}; it is 1 to {MOST_PERCENT}."
