"""Which engine serves the model, in which container image, on which AMI."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial.documents.plan import Decision, Image
from seatrial.planner.decisions.plan_warnings import option_warnings, parser_warnings
from seatrial.planner.inputs import (
    allowed_instances,
    arrival_warnings,
    batching_warnings,
    prefix_warnings,
    token_warnings,
)
from seatrial.planner.neuron_limits import refuse_on_neuron
from seatrial.specs.architecture import read_architecture
from seatrial_base.catalog import images
from seatrial_base.catalog.engine_choice import (
    ENGINE_CANDIDATES,
    EngineCandidate,
    EngineCase,
    Fact,
    best_candidate,
    choice_warnings,
    rule_reasons,
    why_chosen,
)
from seatrial_base.catalog.engines import find_engine
from seatrial_base.catalog.images import resolve_image
from seatrial_base.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatrial.specs.endpoint import EndpointSpec, ServingSpec
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.engines import Engine
    from seatrial_base.catalog.instances import Instance


_UNKNOWN_FAMILY = "inline"  # a shape that is written in the spec names no architecture


def case_of(serving: ServingSpec, architecture: Architecture, allowed: Iterable[Instance]) -> EngineCase:
    """Return the case of an endpoint."""
    types = tuple(allowed)
    neuron = {instance.link == "neuron" for instance in types}
    drafted = serving.overrides.speculative_decoding
    found: dict[Fact, str | None] = {
        "accelerators": "both" if len(neuron) > 1 else "neuron" if neuron == {True} else "gpu",
        "architecture": None if architecture.family == _UNKNOWN_FAMILY else architecture.family,
        "quantization": architecture.quantization(serving.overrides.quantization),
        "speculation": drafted.method if drafted else None,
    }
    named = types[0].instance_type if len(types) == 1 else "every allowed instance type"
    return EngineCase({name: value for name, value in found.items() if value is not None}, named)


_OF_LMI = "The spec fixes serving.backend, which is one of LMI's."
# What an image's name tells of, the first that is in it: the repository's, then the tag's.
_REPOSITORIES = {"tgi": "tgi", "sglang": "sglang", "vllm": "vllm"}
_NEURON = "neuronx"
_TAGS = {"tensorrtllm": "lmi-trtllm", "neuronx": "lmi-neuronx", "deepspeed": "lmi-deepspeed"}


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The engine with everything that follows from it."""

    option: EngineCandidate
    engine: Decision[str]
    version: Decision[str]
    image: Decision[Image]
    ami_version: Decision[str | None]
    facts: Engine
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Taken:
    """The option that is taken, and which fields of the spec fix it; none when it was chosen."""

    option: EngineCandidate
    because: str
    fixed_by: str = ""


def choose_engine(loaded: LoadedSpec) -> EngineChoice:
    """Choose engine, version, image and AMI; a choice of the user's that the rules speak against is warned of.

    Raises:
        PlanError: SEA303 when no image is known, SEA108 when the backend is none of the engine's, SEA111 when the
            environment allows no engine that can serve the model, and what reading the architecture and the instance
            types raises; SEA225 to SEA227 for what AWS Neuron can't serve.
    """
    serving = loaded.endpoint.serving
    architecture, allowed = read_architecture(loaded), allowed_instances(loaded)[0]
    case = _case(loaded.endpoint, architecture, allowed)
    taken = _take(loaded, case)
    refuse_on_neuron(loaded, architecture, allowed, taken.option.name)
    said = choice_warnings(case, taken.option, taken.fixed_by)
    if serving.image is not None:
        choice = _given_image(taken, serving.image, serving.engine_version)
    else:
        choice = _catalog_image(loaded, taken)
    warned = (*batching_warnings(loaded), *arrival_warnings(loaded), *prefix_warnings(loaded), *token_warnings(loaded))
    return replace(choice, warnings=(*said, *choice.warnings, *warned))


def _case(endpoint: EndpointSpec, architecture: Architecture, allowed: Iterable[Instance]) -> EngineCase:
    """Return the case of an endpoint; TensorRT-LLM makes SmoothQuant weights itself, which are planned as int8."""
    case = case_of(endpoint.serving, architecture, allowed)
    smooth = any(entry.name == "smoothquant" for entry in endpoint.optimization)
    built = smooth and endpoint.serving.backend == "trtllm"
    return replace(case, facts={**case.facts, "quantization": "smoothquant"}) if built else case


