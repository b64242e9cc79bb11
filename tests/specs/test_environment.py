"""What an environment's file may say: whole messages at the boundary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.specs import shapes
from seatrial.specs.endpoint import MOST_TAGS
from seatrial.specs.load import load_environment, load_spec
from seatrial.specs.pipeline import promotion_order
from seatrial.specs.scaling import schedule_error
from seatrial_base.catalog.resource_types import availability
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.specs.conftest import Write

KEY = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-1111-2222-3333-444455556666"
TOPIC = "arn:aws:sns:us-east-1:111122223333:on-call"
SECRET = "arn:aws:secretsmanager:us-east-1:111122223333:secret:pd-a1B2c3"
PRICES = r"^[^/\\\x00].*\.ya?ml$"
TWICE = ", ".join(f"{{{who}topic_arn: '{TOPIC}{number}'}}" for who in ("", "teams: [a], ") for number in range(3))
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
            "alarms: {notify: [{teams: [cp]}]}\nprices: dev.txt",
            "qa.yaml:3: alarms.notify[0]: SEA660: the entry notifies nobody\n"
            "  hint: give emails, slack, microsoft_teams, https_secret or topic_arn\n"
            f"qa.yaml:4: prices: SEA107: should match pattern '{PRICES}', not 'dev.txt'",
        ),
        (
            "alarms: {notify: [{teams: [search]}]}",
            "qa.yaml:3: alarms.notify[0]: SEA660: the entry notifies nobody\n"
            "  hint: give emails, slack, microsoft_teams, https_secret or topic_arn",
        ),
        (
            "alarms: {notify: [{slack: {workspace_id: acme, channel_id: C0123ABCD}}]}",
            "qa.yaml:3: alarms.notify[0].slack.workspace_id: SEA107: should match pattern "
            f"'{shapes.SLACK_WORKSPACE}', not 'acme'\n"
            "  hint: the ID that AWS Chatbot's console shows of the workspace, as in T0123ABCD",
        ),
        (
            f"alarms: {{notify: [{{topic_arn: '{TOPIC.replace('us-east-1', 'eu-west-1')}'}}]}}",
            "qa.yaml:3: alarms.notify[0].topic_arn: SEA108: the topic is in eu-west-1, the environment in us-east-1\n"
            "  hint: give a topic in us-east-1",
        ),
        (
            "alarms: {notify: [{teams: [a, b], emails: [x@y.zz]}, {teams: [b], emails: [x@y.zz]}]}",
            "qa.yaml:3: alarms.notify[1].emails[0]: SEA662: alarms.notify[0].emails[0] has it for team b too\n"
            "  hint: leave one out",
        ),
        (
            "alarms: {notify: [{emails: [x@y.zz, X@y.zz]}]}",
            "qa.yaml:3: alarms.notify[0].emails[1]: SEA662: alarms.notify[0].emails[0] has it for every endpoint too\n"
            "  hint: leave one out",
        ),
        (
            f"alarms: {{notify: [{{https_secret: pd}}, {{https_secret: '{SECRET}'}}]}}",
            "qa.yaml:3: alarms.notify[1].https_secret: SEA662: alarms.notify[0].https_secret has it for every endpoint "
            "too\n  hint: leave one out",
        ),
        (
            f"account: '222233334444'\nalarms: {{notify: [{{https_secret: '{SECRET}'}}]}}",
            "qa.yaml:4: alarms.notify[0].https_secret: SEA108: the secret is in account 111122223333, the environment "
            "in 222233334444\n  hint: give a secret in 222233334444",
        ),
        (
            f"alarms: {{notify: [{{https_secret: '{SECRET.replace('us-east-1', 'eu-west-1')}'}}]}}",
            "qa.yaml:3: alarms.notify[0].https_secret: SEA108: the secret is in eu-west-1, the environment in "
            "us-east-1\n  hint: give a secret in us-east-1",
        ),
        *(
            (
                f"alarms: {{notify: [{{{kind}: [], emails: [x@y.zz]}}]}}",
                f"qa.yaml:3: alarms.notify[0].{kind}: SEA107: the list is empty\n"
                "  hint: give at least one item, or leave the field out",
            )
            for kind in ("teams", "endpoints")
        ),
        (
            "alarms: {notify: [{teams: [''], emails: [x@y.zz]}]}",
            "qa.yaml:3: alarms.notify[0].teams[0]: SEA107: should have at least 1 character, not ''",
        ),
        (
            "observability: {team_budgets_usd_per_month: {'': 5}}",
            "qa.yaml:3: observability.team_budgets_usd_per_month.: SEA107: should have at least 1 character, not ''",
        ),
        (
            "observability: {team_budgets_usd_per_month: {Ads & Co: 5}}",
            "qa.yaml:3: observability.team_budgets_usd_per_month.Ads & Co: SEA107: should match pattern "
            f"'{shapes.TAG_TEXT}', not 'Ads & Co'\n  hint: letters, digits, spaces and _ . : / = + - @",
        ),
        (
            "alarms: {notify: ["
            + ", ".join(f"{{endpoints: [chat], topic_arn: '{TOPIC}{number}'}}" for number in range(4))
            + "]}",
            "qa.yaml:3: alarms.notify: SEA663: an alarm of chat would notify 6 topics; CloudWatch takes 5\n"
            "  hint: leave out entries with topic_arn",
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
    "field",
    [
        NETWORK,
        f"kms_key_arn: {KEY}",
        f"alarms: {{topic_arn: '{TOPIC}'}}",
        "network: {subnet_ids: []}",
        f"alarms: {{notify: [{TWICE}]}}",
    ],
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


def test_chatbot_is_not_in_every_partition(environments: Path) -> None:
    slack = "{workspace_id: T0123ABCD, channel_id: C0123ABCD}"
    told = problem(environments, f"name: qa\nregion: cn-north-1\nalarms: {{notify: [{{slack: {slack}}}]}}\n")
    assert "alarms.notify[0].slack: SEA661: AWS Chatbot is not in cn-north-1" in told


@pytest.mark.parametrize("region", ["cn-north-1", "eu-west-3", "us-gov-west-1"])
def test_a_region_without_inference_components_is_refused(region: str, environments: Path) -> None:
    source = f"{availability().source.partition(',')[0]}, {availability().date}"
    assert problem(environments, f"name: qa\nregion: {region}\n") == (
        f"qa.yaml:2: region: SEA107: {region} has no AWS::SageMaker::InferenceComponent ({source})\n"
        f"  hint: known to have it: {', '.join(availability().regions)}"
    )


PROMOTED = "promotion: {source: %s}\n"


def write_environments(folder: Path, sources: dict[str, str]) -> None:
    for name, source in sources.items():
        text = f"name: {name}\nregion: us-east-1\n" + (PROMOTED % source if source else "")
        (folder / f"{name}.yaml").write_text(text)


def test_each_environment_stands_after_its_source(environments: Path) -> None:
    write_environments(environments, {"prod": "staging", "staging": "dev", "eu": "staging", "test": ""})
    (environments / "prices.yaml").write_text("regions: {}\n")
    order = [each.name for each in promotion_order(environments)]
    assert order == ["dev", "test", "staging", "eu", "prod"]


def test_every_unknown_source_and_cycle_is_told_at_once(environments: Path) -> None:
    write_environments(environments, {"dev": "prod", "prod": "staging", "staging": "dev", "qa": "none", "own": "own"})
    with pytest.raises(SpecError) as caught:
        promotion_order(environments)
    told = {(found.where.rpartition("/")[2], found.rule) for found in caught.value.problems}
    assert told == {
        ("dev.yaml:3", "SEA121"),
        ("own.yaml:3", "SEA121"),
        ("prod.yaml:3", "SEA121"),
        ("qa.yaml:3", "SEA109"),
        ("staging.yaml:3", "SEA121"),
    }
    assert "dev → staging → prod → dev" in str(caught.value)


@pytest.mark.parametrize(
    ("field", "rule"),
    [
        ("guard_rails: {models: [meta llama]}", "SEA107"),
        ("guard_rails: {licences: []}", "SEA107"),
        ("guard_rails: {engines: [djl]}", "SEA107"),
        ("guard_rails: {slo: {ttft_ms: {p95: 0}}}", "SEA107"),
        ("guard_rails: {trial_mode: warn}", "SEA107"),
        ("promotion: {required: true}", "SEA108"),
        ("promotion: {approval: ask}", "SEA107"),
        ("retention: {log_days: 100}", "SEA107"),
        ("retention: {results_days: 0}", "SEA107"),
        ("audit: {mode: governance}", "SEA106"),
        ("retention: {results_days: 2561}\naudit: {mode: governance, years: 7}", "SEA586"),
        ("removal: destroy\naudit: {mode: governance, years: 7}", "SEA586"),
        ("owner: ' '", "SEA107"),
        ("observability: {dashboards: all}", "SEA107"),
        ("observability: {budget_usd_per_month: 0}", "SEA107"),
        ("observability: {budget_usd_per_month: 9, budget_emails: [nobody]}", "SEA107"),
        ("observability: {budget_emails: [a@example.com]}", "SEA108"),
        ("trial_schedule: weekly", "SEA123"),
        ("trial_schedule: rate(239 minutes)", "SEA123"),
        ("trial_schedule: rate(1 hour)\ntrial_window_minutes: 61", "SEA123"),
        ("trial_window_minutes: 1441", "SEA107"),
    ],
)
def test_a_wrong_field_of_governance_is_told_by_its_line(field: str, rule: str, environments: Path) -> None:
    message = problem(environments, f"name: qa\nregion: us-east-1\n{field}\n")
    assert message.startswith("qa.yaml:3: ")
    assert f" {rule}: " in message


def test_days_that_cloudwatch_does_not_know_are_told_with_those_that_it_knows(environments: Path) -> None:
    message = problem(environments, "name: qa\nregion: us-east-1\nretention: {log_days: 100}\n")
    assert all(str(days) in message for days in (1, 90, 120, 3653))


@pytest.mark.parametrize(
    "expression",
    [
        "cron(0 6 ? * MON *)",
        "cron(0 6 ? * 2 *)",
        "cron(0/15 8-17 ? * MON-FRI 2026-2030)",
        "cron(0 0 1,15 * ? *)",
        "cron(0 0 LW JAN,JUL ? *)",
        "cron(0 0 ? * FRI#2 *)",
        "rate(1 day)",
        "rate(7 days)",
    ],
)
def test_a_schedule_of_eventbridge_is_accepted(expression: str) -> None:
    assert schedule_error(expression) is None


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "0 6 * * 1",
        "cron(0 6 * * 1)",
        "cron(0 6 * * MON *)",
        "cron(0 6 ? * ? *)",
        "cron(60 6 ? * MON *)",
        "cron(0 24 ? * MON *)",
        "cron(0 6 ? 13 MON *)",
        "cron(0 6 ? * MOO *)",
        "cron(0/0 6 ? * MON *)",
        "cron(0 6 ? * MON#6 *)",
        "cron(0 6 ? * MON, *)",
        "rate(0 days)",
        "rate(1 days)",
        "rate(7 day)",
        "rate(1 week)",
        "rate(1.5 days)",
        "rate(٣ days)",
        "cron(0 6 ٣W * ? *)",
    ],
)
def test_a_schedule_that_eventbridge_refuses_is_refused(expression: str) -> None:
    assert schedule_error(expression) is not None


def test_an_environment_that_vends_has_as_many_tags_as_a_portfolio_takes(environments: Path) -> None:
    def place(count: int, more: str) -> None:
        tags = ", ".join(f"a{number}: x" for number in range(count))
        (environments / "dev.yaml").write_text(f"name: dev\nregion: us-east-1\ntags: {{{tags}}}\n{more}")

    place(20, "vending: true\n")
    assert load_environment(environments, "dev").vending
    place(21, "")
    assert not load_environment(environments, "dev").vending
    place(21, "vending: true\n")
    with pytest.raises(SpecError, match="SEA142: 21 tags and vending: true; a portfolio of AWS Service Catalog has at"):
        load_environment(environments, "dev")


def test_tags_of_endpoint_and_environment_together_have_a_limit(
    environments: Path, write: Write, endpoint_text: str
) -> None:
    shared = ", ".join(f"a{number}: x" for number in range(MOST_TAGS))
    (environments / "dev.yaml").write_text(f"name: dev\nregion: us-east-1\ntags: {{{shared}}}\n")
    same = write(endpoint_text + "tags: {a0: y, a1: z}\n", "same.yaml")
    assert load_spec(same, "dev", environments=environments).endpoint.tags == {"a0": "y", "a1": "z"}
    more = write(endpoint_text + "tags: {b: y, 'aws:c': z}\n", "more.yaml")
    with pytest.raises(SpecError) as caught:
        load_spec(more, "dev", environments=environments)
    assert {found.rule for found in caught.value.problems} == {"SEA107", "SEA124"}


RESERVED = [
    "aws:x",
    "AWS:x",
    " aws:x",
    "seatrial:environment",
    "Seatrial:Environment",
    "SEATRIAL:config",
    " seatrial:product",
    "seatrial:of-tomorrow",
    "\N{LATIN SMALL LETTER LONG S}eatrial:environment",
]
"""Keys that AWS or Seatrial sets; IAM's condition keys don't tell capitals apart (IAM user guide, condition keys)."""


@pytest.mark.parametrize("key", RESERVED)
@pytest.mark.parametrize(
    ("where", "field"),
    [
        ("tags: {'KEY': prod}\n", "tags.KEY"),
        ("environments: {dev: {tags: {'KEY': prod}}}\n", "environments.dev.tags.KEY"),
    ],
)
def test_a_spec_sets_no_tag_that_is_reserved(
    where: str, field: str, key: str, environments: Path, write: Write, endpoint_text: str
) -> None:
    with pytest.raises(SpecError) as caught:
        load_spec(write(endpoint_text + where.replace("KEY", key)), "dev", environments=environments)
    assert [(each.rule, each.field) for each in caught.value.problems] == [("SEA107", field.replace("KEY", key))]


@pytest.mark.parametrize("key", RESERVED)
def test_an_environment_neither_sets_nor_requires_a_tag_that_is_reserved(
    key: str, environments: Path, write: Write, endpoint_text: str
) -> None:
    text = f"name: dev\nregion: us-east-1\ntags: {{'{key}': prod}}\nguard_rails: {{required_tags: ['{key}']}}\n"
    (environments / "dev.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        load_spec(write(endpoint_text), "dev", environments=environments)
    found = {(each.rule, each.field) for each in caught.value.problems}
    assert found >= {("SEA107", f"tags.{key}"), ("SEA107", "guard_rails.required_tags[0]")}


@pytest.mark.parametrize("key", ["seatrial", "seatrial-team", "team:seatrial:x", "awsome", "x aws:"])
def test_other_keys_are_anybodys(key: str, environments: Path, write: Write, endpoint_text: str) -> None:
    file = write(endpoint_text + f"tags: {{'{key}': a}}\n")
    assert load_spec(file, "dev", environments=environments).endpoint.tags == {key: "a"}


@pytest.mark.parametrize(
    "text",
    [
        "schema_version: 1",
        "owner: platform-team",
        "promotion: {max_age_days: 3, approval: manual}",
        "retention: {results_days: 30, log_days: 90}",
        "audit: {mode: compliance, years: 7}\nretention: {results_days: 2562}",
        "trial_schedule: rate(7 days)",
        "guard_rails: {models: [org/*], licences: [mit], slo: {error_rate: 0.1}, trial_mode: rollback}",
    ],
)
def test_what_changes_no_plan_makes_no_lock_stale(
    text: str, environments: Path, write: Write, endpoint_text: str
) -> None:
    spec = write(endpoint_text)
    before = load_spec(spec, "dev", environments=environments).digest
    (environments / "dev.yaml").write_text(f"name: dev\nregion: us-east-1\n{text}\n")
    same = write(endpoint_text.replace("  hub_id", "  licence: mit\n  hub_id") + "schema_version: 1\ntags: {a: b}\n")
    assert load_spec(same, "dev", environments=environments).digest == before


@pytest.mark.parametrize("rail", ["engines: [lmi]", "usd_per_million_output_tokens: 5", "max_copies: 2"])
def test_a_guard_rail_that_plans_are_chosen_by_makes_a_lock_stale(
    rail: str, environments: Path, write: Write, endpoint_text: str
) -> None:
    spec = write(endpoint_text)
    before = load_spec(spec, "dev", environments=environments).digest
    (environments / "dev.yaml").write_text(f"name: dev\nregion: us-east-1\nguard_rails: {{{rail}}}\n")
    assert load_spec(spec, "dev", environments=environments).digest != before


@pytest.mark.parametrize("newer", ["endpoints", "environments"])
def test_a_file_of_a_newer_schema_gives_one_message(newer: str, environments: Path, write: Write) -> None:
    first = "schema_version: 2\n"
    spec = write((first if newer == "endpoints" else "") + "name: chat\nnew_field: 1\n")
    text = "name: dev\nregion: us-east-1\n"
    (environments / "dev.yaml").write_text(
        f"{first}region: nowhere\nnew_field: 1\n" if newer == "environments" else text
    )
    with pytest.raises(SpecError) as caught:
        load_spec(spec, "dev", environments=environments)
    told = [found for found in caught.value.problems if found.rule == "SEA122"]
    assert [found.message for found in told] == ["schema_version is 2; this release reads 1"]
    assert all(newer in found.where for found in told)
    assert not any(newer in found.where for found in caught.value.problems if found.rule != "SEA122")
