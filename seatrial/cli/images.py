"""`seatrial images`: the container images that are known, pinned, or behind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seatrial.cli.support.files import check_lock
from seatrial.cli.support.options import EnvironmentName, EnvironmentsFolder, SpecFile, environments_folder
from seatrial_base.errors import SeatrialError
from seatrial_base.secrets import redacted
from seatrial_base.terminal import show_json, show_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.images import Build, ImageChange, Update

images = typer.Typer(
    name="images", help="Container images: list them, pin digests, find newer builds.", no_args_is_help=True
)

Format = Annotated[Literal["text", "json"], typer.Option("--format", help="Output format.")]
SpecFiles = Annotated[
    list[Path], typer.Argument(metavar="SPEC…", help="The endpoints' YAML files.", show_default=False)
]
OUTDATED = 1
Row = dict[str, object]
_COLUMNS = ("engine", "flavour", "version", "bundles", "read")
_MORE = ("cuda", "regions", "image")
_DEFAULT_AMI = "the service's default"
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
    """List newer documented builds of locked images, and what would change with them."""
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
    from seatrial_base.catalog.images import find_image, update_of

    plan = read_locked_plan(loaded, stale=True)
    build = find_image(plan.image.value.repository, plan.image.value.tag)
    return plan, None if build is None else update_of(build, loaded.environment.region)


def image_rows(builds: Iterable[Build], region: str | None) -> list[Row]:
    """Return one row for each build, newest first within a line."""
    from seatrial_base.catalog import images as catalog
    from seatrial_base.catalog.engines import status_of

    return [
        {
            "engine": build.family,
            "flavour": build.flavour,
            "version": build.version,
            "lmi": build.lmi,
            "bundles": build.bundles,
            "cuda": build.cuda,
            "ami_version": catalog.ami_version(build.cuda),
            "documented": build.documented,
            "repository": build.repository,
            "tag": build.tag,
            "regions": catalog.regions_of_build(build) if region is None else [region],
            "uri": None if region is None else catalog.uri(build, region),
            "status": status_of(build.family, build.flavour),
            "source": build.source,
            "date": build.date,
        }
        for build in sorted(builds, key=catalog.image_rank)
    ]


def images_text(rows: Sequence[Mapping[str, object]], *, wide: bool = False) -> str:
    """Return a table of the rows, then the status of each frozen line; `wide` adds CUDA, regions and addresses."""
    if not rows:
        return "no image matches\n"
    cells = [(*_COLUMNS, *(_MORE if wide else ())), *(_cells(row, wide=wide) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    gap = "  " if wide else " "  # 80 columns
    lines = [gap.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    notes = dict.fromkeys(str(row["status"]) for row in rows if row["status"])
    listed = dict.fromkeys(f"{row['source']}, {row['date']}" for row in rows)
    hint = () if wide else ("--wide shows CUDA, regions, repositories and tags; --region REGION addresses.",)
    return "\n".join([*lines, "", *notes, f"From AWS's lists, not pulled: {'; '.join(listed)}.", *hint, ""])


def _cells(row: Mapping[str, object], *, wide: bool) -> tuple[str, ...]:
    first = (*(str(row[name] or "-") for name in _COLUMNS[:-1]), "yes" if row["documented"] else "no")
    if not wide:
        return first
    regions = row["regions"]
    count = str(len(regions)) if isinstance(regions, list) else "-"
    return (*first, str(row["cuda"] or "-"), count, str(row["uri"] or f"{row['repository']}:{row['tag']}"))


def outdated_row(loaded: LoadedSpec, plan: Plan, update: Update | None) -> Row:
    """Return what is listed after a locked image, as JSON."""
    from seatrial_base.catalog.images import image_digest

    return {
        "endpoint": loaded.endpoint.name,
        "environment": loaded.environment.name,
        "image": plan.image.value.uri,
        "tag": plan.image.value.tag,
        "digest": image_digest(plan.image.value.uri),
        "in_catalog": update is not None,
        "newer": [build.version for build in update.newer] if update else [],
        "unread": [build.version for build in update.unread] if update else [],
        "changes": [{"what": change.what, "before": change.before, "after": change.after} for change in update.changes]
        if update
        else [],
    }


def outdated_text(loaded: LoadedSpec, plan: Plan, update: Update | None) -> str:
    """Return what is listed after a locked image, as text."""
    from seatrial_base.catalog.engines import status_of
    from seatrial_base.units import counted

    name = f"{loaded.endpoint.name} in {loaded.environment.name}"
    if update is None:
        return f"{name}: {plan.image.value.uri} is not in the catalog; newer builds are unknown\n"
    build = update.build
    if not update.newer:
        what = "is the newest documented build" if build.documented else "has no newer documented build"
        lines = [f"{name}: {build.family} {build.version} {what}"]
    else:
        newest = update.newer[-1]
        count = counted(len(update.newer), "newer documented build")
        lines = [
            f"{name}: {build.family} {build.version} -> {newest.version} ({count})",
            *(_change_text(change) for change in update.changes if change.what != "version"),
            f"  {_how(loaded, newest)}",
        ]
    if update.unread:
        lines.append(f"  unverified: {', '.join(other.version for other in update.unread)}")
    if status := status_of(build.family, build.flavour):
        lines.append(f"  {status}")
    return "\n".join([*lines, ""])


def _change_text(change: ImageChange) -> str:
    unknown = _DEFAULT_AMI if change.what == "InferenceAmiVersion" else "unknown"
    return f"  {change.what}: {change.before or unknown} -> {change.after or unknown}"


def _how(loaded: LoadedSpec, newest: Build) -> str:
    command = f"seatrial plan {loaded.path.as_posix()} -e {loaded.environment.name} --write"
    if loaded.endpoint.serving.engine_version is None:
        return f"to update: {command}"
    wanted = f"lmi{newest.lmi}" if newest.lmi is not None else newest.version
    return f"to update: set serving.engine_version: {wanted}, then run {command}"
