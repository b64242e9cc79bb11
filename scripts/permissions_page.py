"""What each role and resource policy may do, and why: the tables of `docs/reference/permissions.md`.

The statements are those of synthesized templates; the reasons stand here. A statement without a reason is refused, and
so is a reason that no statement needs.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pydantic import JsonValue

Template = dict[str, dict[str, dict[str, "JsonValue"]]]

INSTANCES, CONTAINERS = "Instances of an endpoint", "Containers of a model"
FUNCTION, WORKFLOW = "Function of the trial service", "Workflow of the trial service"
SCHEDULES = "Role of the scheduled trials"
CHATS = "Channels of AWS Chatbot"
HOOK = "Role of the hook that judges by guard rails"
DEPLOY, READ = "Deploy role of the workflows", "Read role of the workflows"
LAUNCH, BOUNDARY = "Launch role of products", "Most that a role of a product may do"
RESULTS, KEY, TOPIC = "Bucket of the results", "Key of the results", "Topic of the alarms"
JOBS, JOBS_WORKFLOW = "Function of the optimization jobs", "Workflow of the optimization jobs"
JOB, PASSED = "Role of an optimization job", "Function of the optimization jobs, for each job"
BEGINNINGS: Mapping[str, str] = {
    "SageMaker instances of": INSTANCES,
    "SageMaker containers of": CONTAINERS,
    "Trials of the endpoints of": FUNCTION,
    "Workflow of": WORKFLOW,
    "Schedules of trials of": SCHEDULES,
    "Channels of AWS Chatbot of": CHATS,
    "Reads the guard rails of": HOOK,
    "Deploys the endpoints of": DEPLOY,
    "Reads the endpoints and trials of": READ,
    "Makes the resources of products": LAUNCH,
    "Optimization jobs of": JOBS,
    "Optimization workflow of": JOBS_WORKFLOW,
    "Optimization job ": JOB,
    "The most that a role of a product": BOUNDARY,
}
"""How the description of a role or managed policy begins, and what it is called."""
BY_TYPE: Mapping[str, str] = {
    "AWS::S3::BucketPolicy": RESULTS,
    "AWS::KMS::Key": KEY,
    "AWS::SNS::TopicPolicy": TOPIC,
    "AWS::IAM::Policy": PASSED,
}
"""What a policy of a resource is called, by the resource's type."""
WRITES_LOGS = "Containers write their logs; the groups of this endpoint only."
READS_ALARMS = "SageMaker reads the alarms that roll an update back; those of this endpoint only."
WRITES_METRICS = "The service writes metrics of copies and accelerators; into its own namespaces only."
DESCRIBES_NETWORK = "These actions have no resource level; joining a network and pulling an image ask for them."
READS: Mapping[str, str] = {
    "cloudformation:DescribeStackEvents": "How a deployment ended; outputs name the deployed plan and the last trial.",
    "sagemaker:DescribeEndpoint": (
        "Drift and `seatrial deploy` compare what is live with the lock; CloudFormation names configurations."
    ),
    "sagemaker:ListTags": "A tag has the digest of what a model's container reads; no model is described.",
    "s3:GetObject": "Promotion, drift and `seatrial deploy` read results, `seatrial audit` every version of records.",
    "s3:ListBucket": "Without it, a missing result reads as a forbidden one.",
    "kms:Decrypt": "The results are encrypted with a key that the trial service makes; only S3 may use it.",
    "lambda:GetAccountSettings": "These actions have no resource level; they only read.",
}
"""What both roles of the workflows read, by the first action of a statement."""
REASONS: Mapping[tuple[str, str], str] = {
    (DEPLOY, "sts:AssumeRole"): "The CDK CLI uploads assets and calls CloudFormation as these roles of its bootstrap.",
    (SCHEDULES, "lambda:InvokeFunction"): "EventBridge Scheduler asks the trial service for a trial.",
    (HOOK, "s3:GetObject"): "CloudFormation reads the rules, and nothing else there.",
    (HOOK, "kms:Decrypt"): "The bucket of the rules may have a key of its own; by way of S3 alone.",
    (HOOK, "s3:ListBucket"): "A Guard hook asks for it (AWS CloudFormation Hooks User Guide, execution role).",
    **{(role, action): reason for role in (DEPLOY, READ) for action, reason in READS.items()},
    (INSTANCES, "logs:CreateLogGroup"): WRITES_LOGS,
    (CONTAINERS, "logs:CreateLogGroup"): WRITES_LOGS,
    (INSTANCES, "cloudwatch:PutMetricData"): WRITES_METRICS,
    (CONTAINERS, "cloudwatch:PutMetricData"): WRITES_METRICS,
    (INSTANCES, "cloudwatch:DescribeAlarms"): READS_ALARMS,
    (CONTAINERS, "cloudwatch:DescribeAlarms"): READS_ALARMS,
    (INSTANCES, "ec2:CreateNetworkInterface"): "Instances join the subnets and security groups of the environment.",
    (CONTAINERS, "ec2:CreateNetworkInterface"): "Containers join the subnets and security groups of the environment.",
    (INSTANCES, "ec2:CreateNetworkInterfacePermission"): "SageMaker attaches the interfaces and removes them.",
    (CONTAINERS, "ec2:CreateNetworkInterfacePermission"): "SageMaker attaches the interfaces and removes them.",
    (INSTANCES, "ec2:DescribeDhcpOptions"): DESCRIBES_NETWORK,
    (CONTAINERS, "ec2:DescribeDhcpOptions"): DESCRIBES_NETWORK,
    (CONTAINERS, "ecr:GetAuthorizationToken"): "The token is the registry's; it names no repository.",
    (CONTAINERS, "ecr:BatchCheckLayerAvailability"): "SageMaker pulls the image of the model.",
    (CONTAINERS, "s3:GetObject"): "SageMaker reads the serving configuration, or the weights below their prefix.",
    (CONTAINERS, "s3:ListBucket"): "A prefix is listed before it is read; the condition names it.",
    (CONTAINERS, "kms:Decrypt"): "The weights may be encrypted with the key of the environment.",
    (FUNCTION, "logs:CreateLogStream"): "The function writes its log.",
    (FUNCTION, "sagemaker:DescribeEndpoint"): "A trial proves what is live; what is absent or new has no tag.",
    (FUNCTION, "sagemaker:DescribeInferenceComponent"): (
        "A trial proves what is live; what is absent or new has no tag."
    ),
    (FUNCTION, "sagemaker:InvokeEndpoint"): "A trial sends requests, and wakes a copy.",
    (FUNCTION, "sagemaker:CreateInferenceComponent"): "A candidate component is created beside the one that serves.",
    (FUNCTION, "sagemaker:AddTags"): "A candidate is created with its tags, which nothing gets later.",
    (FUNCTION, "sagemaker:ListTags"): "What the trial service made is told by its tags before it is deleted.",
    (FUNCTION, "sagemaker:DeleteInferenceComponent"): (
        "A candidate is deleted after its trial: by the owner's tag, or, of an older release, where it has no owner."
    ),
    (
        FUNCTION,
        "application-autoscaling:DescribeScalableTargets",
    ): "These actions have no resource level; they only read, and trials take the path of OpenAI clients.",
    (FUNCTION, "application-autoscaling:RegisterScalableTarget"): "Scale-in is suspended while a trial measures.",
    (FUNCTION, "s3:GetObject"): "Results, shares of the load and the last passed trial are read and written.",
    (FUNCTION, "s3:PutObject"): "With `audit`, a record of what serves is written; none is read or deleted.",
    (FUNCTION, "s3:DeleteObject"): "What a trial or an endpoint leaves is cleared; `trials/` is not.",
    (FUNCTION, "s3:ListBucket"): "Without it, a missing object reads as a forbidden one.",
    (FUNCTION, "kms:Decrypt"): "The results are encrypted.",
    (FUNCTION, "states:ListExecutions"): "A trial is an execution of the workflow of the environment.",
    (FUNCTION, "states:DescribeExecution"): "A cancelled deployment stops its trial; a dead one is found.",
    (FUNCTION, "cloudformation:DescribeStacks"): "The state of a deployment tells whether a trial is still asked for.",
    (FUNCTION, "events:PutEvents"): "A finished trial is an event; source and type are fixed.",
    (FUNCTION, "cloudwatch:DescribeAlarms"): "A trial of what serves users stops when an alarm is raised.",
    (FUNCTION, "sns:Publish"): "Findings of scheduled trials go to the topics of the alarms.",
    (FUNCTION, "logs:DeleteLogGroup"): "Log groups of candidates are deleted, and those of endpoints expire.",
    (FUNCTION, "ssm:GetParameter"): "The alias of an endpoint tells which generation clients use.",
    (FUNCTION, "ec2:CreateNetworkInterface"): "The function joins the network of the environment.",
    (
        FUNCTION,
        "ec2:AssignPrivateIpAddresses",
    ): "Lambda manages the interfaces of the function with its role; the code of the function is denied it.",
    (WORKFLOW, "lambda:InvokeFunction"): "Each step of a trial is a call of the function.",
    (RESULTS, "s3:*"): "Connections without TLS are refused.",
    (RESULTS, "s3:DeleteObject*"): "With `removal: destroy`, the results are deleted with the stack.",
    (RESULTS, "s3:PutObject"): "With `audit`, the function of trials alone writes records.",
    (RESULTS, "s3:DeleteObject"): "With `audit`, no record is hidden by a marker; Object Lock keeps each version.",
    (KEY, "kms:*"): "IAM of the account decides who uses the key (default policy of AWS KMS).",
    (
        KEY,
        "kms:CancelKeyDeletion",
    ): "IAM of the account decides who administers the key that signs results, not who signs.",
    (KEY, "kms:Sign"): "The function of trials alone signs results, by this policy: no policy of a role can allow it.",
    (KEY, "kms:Decrypt"): "CloudWatch publishes alarms to the encrypted topics, and AWS Budgets where there is one.",
    (
        CHATS,
        "cloudwatch:DescribeAlarms",
    ): "A channel shows the alarm that it is notified of; its guardrail reads alone.",
    (CHATS, "cloudwatch:GetMetricData"): "A channel shows the graph of an alarm.",
    (
        TOPIC,
        "sns:Publish",
    ): "Alarms of the account publish, and AWS Budgets where there is one; connections without TLS are refused.",
    (JOBS, "logs:CreateLogStream"): "The function writes its log.",
    (JOBS, "sagemaker:CreateOptimizationJob"): "Jobs are created with the tag of the environment.",
    (JOBS, "sagemaker:AddTags"): "Jobs are created with the tag of the environment.",
    (JOBS, "sagemaker:DescribeOptimizationJob"): "Jobs are followed.",
    (JOBS, "sagemaker:StopOptimizationJob"): "Jobs of the environment are stopped on deletion, by their tag.",
    (JOBS, "ssm:GetParameter"): "A parameter tells where each job stands; another keeps what was asked for.",
    (JOBS, "s3:ListBucket"): "A completed job counts while its artifacts are there.",
    (JOBS, "states:ListExecutions"): "Each attempt of a job is an execution of the workflow.",
    (JOBS, "states:StopExecution"): "A job whose resource is deleted is followed no more.",
    (PASSED, "iam:PassRole"): "The role of the job is passed to SageMaker alone.",
    (JOBS_WORKFLOW, "lambda:InvokeFunction"): "Each look at a job is a call of the function.",
    (JOB, "s3:GetObject"): "The job reads the model and its training data.",
    (JOB, "s3:ListBucket"): "A prefix is listed before it is read or written; the condition names it.",
    (JOB, "s3:AbortMultipartUpload"): "The job writes below the prefix of its own content.",
    (JOB, "kms:Decrypt"): "Artifacts are encrypted, and the model may be.",
    (JOB, "ecr:BatchCheckLayerAvailability"): "SageMaker pulls the image that quantizes or compiles.",
    (JOB, "logs:CreateLogGroup"): "The job writes its log.",
    (JOB, "cloudwatch:PutMetricData"): "The job writes its metrics; into its own namespace only.",
    (JOB, "ec2:CreateNetworkInterface"): "The job joins the subnets and security groups of the environment.",
    (JOB, "ec2:CreateNetworkInterfacePermission"): "SageMaker attaches the interfaces and removes them.",
    (JOB, "ec2:DescribeDhcpOptions"): DESCRIBES_NETWORK,
    (LAUNCH, "cloudformation:CreateStack"): "Service Catalog makes a stack of its own for what is launched.",
    (LAUNCH, "s3:GetObject"): "Service Catalog keeps its copy of the template in a bucket of unknown name.",
    (LAUNCH, "iam:CreateRole"): "A product has roles of its own, each with the permissions boundary.",
    (LAUNCH, "iam:DeleteRole"): "Roles are tagged, updated and deleted with their product.",
    (LAUNCH, "iam:PassRole"): "The roles are passed to SageMaker alone.",
    (LAUNCH, "iam:CreateServiceLinkedRole"): "The first scaling policy of an account needs the role of the service.",
    (LAUNCH, "sagemaker:CreateInferenceComponent"): "A product has a component, with the environment's tag.",
    (LAUNCH, "sagemaker:CreateEndpoint"): "A product has an endpoint, with the environment's tag.",
    (LAUNCH, "sagemaker:AddTags"): "Resources are created with tags, then read, updated and deleted.",
    (LAUNCH, "sagemaker:UpdateEndpoint"): "An update is on the new configuration too, whose tags may come late.",
    (LAUNCH, "application-autoscaling:DeleteScalingPolicy"): "The copies of a product are scaled.",
    (LAUNCH, "application-autoscaling:DescribeScalableTargets"): (
        "These actions have no resource level; they read, and one ends the subscription of a former address."
    ),
    (LAUNCH, "application-autoscaling:ListTagsForResource"): "The tags of a target are read; names tell no secret.",
    (LAUNCH, "application-autoscaling:TagResource"): "Targets have the environment's tag, and keep it.",
    (LAUNCH, "kms:CreateGrant"): "SageMaker makes a grant on the key for the disks of instances.",
    (LAUNCH, "kms:DescribeKey"): "A configuration with a key looks it up.",
    (LAUNCH, "kms:Decrypt"): "Secrets may be encrypted with the key of the environment.",
    (LAUNCH, "secretsmanager:GetSecretValue"): (
        "CloudFormation reads the secrets that published templates name, with this role."
    ),
    (LAUNCH, "cloudwatch:DeleteAlarms"): "A product has alarms, and target tracking makes its own.",
    (LAUNCH, "cloudwatch:DeleteDashboards"): "An endpoint has a dashboard where the environment has them.",
    (
        LAUNCH,
        "cloudwatch:TagResource",
    ): "Dashboards have tags, and no resource level for them; never of another environment.",
    (LAUNCH, "cloudwatch:UntagResource"): "Tags of a dashboard are removed; those of Seatrial stay.",
    (LAUNCH, "scheduler:CreateSchedule"): "An endpoint is tried on the environment's schedule.",
    (LAUNCH, "sns:CreateTopic"): "A team may give an e-mail address for alarms.",
    (LAUNCH, "ssm:AddTagsToResource"): "The alias of the endpoint is a parameter.",
    (LAUNCH, "lambda:InvokeFunction"): "The trial service tries what is launched.",
    (BOUNDARY, "ecr:BatchCheckLayerAvailability"): "SageMaker pulls images; each role names its repository.",
    (BOUNDARY, "logs:CreateLogGroup"): "Containers write their logs; in groups of this environment only.",
    (BOUNDARY, "cloudwatch:PutMetricData"): WRITES_METRICS,
    (
        BOUNDARY,
        "cloudwatch:DescribeAlarms",
    ): "SageMaker reads the alarms that roll an update back; of this environment only.",
    (BOUNDARY, "s3:GetObject"): "The weights of published versions are read.",
    (BOUNDARY, "s3:ListBucket"): "A prefix is listed before it is read; each role names it.",
    (BOUNDARY, "kms:Decrypt"): "The weights may be encrypted with the key of the environment.",
    (BOUNDARY, "ec2:CreateNetworkInterface"): "Instances and containers join the network of the environment.",
    (BOUNDARY, "ec2:CreateNetworkInterfacePermission"): "SageMaker attaches the interfaces and removes them.",
    (BOUNDARY, "ec2:DescribeDhcpOptions"): DESCRIBES_NETWORK,
}
"""Why a statement is there, by the role and the first of its actions in alphabetical order."""


