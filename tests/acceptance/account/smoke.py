"""`make test-aws SMOKE=1`: ten questions that need no endpoint, for a cent and within ten minutes.

Each question has a second request, which AWS refuses. Where it is not refused, nobody judges there (an emulator, say),
and the question is not answered: what everybody may do proves nothing.
"""

from __future__ import annotations

import io
import json
import re
import tempfile
import time
import zipfile
from contextlib import chdir, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from benchmarks.living_endpoint.synthesis import synthesize
from seatrial_base.table import aligned_lines, name_column, table_of, text_columns
from tests.acceptance.account.price import LONGEST_SMOKE_REMOVAL_S, LONGEST_SMOKE_S, SMOKE_USD
from tests.acceptance.account.removal import PATH, left_of_smoke, smoke_name
from tests.acceptance.account.run import (
    ROOT,
    Account,
    Stop,
    Surroundings,
    check,
    planned_in,
    read_environment,
    signals_stop,
)
from tests.acceptance.endpoint import refusal
from tests.launch_rights import launch_policy, needed, published, resolved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.acceptance.account.removal import Clients
    from tests.acceptance.account.run import Options, Planned

Template = Any  # a document of CloudFormation
PAUSE_S, LONGEST_STEP_S = 2.0, 90.0
OPTIONS: Final = {"trial_schedule": "rate(7 days)", "observability": {"dashboards": "both"}, "outputs": "both"}
PRODUCTS: Final[tuple[Template, ...]] = ({}, {"hosting": {"kind": "single_model"}, "trial": {"mode": "off"}})
MADE: Final = (
    "s3:CreateBucket",
    "kms:CreateKey",
    "iam:CreateRole",
    "lambda:CreateFunction",
    "sagemaker:CreateEndpoint",
)
ABSENT: Final = ("KV_AWARE", "AcceleratorPartitionType", "CrossRegionTrafficConfig")
ABSENT_TYPE: Final = "AWS::SageMaker::InferenceRouter"
VERSION: Final = {"Version": "2012-10-17"}
DENY: Final = json.dumps({**VERSION, "Statement": [{"Effect": "Deny", "Action": "*", "Resource": "*"}]})
REPORT: Final = "open an issue with this line"
PASSED: Final = "as expected"


