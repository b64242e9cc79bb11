"""Rights of roles: what an execution role must allow, when it has it, and statements too small for their action.

A right that some statement may allow counts as allowed: conditions, denials and what only the deployment knows refuse
nothing here. A role with a policy outside the templates is not judged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from seatrial_base.catalog import images
from seatrial_base.catalog.hosting_kinds import hosting_texts
from seatrial_base.catalog.service_authorization import action_facts, matching_actions, patterns_overlap
from seatrial_lint.cloudformation.template import begins_unknown
from seatrial_lint.template_rules.hosting import (
    ALARMS,
    COMPONENT,
    CONFIG,
    ENDPOINT,
    MODEL,
    containers_of,
    finding_at,
    for_components,
    listed_names,
    rule,
    specifications,
)
from seatrial_lint.template_rules.policy_documents import ARN_FORMS, ROLE, arn_pattern, several

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seatrial_base.catalog.service_authorization import ResourceType
    from seatrial_base.findings import Finding
    from seatrial_lint.cloudformation.template import TemplateResource, TemplateValue
    from seatrial_lint.template_rules.hosting import Hosting
    from seatrial_lint.template_rules.policy_documents import PolicyDocument, PolicyStatement

SAGEMAKER = "sagemaker.amazonaws.com"
ENCRYPTED: Mapping[str, str] = {"s3:GetObject": "kms:Decrypt", "s3:PutObject": "kms:GenerateDataKey"}
"""What S3 does with the caller's rights on an object under a key (S3 user guide, SSE-KMS)."""
_IMAGE = re.compile(
    r"(?P<account>[^./]+)\.dkr\.ecr\.(?P<region>[^/]+?)\.(?:amazonaws\.com(?:\.cn)?|\*)/(?P<name>[^:@]+)"
)
_ARN_NAME = re.compile(r"arn:[^:]*:sagemaker:[^:]*:[^:]*:(endpoint|endpoint-config|model)/(.*)")
_PLACEHOLDER = re.compile(r"\$\{[^}]*\}")
_HOSTED = frozenset({"endpoint", "endpoint-config", "inference-component", "model"})
DESCRIBE_ALARMS = "cloudwatch:DescribeAlarms"
DELETING = "sagemaker:DeleteEndpoint"
COMPANIONS = (
    (DELETING, "application-autoscaling:DeregisterScalableTarget", "a scaled endpoint is not deleted"),
    ("sagemaker:CreateModel", "iam:PassRole", "a model with an execution role is not made"),
)
"""Each action, what its call needs beside it, and what happens without."""


@dataclass(frozen=True, slots=True)
class NeededRight:
    """What a role needs for one value of a resource.

    Attributes:
        place: Where the value is that asks for it.
        what: What the value is, for users.
        actions: The actions, each of which must be allowed.
        arns: Patterns of its ARNs, of which any may be the right one; `*` where the action has no resource level.
        has_generated_name: CloudFormation makes the name, so a pattern of the statement may be of it.
        is_of_aws: It is in an account of AWS, which `AWS::AccountId` never is.
        is_optional: The model serves without it.
    """

    place: TemplateValue
    what: str
    actions: tuple[str, ...]
    arns: tuple[str, ...]
    has_generated_name: bool = False
    is_of_aws: bool = False
    is_optional: bool = False


def _arns(hosting: Hosting, written: str, form: str) -> tuple[tuple[str, ...], bool]:
    """Return the ARNs of a text that names a resource, and whether CloudFormation makes its name.

    `form`: an ARN with `{}` for what the text says, where that is no ARN and refers to no resource of the templates.
    """
    if leading := hosting.resources.leading(written):
        resource, rest = leading
        named = ARN_FORMS.get(resource.resource_type)
        if named is None:
            return ("*",), False
        name = next((resource.at(key) for key in _NAME_PROPERTIES if not resource.at(key).is_absent), None)
        below = "" if rest.startswith(":") else _PLACEHOLDER.sub("*", hosting.resources.readable(rest))
        names = (resource.logical_id, *(() if name is None else (name.text or "*",)))
        return tuple(named.format(each) + below for each in names), name is None
    text = _PLACEHOLDER.sub("*", hosting.resources.readable(written))
    return ((text if text.startswith("arn:") or text == "*" else form.format(text)),), False


