"""Which engine serves the model, in which container image, on which AMI."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from seatrial.catalog import engines, images
from seatrial.errors import PlanError
from seatrial.plan.cautions import option_warnings
from seatrial.plan.document import Decision, Image
from seatrial.plan.reading import token_warnings

if TYPE_CHECKING:
    from seatrial.catalog.engines import Engine, Family
    from seatrial.spec.load import LoadedSpec


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The engine with everything that follows from it."""

    engine: Decision[str]
    version: Decision[str]
    image: Decision[Image]
    ami_version: Decision[str | None]
    facts: Engine
    warnings: tuple[str, ...] = ()


def choose_engine(loaded: LoadedSpec) -> EngineChoice:
    """Choose engine, version, image and AMI.

    Raises:
        PlanError: SEA303 when no image is known.
    """
    serving = loaded.endpoint.serving
    family, engine = _family(serving.engine, serving.image)
    if serving.image is not None:
        given = _given_image(family, engine, serving.image, serving.engine_version)
        return replace(given, warnings=(*given.warnings, *token_warnings(loaded)))
    try:
        found = images.resolve(family, serving.engine_version, loaded.environment.region)
    except PlanError as error:
        field = ("serving", "engine_version") if serving.engine_version else ("serving",)
        placed = loaded.problem(field, "SEA303", "")
        where, path = placed.where, placed.field
        raise PlanError([replace(problem, where=where, field=path) for problem in error.problems]) from error
    build = found.build
    image = Image(uri=found.uri, repository=build.repository, tag=build.tag)
    return EngineChoice(
        engine=engine,
        version=Decision(value=build.version, because=_why_version(build, fixed=serving.engine_version is not None)),
        image=Decision(value=image, because=f"The build as listed on {build.date} for {loaded.environment.region}."),
        ami_version=_ami(build.cuda),
        facts=engines.find(family, build.version),
        warnings=(*_undocumented(build), *option_warnings(serving.overrides, build.lmi), *token_warnings(loaded)),
    )


def _family(asked: Family | Literal["auto"], image: str | None) -> tuple[Family, Decision[str]]:
    if asked != "auto":
        return asked, Decision(value=asked, because="The spec fixes it.")
    if image is not None:
        family: Family = "tgi" if "tgi" in image.rpartition("/")[2] else "lmi"
        return family, Decision(value=family, because="The name of the image in the spec says so.")
    because = "LMI is developed on; TGI has been in maintenance mode since 2025-12-11."
    return "lmi", Decision(value="lmi", because=because)


def _given_image(family: Family, engine: Decision[str], uri: str, version: str | None) -> EngineChoice:
    name, _, tag = uri.rpartition("/")[2].partition(":")
    cuda = re.search(r"cu\d+", tag)
    because = "The spec fixes it." if version else "The tag of the image in the spec stands for it."
    return EngineChoice(
        engine=engine,
        version=Decision(value=version or tag, because=because),
        image=Decision(value=Image(uri=uri, repository=name, tag=tag), because="The spec fixes it."),
        ami_version=_ami(cuda[0] if cuda else None),
        facts=engines.find(family, version or tag),
        warnings=(f"The image {uri} is used as it is: nothing about it was checked.",),
    )


def _why_version(build: images.Build, *, fixed: bool) -> str:
    if fixed:
        return "The spec fixes it."
    newer = [other for other in images.every() if other.family == build.family and not other.documented]
    if not newer:
        return "The newest build in the catalog."
    names = ", ".join(other.version for other in newer)
    return f"The newest build whose behaviour is documented; how {names} behave has not been read."


def _undocumented(build: images.Build) -> tuple[str, ...]:
    if build.documented:
        return ()
    return (f"How {build.family} {build.version} behaves has not been read: its options may have changed.",)


def _ami(cuda: str | None) -> Decision[str | None]:
    version = images.ami_version(cuda)
    if version is not None:
        return Decision(value=version, because=f"Its driver is native to the image's CUDA ({cuda}).")
    what = f"CUDA {cuda}" if cuda else "this image, whose CUDA is unknown"
    because = f"No AMI with a driver native to {what} is known, so the service's default is used."
    return Decision(value=None, because=because)
