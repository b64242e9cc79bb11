"""Products' CloudFormation templates, one for each environment: `seatrial products publish` writes them.

    python -m seatrial_stacks.publish_products ENVIRONMENTS PRODUCT…

It runs in the folder of `cdk.json`, whose feature flags it takes.

A template is the endpoint stack of each size, merged, with what a team chooses as parameters. A size has resources of
its own under a condition. Another size is another endpoint, since one in service can't change its instances: it is
created beside the former one, tried, and named by the alias; then the former one is deleted.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from aws_cdk import App, BootstraplessSynthesizer

from seatrial.deployment.document import COMPONENT_SUFFIX
from seatrial.deployment.product import load_product, product_deployments
from seatrial.deployment.published import (
    changed_version,
    made_from,
    publication_state,
    sealed,
    source_path,
    source_text,
    template_path,
)
from seatrial.documents.live import ROLLBACK_ALARM
from seatrial.specs import shapes
from seatrial.specs.environment import given_topics, named_audiences
from seatrial.specs.product import LONGEST_TEAM, PRODUCT_ENDPOINT
from seatrial_base.errors import SeatrialError, SpecError
from seatrial_base.files import read_text, write_whole
from seatrial_base.secrets import redacted
from seatrial_base.tags import COST_CENTER_TAG, ENVIRONMENT_TAG, PRODUCT_TAG, PRODUCT_VERSION_TAG, TEAM_TAG
from seatrial_base.text import printable
from seatrial_cdk.observability.endpoint_alarms import NEVER, topic_name
from seatrial_cdk.vending.launch_role import boundary_arn, role_path
from seatrial_stacks.endpoint_stack import EndpointStack

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seatrial.deployment.document import Deployment
    from seatrial.deployment.product import LoadedProduct
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial.specs.product import ProductSpec
    from seatrial_base.findings import Finding

FEWEST_ARGUMENTS, USAGE = 2, 2

MOST_BYTES, MOST_RESOURCES = 1_000_000, 500  # of a template in S3 (CloudFormation quotas)
_TEAM, _COST_CENTER = "TEAM-TAG", "COST-CENTER-TAG"
"""Stand in tags for what the team chooses."""
_DIGEST = re.compile(r"[0-9A-F]{8}$")
"""What the CDK ends a logical ID with."""
_HAS_TOPIC, _HAS_EMAIL, _TOPIC = "HasAlarmTopic", "HasAlarmEmail", "AlarmTopic"
_ROLLS_BACK, _HAS_TEAM_TOPIC = "HasRollbackAlarms", "HasTeamTopic"
MOST_OR = 10  # conditions of Fn::Or (CloudFormation user guide, "Condition functions")
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Section = dict[str, "Json"]
TEAM, NAME, SIZE, COST_CENTER = "Team", "EndpointName", "Size", "CostCenter"
FEWEST, MOST = "MinCopies", "MaxCopies"
ALARM_TOPIC, ALARM_EMAIL, ROLLBACK = "AlarmTopicArn", "AlarmEmail", "RollbackAlarms"
COUNTED_COPIES = 50  # most copies that teams choose from: each count is a rule
LONGEST_COMPONENT = 63  # characters (API reference, CreateInferenceComponent)
LONGEST_GENERATION = 3  # characters behind an endpoint's name: a hyphen and two digits
LONGEST_ENDPOINT = 24
_ENDPOINT_PATTERN = "[a-zA-Z0-9](-*[a-zA-Z0-9])*"
_GROUPS = (
    ("Endpoint", (TEAM, NAME, SIZE, COST_CENTER)),
    ("Scaling", (FEWEST, MOST)),
    ("Alarms", (ALARM_TOPIC, ALARM_EMAIL, ROLLBACK)),
)
_LABELS = {
    TEAM: "Team",
    NAME: "Name of the endpoint",
    SIZE: "Size",
    COST_CENTER: "Cost center",
    FEWEST: "Fewest copies",
    MOST: "Most copies",
    ALARM_TOPIC: "SNS topic for alarms",
    ALARM_EMAIL: "E-mail address for alarms",
    ROLLBACK: "Rollback by alarms",
}


def publish(products: Iterable[Path], environments: Path) -> tuple[Path, ...]:
    """Write the templates that are not there yet, and their sources, and return every path; all or none is written.

    A template that is there is left alone, also by a later Seatrial that would write another one.

    Raises:
        SpecError: With every problem of every product; SEA495 when a template was published from another product.
    """
    context: dict[str, object] = json.loads(read_text(Path("cdk.json"))).get("context", {})
    texts: dict[Path, str | None] = {}
    problems: list[Finding] = []
    for product in products:
        try:
            texts |= _texts(load_product(product, environments), context)
        except SeatrialError as error:
            problems += error.problems
    if problems:
        raise SpecError(dict.fromkeys(problems))
    for path, text in texts.items():
        if text is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
    return tuple(texts)


def _texts(loaded: LoadedProduct, context: Mapping[str, object]) -> dict[Path, str | None]:
    """Return the template of each environment, and what it is made from, by path; `None` for what is there."""
    names = loaded.product.environments
    states = {name: publication_state(loaded, name) for name in names}
    changed = [changed_version(loaded, name) for name, state in states.items() if state == "changed"]
    if changed:
        raise SpecError(problem for error in changed for problem in error.problems)
    texts: dict[Path, str | None] = {}
    for name in names:
        template = template_path(loaded.path, loaded.product.version, name)
        is_new, source = states[name] == "not published", source_text(loaded, product_deployments(loaded, name))
        texts[template] = product_template(loaded, name, context) if is_new else None
        texts[source_path(template)] = None if states[name] == "published" else source
    return texts


def main() -> int:
    """Publish, print the paths, and return the exit code."""
    arguments = [Path(each) for each in sys.argv[1:]]
    if len(arguments) < FEWEST_ARGUMENTS:
        sys.stderr.write(f"{__doc__}\n")
        return USAGE
    try:
        for path in publish(arguments[1:], arguments[0]):
            sys.stdout.write(f"{path.as_posix()}\n")
    except SeatrialError as error:
        sys.stderr.write(f"{printable(redacted(str(error)))}\n")
        return error.exit_code
    return 0


def product_template(loaded: LoadedProduct, environment: str, context: Mapping[str, object]) -> str:
    """Return the template of a product's current version for an environment, as JSON; equal products, equal bytes.

    Args:
        context: The feature flags of the app.

    Raises:
        SpecError: With every problem of every lock; SEA496 when the template exceeds a quota of CloudFormation.
        RenderError: When a plan can't be rendered.
    """
    deployments = product_deployments(loaded, environment)
    templates = _synthesized(loaded, deployments, context)
    place = next(iter(deployments.values())).environment
    writer = _Writer(loaded, environment, place, tuple(deployments))
    whole = sealed(writer.merged(templates), made_from(loaded, deployments))
    text = json.dumps(whole, indent=1, sort_keys=True) + "\n"
    size, resources = len(text.encode()), len(json.loads(text)["Resources"])
    for what, count, most in (("bytes", size, MOST_BYTES), ("resources", resources, MOST_RESOURCES)):
        if count > most:
            hint = "make two products of it"
            where = loaded.path.as_posix()
            raise SpecError.of("SEA496", f"the template has {count:,} {what}, at most {most:,}", where=where, hint=hint)
    return text


def _synthesized(
    loaded: LoadedProduct, deployments: Mapping[str, Deployment], context: Mapping[str, object]
) -> dict[str, Section]:
    """Return the template of each size's endpoint; it has no asset, which a bootstrapped account alone could read."""
    product = loaded.product
    app = App(analytics_reporting=False, context=context, default_stack_synthesizer=BootstraplessSynthesizer())
    for deployment in deployments.values():
        environment = deployment.environment
        tags = {
            **environment.tags,
            PRODUCT_TAG: product.name,
            PRODUCT_VERSION_TAG: product.version,
            ENVIRONMENT_TAG: environment.name,
            TEAM_TAG: _TEAM,
            **({COST_CENTER_TAG: _COST_CENTER} if product.parameters.cost_centers else {}),
        }
        tagged = replace(deployment, environment=environment.model_copy(update={"tags": tags}))
        EndpointStack(app, deployment.stack_name, deployment=tagged)
    assembly = app.synth()
    return {
        size: cast("Section", assembly.get_stack_by_name(deployment.stack_name).template)
        for size, deployment in deployments.items()
    }


