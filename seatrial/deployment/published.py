"""The published versions of products: templates that never change, and what each was made from.

A version has a template for each environment at `products/NAME/versions/VERSION/ENVIRONMENT.template.json`. It is
committed, and so is what it was made from, at `ENVIRONMENT.source.json` (`source_text`). Its metadata has the digest
of that, which needs no CDK and outlasts an upgrade of Seatrial, and the digest of the template itself, so that an edit
is found.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pydantic import ValidationError

from seatrial.deployment.load import runs_others
from seatrial.deployment.product import product_deployments
from seatrial.documents.plan import Plan
from seatrial.locks.guard_rails import created_problems
from seatrial.specs.endpoint import EndpointSpec
from seatrial.specs.guardrails.checks import guard_rail_problems
from seatrial.specs.product import chosen_tags
from seatrial.specs.yaml_source import Document
from seatrial_base.errors import SpecError
from seatrial_base.files import read_text
from seatrial_base.findings import Finding, Place
from seatrial_base.frozen_model import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from seatrial.deployment.document import Deployment
    from seatrial.deployment.product import LoadedProduct
    from seatrial.specs.load import LoadedSpec


TEMPLATE_SUFFIX = ".template.json"
SECTION, TEMPLATE = "Seatrial", "Template"
"""The section of a template's metadata, and the digest of the template in it, with that of what it was made from."""
State: TypeAlias = Literal["published", "not published", "changed", "published without its source"]
SOURCE_SUFFIX: Final = ".source.json"
MADE_FROM, PLANS = "MadeFrom", "Plans"
"""The members of such a file: what the template's digest is of, and the whole plans, whose digests that holds."""
# Fields of an environment that no template of a product depends on.
_NOT_IN_TEMPLATES = {"guard_rails", "owner", "prices", "promotion", "schema_version", "vending"}
_RULE: Final = "SEA487"


@dataclass(frozen=True, slots=True, order=True)
class PublishedVersion:
    """A version of a product as it was published for one environment."""

    number: tuple[int, ...]
    version: str
    template: Path


def template_path(product: Path, version: str, environment: str) -> Path:
    """Return the file of a version's template."""
    return product.with_suffix("") / "versions" / version / f"{environment}{TEMPLATE_SUFFIX}"


def source_path(template: Path) -> Path:
    """Return the file of what a template was made from."""
    return template.with_name(template.name.removesuffix(TEMPLATE_SUFFIX) + SOURCE_SUFFIX)


def published_versions(loaded: LoadedProduct, environment: str) -> tuple[PublishedVersion, ...]:
    """Return what was published of a product for an environment, the oldest version first.

    Raises:
        SpecError: SEA494 when the current version is not among them, SEA498 when a template was edited, SEA487 when a
            version that teams may launch is beyond a guard rail of today.
    """
    versions = _versions(loaded, environment)
    if loaded.product.version not in {each.version for each in versions}:
        raise unpublished_version(loaded, environment)
    if problems := [*edited_versions(loaded, environment), *forbidden_versions(loaded, environment)]:
        raise SpecError(problems)
    return versions


def forbidden_versions(loaded: LoadedProduct, environment: str) -> Iterator[Finding]:
    """Yield each guard rail that an older version breaks which teams may still launch: SEA487."""
    for each in _versions(loaded, environment):
        if each.version not in (loaded.product.version, *loaded.product.deprecated):
            digest_of_source = str(_seal(_template(each.template)).get(MADE_FROM))
            offered = OfferedVersion(each.version, source_path(each.template), digest_of_source)
            yield from forbidden_version(loaded, environment, offered)


def edited_versions(loaded: LoadedProduct, environment: str) -> Iterator[Finding]:
    """Yield each published template of a product that is not what was published: SEA498."""
    for each in _versions(loaded, environment):
        if (error := _edited(each.template)) is not None:
            yield from error.problems


def _versions(loaded: LoadedProduct, environment: str) -> tuple[PublishedVersion, ...]:
    files = template_path(loaded.path, "*", environment)
    versions = []
    for file in files.parent.parent.glob(f"*/{files.name}"):
        version = file.parent.name
        number = tuple(int(part) if part.isdigit() else 0 for part in version.split("."))
        versions.append(PublishedVersion(number, version, file))
    return tuple(sorted(versions))


def sealed(template: Mapping[str, object], source: str) -> dict[str, object]:
    """Return a template with the digest of what it was made from, and its own, in its metadata."""
    metadata = template.get("Metadata")
    given = dict(metadata) if isinstance(metadata, dict) else {}
    # The digest is of the template with its source but without itself: so an edit of either is seen.
    whole = {**template, "Metadata": {**given, SECTION: {MADE_FROM: source}}}
    return {**whole, "Metadata": {**given, SECTION: {MADE_FROM: source, TEMPLATE: _digest(whole)}}}


