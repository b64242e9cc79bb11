"""Which engine serves the model, in which container image, on which AMI."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial.catalog import engines, images
from seatrial.errors import PlanError
from seatrial.plan.cautions import option_warnings
from seatrial.plan.document import Decision, Image
from seatrial.plan.engine_choice import best_option, case_of, opinion, options, why
from seatrial.plan.reading import allowed_instances, batching_warnings, read_architecture, token_warnings

if TYPE_CHECKING:
    from seatrial.catalog.engines import Engine
    from seatrial.plan.engine_choice import Case, Option
    from seatrial.spec.load import LoadedSpec

_OF_LMI = "The spec fixes serving.backend, which is one of LMI's."
# What an image's name tells of, the first that is in it: the repository's, then the tag's.
_REPOSITORIES = {"tgi": "tgi", "sglang": "sglang", "vllm": "vllm"}
_TAGS = {"tensorrtllm": "lmi-trtllm", "neuronx": "lmi-neuronx", "deepspeed": "lmi-deepspeed"}


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The engine with everything that follows from it."""

    engine: Decision[str]
    version: Decision[str]
    image: Decision[Image]
    ami_version: Decision[str | None]
    facts: Engine
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Taken:
    """The option that is taken, and which fields of the spec fix it; none when it was chosen."""

    option: Option
    because: str
    fixed_by: str = ""


def choose_engine(loaded: LoadedSpec) -> EngineChoice:
    """Choose engine, version, image and AMI; a choice of the user's that the rules speak against is warned of.

    Raises:
        PlanError: SEA303 when no image is known, SEA108 when the backend is none of the engine's, and what reading the
            architecture and the instance types raises.
    """
    serving = loaded.endpoint.serving
    case = case_of(serving, read_architecture(loaded), allowed_instances(loaded)[0])
    taken = _take(loaded, case)
    said = opinion(case, taken.option, taken.fixed_by)
    if serving.image is not None:
        choice = _given_image(taken, serving.image, serving.engine_version)
    else:
        choice = _catalog_image(loaded, taken)
    return replace(choice, warnings=(*said, *choice.warnings, *batching_warnings(loaded), *token_warnings(loaded)))


def _take(loaded: LoadedSpec, case: Case) -> _Taken:
    serving, because = loaded.endpoint.serving, "The spec fixes it."
    if serving.backend != "auto":
        _refuse_foreign_backend(loaded)
        option = next(option for option in options() if serving.backend in option.backends)
        return _Taken(option, because if serving.engine == "lmi" else _OF_LMI, "serving.backend")
    if serving.engine != "auto":
        own = [option for option in options() if option.engine == serving.engine and "auto" in option.backends]
        return _Taken(best_option(case, own), because, "serving.engine")
    if serving.image is not None:
        return _Taken(_option_of_image(serving.image), "The name of the image in the spec says so.", "serving.image")
    best = best_option(case)
    return _Taken(best, why(case, best))


def _refuse_foreign_backend(loaded: LoadedSpec) -> None:
    serving = loaded.endpoint.serving
    if serving.engine not in ("auto", "lmi"):
        message = f"serving.backend {serving.backend} is one of LMI's, and serving.engine is {serving.engine}"
        problem = loaded.problem(("serving", "backend"), "SEA108", message, "remove the backend, or serve with lmi")
        raise PlanError([problem])


def _option_of_image(uri: str) -> Option:
    """Return the option that an image's name tells of; LMI with vLLM when it tells nothing."""
    repository, _, tag = uri.rpartition("/")[2].partition("@")[0].partition(":")
    by_name = [option for mark, option in _REPOSITORIES.items() if mark in repository]
    by_tag = [option for mark, option in _TAGS.items() if mark in tag]
    told = [*by_name, *by_tag, "lmi-vllm"][0]
    return next(option for option in options() if option.name == told)


def _catalog_image(loaded: LoadedSpec, taken: _Taken) -> EngineChoice:
    serving, option = loaded.endpoint.serving, taken.option
    found = _resolve(loaded, option)
    build = found.build
    image = Image(uri=found.uri, repository=build.repository, tag=build.tag)
    read_as = build.lmi if build.flavour == "vllm" else None
    version_because = _why_version(build, option, fixed=serving.engine_version is not None)
    return EngineChoice(
        engine=Decision(value=option.engine, because=taken.because),
        version=Decision(value=build.version, because=version_because),
        image=Decision(value=image, because=f"The build as listed on {build.date} for {loaded.environment.region}."),
        ami_version=_ami(build),
        facts=engines.find(option.engine, build.version),
        warnings=(*_undocumented(build), *option_warnings(serving.overrides, read_as)),
    )


def _resolve(loaded: LoadedSpec, option: Option) -> images.Image:
    """Return the image of an option, its newest documented build unless the spec gives the version."""
    version = loaded.endpoint.serving.engine_version
    region, last = loaded.environment.region, option.last_lmi
    try:
        return images.resolve(
            option.engine,
            version,
            region,
            flavours=option.flavours,
            accepted=lambda build: last is None or (build.lmi or 0) <= last,
        )
    except PlanError as error:
        placed = loaded.problem(("serving", "engine_version") if version else ("serving",), "SEA303", "")
        moved = [replace(problem, where=placed.where, field=placed.field) for problem in error.problems]
        raise PlanError(moved) from error


def _given_image(taken: _Taken, uri: str, version: str | None) -> EngineChoice:
    named, _, digest = uri.rpartition("/")[2].partition("@")
    name, _, tag = named.partition(":")
    cuda = re.search(r"cu\d+", tag)
    told = version or tag or digest
    because = (
        "The spec fixes it." if version else f"The {'tag' if tag else 'digest'} of the image in the spec stands for it."
    )
    return EngineChoice(
        engine=Decision(value=taken.option.engine, because=taken.because),
        version=Decision(value=told, because=because),
        image=Decision(value=Image(uri=uri, repository=name, tag=tag), because="The spec fixes it."),
        ami_version=_ami_of(cuda[0] if cuda else None),
        facts=engines.find(taken.option.engine, told),
        warnings=(f"The image {uri} is used as given, without checks.",),
    )


def _why_version(build: images.Build, option: Option, *, fixed: bool) -> str:
    if fixed:
        return "The spec fixes it."
    if option.last_lmi is not None:
        return f"The last build that has {option.title.removeprefix('LMI with ')}."
    newer = images.newer(build)
    if not newer:
        return "The newest build in the catalog."
    names = ", ".join(other.version for other in newer)
    return f"The newest verified build. Newer builds exist but are unverified: {names}."


def _undocumented(build: images.Build) -> tuple[str, ...]:
    if build.documented:
        return ()
    return (f"{build.family} {build.version} is unverified: its options may have changed.",)


def _ami(build: images.Build) -> Decision[str | None]:
    if build.flavour == "neuronx":
        because = "The image needs no CUDA; for AWS Neuron the service's default is used."
        return Decision(value=None, because=because)
    return _ami_of(build.cuda)


def _ami_of(cuda: str | None) -> Decision[str | None]:
    version = images.ami_version(cuda)
    if version is not None:
        return Decision(value=version, because=f"Its driver is native to the image's CUDA ({cuda}).")
    what = f"CUDA {cuda}" if cuda else "this image, whose CUDA is unknown"
    because = f"No AMI with a driver native to {what} is known, so the service's default is used."
    return Decision(value=None, because=because)