@dataclass(frozen=True, slots=True)
class _Writer:
    """Merges the templates of a product's sizes."""

    loaded: LoadedProduct
    environment: str
    place: EnvironmentSpec
    sizes: tuple[str, ...]

    def merged(self, templates: Mapping[str, Section]) -> Section:
        """Return the whole template."""
        product = self.loaded.product
        resources: Section = {}
        parameters_: dict[str, dict[str, Section]] = {}
        for size, template in templates.items():
            for logical_id, resource in _mapping(self._of_size(size, template["Resources"])).items():
                if _mapping(resource)["Type"] == "AWS::SSM::Parameter":
                    # A parameter's name has no size, so that the sizes share one: two of a name can't be there at once.
                    name = _DIGEST.sub("", logical_id.removeprefix(_prefix(size)))
                    parameters_.setdefault(name, {})[size] = _mapping(resource)
                else:
                    resources[logical_id] = resource
        resources |= {name: self._parameter(by_size) for name, by_size in parameters_.items()}
        if product.parameters.alarm_email:
            place = self.place.tags.items()
            tags: list[Json] = [{"Key": key, "Value": value} for key, value in place if key != TEAM_TAG]
            resources[_TOPIC] = {
                "Type": "AWS::SNS::Topic",
                "Condition": _HAS_EMAIL,
                "Properties": {
                    "TopicName": _joined(f"seatrial-{self.environment}-{PRODUCT_ENDPOINT}-alarms"),
                    "Subscription": [{"Protocol": "email", "Endpoint": {"Ref": ALARM_EMAIL}}],
                    "Tags": [
                        *tags,
                        {"Key": ENVIRONMENT_TAG, "Value": self.environment},
                        {"Key": PRODUCT_TAG, "Value": self.loaded.product.name},
                        {"Key": PRODUCT_VERSION_TAG, "Value": self.loaded.product.version},
                        {"Key": TEAM_TAG, "Value": {"Ref": TEAM}},
                    ],
                },
            }
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
                for name, parameter, is_offered in given
                if is_offered
            },
            _ROLLS_BACK: {"Fn::Equals": [{"Ref": ROLLBACK}, "on"]},
            **{_team_condition(team): {"Fn::Equals": [{"Ref": TEAM}, team]} for team in self._routed_teams()},
            **_any_of(_HAS_TEAM_TOPIC, [{"Condition": _team_condition(team)} for team in self._routed_teams()]),
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
            properties["Path"] = role_path(self.environment, self.place.security.role_path)
            boundary = boundary_arn(self.environment, self.place.security.permissions_boundary)
            properties["PermissionsBoundary"] = {"Fn::Sub": boundary} if "${" in boundary else boundary
        elif kind == "AWS::CloudWatch::Alarm":
            properties |= self._alarm(size, logical_id, properties)
        elif kind == "AWS::ApplicationAutoScaling::ScalableTarget" and self.loaded.product.parameters.copies:
            properties |= {"MinCapacity": {"Ref": FEWEST}, "MaxCapacity": {"Ref": MOST}}
        elif kind.startswith("Custom::") and "Component" in properties:
            chosen: list[Json] = [{"Ref": TEAM}]
            chosen += [{"Ref": COST_CENTER}] if self.loaded.product.parameters.cost_centers else []
            # tags are parameters, and update the component too
            properties["Component"] = {"Fn::Join": ["-", [properties["Component"], *chosen]]}
        return {**resource, "Properties": properties}

    def _alarm(self, size: str, logical_id: str, properties: Section) -> Section:
        """Return a name that the trial service may read; the topics, or the threshold, that the team chooses."""
        # Logical IDs of sizes differ, names are the account's: with the size in it, two alarms are not one while sizes
        # change.
        kind = _DIGEST.sub("", logical_id).replace("Alarms", "", 1)
        name: Section = {"AlarmName": f"seatrial-{self.environment}-{PRODUCT_ENDPOINT}-{size}-{kind}"}
        if str(properties["AlarmDescription"]).startswith(ROLLBACK_ALARM):
            return {**name, "Threshold": {"Fn::If": [_ROLLS_BACK, properties["Threshold"], NEVER]}}
        actions = properties.get("AlarmActions")
        if actions and "OKActions" not in properties:
            return name  # it calls a scaling policy
        chosen, nothing = self.loaded.product.parameters, cast("Json", {"Ref": "AWS::NoValue"})
        topic: Json = _items(actions)[0] if actions else None
        further = [*(_items(actions)[1:] if actions else ()), *self._team_topics()]
        if chosen.alarm_email:
            topic = {"Fn::If": [_HAS_EMAIL, {"Ref": _TOPIC}, nothing if topic is None else topic]}
        if chosen.alarm_topic:
            topic = {"Fn::If": [_HAS_TOPIC, {"Ref": ALARM_TOPIC}, nothing if topic is None else topic]}
        topics = [*([] if topic is None else [topic]), *further]
        return {**name, "AlarmActions": topics, "OKActions": topics} if topics else name

    def _routed_teams(self) -> tuple[str, ...]:
        """Return the teams that a launch may choose and that have a topic of their own."""
        offered = self.loaded.product.parameters.teams
        named = (name for kind, name in named_audiences(self.place.alarms) if kind == "team")
        return tuple(each for each in named if re.fullmatch(shapes.TEAM_NAME, each) and each in (offered or (each,)))

    def _team_topics(self) -> list[Json]:
        """Return the topics of the team that is chosen, as `topic_name` calls its own."""
        nothing: Json = {"Ref": "AWS::NoValue"}
        place = "arn:${AWS::Partition}:sns:${AWS::Region}:${AWS::AccountId}"
        own: Json = {"Fn::Sub": f"{place}:{topic_name(self.environment, ('team', f'${{{TEAM}}}'), is_plain=True)}"}
        teams = self._routed_teams()
        made: list[Json] = [{"Fn::If": [_HAS_TEAM_TOPIC, own, nothing]}] if teams else []
        for team in teams:
            given = given_topics(self.place.alarms, ("team", team))
            made += [{"Fn::If": [_team_condition(team), arn, nothing]} for arn in given]
        return made

    def _parameter(self, by_size: Mapping[str, Section]) -> Section:
        """Return the one parameter of every size; the alias waits for the trial and the scaling of the size deployed.

        Its description names what it waits for: `DependsOn` may name no resource whose condition is false.
        """
        first = next(iter(by_size.values()))
        properties = {size: _mapping(resource["Properties"]) for size, resource in by_size.items()}
        merged = dict(_mapping(first["Properties"]))
        merged["Value"] = self._by_size(
            {size: properties[size]["Value"] if size in properties else "none" for size in self.sizes}
        )
        if "Description" in merged:
            descriptions: dict[str, Json] = {}
            for size in self.sizes:
                awaited: list[Json] = [{"Ref": name} for name in _items(by_size[size].get("DependsOn", []))]
                descriptions[size] = {"Fn::Join": [" ", [properties[size]["Description"], "after", *awaited]]}
            merged["Description"] = self._by_size(descriptions)
        return {"Type": first["Type"], "Properties": merged}

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
            # Equal values need no condition: the template stays small, and its diff shows what differs.
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


