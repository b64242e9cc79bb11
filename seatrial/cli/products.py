"""`seatrial products`: standard endpoints that a platform team offers to product teams."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.support.options import EnvironmentName, EnvironmentsFolder, environments_folder
from seatrial.cli.support.specs import of_every, spec_files
from seatrial_base.errors import SpecError
from seatrial_base.findings import Format
from seatrial_lint.cli.run import FindingsFormat, problems_in

if TYPE_CHECKING:
    from seatrial.deployment.product import LoadedProduct

NOT_PUBLISHED = 1
products = typer.Typer(name="products", help="Products: standard endpoints for product teams.", no_args_is_help=True)
ProductFiles = Annotated[
    list[Path],
    typer.Argument(metavar="PRODUCT…", help="YAML files of products, or folders of them.", show_default=False),
]
Environments = Annotated[
    list[str] | None,
    typer.Option("--environment", "-e", metavar="ENV", help="Only these environments. Default: all of the product."),
]


@products.callback()
def _products() -> None:
    """Products: standard endpoints for product teams."""


@products.command("validate")
def validate_products(
    files: ProductFiles, environments: EnvironmentsFolder = None, output_format: FindingsFormat = "text"
) -> None:
    """Check products in every size and environment, guard rails included, and list every problem.

    Exit 2 with an error, 1 with a warning.
    """
    from seatrial.deployment.published import edited_versions, forbidden_versions

    with problems_in(output_format, "products validate") as problems:
        products = _loaded(files, environments)
        # A version that teams may launch must keep the guard rails of today, not those of its publication.
        offered = [(product, name) for product in products for name in product.product.environments]
        checks = (edited_versions, forbidden_versions)
        if wrong := [problem for pair in offered for check in checks for problem in check(*pair)]:
            raise SpecError(wrong)
        for loaded in products:
            typer.echo(f"{loaded.path.as_posix()}: valid", err=output_format != "text")
            problems.extend(loaded.warnings)


@products.command("plan")
def plan_products(
    files: ProductFiles,
    environment: Environments = None,
    environments: EnvironmentsFolder = None,
    *,
    write: Annotated[bool, typer.Option("--write", help="Write each plan to the lock of its size.")] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="List missing, stale and edited locks without planning; exit 1 if there are any."),
    ] = False,
    accept_slo_miss: Annotated[
        bool, typer.Option("--accept-slo-miss", help="Plan even if no deployment is predicted to meet the SLO.")
    ] = False,
    output_format: Annotated[Format, typer.Option("--format", help="Output format of --check.")] = "text",
) -> None:
    """Plan every size of products; locks are written only if every size has a plan."""
    from seatrial.cli.support.locking import check_freshness, lock_plan, refuse_format_of_findings
    from seatrial.locks.lock_file import locked_document
    from seatrial.planner.planner import make_plan
    from seatrial.report.terminal.first_screen import plans_view
    from seatrial_base.terminal import show

    if check and (write or accept_slo_miss):
        raise typer.BadParameter("can't be combined with --write, --accept-slo-miss", param_hint="'--check'")
    refuse_format_of_findings(output_format, is_check=check, others=("text",))
    size_specs = [
        spec
        for loaded in _loaded(files, environments)
        for (name, _), spec in loaded.sizes.items()
        if environment is None or name in environment
    ]
    if check:
        check_freshness(size_specs, output_format, "products plan --check")
        return
    made = of_every(size_specs, lambda spec: (make_plan(spec, accept_slo_miss=accept_slo_miss), spec))
    show(plans_view(made))
    if not write:
        return
    before = of_every(size_specs, locked_document)
    for (each, spec), locked in zip(made, before, strict=True):
        spec.path.parent.mkdir(parents=True, exist_ok=True)
        file, lines = lock_plan(each, spec.path, locked)
        typer.echo(f"{file.as_posix()}: {'; '.join((each.environment, *lines))}", err=True)


@products.command("publish")
def publish_product(
    files: ProductFiles,
    environments: EnvironmentsFolder = None,
    *,
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing; list what is published, exit 1 unless every product is as it is."),
    ] = False,
) -> None:
    """Write the CloudFormation templates of the current versions next to their products.

    A published version never changes: raise `version` to publish another template.
    """
    from seatrial.deployment.published import changed_version, publication_state
    from seatrial.operations.app import publish_products

    offered = [(product, name) for product in _loaded(files, environments) for name in product.product.environments]
    states = of_every(offered, lambda pair: publication_state(*pair))
    if check:
        for (one, name), state in zip(offered, states, strict=True):
            typer.echo(f"{one.path.as_posix()}: {name}: {one.product.version}: {state}")
        if set(states) != {"published"}:
            raise typer.Exit(NOT_PUBLISHED)
        return
    changed = [pair for pair, state in zip(offered, states, strict=True) if state == "changed"]
    if changed:
        raise SpecError(problem for pair in changed for problem in changed_version(*pair).problems)
    by_folder: dict[Path, list[Path]] = {}
    for file in dict.fromkeys(one.path for one, _ in offered):
        by_folder.setdefault(environments_folder(environments, file), []).append(file)
    for folder, some in by_folder.items():
        typer.echo(publish_products(some, folder), nl=False)


@products.command("list")
def list_products(files: ProductFiles, environments: EnvironmentsFolder = None) -> None:
    """List products with their sizes and published versions, by environment."""
    from seatrial.deployment.published import published_versions

    offered = [(product, name) for product in _loaded(files, environments) for name in product.product.environments]
    versions = of_every(offered, lambda pair: published_versions(*pair))
    for (loaded, environment), published in zip(offered, versions, strict=True):
        deprecated = loaded.product.deprecated
        listed = ", ".join(f"{each.version}{' (deprecated)' * (each.version in deprecated)}" for each in published)
        sizes = ", ".join(loaded.product.sizes)
        typer.echo(f"{loaded.product.name}: {environment}: sizes {sizes}; versions {listed}")


@products.command("upload")
def upload(
    files: ProductFiles,
    environment: EnvironmentName,
    bucket: Annotated[
        str, typer.Option("--bucket", metavar="BUCKET", help="Output `TemplatesBucket` of the vending stack.")
    ],
    environments: EnvironmentsFolder = None,
) -> None:
    """Upload the published templates for SageMaker Projects, with the tag that shows them in Studio.

    Deprecated versions are uploaded without the tag. Needs s3:PutObject and s3:PutObjectTagging on the bucket.
    """
    from seatrial.stage.products import upload_templates

    for loaded in _offered(files, environments, environment):
        folder = environments_folder(environments, loaded.path)
        for uri in upload_templates(loaded, environment, bucket, folder):
            typer.echo(uri)


@products.command("deprecate")
def deprecate(
    files: ProductFiles,
    environment: EnvironmentName,
    portfolio: Annotated[
        str, typer.Option("--portfolio", metavar="ID", help="Output `PortfolioId` of the vending stack.")
    ],
    environments: EnvironmentsFolder = None,
) -> None:
    """Mark the deprecated versions in AWS Service Catalog, and only those.

    A deprecated version can't be launched; what was launched stays. Needs servicecatalog:SearchProductsAsAdmin,
    servicecatalog:ListProvisioningArtifacts and servicecatalog:UpdateProvisioningArtifact.
    """
    from seatrial.stage.products import mark_deprecated

    for loaded in _offered(files, environments, environment):
        folder = environments_folder(environments, loaded.path)
        for line in mark_deprecated(loaded, environment, portfolio, folder):
            typer.echo(line)


def _offered(files: list[Path], environments: Path | None, environment: str) -> tuple[LoadedProduct, ...]:
    """Return the products that an environment offers."""
    loaded = _loaded(files, environments)
    offered = tuple(product for product in loaded if environment in product.product.environments)
    if not offered:
        known = ", ".join(sorted({name for product in loaded for name in product.product.environments}))
        where = ", ".join(product.path.as_posix() for product in loaded)
        hint = f"they are offered in {known}"
        raise SpecError.of("SEA491", f"{environment} offers none of these products", where=where, hint=hint)
    return offered


def _loaded(files: list[Path], environments: Path | None) -> tuple[LoadedProduct, ...]:
    from seatrial.deployment.product import load_product

    return of_every(spec_files(files), lambda file: load_product(file, environments_folder(environments, file)))