_NAME_PROPERTIES = ("AlarmName", "BucketName", "RepositoryName", "TopicName")


def _on_bucket(
    hosting: Hosting, template: str, value: TemplateValue, what: str, *actions: str
) -> Iterator[NeededRight]:
    """Yield the rights to the objects of an S3 URI, to its bucket, and to the key of a bucket of the templates."""
    written = hosting.resources.written(template, value) or ""
    if not written.startswith("s3://"):
        return
    path = written.removeprefix("s3://")
    bucket = path.partition("/")[0]
    for action in actions:
        is_of_bucket = action == "s3:ListBucket"
        text = bucket if is_of_bucket else path if path.endswith(".tar.gz") else f"{path.removesuffix('*')}*"
        arns, is_generated = _arns(hosting, text, "arn:*:s3:::{}")
        yield NeededRight(value, what, (action,), arns, is_generated)
    leading = hosting.resources.leading(bucket)
    rules = leading[0].at("BucketEncryption", "ServerSideEncryptionConfiguration").items if leading else ()
    for key in (each.at("ServerSideEncryptionByDefault", "KMSMasterKeyID") for each in rules):
        for needed in filter(None, map(ENCRYPTED.get, actions)):
            if leading:
                yield from _on_key(hosting, leading[0], key, NeededRight(value, f"the key of {what}", (needed,), ()))


def _on_key(hosting: Hosting, owner: TemplateResource, key: TemplateValue, right: NeededRight) -> Iterator[NeededRight]:
    """Yield a right with the ARN of a key; of an alias it is not known."""
    written = hosting.resources.written(owner.template, key)
    if written and not written.startswith("alias/"):
        yield replace(right, arns=_arns(hosting, written, "arn:*:kms:*:*:key/{}")[0])


def _rights(what: str) -> tuple[str, ...]:
    return tuple(hosting_texts("rights")[what].split())


def _of_model(hosting: Hosting, model: TemplateResource) -> Iterator[NeededRight]:
    """Yield what a model needs: its images, its weights, its network, its logs."""
    for container in containers_of(model):
        yield from _of_image(hosting, model.template, container.at("Image"))
        sources = (container.at("ModelDataSource"), *container.at("AdditionalModelDataSources").items)
        given = [each.at("S3DataSource") for each in sources]
        prefixes = [each.at("S3Uri") for each in given if each.at("S3DataType").text == "S3Prefix"]
        prefixes += [
            value
            for name, value in container.at("Environment").fields.items()
            if name in {"HF_MODEL_ID", "OPTION_MODEL_ID"}
        ]
        objects = [each.at("S3Uri") for each in given if each.at("S3DataType").text != "S3Prefix"]
        for value in (container.at("ModelDataUrl"), *objects):
            yield from _on_bucket(hosting, model.template, value, "the weights", "s3:GetObject")
        for value in prefixes:
            yield from _on_bucket(hosting, model.template, value, "the weights", "s3:GetObject", "s3:ListBucket")
    if model.at("VpcConfig").is_known:
        yield NeededRight(model.at("VpcConfig"), "the network interfaces", _rights("network"), ("*",))
    groups = ("arn:*:logs:*:*:log-group:/aws/sagemaker/*",)
    yield NeededRight(
        model.at("ExecutionRoleArn"), "the logs of its containers", _rights("logs"), groups, is_optional=True
    )


def _of_image(hosting: Hosting, template: str, image: TemplateValue) -> Iterator[NeededRight]:
    written = hosting.resources.written(template, image) or ""
    leading = hosting.resources.leading(written)
    match = _IMAGE.match(_PLACEHOLDER.sub("*", hosting.resources.readable(written)))
    if leading and leading[0].resource_type == "AWS::ECR::Repository":
        arns, is_generated = _arns(hosting, written, "")
        yield NeededRight(image, "the image", _rights("image"), arns, is_generated)
    elif match:
        arn = f"arn:*:ecr:{match['region']}:{match['account']}:repository/{match['name']}"
        is_of_aws = (images.registry(match["region"]) or "").startswith(f"{match['account']}.")
        yield NeededRight(image, "the image", _rights("image"), (arn,), is_of_aws=is_of_aws)
    else:
        return
    yield NeededRight(image, "the image", ("ecr:GetAuthorizationToken",), ("*",))


