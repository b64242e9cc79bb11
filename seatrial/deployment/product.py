"""Loads a product: each of its sizes in each of its environments as a deployment, and the versions that are published.

A size has its lock at `products/NAME/SIZE.lock.json`; a published version has a template for each environment at
`products/NAME/versions/VERSION/ENVIRONMENT.template.json`. Both are committed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from seatrial.deployment.load import deployment_of
from seatrial.errors import Problem, SeatrialError, SpecError
from seatrial.files import read_text
from seatrial.spec.load import LoadedSpec, environment_names, load_environment, load_source, ordered, validated
from seatrial.spec.product import ProductSpec, product_problems, size_source, written_field
from seatrial.spec.text_rules import file_problems, secret_values
from seatrial.spec.yaml_source import Document, YamlSource, read_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seatrial.deployment.document import Deployment

Made = TypeVar("Made")
PRODUCTS = Path("products")
TEMPLATE_SUFFIX = ".template.json"


@dataclass(frozen=True, slots=True)
class LoadedProduct:
    """A product whose every size is valid in every one of its environments.

    Attributes:
        path: The product's file.
        product: The product.
        sizes: The endpoint specs by environment and size.
    """

    path: Path
    product: ProductSpec
    sizes: dict[tuple[str, str], LoadedSpec]

    def sizes_in(self, environment: str) -> dict[str, LoadedSpec]:
        """Return the sizes of an environment by name, in the order of the file."""
        return {size: loaded for (name, size), loaded in self.sizes.items() if name == environment}


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


def load_product(path: Path, environments: Path) -> LoadedProduct:
    """Load a product with each of its sizes in each of its environments.

    Args:
        path: The product's YAML file.
        environments: Folder of environments.

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
            sizes, found = _load_sizes(path, source, product, environments)
            problems += found
    if problems or product is None:
        raise SpecError(ordered(problems, secret_values(source)))
    return LoadedProduct(path, product, sizes)


def _environment_problems(product: ProductSpec, document: Document, environments: Path) -> Iterator[Problem]:
    known = environment_names(environments)
    for index, name in enumerate(product.environments):
        path = ("environments", index)
        if name not in known:
            hint = f"known environments: {', '.join(known) or 'none'} (in {environments.as_posix()})"
            yield document.problem(path, "SEA109", f"there is no environment {name}", hint)
            continue
        try:
            offered = load_environment(environments, name).vending
        except SpecError as error:
            yield from error.problems
            continue
        if not offered:
            hint = f"set `vending: true` in {(environments / f'{name}.yaml').as_posix()}"
            yield document.problem(path, "SEA491", f"{name} offers no products", hint)


def _load_sizes(
    path: Path, source: YamlSource, product: ProductSpec, environments: Path
) -> tuple[dict[tuple[str, str], LoadedSpec], list[Problem]]:
    sizes: dict[tuple[str, str], LoadedSpec] = {}
    problems: list[Problem] = []
    for environment in product.environments:
        for size in product.sizes:
            try:
                spec = path.parent / product.name / f"{size}.yaml"
                loaded = load_source(size_source(source, size), spec, environment, environments=environments)
            except SpecError as error:
                problems += _as_written(error.problems, source, size)
            else:
                sizes[environment, size] = loaded
    return sizes, list(dict.fromkeys(problems))


def _as_written(problems: Iterable[Problem], source: YamlSource, size: str) -> Iterator[Problem]:
    """Yield problems of a size by the fields of the product's file."""
    for problem in problems:
        ours = problem.field and problem.where.rpartition(":")[0] == source.path
        yield replace(problem, field=written_field(source, size, problem.field)) if ours else problem


def product_deployments(loaded: LoadedProduct, environment: str) -> dict[str, Deployment]:
    """Return a product's locked sizes in one environment, by the size's name; each is configured by its environment.

    The endpoint's name is `PRODUCT_ENDPOINT` and the size's name: the team chooses the first.

    Raises:
        SpecError: With every problem of every lock.
        RenderError: When a plan can't be rendered.
    """
    return _of_each(loaded, environment, _deployment)


def _deployment(loaded: LoadedSpec) -> Deployment:
    deployment = deployment_of(loaded, packaged=False)
    if deployment.serving.files:
        message = f"the configuration needs the files {', '.join(deployment.serving.files)}"
        raise SpecError.of("SEA493", message, where=loaded.document.path, hint="use another engine or option")
    return deployment


def _of_each(loaded: LoadedProduct, environment: str, make: Callable[[LoadedSpec], Made]) -> dict[str, Made]:
    made: dict[str, Made] = {}
    problems: list[Problem] = []
    for size, spec in loaded.sizes_in(environment).items():
        try:
            made[size] = make(spec)
        except SeatrialError as error:
            problems += _for_product(loaded, environment, error.problems)
    if problems:
        raise SpecError(dict.fromkeys(problems))
    return made


_PLAN = re.compile(r"seatrial plan \S+ --environment \S+")


def _for_product(loaded: LoadedProduct, environment: str, problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield problems whose hints name the command that plans products."""
    command = f"seatrial products plan {loaded.path.as_posix()} --environment {environment}"
    return (replace(each, hint=_PLAN.sub(command, each.hint)) for each in problems)


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
        SpecError: SEA494 when the current version is not among them.
    """
    files = template_path(loaded.path, "*", environment)
    found = sorted(
        PublishedVersion(_number(file.parent.name), file.parent.name, file)
        for file in files.parent.parent.glob(f"*/{files.name}")
    )
    missing = {loaded.product.version} - {each.version for each in found}
    if missing:
        message = f"version {loaded.product.version} is not published for {environment}"
        hint = f"run `seatrial products publish {loaded.path.as_posix()}` and commit what it writes"
        raise SpecError.of("SEA494", message, where=loaded.path.as_posix(), field="version", hint=hint)
    return tuple(found)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("."))


def weights_of(template: Path) -> Iterator[str]:
    """Yield where the models of a published version lie in S3."""
    for resource in json.loads(read_text(template))["Resources"].values():
        if resource["Type"] == "AWS::SageMaker::Model":
            source = resource["Properties"]["PrimaryContainer"].get("ModelDataSource")
            if source is not None:
                yield source["S3DataSource"]["S3Uri"]


def product_files(folder: Path) -> tuple[Path, ...]:
    """Return the products of a folder, sorted by name."""
    return tuple(sorted(folder.glob("*.yaml")))


def load_products(folder: Path, environments: Path) -> tuple[LoadedProduct, ...]:
    """Load every product of a folder; none where there is no such folder.

    Raises:
        SpecError: With every problem of every product.
    """
    loaded: list[LoadedProduct] = []
    problems: list[Problem] = []
    for file in product_files(folder):
        try:
            loaded.append(load_product(file, environments))
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(dict.fromkeys(problems))
    return tuple(loaded)
