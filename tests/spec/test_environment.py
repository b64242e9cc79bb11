"""What an environment's file may say: whole messages at the boundary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.catalog.regions import availability
from seatrial.errors import SpecError
from seatrial.spec import shapes
from seatrial.spec.load import load_environment

if TYPE_CHECKING:
    from pathlib import Path

KEY = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-1111-2222-3333-444455556666"
TOPIC = "arn:aws:sns:us-east-1:111122223333:on-call"
NETWORK = "network: {subnet_ids: [subnet-0a1b2c3d], security_group_ids: [sg-0a1b2c3d]}"


def problem(folder: Path, text: str, name: str = "qa") -> str:
    (folder / f"{name}.yaml").write_text(text)
    with pytest.raises(SpecError) as caught:
        load_environment(folder, name)
    return str(caught.value).replace(f"{folder.as_posix()}/", "")


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (
            "network: {subnet_ids: [subnet-0a1b2c3d]}",
            "qa.yaml:3: network.subnet_ids: SEA108: subnet_ids without security_group_ids\n"
            "  hint: give both, or leave both out",
        ),
        (
            "network: {security_group_ids: [sg-0a1b2c3d]}",
            "qa.yaml:3: network.security_group_ids: SEA108: security_group_ids without subnet_ids\n"
            "  hint: give both, or leave both out",
        ),
        (
            "network: {subnet_ids: [vpc-1], security_group_ids: [sg-0a1b2c3d]}",
            f"qa.yaml:3: network.subnet_ids[0]: SEA107: should match pattern '{shapes.SUBNET_ID}', not 'vpc-1'\n"
            "  hint: as in subnet-0a1b2c3d",
        ),
        (
            "network: {subnet_ids: [subnet-0a1b2c3d], security_group_ids: [default]}",
            "qa.yaml:3: network.security_group_ids[0]: SEA107: should match pattern "
            f"'{shapes.SECURITY_GROUP_ID}', not 'default'\n  hint: as in sg-0a1b2c3d",
        ),
        (
            "kms_key_arn: alias/mine",
            f"qa.yaml:3: kms_key_arn: SEA107: should match pattern '{shapes.KMS_KEY_ARN}', not 'alias/mine'\n"
            "  hint: the key's full ARN, not an alias: arn:aws:kms:REGION:ACCOUNT:key/KEY-ID",
        ),
        (
            "alarms: {topic_arn: on-call}",
            f"qa.yaml:3: alarms.topic_arn: SEA107: should match pattern '{shapes.SNS_TOPIC_ARN}', not 'on-call'\n"
            "  hint: the ARN of a standard topic, no FIFO topic: arn:aws:sns:REGION:ACCOUNT:NAME",
        ),
        (
            f"alarms: {{topic_arn: '{TOPIC.replace('us-east-1', 'eu-west-1')}'}}",
            "qa.yaml:3: alarms.topic_arn: SEA108: the topic is in eu-west-1, the environment in us-east-1\n"
            "  hint: give a topic in us-east-1",
        ),
        (
            "guard_rails: {instance_types: []}",
            "qa.yaml:3: guard_rails.instance_types: SEA107: the list is empty\n"
            "  hint: give at least one item, or leave the field out",
        ),
    ],
)
def test_a_wrong_field_gives_one_whole_message(field: str, expected: str, environments: Path) -> None:
    assert problem(environments, f"name: qa\nregion: us-east-1\n{field}\n") == expected


@pytest.mark.parametrize(
    "field", [NETWORK, f"kms_key_arn: {KEY}", f"alarms: {{topic_arn: '{TOPIC}'}}", "network: {subnet_ids: []}"]
)
def test_a_right_field_is_accepted(field: str, environments: Path) -> None:
    (environments / "qa.yaml").write_text(f"name: qa\nregion: us-east-1\n{field}\n")
    assert load_environment(environments, "qa").name == "qa"


def test_a_hyphen_in_the_name_would_mix_up_stacks(environments: Path) -> None:
    assert problem(environments, "name: prod-eu\nregion: eu-west-1\n", "prod-eu") == (
        f"prod-eu.yaml:1: name: SEA107: should match pattern '{shapes.ENVIRONMENT_NAME}', not 'prod-eu'\n"
        "  hint: lower-case letters and digits, no hyphen: `prod-eu` with `chat` would share a stack name with `prod` "
        "and `eu-chat`"
    )


@pytest.mark.parametrize("region", ["cn-north-1", "eu-west-3", "us-gov-west-1"])
def test_a_region_without_inference_components_is_refused(region: str, environments: Path) -> None:
    assert problem(environments, f"name: qa\nregion: {region}\n") == (
        f"qa.yaml:2: region: SEA107: {region} has no AWS::SageMaker::InferenceComponent (cfn-lint 1.58.0, 2026-10-20)\n"
        f"  hint: known to have it: {', '.join(availability().regions)}"
    )