@dataclass(frozen=True, slots=True)
class Permission:
    """One statement of a role or of a resource's policy.

    Attributes:
        holder: Whose it is.
        effect: Allow or Deny.
        actions: Its actions, sorted.
        resources: Its resources; account, region and names of the example as placeholders.
        conditions: The keys of its conditions, sorted.
    """

    holder: str
    effect: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: tuple[str, ...]

    @property
    def reason_key(self) -> tuple[str, str]:
        """What its reason is found by."""
        return self.holder, self.actions[0]


def permissions(templates: Iterable[Template]) -> tuple[Permission, ...]:
    """Return every statement of some templates once, by holder and actions.

    Raises:
        ValueError: A role or policy that has no name here.
    """
    found = {one for template in templates for one in _of_template(template)}
    order = [*dict.fromkeys(holder for holder, _ in REASONS)]
    return tuple(sorted(found, key=lambda one: (order.index(one.holder), one.actions, one.resources, one.effect)))


def permissions_text(found: Iterable[Permission]) -> str:
    """Return one table for each role or policy.

    Raises:
        ValueError: A statement without a reason, or a reason without a statement; each is named.
    """
    rows = tuple(found)
    used = {one.reason_key for one in rows}
    wrong = [f"no reason for {key}" for key in sorted(used - REASONS.keys())]
    wrong += [f"no statement for the reason of {key}" for key in sorted(REASONS.keys() - used)]
    if wrong:
        raise ValueError("; ".join(wrong))
    return "\n".join(_table(holder, rows) for holder in dict.fromkeys(one.holder for one in rows))


