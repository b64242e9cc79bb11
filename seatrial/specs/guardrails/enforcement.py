"""The guard rails of an environment for whoever passes by Seatrial: rules of CloudFormation Guard, denials for IAM.

A hook of CloudFormation judges each resource by itself, with functions and parameters resolved (AWS CloudFormation
Hooks User Guide, "Write Guard rules to evaluate resources for Guard Hooks"). A template that is judged without a
deployment still has its functions: what one returns is left to the hook, so each clause lets a function pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from seatrial.specs.guardrails.checks import allowed_images
from seatrial_base.catalog.engine_options import LOADING_OPTIONS, NEURON_PREFIX, PREFIXES, all_spellings, option_env
from seatrial_base.catalog.jumpstart import JUMPSTART_MODELS, jumpstart_regions
from seatrial_base.tags import ENVIRONMENT_TAG, PRODUCT_TAG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import date

    from seatrial.specs.environment import EnvironmentSpec
    from seatrial.specs.guardrails.limits import Waiver
    from seatrial_base.catalog.engine_options import Spelling

_MOST_LISTED = 8
_CONFIG, _MODEL, _COMPONENT, _ENDPOINT = (
    f"AWS::SageMaker::{kind}" for kind in ("EndpointConfig", "Model", "InferenceComponent", "Endpoint")
)
_TARGET, _URL = "AWS::ApplicationAutoScaling::ScalableTarget", "AWS::Lambda::Url"
JUDGED: Final = (_CONFIG, _MODEL, _COMPONENT, _ENDPOINT, _TARGET, _URL)
"""Types of the resources that the rules judge."""
_VARIABLES = {kind: kind.rpartition("::")[2].lower() for kind in JUDGED}
_TAGGED = (_CONFIG, _MODEL, _COMPONENT, _ENDPOINT)
_CONTAINERS = (
    (_MODEL, ("PrimaryContainer",)),
    (_MODEL, ("Containers", "*")),
    (_COMPONENT, ("Specification", "Container")),
    (_COMPONENT, ("Specifications", "*", "Container")),
)
_VARIANTS = ("/^(Shadow)?ProductionVariants$/", "*")
_DOTS = r"(?!(.*\/)?\.\.(\/|$))"  # a step up could lead anywhere
_OFF = r"(?i)^(0|false|no|off)$"  # an empty text turns a flag on in older images

NOT_IN_TEMPLATES: Final = {
    "usd_per_hour": "a template has no price, and a team's own prices are in no template: bound instance_types and "
    "max_copies",
    "job_usd": "an optimization job is no resource, and has no price there",
    "usd_per_million_output_tokens": "a prediction's, which no template has",
    "blended_usd_per_million_tokens": "a prediction's, which no template has",
    "licences": "a template names no licence: list the models in models",
    "code": "the code of an endpoint is in an archive or below its weights",
    "slo": "objectives are in the request of a trial, not in what serves",
    "trial_mode": "a hook sees one resource, not that a trial is missing",
    "trial": "a hook sees one resource, not that a trial is missing",
}
"""The guard rails that no template shows, each with the reason."""


@dataclass(frozen=True, slots=True)
class _Clause:
    """One condition of a guard rail: the values at a path of each resource of a type, and what they must be.

    Attributes:
        path: Members of the properties; `*` is each of a list, one between slashes is a pattern.
        condition: Of each value; empty where `block` says it.
        block: Lines in Guard's language in place of a condition.
    """

    kind: str
    path: tuple[str, ...]
    message: str
    condition: str = ""
    block: tuple[str, ...] = field(default=())

    def lines(self) -> Iterator[str]:
        """Yield the clause in Guard's language."""
        query = "".join("[*]" if each == "*" else f"[ keys == {_member(each)} ]" for each in self.path)
        yield f"  when %{_VARIABLES[self.kind]} !empty {{"
        yield f"    %{_VARIABLES[self.kind]}.Properties{query} {{"
        for line in self.block or (f"this {self.condition} or this is_struct",):
            yield f"      {line}{'' if line.endswith(('{', '}')) else f' <<{self.message}>>'}"
        yield "    }"
        yield "  }"


def _member(name: str) -> str:
    return name if name.startswith("/") else f"'{name}'"