def publication_state(loaded: LoadedProduct, environment: str) -> State:
    """Return whether the current version of a product is published for an environment as the product is now.

    Raises:
        SpecError: With every problem of every lock; SEA498 when the template was edited.
    """
    deployments = product_deployments(loaded, environment)
    file = template_path(loaded.path, loaded.product.version, environment)
    if not file.is_file():
        return "not published"
    if (error := _edited(file)) is not None:
        raise error
    if _seal(_template(file)).get(MADE_FROM) != made_from(loaded, deployments):
        return "changed"
    source = source_path(file)
    is_whole = source.is_file() and read_text(source) == source_text(loaded, deployments)
    return "published" if is_whole else "published without its source"


def changed_version(loaded: LoadedProduct, environment: str) -> SpecError:
    """Return the error for a current version that was published from another product, plan or environment."""
    version = loaded.product.version
    message = f"version {version} was published for {environment} from another product, plan or environment"
    hint = "raise `version`; published templates stay as they are"
    return SpecError.of("SEA495", message, where=loaded.path.as_posix(), field="version", hint=hint)


def unpublished_version(loaded: LoadedProduct, environment: str) -> SpecError:
    """Return the error for a current version without a template."""
    message = f"version {loaded.product.version} is not published for {environment}"
    hint = f"run `seatrial products publish {loaded.path.as_posix()}` and commit what it writes"
    return SpecError.of("SEA494", message, where=loaded.path.as_posix(), field="version", hint=hint)


def _edited(file: Path) -> SpecError | None:
    """Return the error for a template that is not what was written; `None` when it is."""
    template = _template(file)
    metadata = template.get("Metadata")
    rest = {name: each for name, each in metadata.items() if name != SECTION} if isinstance(metadata, dict) else {}
    if template == sealed({**template, "Metadata": rest}, str(_seal(template).get(MADE_FROM))):
        return None
    message = "it is not the template that was published"
    hint = "restore it from git; a change needs another version"
    return SpecError.of("SEA498", message, where=file.as_posix(), hint=hint)


def _seal(template: Mapping[str, object]) -> Mapping[str, object]:
    metadata = template.get("Metadata")
    seal = metadata.get(SECTION) if isinstance(metadata, dict) else None
    return seal if isinstance(seal, dict) else {}


def _template(file: Path) -> dict[str, object]:
    """Return a template; an empty one where the file holds none."""
    try:
        document = json.loads(read_text(file))
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


_SECRET = re.compile(r"\{\{resolve:secretsmanager:(?:(?P<arn>arn:(?:[^:}]+:){5}[^:}]+)|(?P<name>[^:}]+))")


def kept_templates(products: Path, environment: str) -> tuple[Path, ...]:
    """Return every published template for an environment, those of products whose file is gone included."""
    return tuple(sorted(products.glob(f"*/versions/*/{environment}{TEMPLATE_SUFFIX}")))


def weights_of(template: Path) -> Iterator[str]:
    """Yield the S3 prefixes of the models of a published version, and the archives of its adapters."""
    for resource in json.loads(read_text(template))["Resources"].values():
        if resource["Type"] == "AWS::SageMaker::Model":
            source = resource["Properties"]["PrimaryContainer"].get("ModelDataSource")
            if source is not None:
                yield source["S3DataSource"]["S3Uri"]
        if resource["Type"] == "AWS::SageMaker::InferenceComponent":
            container = resource["Properties"].get("Specification", {}).get("Container", {})
            if "ArtifactUrl" in container:
                yield container["ArtifactUrl"]


OUTPUTS: Final = MappingProxyType(
    {
        **dict.fromkeys(("DestinationS3Uri", "S3OutputPath", "S3FailurePath"), "prefix"),
        **dict.fromkeys(("SuccessTopic", "ErrorTopic"), "topic"),
        "EnableSSMAccess": "shell",
    }
)
"""What a property of a configuration lets a role do: write below a prefix of S3, notify a topic, open a shell."""


def outputs_of(template: Path) -> Iterator[tuple[str, str]]:
    """Yield what roles of a published version may write to: a kind of `OUTPUTS`, and the URI or ARN."""
    resources = json.loads(read_text(template))["Resources"].values()
    nodes: list[object] = [each["Properties"] for each in resources if each["Type"] == "AWS::SageMaker::EndpointConfig"]
    while nodes:
        node = nodes.pop()
        if isinstance(node, list):
            nodes += node
        for name, value in node.items() if isinstance(node, dict) else ():
            if name in OUTPUTS and value:
                yield OUTPUTS[name], str(value)
            nodes.append(value)


def secrets_of(template: Path) -> Iterator[str]:
    """Yield the names or ARNs of the secrets that a published version reads."""
    for match in _SECRET.finditer(read_text(template)):
        yield match["arn"] or match["name"]


class _NotJudgedError(Exception):
    """A version can't be held against guard rails; the message is the reason."""


@dataclass(frozen=True, slots=True)
class OfferedVersion:
    """A version that teams may launch.

    Attributes:
        source: The file of what it was made from.
        made_from: The digest of that, as the template has it.
    """

    version: str
    source: Path
    made_from: str


