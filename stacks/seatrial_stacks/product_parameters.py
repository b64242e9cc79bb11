"""What a team chooses of a product: the parameters of its template, their labels, and the rules between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from seatrial.deployment.document import COMPONENT_SUFFIX
from seatrial.specs import shapes
from seatrial.specs.product import LONGEST_TEAM
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from seatrial.deployment.product import LoadedProduct
    from seatrial.specs.product import ProductSpec

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


def parameters(loaded: LoadedProduct, environment: str) -> Section:
    """Return the parameters of a product's template.

    Args:
        loaded: The product.
        environment: The environment's name.

    Raises:
        SpecError: SEA496 when teams would choose among more than 50 copies.
    """
    product = loaded.product
    made = _naming(loaded, environment)
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


def _naming(loaded: LoadedProduct, environment: str) -> Section:
    product = loaded.product
    teams = product.parameters.teams
    return {
        TEAM: _text("Your team: the tag team, and a part of the endpoint's name.", allowed=teams)
        if teams
        else _text(
            "Your team: the tag team, and a part of the endpoint's name. It can't be changed later.",
            pattern=(shapes.TEAM_NAME, shapes.HINTS[shapes.TEAM_NAME].partition(":")[0]),
            longest=LONGEST_TEAM,
        ),
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


def _copies(loaded: LoadedProduct, environment: str) -> Section:
    lowest, highest = _range(loaded, environment)
    if highest > COUNTED_COPIES:
        message = f"teams would choose among {highest} copies, at most {COUNTED_COPIES}"
        hint = "lower scaling.max_copies, or set parameters.copies: false"
        raise SpecError.of("SEA496", message, where=loaded.path.as_posix(), field="parameters.copies", hint=hint)
    allowed: dict[str, Json] = {FEWEST: [*range(lowest, highest + 1)], MOST: [*range(max(1, lowest), highest + 1)]}
    fewest, most = next(iter(_bounds(loaded, environment).values()))
    limits = {FEWEST: ("Fewest copies that scaling keeps.", fewest), MOST: ("Most copies that scaling reaches.", most)}
    return {
        name: {"Type": "Number", "Description": text, "AllowedValues": allowed[name], "Default": default}
        for name, (text, default) in limits.items()
    }


def _bounds(loaded: LoadedProduct, environment: str) -> dict[str, tuple[int, int]]:
    """Return the fewest and the most copies of each size."""
    sizes = loaded.sizes_in(environment)
    return {size: (each.endpoint.scaling.min_copies, each.endpoint.scaling.max_copies) for size, each in sizes.items()}


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
