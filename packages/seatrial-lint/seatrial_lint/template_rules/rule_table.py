"""The one table of the rule book: severity and source by ID; titles stand with every other rule's."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from seatrial_lint.template_rules.template_finding import TemplateFinding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_lint.template_rules.template_finding import TemplateSeverity
    from seatrial_lint.template_rules.template_resources import HostedResource
    from seatrial_lint.template_rules.template_value import TemplateValue

API = "SageMaker API reference"
GUIDE = "SageMaker developer guide"
SCALING = "Application Auto Scaling user guide"
PROVIDER = "hashicorp/terraform-provider-aws"


@dataclass(frozen=True, slots=True)
class HostingRule:
    """What holds for every finding of a rule.

    Attributes:
        severity: `error` or `warning`.
        source: Where the fact behind it was read.
    """

    severity: TemplateSeverity
    source: str


HOSTING_RULES: Mapping[str, HostingRule] = MappingProxyType(
    {
        "SEA701": HostingRule("error", f"CloudFormation, UpdateReplacePolicy; {PROVIDER} issues 21811 and 40048"),
        "SEA702": HostingRule("error", f"{API}, CreateEndpointConfig, ExecutionRoleArn; stdapi issue 43"),
        "SEA703": HostingRule("error", f"{API}, CreateInferenceComponent; {PROVIDER} issue 40644"),
        "SEA704": HostingRule("error", f"{API}, ProductionVariant, InstanceType and InitialInstanceCount"),
        "SEA705": HostingRule("error", f"{GUIDE}, scale an endpoint to zero instances; {PROVIDER} pull request 45926"),
        "SEA706": HostingRule("warning", "stdapi issue 43: MinInstanceCount 0 refused in eu-west-3, reported once"),
        "SEA707": HostingRule("error", f"{API}, ProductionVariantManagedInstanceScaling; {SCALING}, scalable targets"),
        "SEA708": HostingRule("error", f"{API}, InstancePool"),
        "SEA709": HostingRule("error", f"{API}, PrefixAwareRoutingConfig"),
        "SEA710": HostingRule("error", f"{API}, ProductionVariant and InferenceComponentStartupParameters"),
        "SEA711": HostingRule("error", f"{API}, ProductionVariant, InferenceAmiVersion"),
        "SEA712": HostingRule("error", f"{API}, CreateEndpointConfig, KmsKeyId: instances with local storage"),
        "SEA713": HostingRule("error", f"{API}, InvokeEndpointAsync: no InferenceComponentName"),
        "SEA714": HostingRule("error", f"{API}, CreateEndpointConfig, ShadowProductionVariants"),
        "SEA715": HostingRule("error", f"{API}, S3ModelDataSource"),
        "SEA716": HostingRule("error", f"{API}, CreateModel, EnableNetworkIsolation"),
        "SEA717": HostingRule("error", f"{GUIDE}: no secrets in the container environment"),
        "SEA718": HostingRule("error", f"{API}, ModelAccessConfig, AcceptEula"),
        "SEA719": HostingRule("error", f"{API}, ContainerDefinition, Environment"),
        "SEA720": HostingRule("error", f"{API}, DeploymentConfig: only one update policy"),
        "SEA721": HostingRule("error", f"{API}, RollingUpdatePolicy and InferenceComponentRollingUpdatePolicy"),
        "SEA722": HostingRule("error", f"{API}, InferenceComponentRollingUpdatePolicy: required members"),
        "SEA723": HostingRule("error", f"{API}, AutoRollbackConfig"),
        "SEA724": HostingRule("warning", f"{API}, UpdateEndpoint, RetainAllVariantProperties; {PROVIDER} issue 48990"),
        "SEA725": HostingRule("error", f"{API}, BlueGreenUpdatePolicy and TrafficRoutingConfig"),
        "SEA726": HostingRule("warning", "the default AMI's driver is not documented; nim-deploy issue 98"),
        "SEA730": HostingRule("error", "stdapi issue 43: CreateInferenceComponent refuses CopyCount 0"),
        "SEA731": HostingRule("error", f"{API}, CreateInferenceComponent: the endpoint must be InService"),
        "SEA732": HostingRule("error", f"{API}, InferenceComponentComputeResourceRequirements"),
        "SEA733": HostingRule("error", f"{API}, ProductionVariantManagedInstanceScaling, MaxInstanceCount"),
        "SEA734": HostingRule("error", f"{API}, CreateInferenceComponent: names are unique in an account and region"),
        "SEA735": HostingRule("error", f"{API}: names of endpoints, components, models and variants"),
        "SEA736": HostingRule("warning", "cfn-lint 1.58.0, resource types of each region"),
        "SEA737": HostingRule("error", f"{API}, InferenceComponentSpecification"),
        "SEA738": HostingRule("error", f"{API}, CreateInferenceComponent, VariantName"),
        "SEA740": HostingRule("error", f"{SCALING}, RegisterScalableTarget, ResourceId and ScalableDimension"),
        "SEA741": HostingRule("error", f"{SCALING}, PredefinedMetricSpecification"),
        "SEA742": HostingRule("error", f"{GUIDE}, auto scaling of endpoints with inference components"),
        "SEA743": HostingRule("warning", f"{SCALING}, TargetTrackingScalingPolicyConfiguration, cooldowns"),
        "SEA744": HostingRule("warning", f"{SCALING}, step scaling policies: an alarm starts them"),
        "SEA745": HostingRule("error", f"{GUIDE}, scale an endpoint to zero instances"),
        "SEA746": HostingRule("warning", f"{GUIDE}, scale an endpoint to zero instances"),
        "SEA747": HostingRule(
            "error", f"{GUIDE}, scale an endpoint to zero instances; autoscale an asynchronous endpoint"
        ),
        "SEA748": HostingRule("error", f"{SCALING}, RegisterScalableTarget: the resource must exist"),
        "SEA749": HostingRule("error", f"{GUIDE}, autoscale an asynchronous endpoint"),
    }
)


def found(resource: HostedResource, value: TemplateValue, rule: str, message: str, hint: str) -> TemplateFinding:
    """Return a finding at a value of a resource."""
    return TemplateFinding(
        template=resource.template,
        logical_id=resource.logical_id,
        path=value.path,
        rule=rule,
        severity=HOSTING_RULES[rule].severity,
        message=message,
        hint=hint,
        construct_path=resource.construct_path,
    )
