"""The spec of a pipeline: where AWS CodePipeline runs, which repository it deploys, in which order of environments."""

from __future__ import annotations

from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, StringConstraints

from seatrial.specs import shapes
from seatrial.specs.environment import Account, Region
from seatrial.specs.load import environment_names, load_environment, ordered, validated
from seatrial.specs.yaml_source import file_problems, merge_environment, read_source, secret_values
from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place
from seatrial_base.frozen_model import FrozenModel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seatrial.specs.environment import EnvironmentSpec


PipelineName = Annotated[str, StringConstraints(pattern=shapes.PIPELINE_NAME, max_length=100)]


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


def promotion_order(environments: Path) -> tuple[EnvironmentSpec, ...]:
    """Return the environments of a folder, each after its source; by name where the sources leave it open.

    Raises:
        SpecError: With every problem of every environment, an unknown source (SEA109) and a cycle (SEA121) among them.
    """
    loaded: dict[str, EnvironmentSpec] = {}
    problems: list[Finding] = []
    for name in environment_names(environments):
        try:
            loaded[name] = load_environment(environments, name)
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)
    return tuple(loaded[name] for name in _sources_first(loaded))


def _sources_first(environments: dict[str, EnvironmentSpec]) -> list[str]:
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for name, environment in environments.items():
        source = environment.promotion.source
        sorter.add(name, *(() if source is None else (source,)))
    sorter.prepare()
    order: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order += ready
        sorter.done(*ready)
    return order


class PipelineSpec(FrozenModel):
    """One pipeline in AWS CodePipeline: it deploys every environment, each after its source."""

    name: PipelineName = Field(description="Name of the pipeline.")
    account: Account = Field(description="AWS account that the pipeline runs in.")
    region: Region = Field(description="AWS region that the pipeline runs in.")
    connection_arn: Annotated[str, StringConstraints(pattern=shapes.CONNECTION_ARN)] = Field(
        description="CodeConnections connection to the host of the repository."
    )
    repository: Annotated[str, StringConstraints(pattern=shapes.REPOSITORY)] = Field(
        description="Repository on its host, as OWNER/NAME."
    )
    branch: Annotated[str, StringConstraints(pattern=shapes.REVISION)] = Field(
        "main", description="Branch whose commits are deployed."
    )
