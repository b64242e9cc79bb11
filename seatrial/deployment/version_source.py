"""What a published version of a product was made from, kept beside its template, and the guard rails of today.

A version is offered for as long as it is not deprecated; its product and its locks say by then what the current version
is. So each template has a file `ENVIRONMENT.source.json` with the specs and plans of its sizes. The template's metadata
has the digest of it, so that a file of another version is found.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from seatrial.deployment.load import runs_others
from seatrial.documents.plan import Plan
from seatrial.locks.guard_rails import created_problems
from seatrial.specs.broken_rails import guard_rail_problems
from seatrial.specs.endpoint import EndpointSpec
from seatrial.specs.guard_rails import GuardRails
from seatrial.specs.yaml_source import Document
from seatrial_base.files import read_text
from seatrial_base.findings import Finding, Place
from seatrial_base.frozen_model import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from seatrial.deployment.document import Deployment
    from seatrial.deployment.product import LoadedProduct
    from seatrial.specs.load import LoadedSpec

SOURCE_SUFFIX: Final = ".source.json"
MADE_FROM, PLANS = "MadeFrom", "Plans"
"""The members of such a file: what the template's digest is of, and the whole plans, whose digests that holds."""
_NOT_IN_TEMPLATES = {"guard_rails", "owner", "prices", "promotion", "schema_version", "trial_schedule", "vending"}
"""Fields of an environment that no template of a product depends on."""
_RULE: Final = "SEA487"


class _NotJudgedError(Exception):
    """A version can't be held against guard rails; the message says why."""


@dataclass(frozen=True, slots=True)
class OfferedVersion:
    """A version that teams may launch.

    Attributes:
        version: The version.
        source: The file of what it was made from.
        made_from: The digest of that, as the template has it.
    """

    version: str
    source: Path
    made_from: str


def made_from(loaded: LoadedProduct, deployments: Mapping[str, Deployment]) -> str:
    """Return the digest of what a template is made from: the product, the plans of its sizes, their environment.

    A field that is left out does not count, so that one that a later Seatrial adds changes nothing.

    Args:
        loaded: The product.
        deployments: Its sizes in the environment.
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
    """Yield every guard rail of today that a published version breaks; one that can't be judged breaks them.

    Args:
        loaded: The product.
        environment: Where the version is offered.
        offered: The version.
    """
    place = next(iter(loaded.sizes_in(environment).values()))
    if place.environment.guard_rails == GuardRails() and not place.environment.network.isolated:
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
        _NotJudgedError: It can't be told.
    """
    for size, endpoint, plan in _sizes(offered):
        document = Document(loaded.path.as_posix(), {}, {}, {})
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
