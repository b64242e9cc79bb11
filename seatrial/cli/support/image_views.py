"""The output of `seatrial images`: rows as JSON, lines as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_base.catalog import images
from seatrial_base.catalog.engines import status_of
from seatrial_base.catalog.images import image_digest
from seatrial_base.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.images import Build, ImageChange, Update


Row = dict[str, object]
_COLUMNS = ("engine", "flavour", "version", "bundles", "read")
_MORE = ("cuda", "regions", "image")
_DEFAULT_AMI = "the service's default"


def image_rows(builds: Iterable[Build], region: str | None) -> list[Row]:
    """Return one row for each build, newest first within a line."""
    return [_image_row(build, region) for build in sorted(builds, key=images.image_rank)]


def _image_row(build: Build, region: str | None) -> Row:
    return {
        "engine": build.family,
        "flavour": build.flavour,
        "version": build.version,
        "lmi": build.lmi,
        "bundles": build.bundles,
        "cuda": build.cuda,
        "ami_version": images.ami_version(build.cuda),
        "documented": build.documented,
        "repository": build.repository,
        "tag": build.tag,
        "regions": images.regions_of_build(build) if region is None else [region],
        "uri": None if region is None else images.uri(build, region),
        "status": status_of(build.family, build.flavour),
        "source": build.source,
        "date": build.date,
    }


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