def _team_condition(team: str) -> str:
    return f"IsTeam{team.capitalize()}"


def _any_of(name: str, conditions: list[Json]) -> Section:
    """Return a condition by its name, none of no conditions; `Fn::Or` takes two to ten."""
    while len(conditions) > 1:
        groups = [conditions[start : start + MOST_OR] for start in range(0, len(conditions), MOST_OR)]
        conditions = [{"Fn::Or": [*each]} if len(each) > 1 else each[0] for each in groups]
    return {name: conditions[0]} if conditions else {}


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


def parameters(loaded: LoadedProduct, environment: str) -> Section:
    """Return the parameters of a product's template.

    Raises:
        SpecError: SEA496 when teams would choose among more than 50 copies.
    """
    product = loaded.product
    if product.parameters.teams:
        team = _text("Your team: the tag team, and a part of the endpoint's name.", allowed=product.parameters.teams)
    else:
        team = _text(
            "Your team: the tag team, and a part of the endpoint's name. It can't be changed later.",
            pattern=(shapes.TEAM_NAME, shapes.HINTS[shapes.TEAM_NAME].partition(":")[0]),
            longest=LONGEST_TEAM,
        )
    made: Section = {
        TEAM: team,
        NAME: _text(
            f"The endpoint is called {environment}-TEAM-NAME-SIZE. It can't be changed later.",
            pattern=(_ENDPOINT_PATTERN, shapes.HINTS[shapes.ENDPOINT_NAME]),
            longest=longest_name(loaded, environment),
        ),
        SIZE: _text(
            "Another size is another endpoint, which takes over once its trial has passed.",
            allowed=tuple(product.sizes),
            default=next(iter(product.sizes)),
        ),
    }
    if product.parameters.cost_centers:
        made[COST_CENTER] = _text("Value of the tag cost-center.", allowed=product.parameters.cost_centers)
    if product.parameters.copies:
        made |= _copies(loaded, environment)
    if product.parameters.alarm_topic:
        pattern = f"^$|{shapes.SNS_TOPIC_ARN}"
        made[ALARM_TOPIC] = _text(
            "ARN of an SNS topic of this region; empty for the e-mail address, or for the platform's topic.",
            pattern=(pattern, "the ARN of an SNS topic, or nothing"),
            default="",
        )
    if product.parameters.alarm_email:
        made[ALARM_EMAIL] = _text(
            "E-mail address that is asked to confirm a subscription to the alarms; may be empty.",
            pattern=(f"^$|{shapes.EMAIL}", "an e-mail address, or nothing"),
            default="",
        )
    made[ROLLBACK] = _text(
        "Whether alarms roll an update back; off for the one update that repairs an endpoint that is broken.",
        allowed=("on", "off"),
        default="on",
    )
    return made


