"""A product's CloudFormation template: the endpoint stack of each size, merged, with what a team chooses as parameters.

A size has resources of its own under a condition. Another size is another endpoint, since one in service can't change
its instances: it is created beside the former one, tried, and named by the alias; then the former one is deleted.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from aws_cdk import App, BootstraplessSynthesizer

from seatrial.deployment.product import product_deployments
from seatrial.deployment.published import sealed
from seatrial.deployment.version_source import made_from
from seatrial.specs.product import PRODUCT_ENDPOINT
from seatrial_base.errors import SpecError
from seatrial_base.tags import COST_CENTER_TAG, ENVIRONMENT_TAG, PRODUCT_TAG, PRODUCT_VERSION_TAG, TEAM_TAG
from seatrial_cdk.observability.endpoint_alarms import NEVER, ON_CALL
from seatrial_cdk.vending.launch_role import boundary_name, role_path
from seatrial_stacks.endpoint_stack import EndpointStack
from seatrial_stacks.product_parameters import (
    ALARM_EMAIL,
    ALARM_TOPIC,
    COST_CENTER,
    FEWEST,
    MOST,
    NAME,
    ROLLBACK,
    SIZE,
    TEAM,
    interface,
    parameters,
    rules,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.deployment.document import Deployment
    from seatrial.deployment.product import LoadedProduct
    from seatrial_stacks.product_parameters import Json, Section

MOST_BYTES, MOST_RESOURCES = 1_000_000, 500  # of a template in S3 (CloudFormation quotas)
_TEAM, _COST_CENTER = "TEAM-TAG", "COST-CENTER-TAG"
"""Stand in tags for what the team chooses."""
_ALARM = re.compile(r"Alarms(?P<generation>\d*)(?P<kind>[A-Za-z]+?)[0-9A-F]{8}")
_HAS_TOPIC, _HAS_EMAIL, _TOPIC = "HasAlarmTopic", "HasAlarmEmail", "AlarmTopic"
_ROLLS_BACK = "HasRollbackAlarms"


def product_template(loaded: LoadedProduct, environment: str, context: Mapping[str, object]) -> str:
    """Return the template of a product's current version for an environment, as JSON; equal products, equal bytes.

    Args:
        loaded: The product.
        environment: The environment's name.
        context: The feature flags of the app.

    Raises:
        SpecError: With every problem of every lock; SEA496 when the template exceeds a quota of CloudFormation.
        RenderError: When a plan can't be rendered.
    """
    deployments = product_deployments(loaded, environment)
    templates = _synthesized(loaded, deployments, context)
    writer = _Writer(loaded, environment, tuple(deployments))
    whole = sealed(writer.merged(templates), made_from(loaded, deployments))
    text = json.dumps(whole, indent=1, sort_keys=True) + "\n"
    _check(text, loaded)
    return text


def _check(text: str, loaded: LoadedProduct) -> None:
    size, resources = len(text.encode()), len(json.loads(text)["Resources"])
    for what, count, most in (("bytes", size, MOST_BYTES), ("resources", resources, MOST_RESOURCES)):
        if count > most:
            hint = "make two products of it"
            where = loaded.path.as_posix()
            raise SpecError.of("SEA496", f"the template has {count:,} {what}, at most {most:,}", where=where, hint=hint)


def _synthesized(
    loaded: LoadedProduct, deployments: Mapping[str, Deployment], context: Mapping[str, object]
) -> dict[str, Section]:
    """Return the template of each size's endpoint; it has no asset, which a bootstrapped account alone could read."""
    app = App(analytics_reporting=False, context=context, default_stack_synthesizer=BootstraplessSynthesizer())
    for deployment in deployments.values():
        EndpointStack(app, deployment.stack_name, deployment=_tagged(loaded, deployment))
    assembly = app.synth()
    return {
        size: cast("Section", assembly.get_stack_by_name(deployment.stack_name).template)
        for size, deployment in deployments.items()
    }


def _tagged(loaded: LoadedProduct, deployment: Deployment) -> Deployment:
    product, environment = loaded.product, deployment.environment
    tags = {
        **environment.tags,
        PRODUCT_TAG: product.name,
        PRODUCT_VERSION_TAG: product.version,
        ENVIRONMENT_TAG: environment.name,
        TEAM_TAG: _TEAM,
        **({COST_CENTER_TAG: _COST_CENTER} if product.parameters.cost_centers else {}),
    }
    return replace(deployment, environment=environment.model_copy(update={"tags": tags}))


