"""What an environment's file asks for: dashboards of endpoints and environment, and a budget; nothing by default."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Template

from seatrial.specs.environment import EnvironmentSpec
from seatrial.specs.load import fingerprint
from seatrial_stacks.app_stacks import add_stacks
from tests.stacks.conftest import deployment, serving, spec

if TYPE_CHECKING:
    from pathlib import Path

BASE = {"name": "dev", "region": "us-east-1", "removal": "destroy"}
SLACK = {"workspace_id": "T0123ABCD", "channel_id": "C0123ABCD"}
TEAMS = {
    "tenant_id": "11111111-2222-3333-4444-555555555555",
    "team_id": "11111111-2222-3333-4444-666666666666",
    "channel_id": "19%3aabc%40thread.tacv2",
}
OTHER_TOPIC = "arn:aws:sns:us-east-1:123456789012:pages"
ROUTED = {
    **BASE,
    "account": "123456789012",
    "tags": {"stage": "dev"},
    "trial_schedule": "rate(7 days)",
    "alarms": {
        "runbook_url": "https://wiki.example.com/llm",
        "notify": [
            {
                "teams": ["search", "search"],
                "emails": ["search@example.com"],
                "https_secret": "pagerduty/search",
                "slack": SLACK,
            },
            {"teams": ["ads / more"], "microsoft_teams": TEAMS},
            {"endpoints": ["chat"], "topic_arn": OTHER_TOPIC, "slack": SLACK},
            {"emails": ["all@example.com"]},
            # A channel that two workspaces, or two teams, share has one ID.
            {"teams": ["search"], "slack": {**SLACK, "workspace_id": "T9"}},
            {"teams": ["search"], "microsoft_teams": {**TEAMS, "team_id": TEAMS["tenant_id"]}},
        ],
    },
    "observability": {"dashboards": "both", "team_budgets_usd_per_month": {"search": 500, "nobody": 5}},
}
ASKED = {"dashboards": "both", "budget_usd_per_month": 2000, "budget_emails": ["team@example.com"]}


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("watched")
    app = App(outdir=str(folder), analytics_reporting=False)
    asked = deployment({**BASE, "observability": ASKED}, endpoint=spec(), serving=serving())
    topic = "arn:aws:sns:eu-west-1:123456789012:on-call"
    other = {"name": "lab", "region": "eu-west-1", "account": "123456789012", "alarms": {"topic_arn": topic}}
    budget = deployment({**other, "observability": {"budget_usd_per_month": 5}}, endpoint=spec(), serving=serving())
    add_stacks(app, (asked, budget))
    app.synth()
    return folder


@pytest.fixture(scope="module")
def routed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("routed")
    app = App(outdir=str(folder), analytics_reporting=False)
    tagged = spec().model_copy(update={"tags": {"team": "search"}})
    add_stacks(app, [deployment(ROUTED, endpoint=tagged, serving=serving())])
    app.synth()
    return folder


def text(node: object) -> str:
    """Return a text of a template with its references: the partition as `aws`, every other by its name."""
    match node:
        case {"Ref": "AWS::Partition"}:
            return "aws"
        case {"Ref": str(name)}:
            return name
        case {"Fn::Join": [_, list(parts)]}:
            return "".join(map(text, parts))
    return str(node)


def arn(name: str) -> str:
    return f"arn:aws:sns:us-east-1:123456789012:{name}"


def template(folder: Path, stack: str) -> Template:
    return Template.from_string((folder / f"{stack}.template.json").read_text())


def dashboards(found: Template) -> dict[str, Any]:
    resources = found.find_resources("AWS::CloudWatch::Dashboard").values()
    return {each["Properties"]["DashboardName"]: each["Properties"]["DashboardBody"] for each in resources}


def test_each_endpoint_and_the_environment_have_a_dashboard(watched: Path) -> None:
    assert set(dashboards(template(watched, "seatrial-dev-chat"))) == {"seatrial-dev-chat"}
    assert set(dashboards(template(watched, "seatrial-dev-trials"))) == {"seatrial-dev"}
    assert dashboards(template(watched, "seatrial-lab-chat")) == {}
    assert dashboards(template(watched, "seatrial-lab-trials")) == {}


def test_the_dashboard_draws_the_target_that_the_trial_found(watched: Path) -> None:
    (body,) = dashboards(template(watched, "seatrial-dev-chat")).values()
    parts = body["Fn::Join"][1]
    number = next(place for place, part in enumerate(parts) if "TargetConcurrencyPerCopy" in json.dumps(part))
    assert parts[number - 1].endswith('{"label":"target","value":')
    assert parts[number + 1].startswith("}")
    filled = json.loads("".join(part if isinstance(part, str) else "1" for part in parts))
    assert filled["widgets"][0]["properties"]["markdown"].startswith("# dev-chat\n\nml.g5.2xlarge, 1 accelerators each")


def test_the_budget_tells_the_topic_of_the_environment(watched: Path) -> None:
    for environment, kinds in (("dev", ["EMAIL", "SNS"]), ("lab", ["SNS"])):
        (found,) = template(watched, f"seatrial-{environment}-trials").find_resources("AWS::Budgets::Budget").values()
        subscribers = found["Properties"]["NotificationsWithSubscribers"][0]["Subscribers"]
        assert [each["SubscriptionType"] for each in subscribers] == kinds


def test_nothing_is_added_by_default(assembly: Path) -> None:
    for stack in ("seatrial-dev-chat", "seatrial-dev-trials", "seatrial-prod-trials"):
        found = template(assembly, stack)
        for resource_type in ("AWS::CloudWatch::Dashboard", "AWS::Budgets::Budget"):
            found.resource_count_is(resource_type, 0)


def test_what_is_watched_makes_no_lock_stale() -> None:
    plain, asked = (EnvironmentSpec.model_validate(each) for each in (BASE, {**BASE, "observability": ASKED}))
    assert fingerprint(spec(), plain) == fingerprint(spec(), asked)


def test_an_alarm_notifies_the_environment_then_its_team_then_what_is_of_it_alone(routed: Path) -> None:
    topics = ["seatrial-dev-alarms", "seatrial-dev-search-alarms", "seatrial-dev-endpoint_chat-alarms", "pages"]
    found = template(routed, "seatrial-dev-chat").find_resources("AWS::CloudWatch::Alarm").values()
    notifying = [each["Properties"] for each in found if "AlarmActions" in each["Properties"]]
    ours = [each for each in notifying if "OKActions" in each]
    assert len(ours) == 3
    for alarm in ours:
        assert alarm["AlarmActions"] == alarm["OKActions"]
        assert [text(each) for each in alarm["AlarmActions"]] == [arn(name) for name in topics]
        assert "Runbook: https://wiki.example.com/llm#" in alarm["AlarmDescription"]
        console = (
            "https://console.aws.amazon.com/cloudwatch/home?region=us-east-1#dashboards/dashboard/seatrial-dev-chat"
        )
        assert f"Dashboard: {console}. " in alarm["AlarmDescription"]
        assert alarm["AlarmDescription"].endswith("Cause: `seatrial doctor chat -e dev`")


def test_a_schedule_names_the_topics_of_its_endpoint_and_the_service_may_publish_to_each(routed: Path) -> None:
    (schedule,) = template(routed, "seatrial-dev-chat").find_resources("AWS::Scheduler::Schedule").values()
    named = json.loads(text(schedule["Properties"]["Target"]["Input"]))["Scheduled"]["Topics"].split(",")
    assert named == [arn("seatrial-dev-search-alarms"), arn("seatrial-dev-endpoint_chat-alarms"), OTHER_TOPIC]
    roles = template(routed, "seatrial-dev-trials").find_resources("AWS::IAM::Role").values()
    may = [
        {text(each) for each in statement["Resource"]}
        for role in roles
        for policy in role["Properties"].get("Policies", [])
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Action"] == "sns:Publish"
    ]
    assert {arn("seatrial-dev-alarms"), *named} <= may[0]


def test_topics_are_tagged_and_encrypted_and_what_subscribes_has_no_secret_in_it(routed: Path) -> None:
    trials = template(routed, "seatrial-dev-trials")
    made = {
        each["Properties"]["TopicName"]: each["Properties"]
        for each in trials.find_resources("AWS::SNS::Topic").values()
    }
    assert {name.rpartition("-alarms")[0].removeprefix("seatrial-dev").lstrip("-") for name in made} == {
        "", "search", next(name for name in made if "ads-more-" in name)[13:-7], "endpoint_chat",
    }  # fmt: skip
    for name, topic in made.items():
        tags = {each["Key"]: each["Value"] for each in topic["Tags"]}
        assert (tags["stage"], tags["seatrial:environment"]) == ("dev", "dev")
        assert tags.get("team") == {"seatrial-dev-search-alarms": "search"}.get(name, tags.get("team"))
        assert "KmsMasterKeyId" in topic
    subscribed = {
        (each["Properties"]["Protocol"], each["Properties"]["Endpoint"])
        for each in trials.find_resources("AWS::SNS::Subscription").values()
    }
    assert subscribed == {
        ("email", "search@example.com"),
        ("email", "all@example.com"),
        ("https", "{{resolve:secretsmanager:pagerduty/search:SecretString:::}}"),
    }


def test_a_channel_has_one_configuration_that_reads_alone(routed: Path) -> None:
    trials = template(routed, "seatrial-dev-trials")
    shared, slack = sorted(
        trials.find_resources("AWS::Chatbot::SlackChannelConfiguration").values(),
        key=lambda each: len(each["Properties"]["SnsTopicArns"]),
    )
    teams = [*trials.find_resources("AWS::Chatbot::MicrosoftTeamsChannelConfiguration").values()]
    assert len(slack["Properties"]["SnsTopicArns"]) == 2, "of the team and of the endpoint"
    assert len({each["Properties"]["ConfigurationName"] for each in (shared, slack, *teams)}) == 4, (
        "by workspace and team"
    )
    for channel in (shared, slack, *teams):
        assert channel["Properties"]["GuardrailPolicies"] == ["arn:aws:iam::aws:policy/CloudWatchReadOnlyAccess"]
    named = {"Properties": {"Description": "Channels of AWS Chatbot of dev"}}
    (role,) = trials.find_resources("AWS::IAM::Role", named).values()
    actions = {
        action
        for statement in role["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }
    assert actions == {"cloudwatch:DescribeAlarms", "cloudwatch:GetMetricData", "cloudwatch:ListMetrics"}


def test_a_team_s_budget_counts_its_tag_in_the_environment_and_tells_its_topic(routed: Path) -> None:
    trials = template(routed, "seatrial-dev-trials")
    found = {
        each["Properties"]["Budget"]["BudgetLimit"]["Amount"]: each["Properties"]
        for each in trials.find_resources("AWS::Budgets::Budget").values()
    }
    assert found[500]["Budget"]["CostFilters"] == {"TagKeyValue": ["user:seatrial:environment$dev", "user:team$search"]}
    names = {each: made["Properties"]["TopicName"] for each, made in trials.find_resources("AWS::SNS::Topic").items()}
    notified = {
        limit: names[each["NotificationsWithSubscribers"][0]["Subscribers"][0]["Address"]["Ref"]]
        for limit, each in found.items()
    }
    assert notified == {500: "seatrial-dev-search-alarms", 5: "seatrial-dev-alarms"}


def test_an_untried_endpoint_has_the_topics_too() -> None:
    untried = spec().model_copy(update={"trial": spec().trial.model_copy(update={"mode": "off"})})
    made = add_stacks(App(analytics_reporting=False), [deployment(ROUTED, endpoint=untried, serving=serving())])
    assert [*made] == ["dev"]