def _take(loaded: LoadedSpec, case: EngineCase) -> _Taken:
    serving, because = loaded.endpoint.serving, "The spec fixes it."
    if serving.backend != "auto":
        _refuse_foreign_backend(loaded)
        option = next(option for option in ENGINE_CANDIDATES.rows if serving.backend in option.backends)
        return _Taken(option, because if serving.engine == "lmi" else _OF_LMI, "serving.backend")
    if serving.engine != "auto":
        own = [
            option for option in ENGINE_CANDIDATES.rows if option.engine == serving.engine and "auto" in option.backends
        ]
        return _Taken(best_candidate(case, own), because, "serving.engine")
    if serving.image is not None:
        option = _option_of_image(serving.image)
        _refuse_foreign_image(loaded, option)
        return _Taken(option, "From the name of the image in the spec.", "serving.image")
    best = best_candidate(case)
    allowed = loaded.environment.guard_rails.engines
    return (
        _Taken(best, why_chosen(case, best))
        if allowed is None or best.engine in allowed
        else _take_allowed(loaded, case)
    )


def _take_allowed(loaded: LoadedSpec, case: EngineCase) -> _Taken:
    """Return the best of the engines that the environment allows, where the best of all is not among them."""
    allowed = loaded.environment.guard_rails.engines or ()
    own = [option for option in ENGINE_CANDIDATES.rows if option.engine in allowed and "auto" in option.backends]
    best = best_candidate(case, own)
    excluded = rule_reasons(case, best, "excludes")
    if excluded:
        message = f"no allowed engine can serve the model: {' '.join(excluded)} ({loaded.set_by('engines')})"
        hint = f"allowed: {', '.join(allowed)}; Seatrial would take {best_candidate(case).engine}"
        raise PlanError([loaded.problem(("serving", "engine"), "SEA111", message, hint)])
    return _Taken(best, f"The environment allows only {', '.join(allowed)}.", "guard_rails.engines")


def _refuse_foreign_image(loaded: LoadedSpec, option: EngineCandidate) -> None:
    allowed = loaded.environment.guard_rails.engines
    if allowed is not None and option.engine not in allowed:
        name = loaded.environment.name
        message = f"the image is one of {option.engine}, which is not allowed in {name} ({loaded.set_by('engines')})"
        hint = f"allowed: {', '.join(allowed)}"
        raise PlanError([loaded.problem(("serving", "image"), "SEA111", message, hint)])


def _refuse_foreign_backend(loaded: LoadedSpec) -> None:
    serving = loaded.endpoint.serving
    if serving.engine not in ("auto", "lmi"):
        message = f"serving.backend {serving.backend} belongs to LMI, but serving.engine is {serving.engine}"
        problem = loaded.problem(("serving", "backend"), "SEA108", message, "remove the backend, or serve with lmi")
        raise PlanError([problem])


def _option_of_image(uri: str) -> EngineCandidate:
    """Return the option that an image's name tells of; LMI with vLLM when it tells nothing."""
    repository, _, tag = uri.rpartition("/")[2].partition("@")[0].partition(":")
    by_name = [option for mark, option in _REPOSITORIES.items() if mark in repository]
    if by_name and _NEURON in f"{repository}:{tag}":
        by_name = [f"{by_name[0]}-{_NEURON}"]
    by_tag = [option for mark, option in _TAGS.items() if mark in tag]
    told = [*by_name, *by_tag, "lmi-vllm"][0]
    return next(option for option in ENGINE_CANDIDATES.rows if option.name == told)


