"""Loads a pipeline's file, with the environments that it deploys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.specs.load import ordered, validated
from seatrial.specs.pipeline import PipelineSpec
from seatrial.specs.promotion_order import promotion_order
from seatrial.specs.text_rules import file_problems, secret_values
from seatrial.specs.yaml_source import merge_environment, read_source
from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seatrial.specs.environment import EnvironmentSpec


def load_pipeline(file: Path, environments: Path) -> tuple[PipelineSpec, tuple[EnvironmentSpec, ...]]:
    """Load a pipeline's spec, and the environments in the order of promotion; the embedded AWS is none of them.

    Raises:
        SpecError: With every problem of the file and of the environments; SEA483, an environment has no account.
    """
    source = read_source(file)
    spec, problems = validated(PipelineSpec, merge_environment(source, None)) if source.data else (None, [])
    problems = [*file_problems(source), *problems]
    order: tuple[EnvironmentSpec, ...] = ()
    try:
        order = tuple(each for each in promotion_order(environments) if not each.is_embedded)
    except SpecError as error:
        problems += error.problems
    problems += account_problems(order, environments)
    if problems or spec is None:
        raise SpecError(ordered(problems, secret_values(source)))
    return spec, order


def account_problems(order: tuple[EnvironmentSpec, ...], environments: Path) -> Iterator[Finding]:
    """Yield every environment without an account: its pipeline can't name a role there."""
    for environment in order:
        if environment.account is None:
            where, hint = (environments / f"{environment.name}.yaml").as_posix(), 'add it: account: "111111111111"'
            yield Finding("SEA483", Place.at(where, "account"), f"{environment.name} has no account", hint)