def _of_config(hosting: Hosting, config: TemplateResource) -> Iterator[NeededRight]:
    """Yield what an endpoint configuration needs: asynchronous output, its topics, captured data."""
    template, output = config.template, config.at("AsyncInferenceConfig", "OutputConfig")
    written = [(output.at(name), output, "the answers") for name in ("S3OutputPath", "S3FailurePath")]
    capture = config.at("DataCaptureConfig")
    if capture.at("EnableCapture").flag is not False:
        written.append((capture.at("DestinationS3Uri"), capture, "the captured data"))
    for value, given, what in (each for each in written if each[1].is_known):
        yield from _on_bucket(hosting, template, value, what, "s3:PutObject")
        key = given.at("KmsKeyId")
        if not value.is_absent:
            right = NeededRight(key, f"the key of {what}", ("kms:GenerateDataKey",), ())
            yield from _on_key(hosting, config, key, right)
    topics = output.at("NotificationConfig")
    for topic in (topics.at(name) for name in ("SuccessTopic", "ErrorTopic") if topics.is_known):
        if text := hosting.resources.written(template, topic):
            arns, is_generated = _arns(hosting, text, "*")
            yield NeededRight(topic, "the notifications", ("sns:Publish",), arns, is_generated)


def _role_of(hosting: Hosting, user: TemplateResource) -> TemplateResource | None:
    role = hosting.resources.referred(user.template, user.at("ExecutionRoleArn"))
    return role if role and role.resource_type == ROLE else None


@rule("SEA789")
def trust(hosting: Hosting) -> Iterator[Finding]:
    """An execution role that SageMaker may not assume."""
    for user in (*hosting.resources.of(MODEL), *hosting.resources.of(CONFIG)):
        role = _role_of(hosting, user)
        document = role.at("AssumeRolePolicyDocument") if role else None
        statements = several(document.at("Statement")) if document and document.is_known else ()
        if role is None or not statements or any(_may_be_assumed(hosting, role, each) for each in statements):
            continue
        services = [each.text or "" for one in statements for each in several(one.at("Principal", "Service"))]
        message = f"{role.logical_id} trusts {listed_names(services) or 'no service'}, not {SAGEMAKER}"
        hint = f"allow sts:AssumeRole to the service {SAGEMAKER} in AssumeRolePolicyDocument of {role.logical_id}"
        yield finding_at(user, user.at("ExecutionRoleArn"), "SEA789", message, hint)


def _may_be_assumed(hosting: Hosting, role: TemplateResource, statement: TemplateValue) -> bool:
    principal = statement.at("Principal")
    if not statement.is_known or (not principal.is_known and not principal.is_absent):
        return True
    if statement.at("Effect").text == "Deny" or not _names(several(statement.at("Action")), "sts:AssumeRole"):
        return False
    given = several(principal.at("Service")) if isinstance(principal.raw, dict) else (principal,)
    written = [hosting.resources.written(role.template, each) for each in given]
    return any(text is None or text == "*" or text.startswith("sagemaker.") or begins_unknown(text) for text in written)


@rule("SEA790", "SEA791")
def execution_rights(hosting: Hosting) -> Iterator[Finding]:
    """What an execution role does not allow, or allows by a policy that may be younger than who uses it."""
    for model in hosting.resources.of(MODEL):
        yield from _judged(hosting, model, [_role_of(hosting, model)], _of_model(hosting, model))
    for config in hosting.resources.of(CONFIG):
        yield from _judged(hosting, config, _roles_of(hosting, config, config), _of_config(hosting, config))