def interface(product: ProductSpec) -> Section:
    """Return the groups and labels of the parameters, as the console shows them."""
    chosen = product.parameters
    left_out = {
        COST_CENTER: chosen.cost_centers is None,
        FEWEST: not chosen.copies,
        MOST: not chosen.copies,
        ALARM_TOPIC: not chosen.alarm_topic,
        ALARM_EMAIL: not chosen.alarm_email,
    }
    groups = [(name, [each for each in members if not left_out.get(each)]) for name, members in _GROUPS]
    shown = [each for _, members in groups for each in members]
    return {
        "AWS::CloudFormation::Interface": {
            "ParameterGroups": [
                {"Label": {"default": name}, "Parameters": [*members]} for name, members in groups if members
            ],
            "ParameterLabels": {each: {"default": _LABELS[each]} for each in shown},
        }
    }


def rules(loaded: LoadedProduct, environment: str) -> Section:
    """Return the rules between size, fewest and most copies; CloudFormation checks them before it creates anything."""
    if not loaded.product.parameters.copies:
        return {}
    made: Section = {}
    for size, (fewest, most) in _bounds(loaded, environment).items():
        allowed: Json = [str(count) for count in range(fewest, most + 1)]
        made[f"CopiesOf{size.capitalize()}"] = {
            "RuleCondition": {"Fn::Equals": [{"Ref": SIZE}, size]},
            "Assertions": [
                {
                    "Assert": {"Fn::Contains": [allowed, {"Ref": name}]},
                    "AssertDescription": f"size {size} has {fewest} to {most} copies",
                }
                for name in (FEWEST, MOST)
            ],
        }
    lowest, highest = _range(loaded, environment)
    for most in range(lowest, highest):
        below: Json = [str(count) for count in range(lowest, most + 1)]
        made[f"CopiesUpTo{most}"] = {
            "RuleCondition": {"Fn::Equals": [{"Ref": MOST}, str(most)]},
            "Assertions": [
                {
                    "Assert": {"Fn::Contains": [below, {"Ref": FEWEST}]},
                    "AssertDescription": f"{FEWEST} exceeds {MOST}, {most}",
                }
            ],
        }
    return made


