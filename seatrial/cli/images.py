"""`seatrial images`: the container images that are known, pinned, or behind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seatrial.cli.support.options import EnvironmentName, EnvironmentsFolder, SpecFile, environments_folder
from seatrial.cli.support.outputs import check_lock
from seatrial_base.errors import SeatrialError
from seatrial_base.secrets import redacted
from seatrial_base.terminal import show_json, show_text

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.images import Update

images = typer.Typer(
    name="images", help="Container images: list them, pin digests, find newer builds.", no_args_is_help=True
)

Format = Annotated[Literal["text", "json"], typer.Option("--format", help="Output format.")]
SpecFiles = Annotated[
    list[Path], typer.Argument(metavar="SPEC…", help="The endpoints' YAML files.", show_default=False)
]
OUTDATED = 1
_NO_ACCOUNT = ("SEA503", "SEA504")


@images.command("list")
def list_images(
    engine: Annotated[Literal["lmi", "tgi", "vllm", "sglang"] | None, typer.Option(help="Only this engine's.")] = None,
    flavour: Annotated[
        str | None, typer.Option(metavar="FLAVOUR", help="Only this flavour's, as in trtllm or neuronx.")
    ] = None,
    region: Annotated[
        str | None, typer.Option(metavar="REGION", help="Only images of this region, with their addresses.")
    ] = None,
    *,
    wide: Annotated[bool, typer.Option("--wide", help="Show each image's repository and tag, too.")] = False,
    output_format: Format = "text",
) -> None:
    """List the images of the catalog, newest first; listed means by the SageMaker SDK or AWS, not pulled."""
    from seatrial.cli.support.image_views import image_rows, images_text
    from seatrial_base.catalog import images as catalog
    from seatrial_base.catalog.images import IMAGES

    if region is not None:
        catalog.check_region(region)
    builds = [build for build in IMAGES.rows if engine in (None, build.family) and flavour in (None, build.flavour)]
    rows = image_rows(
        [build for build in builds if region is None or region in catalog.regions_of_build(build)], region
    )
    if output_format == "json":
        show_json({"images": rows})
    else:
        show_text(images_text(rows, wide=wide or region is not None))


@images.command("lock")
def lock(
    spec: SpecFile,
    environment: EnvironmentName,
    environments: EnvironmentsFolder = None,
    *,
    require_digest: Annotated[bool, typer.Option("--require-digest", help="Fail if the digest can't be read.")] = False,
) -> None:
    """Pin the image of the locked plan: its tag is pinned; its digest too where AWS credentials are at hand."""
    from seatrial.locks.changes import dropped_provenance, pin_same_image
    from seatrial.locks.locked_plan import change_locked_plan, read_locked_plan
    from seatrial.specs.load import load_spec
    from seatrial_base.catalog.images import image_digest

    folder = environments_folder(environments, spec)
    check_lock(spec, folder, environment)
    loaded = load_spec(spec, environment, environments=folder)
    plan = read_locked_plan(loaded)
    image = plan.image.value
    name = f"{image.repository}:{image.tag}"
    try:
        digest = _digest(plan)
    except SeatrialError as error:
        if require_digest or error.problems[0].rule not in _NO_ACCOUNT:
            raise
        typer.echo(redacted(f"{error}\npinned by tag only, without digest: {name}"), err=True)
        return
    before = image_digest(image.uri)
    if before == digest:
        typer.echo(f"{name} is pinned to {digest}; the tag is unchanged")
        return
    if before is not None:
        typer.echo(f"the tag {image.tag} has moved; it was pinned to {before}", err=True)
    file = change_locked_plan(loaded, lambda now: pin_same_image(now, image, digest))  # others may have changed it
    for line in dropped_provenance(plan.promoted):
        typer.echo(line, err=True)
    typer.echo(f"{name} is pinned to {digest}")
    typer.echo(f"locked in {file.as_posix()}", err=True)


def _digest(plan: Plan) -> str:
    """Return the digest that the plan's registry has for its tag."""
    import boto3

    from seatrial.account.images import read_address, read_digest
    from seatrial.account.reader import aws_failures

    image = plan.image.value
    if not image.tag:
        raise SeatrialError.of("SEA350", "the image has no tag", where=image.uri)
    with aws_failures(image.uri):
        client = boto3.client("ecr", region_name=read_address(image.uri).region)
    return read_digest(image.uri, image.tag.partition("@")[0], client)


@images.command("outdated")
def outdated(
    specs: SpecFiles,
    environment: EnvironmentName,
    environments: EnvironmentsFolder = None,
    output_format: Format = "text",
    *,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 when a newer documented build is listed.")] = False,
) -> None:
    """Tell which locked images have newer documented builds, and what would change with them."""
    from seatrial.cli.support.image_views import outdated_row, outdated_text
    from seatrial.specs.load import load_spec

    loaded = [load_spec(spec, environment, environments=environments_folder(environments, spec)) for spec in specs]
    updates = [(each, *_update(each)) for each in loaded]
    if output_format == "json":
        show_json({"endpoints": [outdated_row(each, plan, update) for each, plan, update in updates]})
    else:
        show_text("".join(outdated_text(each, plan, update) for each, plan, update in updates))
    if check and any(update is not None and update.newer for _, _, update in updates):
        raise typer.Exit(OUTDATED)


def _update(loaded: LoadedSpec) -> tuple[Plan, Update | None]:
    """Return the locked plan, be it stale, with what is listed after its image; `None` for an image of the user's."""
    from seatrial.locks.locked_plan import read_locked_plan
    from seatrial_base.catalog.images import update_of

    plan = read_locked_plan(loaded, stale=True)
    from seatrial_base.catalog.images import find_image

    build = find_image(plan.image.value.repository, plan.image.value.tag)
    return plan, None if build is None else update_of(build, loaded.environment.region)