def made_from(loaded: LoadedProduct, deployments: Mapping[str, Deployment]) -> str:
    """Return the digest of what a template is made from: the product, the plans of its sizes, their environment.

    A field that is left out does not count, so that one that a later Seatrial adds changes nothing.
    """
    return _digest(_source(loaded, deployments))


def source_text(loaded: LoadedProduct, deployments: Mapping[str, Deployment]) -> str:
    """Return the file of what a template is made from; the arguments are those of `made_from`."""
    plans = {size: each.plan.model_dump(mode="json") for size, each in deployments.items()}
    document = {MADE_FROM: _source(loaded, deployments), PLANS: plans}
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _source(loaded: LoadedProduct, deployments: Mapping[str, Deployment]) -> dict[str, object]:
    product = loaded.product
    return {
        "name": product.name,
        "description": product.description,
        "parameters": product.parameters.model_dump(mode="json", exclude_defaults=True),
        "sizes": [
            {
                "size": size,
                "endpoint": each.endpoint.model_dump(mode="json", exclude_defaults=True),
                "environment": each.environment.model_dump(
                    mode="json", exclude=_NOT_IN_TEMPLATES, exclude_defaults=True
                ),
                "plan": each.plan.digest,
            }
            for size, each in deployments.items()
        ],
    }


def _digest(source: object) -> str:
    return digest(json.dumps(source, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def forbidden_version(loaded: LoadedProduct, environment: str, offered: OfferedVersion) -> Iterator[Finding]:
    """Yield every guard rail of today that a published version breaks; one that can't be judged breaks them."""
    # All sizes have the same environment: any of them has its rails.
    place = next(iter(loaded.sizes_in(environment).values()))
    if not place.rails.stated and not place.environment.network.isolated:
        return
    try:
        for size, problem in _broken(loaded, place, offered):
            message = f"size {size}: {problem.message}"
            yield _finding(loaded, environment, offered, message, f"or let {environment} allow it")
    except _NotJudgedError as unknown:
        message = f"it can't be held against the guard rails of {environment}: {unknown}"
        again = f"or publish it again from the commit that published it, and keep {offered.source.name}"
        yield _finding(loaded, environment, offered, message, again)


def _finding(loaded: LoadedProduct, environment: str, offered: OfferedVersion, message: str, otherwise: str) -> Finding:
    product = loaded.path.as_posix()
    command = f"seatrial products deprecate {product} -e {environment} --portfolio ID"
    hint = f"add {offered.version} to `deprecated`, and run `{command}`; {otherwise}"
    return Finding(_RULE, Place.at(product, "deprecated"), f"version {offered.version} is offered: {message}", hint)


def _broken(loaded: LoadedProduct, place: LoadedSpec, offered: OfferedVersion) -> Iterator[tuple[str, Finding]]:
    """Yield each broken guard rail with its size.

    Raises:
        _NotJudgedError: It can't be judged.
    """
    for size, endpoint, plan in _sizes(offered):
        # A published size has no file with lines any more, so that each finding is placed at the product.
        document = Document(loaded.path.as_posix(), {}, {}, {}, chosen_tags(loaded.product.parameters))
        # What was read with today's spec is not what the version was made from.
        spec = replace(place, endpoint=endpoint, document=document, config_file=None, calibration_json=None)
        if runs_others(spec):
            raise _NotJudgedError(f"size {size} runs other specs")
        by_itself = tuple(guard_rail_problems(endpoint, spec.environment, document, spec.place))
        yield from ((size, each) for each in by_itself or created_problems(plan, spec))


def _sizes(offered: OfferedVersion) -> Iterator[tuple[str, EndpointSpec, Plan]]:
    """Yield the spec and the plan of each size.

    Raises:
        _NotJudgedError: The file is missing, of another version, or of a release whose specs were others.
    """
    try:
        document = json.loads(read_text(offered.source))
        source, plans = document[MADE_FROM], document[PLANS]
        # The file is next to the template, where anyone may edit it; the template's seal has its digest.
        if _digest(source) != offered.made_from:
            raise _NotJudgedError(f"{offered.source.as_posix()} is not what its template was made from")
        for each in source["sizes"]:
            endpoint = EndpointSpec.model_validate_json(json.dumps(each["endpoint"]), strict=True)
            plan = Plan.model_validate_json(json.dumps(plans[each["size"]]))
            if plan.digest != each["plan"]:
                raise _NotJudgedError(f"{offered.source.as_posix()} has another plan of size {each['size']}")
            yield each["size"], endpoint, plan
    except FileNotFoundError as missing:
        raise _NotJudgedError(f"there is no {offered.source.as_posix()}") from missing
    except (OSError, ValidationError, ValueError, KeyError, TypeError) as unreadable:
        raise _NotJudgedError(f"{offered.source.as_posix()} can't be read by this release") from unreadable