def _roles_of(
    hosting: Hosting, user: TemplateResource, config: TemplateResource | None
) -> list[TemplateResource | None]:
    """Return the execution roles of a configuration and of the models of its variants, or of a component's."""
    variants = [each for each in config.at("ProductionVariants").items if not for_components(each)] if config else []
    using = specifications(user) if user.resource_type == COMPONENT else variants
    names = [each.at("ModelName") for each in using]
    models = [hosting.model_of(user.template, name) for name in names if not name.is_absent or using is variants]
    users = [each for each in (config, *models) if each and not each.at("ExecutionRoleArn").is_absent]
    unknown: list[TemplateResource | None] = [None] * models.count(None)
    return [_role_of(hosting, each) for each in users] + unknown


def _granted(
    hosting: Hosting, user: TemplateResource, roles: list[TemplateResource], comparisons: int
) -> tuple[list[PolicyDocument], list[PolicyStatement]] | None:
    """Return the policies of roles, and the statements for them of other resources; `None` where one is not known."""
    of_roles = [hosting.role_policies(role) for role in roles]
    policies = [each for some in of_roles for each in some or ()]
    size = sum(len(each.statements) for each in policies) * comparisons + len(hosting.statements)
    if None in of_roles or not hosting.resources.takes(size, of=user.template):
        return None
    shared = [each for each in hosting.statements if each.policy.kind == "resource" and _is_for(hosting, each, roles)]
    return policies, shared


def _judged(
    hosting: Hosting,
    user: TemplateResource,
    roles: list[TemplateResource | None],
    rights: Iterable[NeededRight],
) -> Iterator[Finding]:
    known, needed = [role for role in roles if role], tuple(rights)
    granted = _granted(hosting, user, known, sum(len(each.actions) for each in needed))
    if not known or None in roles or granted is None:
        return
    policies, shared = granted
    statements, names = [*_all(policies), *shared], _named(known)
    for right in needed:
        if lacking := [each for each in right.actions if not _allowed(hosting, statements, right, each)]:
            message = f"{names} may not {', '.join(lacking)} on {right.arns[-1]}: {right.what} of {user.logical_id}"
            hint = f"allow {listed_names(lacking)} on it in a policy of {names}"
            finding = finding_at(user, right.place, "SEA790", message, hint)
            yield replace(finding, severity="warning") if right.is_optional else finding
    # A configuration is used by its endpoint, minutes later.
    if user.resource_type == MODEL:
        early = [*_all(each for each in policies if _is_earlier(hosting, user, known, each)), *shared]
        if late := _younger_policies(hosting, policies, early, needed):
            named = listed_names(late)
            message = f"{user.logical_id} does not wait for {named}, with which {names} reads image and weights"
            yield finding_at(user, user.at("ExecutionRoleArn"), "SEA791", message, f"set DependsOn: {named}")


def _named(roles: list[TemplateResource]) -> str:
    return " and ".join(dict.fromkeys(role.logical_id for role in roles))


@rule("SEA786")
def rollback_rights(hosting: Hosting) -> Iterator[Finding]:
    """Alarms of an automatic rollback that no execution role may describe."""
    for resource in (*hosting.resources.of(ENDPOINT), *hosting.resources.of(COMPONENT)):
        value = resource.at("DeploymentConfig", "AutoRollbackConfiguration", "Alarms")
        is_component = resource.resource_type == COMPONENT
        config = hosting.config_of(hosting.endpoint_of(resource) if is_component else resource)
        roles = _roles_of(hosting, resource, config) if config and value.items else []
        known = [role for role in roles if role]
        granted = _granted(hosting, resource, known, len(value.items)) if known and None not in roles else None
        lacking: list[str] = []
        for alarm in (each.at("AlarmName") for each in value.items if granted):
            written = hosting.resources.written(resource.template, alarm) or "*"
            arns, is_generated = _arns(hosting, written, ARN_FORMS[ALARMS[0]])
            right = NeededRight(alarm, "", (DESCRIBE_ALARMS,), arns, is_generated)
            statements = [*_all(granted[0]), *granted[1]] if granted else []
            if not _allowed(hosting, statements, right, DESCRIBE_ALARMS):
                lacking.append(hosting.resources.readable(written))
        if lacking:
            message = f"{_named(known)} may not describe the alarms of the rollback: {', '.join(lacking)}"
            yield finding_at(resource, value, "SEA786", message, f"allow {DESCRIBE_ALARMS} on their ARNs")