class NotAnsweredError(Exception):
    """A question has no answer there; the text says why."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the questions are asked.

    Attributes:
        environment: Name of the environment.
        clients: The account's clients.
        caller: ARN of the caller.
        network: Subnets and security groups, as an environment names them; empty without a VPC.
        planned: The plan of the suite's endpoint, and what the account has for it.
        templates: Templates of the endpoint and of the trial service, by the last part of their stacks' names.
        folder: Where documents may be written.
        is_over: Returns why nothing is waited for any more; empty while something is.
    """

    environment: str
    clients: Account
    caller: str
    network: Mapping[str, list[str]]
    planned: Planned
    templates: Mapping[str, Template]
    folder: Path
    is_over: Callable[[], str]

    def arn(self, service: str, resource: str) -> str:
        """Return an ARN of the account; IAM has no regions."""
        _, partition, _, _, account, _ = self.caller.split(":", 5)
        return f"arn:{partition}:{service}:{self.clients.region if service != 'iam' else ''}:{account}:{resource}"

    def service_policy(self) -> str:
        """Return the policy of the trial service's role; what its own stack makes has the ARN of nothing."""
        roles = self.templates["trials"]["Resources"].items()
        (role,) = (each["Properties"] for name, each in roles if name.startswith("ServiceRole"))
        _, partition, _, region, account, _ = self.arn("any", "").split(":")
        known = {"AccountId": account, "Partition": partition, "Region": region}
        text = json.dumps(role["Policies"][0]["PolicyDocument"])
        text = re.sub(r'\{"Ref": "AWS::(\w+)"\}', lambda pseudo: json.dumps(known[pseudo[1]]), text)
        text = re.sub(r'\{"(?:Ref|Fn::GetAtt)": (?:\[[^]]*\]|"[^"]*")\}', '"arn:aws:s3:::made-by-its-stack"', text)
        return resolved(json.loads(text))

    def may(
        self, policy: str, action: str, resource: str, context: Mapping[str, str | list[str]] | None = None
    ) -> bool:
        """Tell whether a policy allows an action."""
        return not self.denied(policy, [action], resource, context or {})

    def denied(
        self, policy: str, actions: list[str], resource: str, context: Mapping[str, str | list[str]]
    ) -> list[str]:
        """Return the actions that a policy does not allow, as IAM's simulator decides."""
        entries = [
            {
                "ContextKeyName": key,
                "ContextKeyValues": [value] if isinstance(value, str) else value,
                "ContextKeyType": _kind_of(value),
            }
            for key, value in context.items()
            if value
        ]
        told = self.clients("iam").simulate_custom_policy(
            PolicyInputList=[policy], ActionNames=actions, ResourceArns=[resource], ContextEntries=entries
        )
        return [each["EvalActionName"] for each in told["EvaluationResults"] if each["EvalDecision"] != "allowed"]

    def last(self, call: Callable[[], dict[str, Any]], is_last: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the last answer to a call that is repeated until it is the one that counts: rights come late."""
        deadline_s = time.monotonic() + LONGEST_STEP_S
        while not is_last(told := call()) and time.monotonic() < deadline_s and not self.is_over():
            time.sleep(PAUSE_S)
        return told


def _quotas(place: Place) -> list[str]:
    told = {each["subject"]: (each["status"], each["answer"]) for each in place.planned.checks}
    wrong = [f"{subject}: {text}" for subject, (status, text) in told.items() if status == "problem"]
    unread = [f"{subject}: {text}" for subject, (status, text) in told.items() if status not in ("ok", "problem")]
    _unanswered(unread and not wrong, "; ".join(unread))
    return wrong


def _network_rights(place: Place) -> list[str]:
    # Lambda asks before there is an interface: for none by its name.
    every, interfaces = place.arn("ec2", "*/*"), place.arn("ec2", "network-interface/*")
    _unanswered(place.may(_allow("ec2:DeleteNetworkInterface", interfaces), "ec2:DeleteNetworkInterface", every))
    asked = {"CreateNetworkInterface": interfaces, "DescribeNetworkInterfaces": "*", "DeleteNetworkInterface": every}
    return [each for each, arn in asked.items() if not place.may(place.service_policy(), f"ec2:{each}", arn)]


def _alarm_rights(place: Place) -> list[str]:
    action, policy, ours = "cloudwatch:DescribeAlarms", place.service_policy(), f"alarm:seatrial-{place.environment}-a"
    _unanswered(place.may(policy, action, place.arn("cloudwatch", "alarm:others")))
    return [] if place.may(policy, action, place.arn("cloudwatch", ours)) else [action]


def _launch_rights(place: Place) -> list[str]:
    tag, value = "aws:RequestTag/team", "search"
    tagged = _allow("s3:PutObject", "*", {"StringEquals": {tag: value}})
    _unanswered(not place.may(tagged, "s3:PutObject", "*", {tag: value}), "conditions are not judged")
    denied = set()
    for index, changed in enumerate(PRODUCTS):
        template, vending = published(place.folder / f"product-{index}", changed, OPTIONS)
        policy = resolved(launch_policy(vending))
        rights: dict[tuple[str, str], set[str]] = {}
        for _, _, right in needed(template):
            rights.setdefault((right.resource, json.dumps(dict(right.context))), set()).add(right.action)
        for (resource, context), actions in rights.items():
            lacking = place.denied(policy, sorted(actions), resource, json.loads(context))
            denied |= {f"{action} on {resource}" for action in lacking}
    return sorted(denied)


def _deployment_rights(place: Place) -> list[str]:
    _, _, _, region, account, _ = place.arn("any", "").split(":")
    role = place.arn("iam", f"role/cdk-hnb659fds-cfn-exec-role-{account}-{region}")
    ask = partial(place.clients("iam").simulate_principal_policy, PolicySourceArn=role, ActionNames=[*MADE])
    bounded, own = (ask(PolicyInputList=policies)["EvaluationResults"] for policies in ([DENY], []))
    _unanswered(any(each["EvalDecision"] == "allowed" for each in bounded))
    return [each["EvalActionName"] for each in own if each["EvalDecision"] != "allowed"]


def _alarms(place: Place) -> list[str]:
    keys: dict[str, str] = {}

    def assume() -> None:
        told = place.clients("sts").assume_role(RoleArn=role, RoleSessionName="seatrial-acceptance")
        keys.update(told["Credentials"])

    with _made_role(place, place.service_policy()) as role:
        told = place.last(partial(refusal, assume), _is_accepted)
        _unanswered(not _is_accepted(told), told["words"])
        session = boto3.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
        cloudwatch: Any = session.client("cloudwatch", region_name=place.clients.region)
        ask = partial(cloudwatch.describe_alarms, AlarmNames=[f"seatrial-{place.environment}-absent"])
        metric = place.last(lambda: refusal(partial(ask, AlarmTypes=["MetricAlarm"])), _is_accepted)
        _unanswered(_is_accepted(refusal(cloudwatch.describe_alarm_history)))
        composite = refusal(partial(ask, AlarmTypes=["CompositeAlarm"]))
    denied = [] if _is_accepted(metric) else [f"metric alarms: {metric['words']}"]
    return [*denied, *(["composite alarms are described too"] if _is_accepted(composite) else [])]


def _change_sets(place: Place) -> list[str]:
    topic = {"Type": "AWS::SNS::Topic", "Properties": {"NoProperty": "x"}}
    _unanswered(not _invalid(place, "unknown", {"Resources": {"Topic": topic}}))
    told = {name: _invalid(place, name, template) for name, template in place.templates.items()}
    return [f"{name}: {words}" for name, words in told.items() if words]


def _invalid(place: Place, name: str, template: Template) -> str:
    """Return with which words CloudFormation refuses a template; nothing is executed."""
    client, change = place.clients("cloudformation"), {"StackName": smoke_name(place.environment, name)}
    change |= {"ChangeSetName": "smoke"}
    body = json.dumps(template, separators=(",", ":"))
    create = partial(client.create_change_set, **change, ChangeSetType="CREATE", TemplateBody=body)
    try:
        if not _is_accepted(told := refusal(lambda: create(Capabilities=["CAPABILITY_NAMED_IAM"]))):
            return f"{told['code']}: {told['words']}"
        ended = ("CREATE_COMPLETE", "FAILED")
        end = place.last(lambda: client.describe_change_set(**change), lambda told: told["Status"] in ended)
        return "" if end["Status"] == ended[0] else f"{end['Status']} {end.get('StatusReason', '')}"
    finally:
        refusal(lambda: client.delete_stack(StackName=change["StackName"]))


def _function_in_network(place: Place) -> list[str]:
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("index.py", "def handler(event, context): return None")
    client, name = place.clients("lambda"), smoke_name(place.environment)
    network = {"SubnetIds": place.network["subnet_ids"], "SecurityGroupIds": place.network["security_group_ids"]}
    create = partial(client.create_function, FunctionName=name, Runtime="python3.12", Handler="index.handler")
    with _made_role(place, DENY) as role:
        made = partial(create, Role=role, Code={"ZipFile": code.getvalue()}, VpcConfig=network)
        told = place.last(lambda: refusal(made), lambda told: _is_accepted(told) or "on EC2" in told["words"])
        _unanswered(_is_accepted(told))
        place.clients("iam").put_role_policy(RoleName=name, PolicyName=name, PolicyDocument=place.service_policy())
        told = place.last(lambda: refusal(made), _is_accepted)
    return [] if _is_accepted(told) else [told["words"]]


def _images(place: Place) -> list[str]:
    registry, _, path = place.planned.image.partition("/")
    repository, _, tag = path.partition(":")
    tags = [{"imageTag": tag}, {"imageTag": "no-such-tag"}]
    ask = partial(place.clients("ecr").batch_get_image, registryId=registry.partition(".")[0])
    missing = {each["imageId"]["imageTag"] for each in ask(repositoryName=repository, imageIds=tags)["failures"]}
    _unanswered("no-such-tag" not in missing)
    return [place.planned.image] if tag in missing else []


def _resource_types(place: Place) -> list[str]:
    resources = [each for template in place.templates.values() for each in template["Resources"].values()]
    describe, told = partial(place.clients("cloudformation").describe_type, Type="RESOURCE"), []
    for kind in sorted({each["Type"] for each in resources if each["Type"].startswith("AWS::SageMaker::")}):
        schema = describe(TypeName=kind)["Schema"]
        names = {name for each in resources if each["Type"] == kind for name in _names(each["Properties"])}
        told += [f"{kind} has no {name}" for name in sorted(names) if f'"{name}"' not in schema]
        told += [f"{kind} has {name} now" for name in ABSENT if f'"{name}"' in schema]
    is_there = _is_accepted(refusal(partial(describe, TypeName=ABSENT_TYPE)))
    return [*told, *([f"there is {ABSENT_TYPE} now"] if is_there else [])]


def _names(value: object) -> Iterator[str]:
    """Yield the names of properties, without functions and without variables of containers."""
    for inner in value if isinstance(value, list) else ():
        yield from _names(inner)
    for name, inner in value.items() if isinstance(value, dict) else ():
        if not name.startswith(("Fn::", "Ref")):
            yield name
            yield from _names(inner) if name != "Environment" else ()


class Question(NamedTuple):
    """A question: what is expected, what to do otherwise, and what returns in which way it is otherwise."""

    name: str
    expected: str
    to_do: str
    ask: Callable[[Place], list[str]]
    needs_network: bool = False


QUESTIONS: Final = (
    Question("quotas", "enough for the suite", "see seatrial preflight", _quotas),
    Question("rights in a network", "without an interface's name", REPORT, _network_rights, needs_network=True),
    Question("rights to alarms", "to those of the environment", REPORT, _alarm_rights),
    Question("rights of a launch", "to all that a product makes", REPORT, _launch_rights),
    Question("rights of a deployment", "to all that a stack makes", "see cdk bootstrap", _deployment_rights),
    Question("alarms of a narrow role", "metric ones alone", REPORT, _alarms),
    Question("change sets", "valid templates", REPORT, _change_sets),
    Question("a function in a VPC", "created", REPORT, _function_in_network, needs_network=True),
    Question("image", "in the registry", "plan again with a newer catalog", _images),
    Question("resource types", "what is written, and no more", REPORT, _resource_types),
)


def _kind_of(value: str | list[str]) -> str:
    return "stringList" if isinstance(value, list) else "boolean" if value in ("true", "false") else "string"


def _allow(action: str, resource: str, condition: object = None) -> str:
    statement = {"Effect": "Allow", "Action": action, "Resource": resource}
    return json.dumps({**VERSION, "Statement": [{**statement, **({"Condition": condition} if condition else {})}]})


def _unanswered(is_so: object, because: str = "what is to be refused is accepted too") -> None:
    if is_so:
        raise NotAnsweredError(because)


def _is_accepted(told: Mapping[str, str]) -> bool:
    return told["code"] == "none"


@contextmanager
def _made_role(place: Place, policy: str) -> Iterator[str]:
    iam, name = place.clients("iam"), smoke_name(place.environment)
    may = {"Principal": {"AWS": place.arn("iam", "root"), "Service": "lambda.amazonaws.com"}}
    trust = json.dumps({**VERSION, "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", **may}]})
    role = iam.create_role(RoleName=name, Path=PATH, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    try:
        iam.put_role_policy(RoleName=name, PolicyName=name, PolicyDocument=policy)
        yield str(role)
    finally:
        iam.delete_role_policy(RoleName=name, PolicyName=name)
        iam.delete_role(RoleName=name)


def smoke(options: Options, around: Surroundings | None = None) -> int:
    """Ask the questions of an account; return 0 when each is answered as expected and nothing is left.

    Raises:
        SpecError: SEA629, the environment can't be used; every reason is told.
        LocalError: SEA629, the account can't be asked.
    """
    around, stop = around or Surroundings(), Stop()
    clients = Account(f"{read_environment(options.environments, options.environment)['region']}")
    check(options, clients, SMOKE_USD, LONGEST_SMOKE_S, ())
    around.tell(f"{len(QUESTIONS)} questions: {', '.join(each.name for each in QUESTIONS)}")
    minutes = (LONGEST_SMOKE_S + LONGEST_SMOKE_REMOVAL_S) / 60
    around.tell(f"at most {SMOKE_USD:.2f} USD (requests to CloudWatch) and {minutes:.0f} minutes")
    around.tell("made and removed: a role, a function that is not called, change sets that are not executed")
    if not options.yes and around.ask("Ask this in your account? [yes/no] ").strip().lower() != "yes":
        around.tell("nothing was done")
        return 1
    deadline_s = time.monotonic() + LONGEST_SMOKE_S

    def is_over() -> str:
        return stop.because or ("the time is over" if time.monotonic() > deadline_s else "")

    rows, left = [], []
    with tempfile.TemporaryDirectory() as folder, signals_stop(stop):
        try:
            place = place_of(options, around, clients, Path(folder), is_over)
            rows = [row_of(each, place) for each in QUESTIONS]
        finally:
            left = left_of_smoke(clients, options.environment, LONGEST_SMOKE_REMOVAL_S)
    columns = (name_column("question"), *text_columns("answer", "expected", "to do"))
    for line in aligned_lines(table_of(columns, rows)):
        around.tell(line)
    around.tell(f"left: {', '.join(left)}" if left else "nothing is left")
    return stop.exit_code if stop.because else int(bool(left) or any(row[1] != PASSED for row in rows))


def row_of(question: Question, place: Place) -> tuple[str, str, str, str]:
    """Ask a question; return its name, the answer, what was expected, and what to do."""
    answer, to_do = PASSED, ""
    try:
        _unanswered(because := place.is_over(), because)
        _unanswered(question.needs_network and not place.network, "no default VPC, and no network of the environment")
        if otherwise := question.ask(place):
            answer, to_do = f"otherwise: {'; '.join(otherwise)}", question.to_do
    except (NotAnsweredError, ClientError, BotoCoreError) as error:
        answer, to_do = f"not answered here: {error}", "allow the request, or ask another account"
    return question.name, answer, question.expected, to_do


def place_of(
    options: Options, around: Surroundings, clients: Account, folder: Path, is_over: Callable[[], str]
) -> Place:
    """Plan and synthesize the suite's endpoint in a network, with every option of an environment."""
    document, environments = read_environment(options.environments, options.environment), folder / "environments"
    given = document.get("network")
    network = given if isinstance(given, dict) and given.get("subnet_ids") else default_network(clients)
    environments.mkdir()
    written = json.dumps({**document, **OPTIONS, "network": network})
    (environments / f"{options.environment}.yaml").write_text(written, encoding="utf-8")
    planned = planned_in(folder, replace(options, environments=environments), around)
    context: dict[str, str | Path] = {"environment": options.environment, "environments": environments}
    context["endpoints"] = folder / "endpoints"
    with chdir(ROOT):
        assembly = synthesize(folder / "assembly", context)
    names = ("chat", "trials")
    files = {name: assembly / f"seatrial-{options.environment}-{name}.template.json" for name in names}
    templates = {name: json.loads(file.read_text(encoding="utf-8")) for name, file in files.items()}
    caller = str(clients("sts").get_caller_identity()["Arn"])
    return Place(options.environment, clients, caller, network, planned, templates, folder, is_over)


def default_network(clients: Clients) -> dict[str, list[str]]:
    """Return two subnets and the security group of the default VPC; nothing where there is none."""
    ec2 = clients("ec2")
    for vpc in ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"]:
        of = [{"Name": "vpc-id", "Values": [vpc["VpcId"]]}]
        groups = ec2.describe_security_groups(Filters=[*of, {"Name": "group-name", "Values": ["default"]}])
        subnets = [each["SubnetId"] for each in ec2.describe_subnets(Filters=of)["Subnets"]]
        return {"subnet_ids": subnets[:2], "security_group_ids": [groups["SecurityGroups"][0]["GroupId"]]}
    return {}