def _catalog_image(loaded: LoadedSpec, taken: _Taken) -> EngineChoice:
    serving, option = loaded.endpoint.serving, taken.option
    found = _resolve(loaded, option)
    build = found.build
    image = Image(uri=found.uri, repository=build.repository, tag=build.tag)
    read_as = build.lmi if build.flavour == "vllm" else None
    version_because = _why_version(build, option, fixed=serving.engine_version is not None)
    return EngineChoice(
        option=option,
        engine=Decision(value=option.engine, because=taken.because),
        version=Decision(value=build.version, because=version_because),
        image=Decision(value=image, because=f"Listed for {loaded.environment.region} on {build.date}."),
        ami_version=_ami(build),
        facts=_facts(option, build.version),
        warnings=(
            *_undocumented(build),
            *option_warnings(serving.overrides, read_as),
            *(parser_warnings(serving.overrides, option.engine) if _reads_parsers(build) else ()),
        ),
    )


def _reads_parsers(build: images.Build) -> bool:
    """Tell whether an image reads tool calls with parsers that are chosen by name."""
    return build.family in {"vllm", "sglang"} or build.flavour == "vllm"


def _resolve(loaded: LoadedSpec, option: EngineCandidate) -> images.RegionalImage:
    """Return the image of an option, its newest documented build unless the spec gives the version."""
    version = loaded.endpoint.serving.engine_version
    region, last = loaded.environment.region, option.last_lmi
    try:
        return resolve_image(
            option.engine,
            version,
            region,
            flavours=option.flavours,
            accepted=lambda build: last is None or (build.lmi or 0) <= last,
        )
    except PlanError as error:
        placed = loaded.problem(("serving", "engine_version") if version else ("serving",), "SEA303", "")
        moved = [replace(problem, place=placed.place) for problem in error.problems]
        raise PlanError(moved) from error


def _given_image(taken: _Taken, uri: str, version: str | None) -> EngineChoice:
    named, _, digest = uri.rpartition("/")[2].partition("@")
    name, _, tag = named.partition(":")
    cuda = re.search(r"cu\d+", tag)
    told = version or tag or digest
    because = "The spec fixes it." if version else f"The {'tag' if tag else 'digest'} of the image in the spec."
    return EngineChoice(
        option=taken.option,
        engine=Decision(value=taken.option.engine, because=taken.because),
        version=Decision(value=told, because=because),
        image=Decision(value=Image(uri=uri, repository=name, tag=tag), because="The spec fixes it."),
        ami_version=_ami_of(cuda[0] if cuda else None),
        facts=_facts(taken.option, told),
        warnings=(f"The image {uri} is used as given, without checks.",),
    )


def _facts(option: EngineCandidate, version: str) -> Engine:
    return find_engine("neuron" if _NEURON in option.flavours else option.engine, version)


def _why_version(build: images.Build, option: EngineCandidate, *, fixed: bool) -> str:
    if fixed:
        return "The spec fixes it."
    if option.last_lmi is not None:
        return f"The last build with {option.title.removeprefix('LMI with ')}."
    newer = images.newer(build)
    if not newer:
        return "The newest build in the catalog."
    names = ", ".join(other.version for other in newer)
    return f"The newest verified build. Newer, unverified: {names}."


def _undocumented(build: images.Build) -> tuple[str, ...]:
    if build.documented:
        return ()
    return (f"{build.family} {build.version} is unverified: its options may have changed.",)


_NEURON_REPOSITORY = "huggingface-vllm-inference-neuronx"
_NEURON_AMI = "al2-ami-sagemaker-inference-neuron-2"  # optimum-neuron notebooks/sagemaker/deploy-llama-3-3-70b.ipynb


def _ami(build: images.Build) -> Decision[str | None]:
    if build.repository == _NEURON_REPOSITORY:
        because = "For AWS Neuron; the notebook of optimum-neuron deploys this image with it."
        return Decision(value=_NEURON_AMI, because=because)
    if build.flavour == _NEURON:
        because = "SageMaker's default: the image is for AWS Neuron and needs no CUDA."
        return Decision(value=None, because=because)
    return _ami_of(build.cuda)


def _ami_of(cuda: str | None) -> Decision[str | None]:
    version = images.ami_version(cuda)
    if version is not None:
        return Decision(value=version, because=f"Its driver supports the image's CUDA ({cuda}) natively.")
    what = f"CUDA {cuda}" if cuda else "this image"
    because = f"SageMaker's default: no AMI is known to support {what}."
    return Decision(value=None, because=because)