def _younger_policies(
    hosting: Hosting, policies: list[PolicyDocument], early: list[PolicyStatement], needed: tuple[NeededRight, ...]
) -> list[str]:
    """Return the logical IDs of the policies that alone allow what no early statement does."""
    rights = [(right, action) for right in needed if not right.is_optional for action in right.actions]
    late = [(right, action) for right, action in rights if not _allowed(hosting, early, right, action)]
    return sorted(
        {
            policy.resource.logical_id
            for policy in policies
            if any(_allowed(hosting, policy.statements, right, action) for right, action in late)
        }
    )


def _all(policies: Iterable[PolicyDocument]) -> Iterator[PolicyStatement]:
    return (statement for policy in policies for statement in policy.statements)


def _is_earlier(
    hosting: Hosting, user: TemplateResource, roles: list[TemplateResource], policy: PolicyDocument
) -> bool:
    """Return whether a policy is there when a resource is made; one of another template is."""
    at = policy.resource
    is_own = at.template != user.template or any(at.key == role.key for role in roles)
    return is_own or hosting.resources.depends(user, at)


def _allowed(hosting: Hosting, statements: Iterable[PolicyStatement], right: NeededRight, action: str) -> bool:
    return any(_allows(hosting, each, right, action) for each in statements)


def _is_for(hosting: Hosting, statement: PolicyStatement, roles: list[TemplateResource]) -> bool:
    """Return whether a statement of a resource's policy may allow something to a role by name."""
    principal = statement.value.at("Principal")
    given = several(principal.at("AWS")) if isinstance(principal.raw, dict) else (principal,)
    referred = [hosting.resources.referred(statement.template, each) for each in given]
    keys = {role.key for role in roles}
    named = any(each and each.key in keys for each in referred)
    return named or any(
        each.text == "*" or (each.text is None and of is None and not f"{each.raw}".rstrip("'}").endswith(":root"))
        for each, of in zip(given, referred, strict=True)
    )


def _allows(hosting: Hosting, statement: PolicyStatement, right: NeededRight, action: str) -> bool:
    excepted = statement.excepted_actions
    is_named = not _names(excepted, action) if excepted else _names(statement.actions, action)
    if statement.value.at("Effect").text == "Deny" or not is_named:
        return False
    given = statement.resources
    if "*" in right.arns or not given:
        return True
    written = ((each, hosting.resources.written(statement.template, each) or "") for each in given)
    others = (each for each, text in written if not (right.is_of_aws and _is_own(hosting.resources.readable(text))))
    return any(_may_be_of(arn_pattern(hosting.resources, statement.template, each), right) for each in others)


def _is_own(arn: str) -> bool:
    """Return whether an ARN is of the templates' own account."""
    return "${AWS::AccountId}" in arn.split(":repository", 1)[0]


def _may_be_of(pattern: str | None, right: NeededRight) -> bool:
    if pattern is None or pattern == "*" or any(patterns_overlap(pattern, each) for each in right.arns):
        return True
    return right.has_generated_name and "*" in pattern.rpartition(":")[2]


def _may_name(statement: PolicyStatement, action: str) -> bool:
    """Return whether a statement is, or may be, about an action; one of all but some actions may be."""
    return bool(statement.excepted_actions) or _names(statement.actions, action)


def _names(actions: Iterable[TemplateValue], action: str) -> bool:
    """Return whether some of the actions are, or may be, an action."""
    # IAM has no classes of characters, and `fnmatch` takes hours for a text of opening brackets.
    patterns = (each.text if each.text is None else each.text.lower().replace("[", "[[]") for each in actions)
    return any(pattern is None or fnmatchcase(action.lower(), pattern) for pattern in patterns)