@dataclass(frozen=True, slots=True)
class _Writer:
    """Merges the templates of a product's sizes."""

    loaded: LoadedProduct
    environment: str
    sizes: tuple[str, ...]

    def merged(self, templates: Mapping[str, Section]) -> Section:
        """Return the whole template."""
        product = self.loaded.product
        resources: Section = {}
        aliases: dict[str, Section] = {}
        for size, template in templates.items():
            for logical_id, resource in _mapping(self._of_size(size, template["Resources"])).items():
                if _mapping(resource)["Type"] == "AWS::SSM::Parameter":
                    aliases[size] = _mapping(resource)
                else:
                    resources[logical_id] = resource
        resources["Alias"] = self._alias(aliases)
        if product.parameters.alarm_email:
            resources[_TOPIC] = self._topic()
        return {
            "AWSTemplateFormatVersion": "2010-09-09",
            "Description": f"{product.description} ({product.name} {product.version}, {self.environment})",
            "Metadata": interface(product),
            "Parameters": parameters(self.loaded, self.environment),
            "Rules": rules(self.loaded, self.environment),
            "Conditions": self._conditions(),
            "Resources": resources,
            "Outputs": self._outputs({size: self._of_size(size, each["Outputs"]) for size, each in templates.items()}),
        }

    def _conditions(self) -> Section:
        chosen = self.loaded.product.parameters
        given = [(_HAS_TOPIC, ALARM_TOPIC, chosen.alarm_topic), (_HAS_EMAIL, ALARM_EMAIL, chosen.alarm_email)]
        return {
            **{_condition(size): {"Fn::Equals": [{"Ref": SIZE}, size]} for size in self.sizes},
            **{
                name: {"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, ""]}]}
                for name, parameter, is_parameter in given
                if is_parameter
            },
            _ROLLS_BACK: {"Fn::Equals": [{"Ref": ROLLBACK}, "on"]},
        }

    def _of_size(self, size: str, section: Json) -> Json:
        """Return a section with logical IDs of the size, its names made of parameters, and each resource adapted."""
        section = _mapping(section)
        known = {name for name, each in section.items() if "Type" in _mapping(each)}
        renamed = _renamed(section, _prefix(size))
        adapted: Section = {}
        for logical_id, entry in _mapping(renamed).items():
            if logical_id in known:
                resource = self._adapted(size, logical_id, _mapping(entry))
                adapted[f"{_prefix(size)}{logical_id}"] = {**resource, "Condition": _condition(size)}
            else:
                adapted[logical_id] = entry
        return self._named(adapted, size)

    def _adapted(self, size: str, logical_id: str, resource: Section) -> Section:
        kind, properties = str(resource["Type"]), dict(_mapping(resource["Properties"]))
        if kind == "AWS::IAM::Role":
            properties["Path"] = role_path(self.environment)
            properties["PermissionsBoundary"] = {
                "Fn::Sub": f"arn:${{AWS::Partition}}:iam::${{AWS::AccountId}}:policy/{boundary_name(self.environment)}"
            }
        elif kind == "AWS::CloudWatch::Alarm":
            properties |= self._alarm(size, logical_id, properties)
        elif kind == "AWS::ApplicationAutoScaling::ScalableTarget" and self.loaded.product.parameters.copies:
            properties |= {"MinCapacity": {"Ref": FEWEST}, "MaxCapacity": {"Ref": MOST}}
        elif kind.startswith("Custom::"):
            chosen: list[Json] = [{"Ref": TEAM}]
            chosen += [{"Ref": COST_CENTER}] if self.loaded.product.parameters.cost_centers else []
            # tags are parameters, and update the component too
            properties["Component"] = {"Fn::Join": ["-", [properties["Component"], *chosen]]}
        return {**resource, "Properties": properties}

    def _alarm(self, size: str, logical_id: str, properties: Section) -> Section:
        """Return a name that the trial service may read; the topics, or the threshold, that the team chooses."""
        match = _ALARM.fullmatch(logical_id)
        if match is None:
            raise TypeError(f"not the ID of an alarm: {logical_id}")
        name = f"seatrial-{self.environment}-{PRODUCT_ENDPOINT}-{size}-{match['generation']}{match['kind']}"
        if not match["kind"].startswith(ON_CALL):
            return {"AlarmName": name, "Threshold": {"Fn::If": [_ROLLS_BACK, properties["Threshold"], NEVER]}}
        actions = properties.get("AlarmActions")
        default = _items(actions)[0] if actions else None
        action = self._alarm_action(default)
        return {"AlarmName": name, **({} if action is None else {"AlarmActions": [action], "OKActions": [action]})}

    def _alarm_action(self, default: Json) -> Json:
        chosen, action = self.loaded.product.parameters, default
        nothing: Json = {"Ref": "AWS::NoValue"}
        if chosen.alarm_email:
            action = {"Fn::If": [_HAS_EMAIL, {"Ref": _TOPIC}, nothing if action is None else action]}
        if chosen.alarm_topic:
            action = {"Fn::If": [_HAS_TOPIC, {"Ref": ALARM_TOPIC}, nothing if action is None else action]}
        return action

    def _topic(self) -> Section:
        return {
            "Type": "AWS::SNS::Topic",
            "Condition": _HAS_EMAIL,
            "Properties": {
                "TopicName": _joined(f"seatrial-{self.environment}-{PRODUCT_ENDPOINT}-alarms"),
                "Subscription": [{"Protocol": "email", "Endpoint": {"Ref": ALARM_EMAIL}}],
                "Tags": [
                    {"Key": ENVIRONMENT_TAG, "Value": self.environment},
                    {"Key": PRODUCT_TAG, "Value": self.loaded.product.name},
                    {"Key": PRODUCT_VERSION_TAG, "Value": self.loaded.product.version},
                    {"Key": TEAM_TAG, "Value": {"Ref": TEAM}},
                ],
            },
        }

    def _alias(self, aliases: Mapping[str, Section]) -> Section:
        """Return the one alias of every size; it waits for the trial and the scaling of the size that is deployed.

        Its description names what it waits for: `DependsOn` may name no resource whose condition is false.
        """
        properties = {size: _mapping(alias["Properties"]) for size, alias in aliases.items()}
        waiting = {size: self._waiting(properties[size]["Description"], alias) for size, alias in aliases.items()}
        first = aliases[self.sizes[0]]
        return {
            "Type": first["Type"],
            "Properties": {
                **properties[self.sizes[0]],
                "Description": self._by_size(waiting),
                "Value": self._by_size({size: each["Value"] for size, each in properties.items()}),
            },
        }

    @staticmethod
    def _waiting(description: Json, alias: Section) -> Json:
        awaited: list[Json] = [{"Ref": name} for name in _items(alias.get("DependsOn", []))]
        return {"Fn::Join": [" ", [description, "after", *awaited]]}

    def _outputs(self, outputs: Mapping[str, Json]) -> Section:
        sections = {size: _mapping(each) for size, each in outputs.items()}
        names = dict.fromkeys(name for each in sections.values() for name in each)
        values = {
            name: {size: _mapping(each[name])["Value"] if name in each else "none" for size, each in sections.items()}
            for name in names
        }
        return {name: {"Value": self._by_size(each)} for name, each in values.items()}

    def _by_size(self, values: Mapping[str, Json]) -> Json:
        """Return the value of the size that was chosen."""
        *others, last = self.sizes
        chosen = values[last]
        for size in reversed(others):
            if values[size] != chosen:
                chosen = {"Fn::If": [_condition(size), values[size], chosen]}
        return chosen

    def _named(self, node: Json, size: str) -> Json:
        """Return a part of the template with the names that the team chooses; the alias has no size."""
        if isinstance(node, str):
            alias = f"/{self.environment}/{PRODUCT_ENDPOINT}"
            return _joined(node.replace(f"{alias}-{size}/", f"{alias}/"))
        if isinstance(node, list):
            return [self._named(each, size) for each in node]
        if isinstance(node, dict):
            return {key: self._named(each, size) for key, each in node.items()}
        return node


_CHOSEN: Mapping[str, list[Json]] = {
    PRODUCT_ENDPOINT: [{"Ref": TEAM}, "-", {"Ref": NAME}],
    _TEAM: [{"Ref": TEAM}],
    _COST_CENTER: [{"Ref": COST_CENTER}],
}
_PLACES = re.compile("|".join(map(re.escape, _CHOSEN)))


def _joined(text: str) -> Json:
    """Return a text with references in place of what a team chooses."""
    pieces: list[Json] = []
    end = 0
    for match in _PLACES.finditer(text):
        pieces += [*([text[end : match.start()]] if match.start() > end else []), *_CHOSEN[match[0]]]
        end = match.end()
    if not pieces:
        return text
    pieces += [text[end:]] if text[end:] else []
    return pieces[0] if len(pieces) == 1 else {"Fn::Join": ["", pieces]}


def _renamed(node: Json, prefix: str) -> Json:
    """Return a part of a template whose references name the resources of a size."""
    if isinstance(node, list):
        return [_renamed(each, prefix) for each in node]
    if not isinstance(node, dict):
        return node
    made: Section = {}
    for key, value in node.items():
        if key == "Ref" and not str(value).startswith("AWS::"):
            made[key] = f"{prefix}{value}"
        elif key == "Fn::GetAtt":
            resource, *attribute = _items(value)
            made[key] = [f"{prefix}{resource}", *attribute]
        elif key == "DependsOn":
            made[key] = [f"{prefix}{each}" for each in (value if isinstance(value, list) else [value])]
        else:
            made[key] = _renamed(value, prefix)
    return made


def _prefix(size: str) -> str:
    return size.capitalize()


def _condition(size: str) -> str:
    return f"Is{_prefix(size)}"


def _mapping(node: Json) -> Section:
    if not isinstance(node, dict):
        raise TypeError(f"not a mapping: {node!r}")
    return node


def _items(node: Json) -> list[Json]:
    if not isinstance(node, list):
        raise TypeError(f"not a list: {node!r}")
    return node