def longest_name(loaded: LoadedProduct, environment: str) -> int:
    """Return how many characters a team may give to an endpoint's name: the component's name has 63."""
    size = max(map(len, loaded.product.sizes))
    hyphens = 3
    around = len(environment) + LONGEST_TEAM + size + hyphens + LONGEST_GENERATION + len(COMPONENT_SUFFIX)
    return min(LONGEST_ENDPOINT, LONGEST_COMPONENT - around)


def _copies(loaded: LoadedProduct, environment: str) -> Section:
    lowest, highest = _range(loaded, environment)
    if highest > COUNTED_COPIES:
        message = f"teams would choose among {highest} copies, at most {COUNTED_COPIES}"
        hint = "lower scaling.max_copies, or set parameters.copies: false"
        raise SpecError.of("SEA496", message, where=loaded.path.as_posix(), field="parameters.copies", hint=hint)
    allowed: dict[str, Json] = {FEWEST: [*range(lowest, highest + 1)], MOST: [*range(max(1, lowest), highest + 1)]}
    fewest, most = next(iter(_bounds(loaded, environment).values()))
    texts = {FEWEST: ("Fewest copies that scaling keeps.", fewest), MOST: ("Most copies that scaling reaches.", most)}
    return {
        name: {"Type": "Number", "Description": text, "AllowedValues": allowed[name], "Default": default}
        for name, (text, default) in texts.items()
    }


def _bounds(loaded: LoadedProduct, environment: str) -> dict[str, tuple[int, int]]:
    """Return the fewest and the most copies of each size."""
    specs = loaded.sizes_in(environment)
    return {size: (each.endpoint.scaling.min_copies, each.endpoint.scaling.max_copies) for size, each in specs.items()}


def _range(loaded: LoadedProduct, environment: str) -> tuple[int, int]:
    bounds = _bounds(loaded, environment).values()
    return min(fewest for fewest, _ in bounds), max(most for _, most in bounds)


def _text(
    description: str,
    *,
    allowed: tuple[str, ...] | None = None,
    pattern: tuple[str, str] | None = None,
    longest: int | None = None,
    default: str | None = None,
) -> Section:
    made: Section = {"Type": "String", "Description": description}
    if allowed:
        made["AllowedValues"] = [*allowed]
    if pattern:
        made |= {"AllowedPattern": pattern[0], "ConstraintDescription": pattern[1]}
    if longest is not None:
        made |= {"MinLength": 1, "MaxLength": longest}
    if default is not None:
        made["Default"] = default
    return made


if __name__ == "__main__":
    sys.exit(main())