@rule("SEA792", "SEA793", "SEA794")
def small_statements(hosting: Hosting) -> Iterator[Finding]:
    """Statements that allow a part of a call: one of two types, no companion, a name that no ARN has."""
    for statement in hosting.statements:
        if statement.is_allow and statement.policy.kind == "identity":
            yield from _half_allowed(hosting, statement)
            yield from _capitals(hosting, statement)
    for role in hosting.resources.of(ROLE):
        yield from _without_companions(hosting, role)


def _half_allowed(hosting: Hosting, statement: PolicyStatement) -> Iterator[Finding]:
    missing: dict[str, list[str]] = {}
    first = {each.text: each for each in reversed(statement.actions)}
    for name in filter(None, dict.fromkeys(each.text for each in statement.actions)):
        types = _types_of(name)
        given = _patterns_of(hosting, statement, name) if len(types) > 1 else {"*"}
        for kind in types:
            if not any(each is None or each == "*" or kind.has(each) for each in given):
                missing.setdefault(kind.name, []).append(name)
    for kind_name, names in missing.items():
        message = (
            f"no statement allows {listed_names(names)} on a resource of type {kind_name}, which the call names too"
        )
        hint = f"add a resource as arn:aws:sagemaker:REGION:ACCOUNT:{kind_name}/NAME"
        yield finding_at(statement.policy.resource, first[names[0]], "SEA792", message, hint)


def _types_of(action: str) -> list[ResourceType]:
    """Return the types that a call of SageMaker's hosting names; those of other services, a call may leave out."""
    facts = action_facts(action) if action.startswith("sagemaker:") else None
    required = [each.resource_type for each in facts.targets if each.is_required] if facts else []
    return required if _HOSTED.issuperset(each.name for each in required) else []


def _patterns_of(hosting: Hosting, statement: PolicyStatement, action: str) -> set[str | None]:
    """Return on what an action is allowed to whoever has a statement's policy; `None` for what is not known."""
    policies, patterns = [statement.policy], set[str | None]()
    for role in hosting.resources.of(ROLE):
        if any(each is statement.policy for each in hosting.held.get(role.key, ())):
            of_role = hosting.role_policies(role)
            policies += of_role or ()
            patterns |= {None} if of_role is None else set()
    for one in _all(policies):
        if one.is_allow and _may_name(one, action):
            given = [arn_pattern(hosting.resources, one.template, each) for each in one.resources]
            patterns |= {*given} if given and not one.excepted_actions else {None}
    return patterns


def _capitals(hosting: Hosting, statement: PolicyStatement) -> Iterator[Finding]:
    written = [
        (
            each,
            _PLACEHOLDER.sub("", hosting.resources.readable(hosting.resources.written(statement.template, each) or "")),
        )
        for each in statement.resources
    ]
    texts = {text for _, text in written}
    for value, text in written:
        match = _ARN_NAME.fullmatch(text)
        if match and match[2] != match[2].lower() and text.replace(match[2], match[2].lower()) not in texts:
            message = f"{match[1]}/{match[2]} has capital letters, and SageMaker writes its ARNs in small ones"
            hint = f"write {match[1]}/{match[2].lower()}"
            yield finding_at(statement.policy.resource, value, "SEA794", message, hint)


def _without_companions(hosting: Hosting, role: TemplateResource) -> Iterator[Finding]:
    # Where nothing of the templates scales an endpoint of theirs, its deletion needs no other right.
    unscaled = set() if any(target.is_variant for target in hosting.targets) else {DELETING}
    needless = unscaled if hosting.resources.of(ENDPOINT) else set()
    statements = [each for each in _all(hosting.role_policies(role) or ()) if each.is_allow]
    lacking = {
        called: (companion, effect)
        for called, companion, effect in COMPANIONS
        if called not in needless and not any(_may_name(each, companion) for each in statements)
    }
    for statement in statements:
        for action in statement.actions:
            for called in (each.name for each in matching_actions(action.text or "") if each.name in lacking):
                companion, effect = lacking[called]
                message = f"{role.logical_id} may {called} and not {companion}: {effect}"
                finding = finding_at(statement.policy.resource, action, "SEA793", message, f"allow {companion}")
                yield replace(finding, severity="note") if called in unscaled else finding