def _table(holder: str, rows: Iterable[Permission]) -> str:
    lines = [f"## {holder}", "", "| may | on | if | why |", "|---|---|---|---|"]
    for one in rows:
        if one.holder == holder:
            actions = _joined(one.actions)
            effect = "not: " if one.effect == "Deny" else ""
            cells = (f"{effect}{actions}", _joined(one.resources), _joined(one.conditions), REASONS[one.reason_key])
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _joined(texts: Iterable[str]) -> str:
    return ", ".join(f"`{text}`" for text in texts)


def _of_template(template: Template) -> Iterator[Permission]:
    for name, resource in template["Resources"].items():
        properties = resource.get("Properties")
        if not isinstance(properties, dict):
            continue
        statements = [*_statements(properties)]
        if statements:
            holder = _holder(name, f"{resource['Type']}", properties)
            yield from (_permission(holder, one) for one in statements)


def _holder(name: str, resource_type: str, properties: Mapping[str, JsonValue]) -> str:
    description = properties.get("Description")
    known = BY_TYPE.get(resource_type) or next(
        (title for beginning, title in BEGINNINGS.items() if _resolved(description).startswith(beginning)), None
    )
    if known is None:
        message = f"{name} ({resource_type}) has no name: add it to BEGINNINGS or BY_TYPE"
        raise ValueError(message)
    return known


