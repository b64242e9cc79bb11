"""The published versions of products: templates that never change, and what each was made from.

A version has a template for each environment at `products/NAME/versions/VERSION/ENVIRONMENT.template.json`. It is
committed. Its metadata has the digest of what it was made from, which needs no CDK and outlasts an upgrade of Seatrial,
and the digest of the template itself, so that an edit is found.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from seatrial.deployment.product import product_deployments
from seatrial_base.errors import SpecError
from seatrial_base.files import read_text
from seatrial_base.frozen_model import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from seatrial.deployment.document import Deployment
    from seatrial.deployment.product import LoadedProduct

TEMPLATE_SUFFIX = ".template.json"
SECTION, MADE_FROM, TEMPLATE = "Seatrial", "MadeFrom", "Template"
"""The section of a template's metadata, and its digests."""
State: TypeAlias = Literal["published", "not published", "changed"]
_NOT_IN_TEMPLATES = {"guard_rails", "owner", "prices", "promotion", "schema_version", "trial_schedule", "vending"}
"""Fields of an environment that no template of a product depends on."""


@dataclass(frozen=True, slots=True, order=True)
class PublishedVersion:
    """A version of a product as it was published for one environment.

    Attributes:
        number: The version as numbers.
        version: The version.
        template: Its template's file.
    """

    number: tuple[int, ...]
    version: str
    template: Path


def template_path(product: Path, version: str, environment: str) -> Path:
    """Return where the template of a version lies.

    Args:
        product: The product's YAML file.
        version: The version.
        environment: The environment's name.
    """
    return product.with_suffix("") / "versions" / version / f"{environment}{TEMPLATE_SUFFIX}"


def published_versions(loaded: LoadedProduct, environment: str) -> tuple[PublishedVersion, ...]:
    """Return what was published of a product for an environment, the oldest version first.

    Raises:
        SpecError: SEA494 when the current version is not among them, SEA498 when a template was edited.
    """
    files = template_path(loaded.path, "*", environment)
    found = sorted(
        PublishedVersion(_number(file.parent.name), file.parent.name, file)
        for file in files.parent.parent.glob(f"*/{files.name}")
    )
    if loaded.product.version not in {each.version for each in found}:
        raise unpublished_version(loaded, environment)
    problems = [problem for each in found if (problem := _edited(each.template)) is not None]
    if problems:
        raise SpecError(problem for error in problems for problem in error.problems)
    return tuple(found)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("."))


def made_from(loaded: LoadedProduct, deployments: Mapping[str, Deployment]) -> str:
    """Return the digest of what a template is made from: the product, the plans of its sizes, their environment.

    A field that is left out does not count, so that one that a later Seatrial adds changes nothing.

    Args:
        loaded: The product.
        deployments: Its sizes in the environment.
    """
    product = loaded.product
    document = {
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
    return digest(_canonical(document))


def sealed(template: Mapping[str, object], source: str) -> dict[str, object]:
    """Return a template with the digest of what it was made from, and its own, in its metadata.

    Args:
        template: The template.
        source: What `made_from` returns.
    """
    metadata = template.get("Metadata")
    given = dict(metadata) if isinstance(metadata, dict) else {}
    whole = {**template, "Metadata": {**given, SECTION: {MADE_FROM: source}}}
    return {**whole, "Metadata": {**given, SECTION: {MADE_FROM: source, TEMPLATE: digest(_canonical(whole))}}}


def publication_state(loaded: LoadedProduct, environment: str) -> State:
    """Return whether the current version of a product is published for an environment as the product is now.

    Raises:
        SpecError: With every problem of every lock; SEA498 when the template was edited.
    """
    source = made_from(loaded, product_deployments(loaded, environment))
    file = template_path(loaded.path, loaded.product.version, environment)
    if not file.is_file():
        return "not published"
    if (error := _edited(file)) is not None:
        raise error
    return "published" if _seal(_template(file)).get(MADE_FROM) == source else "changed"


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
    if template == sealed(_unsealed(template), str(_seal(template).get(MADE_FROM))):
        return None
    message = "it is not the template that was published"
    hint = "restore it from git; a change needs another version"
    return SpecError.of("SEA498", message, where=file.as_posix(), hint=hint)


def _unsealed(template: Mapping[str, object]) -> dict[str, object]:
    metadata = template.get("Metadata")
    rest = {name: each for name, each in metadata.items() if name != SECTION} if isinstance(metadata, dict) else {}
    return {**template, "Metadata": rest}


def _seal(template: Mapping[str, object]) -> Mapping[str, object]:
    metadata = template.get("Metadata")
    found = metadata.get(SECTION) if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}


def _template(file: Path) -> dict[str, object]:
    """Return a template; an empty one where the file holds none."""
    try:
        document = json.loads(read_text(file))
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _canonical(document: object) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


_SECRET = re.compile(r"\{\{resolve:secretsmanager:(?:(?P<arn>arn:(?:[^:}]+:){5}[^:}]+)|(?P<name>[^:}]+))")


def kept_templates(products: Path, environment: str) -> tuple[Path, ...]:
    """Return every published template for an environment, those of products whose file is gone included.

    Args:
        products: Folder of products.
        environment: The environment's name.
    """
    return tuple(sorted(products.glob(f"*/versions/*/{environment}{TEMPLATE_SUFFIX}")))


def weights_of(template: Path) -> Iterator[str]:
    """Yield where the models of a published version lie in S3."""
    for resource in json.loads(read_text(template))["Resources"].values():
        if resource["Type"] == "AWS::SageMaker::Model":
            source = resource["Properties"]["PrimaryContainer"].get("ModelDataSource")
            if source is not None:
                yield source["S3DataSource"]["S3Uri"]


def secrets_of(template: Path) -> Iterator[str]:
    """Yield the names or ARNs of the secrets that a published version reads."""
    for found in _SECRET.finditer(read_text(template)):
        yield found["arn"] or found["name"]