def guard_rules(environment: EnvironmentSpec) -> str:
    """Return the guard rails of an environment as a rule set of AWS CloudFormation Guard 3; equal rails, equal text.

    With scope `account` they judge every resource, else those with the environment's tag or name.
    """
    rails = environment.guard_rails
    is_everything = rails.enforcement is not None and rails.enforcement.scope == "account"
    lines = [
        f"# The guard rails of {environment.name} for AWS CloudFormation Guard 3: edit its file, not this one.",
        *(f"# Not in a template: {name}, as {NOT_IN_TEMPLATES[name]}." for name in unenforced(environment)),
        "# What a function of a template returns is judged where a hook has it resolved.",
        "# Not seen: what archives, images, arguments of commands and files in buckets name; whose variable it is that",
        "# several containers read, as HF_MODEL_ID; who wrote what lies in an allowed bucket.",
    ]
    lines += [f"let {_VARIABLES[kind]} = {_selection(environment, kind, everything=is_everything)}" for kind in JUDGED]
    for rail, clauses in _CLAUSES.items():
        written = [line for clause in clauses(environment) for line in clause.lines()]
        if written:
            lines += ["", *_waivers(environment, rail, written)]
    return "".join(f"{line}\n" for line in lines)


def without_ended(environment: EnvironmentSpec, today: date) -> tuple[EnvironmentSpec, tuple[Waiver, ...]]:
    """Return an environment without the waivers whose last day is over, and those; `today` is in UTC."""
    rails = environment.guard_rails
    ended = tuple(each for each in rails.waivers if each.expires < today)
    rails = rails.model_copy(update={"waivers": tuple(each for each in rails.waivers if each not in ended)})
    return environment.model_copy(update={"guard_rails": rails}), ended


def unenforced(environment: EnvironmentSpec) -> tuple[str, ...]:
    """Return the guard rails of an environment that no template shows."""
    return tuple(name for name in NOT_IN_TEMPLATES if name in environment.guard_rails.stated)


def _selection(environment: EnvironmentSpec, kind: str, *, everything: bool) -> str:
    """Return the query of the resources of a type that are the environment's."""
    condition, name = "", environment.name
    if not everything:
        condition = {
            _TARGET: rf" Properties.ResourceId == /^(endpoint|inference-component)\/{name}-/ "
            "or Properties.ResourceId is_struct",
            _URL: f" Properties.TargetFunctionArn == /(^|:)seatrial-{name}-/ or Properties.TargetFunctionArn is_struct",
        }.get(
            kind, f" Properties.Tags !empty\n  Properties.Tags[ Key == '{ENVIRONMENT_TAG}' Value == '{name}' ] !empty"
        )
    return f"Resources.*[ Type == '{kind}'{condition} ]"


def _waivers(environment: EnvironmentSpec, rail: str, written: Sequence[str]) -> list[str]:
    """Return the rule of a guard rail, which a waived endpoint does not fail: by its stack, its name or its product.

    By its name, a template as a whole is waived, as most of its resources don't say whose they are; not beside another
    endpoint.
    """
    # An image may hold any engine and model: what is waived of them is waived of it.
    rails = {rail, *(("engines", "models", "licences") if rail == "images" else ())}
    waived = sorted({each.endpoint for each in environment.guard_rails.waivers if each.rail in rails})
    if not waived:
        return [f"rule {rail} {{", *written, "}"]
    named = f"({'|'.join(_pattern(each, '[A-Za-z0-9-]') for each in waived)})"
    stack, endpoint, other = f"{rail}_stack", f"{rail}_waived", f"{rail}_other"
    of_product = f"[ Properties.Tags !exists or Properties.Tags[ Key == '{PRODUCT_TAG}' Value == /^{named}$/ ] empty ]"
    judged = "this[ keys == 'HookContext' ][ keys == 'StackId' ]"
    there = rf"[ this == /:stack\/seatrial-{environment.name}-{named}\/.*$/ ]"
    name = f"Properties.EndpointName == /^{environment.name}-{named}$/"
    unnamed = f"Properties.EndpointName is_struct or {name.replace('==', '!=')}"
    lines = [
        f"let {stack} = {judged}",
        f"let {endpoint} = %{_VARIABLES[_ENDPOINT]}[ {name} ]",
        f"let {other} = Resources.*[ Type == '{_ENDPOINT}'\n  Properties.EndpointName !exists or {unnamed} ]",
    ]
    for kind in _TAGGED:
        variable = _VARIABLES[kind]
        lines.append(f"let {rail}_{variable} = %{variable}{of_product}")
        written = [line.replace(f"%{variable} ", f"%{rail}_{variable} ") for line in written]
        written = [line.replace(f"%{variable}.", f"%{rail}_{variable}.") for line in written]
    return [*lines, f"rule {rail} when %{stack}{there} empty %{endpoint} empty or %{other} !empty {{", *written, "}"]