def _statements(properties: Mapping[str, JsonValue]) -> Iterator[dict[str, JsonValue]]:
    inline = properties.get("Policies")
    documents = (
        [one.get("PolicyDocument") for one in inline if isinstance(one, dict)] if isinstance(inline, list) else []
    )
    documents += [properties.get("PolicyDocument"), properties.get("KeyPolicy")]
    for document in documents:
        rows = document.get("Statement") if isinstance(document, dict) else None
        yield from (row for row in (rows if isinstance(rows, list) else ()) if isinstance(row, dict))


def _permission(holder: str, statement: Mapping[str, JsonValue]) -> Permission:
    conditions = statement.get("Condition")
    keys = {
        key
        for tests in (conditions.values() if isinstance(conditions, dict) else ())
        for key in (tests if isinstance(tests, dict) else {})
    }
    return Permission(
        holder,
        f"{statement['Effect']}",
        tuple(sorted(map(_shown, _listed(statement["Action"])))),
        tuple(sorted({_shown(one) for one in _listed(statement.get("Resource"))})),
        tuple(sorted(keys)),
    )


def _listed(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else [] if value is None else [value]


_PLACEHOLDERS = (
    (re.compile(r"\b(us-east-1|eu-west-1)\b"), "REGION"),
    (re.compile(r"\b123456789012\b"), "ACCOUNT"),
    (re.compile(r"\b(dev|prod|lab)\b"), "ENV"),
    (re.compile(r"[0-9a-f]{64}"), "HASH"),
    (re.compile(r"\b[0-9a-f]{16}\b"), "DIGEST"),
    (re.compile(r"\bJob[0-9A-F]{16}"), "JobDIGEST"),
    (re.compile(r"\bENV-chat\b"), "ENV-NAME"),
    (re.compile(r"\b(subnet|sg)-0a1b2c3d\b"), r"\1-ID"),
    (re.compile(r"11111111-2222-3333-4444-555555555555"), "ID"),
)
"""What of the example is shown as a name of its kind."""


def _shown(value: JsonValue) -> str:
    """Write an ARN as a text, with references as their names in capital letters or braces."""
    text = value if isinstance(value, str) else _resolved(value)
    for pattern, name in _PLACEHOLDERS:
        text = pattern.sub(name, text)
    return text


def _resolved(value: JsonValue) -> str:
    match value:
        case str(text):
            return text
        case {"Ref": str(name)}:
            return _reference(name)
        case {"Fn::GetAtt": [str(name), str(_)]}:
            return _reference(name)
        case {"Fn::Sub": str(text)}:
            return re.sub(r"\$\{([^}]+)\}", lambda found: _reference(found[1]), text)
        case {"Fn::Join": [str(separator), list(parts)]}:
            return separator.join(_resolved(part) for part in parts)
    return json.dumps(value, sort_keys=True)


def _reference(name: str) -> str:
    if name.startswith("AWS::"):
        return {"AWS::AccountId": "ACCOUNT", "AWS::Region": "REGION", "AWS::Partition": "aws"}.get(name, name)
    return "{" + re.sub(r"[0-9A-F]{8}$", "", name) + "}"
