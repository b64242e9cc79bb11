"""Loads a product: each of its sizes in each of its environments as a deployment.

A size has its lock at `products/NAME/SIZE.lock.json`, which is committed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.deployment.load import deployment_of
from seatrial.specs.load import LoadedSpec, environment_names, load_environment, load_source, ordered, validated
from seatrial.specs.product import (
    ProductSpec,
    chosen_tags,
    principal_warnings,
    product_problems,
    size_source,
    written_field,
)
from seatrial.specs.yaml_source import Document, YamlSource, file_problems, read_source, secret_values
from seatrial_base.errors import SeatrialError, SpecError
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seatrial.deployment.document import Deployment

PRODUCTS = Path("products")


@dataclass(frozen=True, slots=True)
class LoadedProduct:
    """A product whose every size is valid in every one of its environments.

    Attributes:
        sizes: The endpoint specs by environment and size.
        warnings: What works otherwise than most would mean it.
    """

    path: Path
    product: ProductSpec
    sizes: dict[tuple[str, str], LoadedSpec]
    warnings: tuple[Finding, ...] = ()

    def sizes_in(self, environment: str) -> dict[str, LoadedSpec]:
        """Return the sizes of an environment by name, in the order of the file."""
        return {size: loaded for (name, size), loaded in self.sizes.items() if name == environment}


def load_product(path: Path, environments: Path) -> LoadedProduct:
    """Load a product with each of its sizes in each of its environments.

    Raises:
        SpecError: With every problem of the product, of each size and of each environment; guard rails included.
    """
    source = read_source(path)
    document = Document(source.path, source.data, {path: path for path in source.lines}, source.lines)
    product, problems = validated(ProductSpec, document) if source.data else (None, [])
    problems = [*file_problems(source), *problems]
    sizes: dict[tuple[str, str], LoadedSpec] = {}
    if product is not None:
        problems += product_problems(product, document, path.stem)
        problems += _environment_problems(product, document, environments)
        if not problems:
            sizes, wrong = _load_sizes(path, source, product, environments)
            problems += wrong
    if problems or product is None:
        raise SpecError(ordered(problems, secret_values(source)))
    return LoadedProduct(path, product, sizes, tuple(principal_warnings(product, document)))


def _environment_problems(product: ProductSpec, document: Document, environments: Path) -> Iterator[Finding]:
    known = environment_names(environments)
    for index, name in enumerate(product.environments):
        path = ("environments", index)
        if name not in known:
            hint = f"known environments: {', '.join(known) or 'none'} (in {environments.as_posix()})"
            yield document.problem(path, "SEA109", f"there is no environment {name}", hint)
            continue
        try:
            place = load_environment(environments, name)
        except SpecError as error:
            yield from error.problems
            continue
        file = (environments / f"{name}.yaml").as_posix()
        if not place.vending:
            yield document.problem(path, "SEA491", f"{name} offers no products", f"set `vending: true` in {file}")
        if place.promotion.required:
            message = f"{name} takes promoted plans alone (promotion.required), and products are not promoted"
            hint = f"each launch is tried before it serves: leave it out here, or `promotion.required` out of {file}"
            yield document.problem(path, "SEA499", message, hint)


def _load_sizes(
    path: Path, source: YamlSource, product: ProductSpec, environments: Path
) -> tuple[dict[tuple[str, str], LoadedSpec], list[Finding]]:
    sizes: dict[tuple[str, str], LoadedSpec] = {}
    problems: list[Finding] = []
    for environment in product.environments:
        for size in product.sizes:
            try:
                spec = path.parent / product.name / f"{size}.yaml"
                written = replace(size_source(source, size), chosen=chosen_tags(product.parameters))
                loaded = load_source(written, spec, environment, environments=environments)
            except SpecError as error:
                problems += _as_written(error.problems, source, size)
            else:
                problems += _as_written((*_job_problems(loaded), *_tag_problems(loaded)), source, size)
                sizes[environment, size] = loaded
    return sizes, list(dict.fromkeys(problems))


def _tag_problems(loaded: LoadedSpec) -> Iterator[Finding]:
    """Yield tags that would stand in place of what a team chooses: what it launches would be under another name."""
    for key in loaded.document.chosen:
        if key in loaded.endpoint.tags:
            message = f"a launch chooses the tag {key}, and this one would stand in its place"
            yield loaded.problem(("tags", key), "SEA593", message, "leave it out: required_tags count it as given")


def _job_problems(loaded: LoadedSpec) -> Iterator[Finding]:
    """Yield optimization jobs: what a team launches needs the artifacts at once, and a job takes hours."""
    for index, entry in enumerate(loaded.endpoint.optimization):
        if entry.job is not None:
            message = "a product has no optimization jobs: a launch can't wait for one"
            hint = "give a checkpoint, or the artifacts of a completed job as model.s3_uri"
            yield loaded.problem(("optimization", index, entry.name, "job"), "SEA485", message, hint)


def _as_written(problems: Iterable[Finding], source: YamlSource, size: str) -> Iterator[Finding]:
    """Yield problems of a size by the fields of the product's file."""
    for problem in problems:
        ours = problem.field and problem.where.rpartition(":")[0] == source.path
        yield (
            replace(problem, place=Place.at(problem.where, written_field(source, size, problem.field)))
            if ours
            else problem
        )


def product_deployments(loaded: LoadedProduct, environment: str) -> dict[str, Deployment]:
    """Return a product's locked sizes in one environment, by the size's name; each is configured by its environment.

    The endpoint's name is `PRODUCT_ENDPOINT` and the size's name: the team chooses the first.

    Raises:
        SpecError: With every problem of every lock, and of what can't be rendered.
    """
    made: dict[str, Deployment] = {}
    problems: list[Finding] = []
    for size in loaded.sizes_in(environment):
        try:
            made[size] = size_deployment(loaded, environment, size)
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(dict.fromkeys(problems))
    return made


def size_deployment(loaded: LoadedProduct, environment: str, size: str) -> Deployment:
    """Return one locked size of a product in one environment.

    Raises:
        SpecError: With every problem of its lock, or why its plan can't be rendered.
    """
    try:
        return _deployment(loaded.sizes[environment, size])
    except SeatrialError as error:
        raise SpecError(_for_product(loaded, environment, error.problems)) from error


def _deployment(loaded: LoadedSpec) -> Deployment:
    deployment = deployment_of(loaded, packaged=False)
    if deployment.serving.files:
        message = f"the configuration needs the files {', '.join(deployment.serving.files)}"
        raise SpecError.of("SEA493", message, where=loaded.document.path, hint="use another engine or option")
    return deployment


_PLAN = re.compile(r"seatrial plan \S+ --environment \S+")


def _for_product(loaded: LoadedProduct, environment: str, problems: Iterable[Finding]) -> Iterator[Finding]:
    """Yield problems whose hints name the command that plans products."""
    command = f"seatrial products plan {loaded.path.as_posix()} --environment {environment}"
    return (replace(each, hint=_PLAN.sub(command, each.hint)) for each in problems)


def product_files(folder: Path) -> tuple[Path, ...]:
    """Return the products of a folder, sorted by name."""
    return tuple(sorted(folder.glob("*.yaml")))


def load_products(folder: Path, environments: Path) -> tuple[LoadedProduct, ...]:
    """Load every product of a folder; none where there is no such folder.

    Raises:
        SpecError: With every problem of every product.
    """
    loaded: list[LoadedProduct] = []
    problems: list[Finding] = []
    for file in product_files(folder):
        try:
            loaded.append(load_product(file, environments))
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(dict.fromkeys(problems))
    return tuple(loaded)