def _message(environment: EnvironmentSpec, rail: str, what: str, mend: str) -> str:
    owner = "" if environment.owner is None else f", set by {environment.owner}"
    text = f"SEA111 {rail} (environments/{environment.name}.yaml{owner}): {what}; {mend}"
    return text.replace("<", "").replace(">", "")  # they end a message


def _listed(values: Iterable[object]) -> str:
    texts = [f"{each}" for each in values]
    more = len(texts) - _MOST_LISTED
    return ", ".join(texts[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def _quoted(values: Iterable[object]) -> str:
    return ", ".join(f"'{each}'" for each in values)


def _pattern(pattern: str, any_text: str = ".") -> str:
    """Return a pattern with `*` and `?` as a regular expression of Guard, which ends at a slash."""
    escaped = "".join(f"\\{each}" if not (each.isalnum() or each in "_*?@:,= ") else each for each in pattern)
    return escaped.replace("?", any_text).replace("*", f"{any_text}*")


def _one_of(patterns: Iterable[str]) -> str:
    return f"== /^{_DOTS}({'|'.join(patterns)})$/"


def _at_most(number: int) -> str:
    """Return the condition of a count, which a resolved parameter gives as text."""
    return f"<= {number} or this in [{_quoted(range(number + 1))}]"


def _instance_types(environment: EnvironmentSpec) -> Iterator[_Clause]:
    allowed = environment.guard_rails.instance_types
    if allowed is not None:
        text = _message(
            environment, "instance_types", "an instance type is not allowed", f"allowed: {_listed(allowed)}"
        )
        for path in (("InstanceType",), ("InstancePools", "*", "InstanceType")):
            yield _Clause(_CONFIG, (*_VARIANTS, *path), text, f"in [{_quoted(allowed)}]")


def _max_copies(environment: EnvironmentSpec) -> Iterator[_Clause]:
    """Yield the bound of each resource; that of all together is a sum, which Guard does not have."""
    most = environment.guard_rails.max_copies
    if most is not None:
        text = _message(environment, "max_copies", "too many copies", f"at most {most} of one endpoint")
        yield _Clause(_COMPONENT, ("RuntimeConfig", "CopyCount"), text, _at_most(most))
        yield _Clause(_TARGET, ("MaxCapacity",), text, _at_most(most))
        for path, bound in {
            ("InitialInstanceCount",): most,
            ("ManagedInstanceScaling", "MaxInstanceCount"): 2 * most,  # an update loads as many copies again
            ("ServerlessConfig", "/^(MaxConcurrency|ProvisionedConcurrency)$/"): most,
        }.items():
            yield _Clause(_CONFIG, (*_VARIANTS, *path), text, _at_most(bound))


def _of_containers(message: str, condition: str, *path: str) -> Iterator[_Clause]:
    """Yield a condition of a member of every container; the location of weights has another name in a component."""
    others = {_MODEL: "ArtifactUrl", _COMPONENT: ("ModelDataUrl", "ModelDataSource", "ModelPackageName")}
    for kind, container in _CONTAINERS:
        if path[0] not in others[kind]:
            yield _Clause(kind, (*container, *path), message, condition)


def _variables(names: Iterable[str]) -> str:
    """Return the member of a container's variables with one of some names."""
    return f"/^({'|'.join(sorted(names))})$/"


def _spelled(option: str) -> tuple[str, ...]:
    """Return the variables that mean an option of the neutral configuration to any container."""
    return tuple({name for row in all_spellings() if row.field == option for name in _names(row)})


def _names(row: Spelling) -> set[str]:
    return {each for each in (row.env, row.key and option_env(row.key)) if each}


def _loading(*whats: str, but: Iterable[str] = ()) -> str:
    """Return the member of variables whose option names something that is loaded, in any spelling."""
    names = {name for row in LOADING_OPTIONS.rows if row.what in whats for name in row.names} - {*_TEMPLATES, *but}
    prefixes = "|".join(("OPTION_", *PREFIXES.values(), NEURON_PREFIX))
    return f"/(?i)^({prefixes})?({'|'.join(sorted(names))})$/"


_TEMPLATES = ("chat_template", "completion_template")  # the template itself, where they name no file


def _models(environment: EnvironmentSpec) -> Iterator[_Clause]:
    rails, place = environment.guard_rails, environment.region
    if rails.models is None:
        return
    text = _message(environment, "models", "a model is not allowed", f"allowed: {_listed(rails.models)}")
    in_region = place in jumpstart_regions()
    published = [
        row.s3_uri(place)
        for row in (JUMPSTART_MODELS.rows if in_region else ())
        if any(fnmatchcase(row.id, pattern) for pattern in rails.models)
    ]
    patterns = [*map(_pattern, rails.models), *map(_pattern, published)]
    # What synthesis packages of a team is in the CDK's own bucket, under the digest of its content; without the
    # account, the bucket could be anybody's.
    packaged = rf"s3:\/\/cdk-[a-z0-9]+-assets-{environment.account}-{place}\/[0-9a-f]+\.tar\.gz"
    stored = _one_of([*patterns, packaged] if environment.account else patterns)
    yield from _of_containers(text, stored, "ModelDataUrl")
    yield from _of_containers(text, stored, "ArtifactUrl")
    source = ("S3DataSource",)
    yield from _of_containers(text, stored, "ModelDataSource", *source, "S3Uri")
    hub = ("HubAccessConfig", "HubContentArn")
    yield from _of_containers(text, _one_of(patterns), "ModelDataSource", *source, *hub)
    yield from _of_containers(text, _one_of(patterns), "ModelPackageName")
    yield from _of_containers(text, _loaded(rails.models), "Environment", _loading(*_NAMING))
    if not rails.extra:
        yield from _of_containers(text, _one_of(_fixed()), "Environment", _loading("code"))


_NAMING = ("a model", "a file, folder or repository", "a configuration that may name a model")


def _fixed() -> list[str]:
    """Return what the renderer itself writes to options that name code."""
    return sorted({_pattern(row.fixed) for row in all_spellings() if row.fixed})


def _loaded(models: Iterable[str]) -> str:
    """Return the condition of a variable that names what is loaded: each of its parts, or each text of its JSON."""
    named = "|".join([*_PLAIN, *(_pattern(each, r"[^\s,;|\"]") for each in models)])
    part = rf"([\w.-]+=)?({named})(@[\w.\/-]+)?"
    code = r"(?![\s\S]*\"(\w*module_path|\w*_cls|auto_map)\"\s*:)"
    json = rf"{_UNESCAPED}{code}{_no_other(named)}[\[{{][\s\S]*"
    return rf"== /^{_DOTS}({json}|{part}([\s,;|]+{part})*)$/"


# A path is in the image or the weights, but for folders that anything may write to.
_PLAIN = (
    *("", "auto", "none", "true", "false", "vllm"),
    r"\/(?![.\/]*(tmp|var\/tmp|dev|proc|run)(\/|$))[^\s,;|\"]*",
)
_UNESCAPED = r"(?![\s\S]*\\u)"  # an escape could hide the name of a member
_COMMIT = "[0-9a-f]{40}"


def _no_other(named: str) -> str:
    """Return that no member of a JSON that names a model has another text, or a list or an object."""
    member = r"\"(\w*_)?(model|model_id|path|repo|repo_id|tokenizer)\""
    return rf"(?![\s\S]*{member}\s*:\s*(?=\S)(?!\"({named})\"|null|true|false|-?[0-9]))"


def _revisions(environment: EnvironmentSpec) -> Iterator[_Clause]:
    if environment.guard_rails.revisions == "pinned":
        yield from _pinned(environment, "revisions", "")


def _remote_code(environment: EnvironmentSpec) -> Iterator[_Clause]:
    rail = environment.guard_rails.remote_code
    trusts = _variables(_spelled("trust_remote_code"))
    if rail == "refused":
        text = _message(environment, "remote_code", "code of a model's repository may not run", "leave it out")
        yield from _of_containers(text, f"== /{_OFF}/", "Environment", trusts)
    elif rail == "pinned":
        yield from _pinned(environment, "remote_code", f"some Environment[ keys == {trusts} ] != /{_OFF}/")


def _pinned(environment: EnvironmentSpec, rail: str, condition: str) -> Iterator[_Clause]:
    """Yield that a repository of the hub has a revision that is a whole commit, where a condition holds."""
    text = _message(environment, rail, "a repository of the hub has no whole commit as its revision", "name one")
    block: list[str] = []
    for variables, revisions in _revision_variables():
        block += (
            # What is neither a path nor a place is of the hub: the names of its oldest repositories have no slash.
            rf"when some Environment[ keys == {variables} ] == /^(?!\/|s3:)[\s\S]/ {{",
            f"Environment[ keys == {revisions} ] !empty",
            "}",
        )
    judged = {
        r"/(?i)(^|_)revision$/": rf"^{_COMMIT}$",
        _loading("a model", but=_OWN_REVISION): rf"^({_JSON_AT_COMMITS}|{_AT_COMMITS}([\s,;|]+{_AT_COMMITS})*)$",
        _loading("a configuration that may name a model"): rf"^({_JSON_AT_COMMITS}|(?!\s*[\[{{])[\s\S]*)$",
    }
    for variables, pattern in judged.items():
        block += (
            f"this[ keys == 'Environment' ][ keys == {variables} ] {{",
            f"this == /{pattern}/ or this is_struct",
            "}",
        )
    for kind, container in _CONTAINERS:
        whole = (f"when {condition} {{", *block, "}") if condition else tuple(block)
        yield _Clause(kind, container, text, block=whole)


# Models with variables for their revisions; the variables of another family of containers don't count.
_OWN_REVISION = (
    *("model", "model_id", "hf_model_id", "model_path", "model_id_or_path"),
    *("speculative_model", "speculative_draft_model", "speculative_draft_model_path", "custom_cache_repo"),
)
_AT_COMMITS = rf"([\w.-]+=)?({'|'.join(_PLAIN)}|s3:[^\s,;|]*|[^\s,;|@]+@{_COMMIT})"
_JSON_AT_COMMITS = (
    rf"{_UNESCAPED}(?![\s\S]*revision\"\s*:\s*(?=\S)(?!\"{_COMMIT}\"|null))"
    rf"({_no_other('|'.join(_PLAIN))}[\[{{][\s\S]*"
    # One model with a commit beside it: in nested members they could belong to others.
    r"|(?=[\s\S]*\"revision\"\s*:\s*\")(?![\s\S]*\"model\"[\s\S]*\"model\")"
    r"(?![\s\S]*\"\w*(_model|path|repo|repo_id|tokenizer)\"\s*:)\{[^{}\[\]]*\}\s*)"
)


def _revision_variables() -> Iterator[tuple[str, str]]:
    """Yield variables that name a model, a tokenizer or a draft, and those of its revision in the same containers."""
    rows = all_spellings()
    models = {name for row in rows if row.field == "model_id" for name in _names(row)}
    pairs: dict[frozenset[str], list[str]] = {}
    for model in sorted(models):
        dialects = {each for row in rows if model in _names(row) for each in row.dialects}
        ours = (row for row in rows if row.field == "revision" and dialects & {*row.dialects})
        pairs.setdefault(frozenset(name for row in ours for name in _names(row)), []).append(model)
    for revisions, names in pairs.items():
        yield _variables(names), _variables(revisions)
    for prefix in ("OPTION_", *PREFIXES.values()):
        yield f"/^{prefix}TOKENIZER(_PATH)?$/", _variables([f"{prefix}TOKENIZER_REVISION"])
        drafts = _variables([f"{prefix}SPECULATIVE_DRAFT_MODEL_REVISION"])
        yield f"/^{prefix}SPECULATIVE_(DRAFT_)?MODEL(_PATH)?$/", drafts


def _images(environment: EnvironmentSpec) -> Iterator[_Clause]:
    allowed = allowed_images(environment.guard_rails, environment)
    if allowed is not None:
        patterns = [rf"{_pattern(each)}([:@].*)?" for each in allowed]
        text = _message(environment, "images", "an image is not allowed", f"allowed: {_listed(allowed)}")
        yield from _of_containers(text, _one_of(patterns), "Image")


def _router(environment: EnvironmentSpec) -> Iterator[_Clause]:
    if environment.guard_rails.router == "refused":
        text = _message(environment, "router", "a function may have no public address", "leave hosting.router out")
        yield _Clause(_URL, (), text, block=("AuthType !exists", "TargetFunctionArn !exists"))


def _ssm_access(environment: EnvironmentSpec) -> Iterator[_Clause]:
    if environment.guard_rails.ssm_access == "refused":
        text = _message(environment, "ssm_access", "a shell in a container is not allowed", "leave it out")
        yield _Clause(_CONFIG, (*_VARIANTS, "EnableSSMAccess"), text, "in [false, 'false']")


def _output_targets(environment: EnvironmentSpec) -> Iterator[_Clause]:
    allowed = environment.guard_rails.output_targets
    if allowed is not None:
        text = _message(environment, "output_targets", "a target is not allowed", f"allowed: {_listed(allowed)}")
        output = ("AsyncInferenceConfig", "OutputConfig")
        for path in (
            ("DataCaptureConfig", "DestinationS3Uri"),
            (*output, "/^S3(Output|Failure)Path$/"),
            (*output, "NotificationConfig", "/^(Success|Error)Topic$/"),
            (*_VARIANTS, "CoreDumpConfig", "DestinationS3Uri"),
        ):
            yield _Clause(_CONFIG, path, text, _one_of(map(_pattern, allowed)))


def _hub_token_secrets(environment: EnvironmentSpec) -> Iterator[_Clause]:
    allowed = environment.guard_rails.hub_token_secrets
    if allowed is not None:
        text = _message(environment, "hub_token_secrets", "a secret is not allowed", f"allowed: {_listed(allowed)}")
        named = "|".join(map(_pattern, allowed))
        secret = rf"secretsmanager:({named})(:SecretString|\}}\}})"
        pattern = rf"^(?![\s\S]*\{{\{{resolve:(?=secretsmanager:|ssm-secure:)(?!{secret}))"
        yield from _of_containers(text, f"== /{pattern}/", "Environment", "/.*/")
        # Taken for granted: a hook sees references as they are written. No account has been asked.
        token = rf"^(\{{\{{resolve:{secret}[\s\S]*)?$"
        yield from _of_containers(
            text, f"== /{token}/", "Environment", r"/(?i)^(hf|hugging_?face\w*)_(hub_)?(api_)?token$/"
        )


def _required_tags(environment: EnvironmentSpec) -> Iterator[_Clause]:
    for key in environment.guard_rails.required_tags:
        text = _message(environment, "required_tags", f"the tag {key} is missing or says nothing", "add it")
        value = r"Value == /[\p{L}\p{N}]/ or Value is_struct"
        for kind in _TAGGED:
            yield _Clause(kind, (), text, block=("Tags exists", f"Tags[ Key == '{key}'\n        {value} ] !empty"))


def _tag_values(environment: EnvironmentSpec) -> Iterator[_Clause]:
    for key, allowed in environment.guard_rails.tag_values.items():
        what = f"the tag {key} has a value that is not allowed"
        text = _message(environment, "tag_values", what, f"allowed: {_listed(allowed)}")
        pattern = "|".join(map(_pattern, allowed))
        other = f"Tags[ Key == '{key}'\n        Value !is_struct\n        Value != /^({pattern})$/ ] empty"
        for kind in _TAGGED:
            yield _Clause(kind, (), text, block=("when Tags exists {", other, "}"))


def _network(environment: EnvironmentSpec) -> Iterator[_Clause]:
    network, name = environment.network, environment.name
    if network.isolated:
        text = _message(environment, "network.isolated", f"{name} has network isolation", "isolate each model")
        yield _Clause(_MODEL, (), text, block=("EnableNetworkIsolation in [true, 'true']",))
    for path, allowed in (("Subnets", network.subnet_ids), ("SecurityGroupIds", network.security_group_ids)):
        if allowed:
            text = _message(environment, "network", "a container is outside of the VPC", f"{path}: {_listed(allowed)}")
            for kind in (_MODEL, _CONFIG):
                yield _Clause(kind, ("VpcConfig", path, "*"), text, f"in [{_quoted(allowed)}]")
            yield _Clause(_MODEL, (), text, block=("VpcConfig exists",))


def _kms_key(environment: EnvironmentSpec) -> Iterator[_Clause]:
    """Yield that no other key encrypts a volume; instances with storage of their own take none."""
    key = environment.kms_key_arn
    if key is not None:
        text = _message(environment, "kms_key_arn", "another key encrypts volumes or captures", f"it is {key}")
        yield _Clause(_CONFIG, ("KmsKeyId",), text, f"== '{key}'")


_CLAUSES: Final[dict[str, Callable[[EnvironmentSpec], Iterator[_Clause]]]] = {
    "instance_types": _instance_types,
    "max_copies": _max_copies,
    "models": _models,
    "revisions": _revisions,
    "remote_code": _remote_code,
    "images": _images,
    "router": _router,
    "ssm_access": _ssm_access,
    "output_targets": _output_targets,
    "hub_token_secrets": _hub_token_secrets,
    "required_tags": _required_tags,
    "tag_values": _tag_values,
    "network": _network,
    "kms_key_arn": _kms_key,
}
"""The rules by guard rail; the last two are other fields of an environment that what is created must keep to."""
ENFORCED: Final = frozenset({*_CLAUSES, "engines"})
"""What the rules hold; an engine is told by its image."""

_CREATED = tuple(f"sagemaker:Create{kind.rpartition('::')[2]}" for kind in _TAGGED)
BY_IAM: Final = frozenset({"instance_types", "router", "required_tags", "tag_values", "network", "kms_key_arn"})
"""What a policy can deny, as the requests carry it in condition keys (Service Authorization Reference)."""


def iam_denials(environment: EnvironmentSpec) -> dict[str, object]:
    """Return a policy that denies what the guard rails refuse and a request shows; equal rails, equal policy.

    It allows nothing: as a service control policy, a permissions boundary or an execution policy of the CDK's bootstrap
    it stands beside what allows. With scope `environment` it denies requests that carry the environment's tag.
    """
    enforcement = environment.guard_rails.enforcement
    of_account = enforcement is not None and enforcement.scope == "account"
    ours = {} if of_account else {f"aws:RequestTag/{ENVIRONMENT_TAG}": environment.name}
    of_region = {"aws:RequestedRegion": environment.region}
    statements = [
        {
            "Sid": sid,
            "Effect": "Deny",
            "Action": [*actions],
            "Resource": "*",
            "Condition": {**conditions, "StringEquals": {**of_region, **ours}},
        }
        for sid, actions, conditions in _denials(environment)
    ]
    if environment.guard_rails.router == "refused":
        # The request for an address has no tags: the function's name tells whose it is.
        functions = "*" if of_account else f"arn:*:lambda:*:*:function:seatrial-{environment.name}-*"
        actions = ["lambda:CreateFunctionUrlConfig", "lambda:UpdateFunctionUrlConfig"]
        condition = {"StringEquals": of_region}
        statements.append(
            {"Sid": "Router", "Effect": "Deny", "Action": actions, "Resource": functions, "Condition": condition}
        )
    return {"Version": "2012-10-17", "Statement": statements}


_Denial = tuple[str, "Sequence[str]", dict[str, dict[str, object]]]


def _denials(environment: EnvironmentSpec) -> Iterator[_Denial]:
    """Yield the name, the actions and the conditions of what is denied by keys of the request."""
    rails, network, key = environment.guard_rails, environment.network, environment.kms_key_arn
    config, model = _CREATED[:2]
    if rails.instance_types is not None:
        types: dict[str, object] = {"sagemaker:InstanceTypes": [*rails.instance_types]}
        yield "InstanceTypes", [config], {"ForAnyValue:StringNotEquals": types}
    if key is not None:
        given = "sagemaker:VolumeKmsKey"
        yield "Key", [config], {"ArnNotEquals": {given: key}, "Null": {given: "false"}}
    if network.isolated:  # a request that leaves it out has no key, and no isolation
        yield "Isolation", [model], {"BoolIfExists": {"sagemaker:NetworkIsolation": "false"}}
    for name, allowed in (("VpcSubnets", network.subnet_ids), ("VpcSecurityGroupIds", network.security_group_ids)):
        if allowed:
            yield f"{name}Other", [model, config], {"ForAnyValue:StringNotEquals": {f"sagemaker:{name}": [*allowed]}}
            yield f"{name}Missing", [model], {"Null": {f"sagemaker:{name}": "true"}}
    for index, tag in enumerate(rails.required_tags):
        yield f"Tag{index}", _CREATED, {"Null": {f"aws:RequestTag/{tag}": "true"}}
    for index, (tag, values) in enumerate(rails.tag_values.items()):
        given = f"aws:RequestTag/{tag}"
        yield f"TagValue{index}", _CREATED, {"StringNotLike": {given: [*values]}, "Null": {given: "false"}}
