"""Which engine serves the model, in which image, on which instance types, and what either can't serve."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial.documents.plan import Decision, Image
from seatrial.planner.decisions.batching import fixed_max_model_len
from seatrial.planner.decisions.plan_warnings import option_warnings, parser_warnings
from seatrial.planner.search.fitting import possible_degrees
from seatrial.specs.architecture import read_architecture
from seatrial.specs.prices import priced
from seatrial.specs.recipe import fields_of
from seatrial_base.catalog import images, neuron
from seatrial_base.catalog.architecture import Architecture, shards_evenly
from seatrial_base.catalog.engine_versions import read_version
from seatrial_base.catalog.engines import (
    ENGINE_CANDIDATES,
    EngineCandidate,
    EngineCase,
    Fact,
    best_candidate,
    choice_warnings,
    find_engine,
    rule_reasons,
    why_chosen,
)
from seatrial_base.catalog.image_addresses import judge_image
from seatrial_base.catalog.images import resolve_image
from seatrial_base.catalog.instances import INSTANCES, find_instance
from seatrial_base.catalog.rows import nearest_names
from seatrial_base.errors import PlanError
from seatrial_load.documents.arrivals import ARRIVALS, Poisson, replay_speed
from seatrial_load.measure.lengths import cached_share

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from seatrial.specs.endpoint import ServingSpec
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.engines import Engine
    from seatrial_base.catalog.instances import Instance
    from seatrial_base.findings import Finding
    from seatrial_load.documents.arrivals import Arrivals
    from seatrial_load.measure.lengths import Conversations

_UNKNOWN_FAMILY = "inline"  # a shape that is written in the spec names no architecture
_OF_LMI = "The spec fixes serving.backend, which is one of LMI's."
# Engines by a part of an image's name, the first that is in it: the repository's, then the tag's.
_REPOSITORIES = {"tgi": "tgi", "sglang": "sglang", "vllm": "vllm"}
_NEURON = "neuronx"
_TAGS = {"tensorrtllm": "lmi-trtllm", "neuronx": "lmi-neuronx", "deepspeed": "lmi-deepspeed"}
_NEURON_REPOSITORY = "huggingface-vllm-inference-neuronx"
_NEURON_AMI = "al2-ami-sagemaker-inference-neuron-2"  # optimum-neuron notebooks/sagemaker/deploy-llama-3-3-70b.ipynb
_FEATURES = (
    ("pipeline_parallel_degree", 1),
    ("kv_cache_dtype", "auto"),
    ("prefix_caching", False),
    ("chunked_prefill", False),
    ("lora", None),
    ("speculative_decoding", None),
    ("rope_scaling", None),
    ("dynamic_batching", None),
)  # each with the value that asks for nothing
_WIDEST_INSTANCE = 16  # accelerators
_WITHOUT_ADAPTERS = ("lmi-trtllm", "lmi-deepspeed", "lmi-python")
_FIRST_ADAPTER_ROUTES = (0, 12)


def case_of(serving: ServingSpec, architecture: Architecture, allowed: Iterable[Instance]) -> EngineCase:
    """Return the case of an endpoint."""
    types = tuple(allowed)
    neuron = {instance.link == "neuron" for instance in types}
    drafted = serving.overrides.speculative_decoding
    facts: dict[Fact, str | None] = {
        "accelerators": "both" if len(neuron) > 1 else "neuron" if neuron == {True} else "gpu",
        "architecture": None if architecture.family == _UNKNOWN_FAMILY else architecture.family,
        "quantization": architecture.quantization(serving.overrides.quantization),
        "speculation": drafted.method if drafted else None,
    }
    named = types[0].instance_type if len(types) == 1 else "every allowed instance type"
    return EngineCase({name: value for name, value in facts.items() if value is not None}, named)


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
        PlanError: SEA132 when the engine loads no adapters, SEA303 when no image is known, SEA108 when the backend is
            none of the engine's, SEA111 when the environment allows no engine that can serve the model, and what
            reading the architecture and the instance types raises; SEA225 to SEA227 for what AWS Neuron can't serve.
    """
    serving = loaded.endpoint.serving
    architecture, allowed = read_architecture(loaded), allowed_instances(loaded)[0]
    # The case of an endpoint; TensorRT-LLM makes SmoothQuant weights itself, which are planned as int8.
    case = case_of(loaded.endpoint.serving, architecture, allowed)
    smooth = any(entry.name == "smoothquant" for entry in loaded.endpoint.optimization)
    built = smooth and loaded.endpoint.serving.backend == "trtllm"
    case = replace(case, facts={**case.facts, "quantization": "smoothquant"}) if built else case
    # Nothing else of the workload decides: `invoke` is served by every engine.
    openai = loaded.endpoint.workload.api == "openai"
    case = replace(case, facts={**case.facts, "api": "openai"}) if openai else case
    taken = _take(loaded, case)
    refuse_on_neuron(loaded, architecture, allowed, taken.option.name)
    rule_warnings = choice_warnings(case, taken.option, taken.fixed_by)
    # An image of the user is taken as given, without checks.
    if serving.image is not None:
        choice = _given_image(taken, serving.image, serving.engine_version)
        judged = judge_image(serving.image, loaded.environment.region, loaded.environment.account or "")
        choice = replace(choice, warnings=(*choice.warnings, *(f"{one.message}: {one.hint}." for one in judged)))
    else:
        choice = _catalog_image(loaded, taken)
    _refuse_adapters(loaded, choice)
    warned = (*batching_warnings(loaded), *arrival_warnings(loaded), *prefix_warnings(loaded), *token_warnings(loaded))
    return replace(choice, warnings=(*rule_warnings, *choice.warnings, *warned))


def _refuse_adapters(loaded: LoadedSpec, choice: EngineChoice) -> None:
    """Refuse adapters of an engine that can't load one while it runs.

    SageMaker loads an adapter component by `POST /adapters` of the base model's container: LMI has that route for
    vLLM and lmi-dist (`djl-serving` adapters.md), vLLM's own server since pull request 27892; neither TGI nor SGLang
    has it.

    Raises:
        PlanError: SEA132.
    """
    engine, version = choice.engine.value, choice.version.value
    if not loaded.endpoint.serving.adapters:
        return
    if engine in ("tgi", "sglang"):
        because = f"{engine} has no route to load an adapter while it runs"
    elif choice.option.name in _WITHOUT_ADAPTERS:
        because = f"{choice.option.title} loads no adapters"
    elif engine == "vllm" and (read := read_version("vllm", version)) is not None and read < _FIRST_ADAPTER_ROUTES:
        because = f"vLLM {version} has no route /adapters, which came with 0.12"
    else:
        return
    hint = "use a newer vLLM or LMI, or load the adapters at start with serving.overrides.lora.adapters"
    raise PlanError([loaded.problem(("serving", "adapters"), "SEA132", because, hint)])


def _take(loaded: LoadedSpec, case: EngineCase) -> _Taken:
    serving, because = loaded.endpoint.serving, "The spec fixes it."
    allowed = loaded.rails.engines
    if serving.backend != "auto":
        if serving.engine not in ("auto", "lmi"):
            message = f"serving.backend {serving.backend} belongs to LMI, but serving.engine is {serving.engine}"
            problem = loaded.problem(("serving", "backend"), "SEA108", message, "remove the backend, or serve with lmi")
            raise PlanError([problem])
        option = next(option for option in ENGINE_CANDIDATES.rows if serving.backend in option.backends)
        return _Taken(option, because if serving.engine == "lmi" else _OF_LMI, "serving.backend")
    if serving.engine != "auto":
        own = [
            option for option in ENGINE_CANDIDATES.rows if option.engine == serving.engine and "auto" in option.backends
        ]
        return _Taken(best_candidate(case, own), because, "serving.engine")
    # An image may be of any engine: its name is all that is known.
    if serving.image is not None:
        option = _option_of_image(serving.image)
        if allowed is not None and option.engine not in allowed:
            where = f"{loaded.environment.name} ({loaded.set_by('engines')})"
            message = f"the image is one of {option.engine}, which is not allowed in {where}"
            hint = f"allowed: {', '.join(allowed)}"
            raise PlanError([loaded.problem(("serving", "image"), "SEA111", message, hint)])
        return _Taken(option, "From the name of the image in the spec.", "serving.image")
    best = best_candidate(case)
    return (
        _Taken(best, why_chosen(case, best))
        if allowed is None or best.engine in allowed
        else _take_allowed(loaded, case)
    )


def _take_allowed(loaded: LoadedSpec, case: EngineCase) -> _Taken:
    """Return the best of the engines that the environment allows, where the best of all is not among them."""
    allowed = loaded.rails.engines or ()
    own = [option for option in ENGINE_CANDIDATES.rows if option.engine in allowed and "auto" in option.backends]
    best = best_candidate(case, own)
    excluded = rule_reasons(case, best, "excludes")
    if excluded:
        message = f"no allowed engine can serve the model: {' '.join(excluded)} ({loaded.set_by('engines')})"
        hint = f"allowed: {', '.join(allowed)}; Seatrial would take {best_candidate(case).engine}"
        raise PlanError([loaded.problem(("serving", "engine"), "SEA111", message, hint)])
    return _Taken(best, f"The environment allows only {', '.join(allowed)}.", "guard_rails.engines")


def _option_of_image(uri: str) -> EngineCandidate:
    """Return the option that an image's name implies; LMI with vLLM when it implies none."""
    repository, _, tag = uri.rpartition("/")[2].partition("@")[0].partition(":")
    by_name = [option for mark, option in _REPOSITORIES.items() if mark in repository]
    if by_name and _NEURON in f"{repository}:{tag}":
        by_name = [f"{by_name[0]}-{_NEURON}"]
    by_tag = [option for mark, option in _TAGS.items() if mark in tag]
    name = [*by_name, *by_tag, "lmi-vllm"][0]
    return next(option for option in ENGINE_CANDIDATES.rows if option.name == name)


def _catalog_image(loaded: LoadedSpec, taken: _Taken) -> EngineChoice:
    serving, option = loaded.endpoint.serving, taken.option
    region, last, version = loaded.environment.region, option.last_lmi, serving.engine_version
    try:
        regional = resolve_image(
            option.engine,
            version,
            region,
            flavours=option.flavours,
            accepted=lambda build: last is None or (build.lmi or 0) <= last,
        )
    except PlanError as error:
        placed = loaded.problem(("serving", "engine_version") if version else ("serving",), "SEA303", "")
        raise PlanError([replace(problem, place=placed.place) for problem in error.problems]) from error
    build = regional.build
    image = Image(uri=regional.uri, repository=build.repository, tag=build.tag)
    read_as = build.lmi if build.flavour == "vllm" else None
    # These read tool calls with parsers that are chosen by name; the others have none to warn of.
    reads_parsers = build.family in {"vllm", "sglang"} or build.flavour == "vllm"
    unverified = (
        () if build.documented else (f"{build.family} {build.version} is unverified: its options may have changed.",)
    )
    if build.flavour in {"vllm", "server"} and not build.bundles:
        old = "as that of vLLM up to 0.19, with 0.90 of each GPU"
        told = f"{build.family} {build.version} does not say which vLLM it has: its memory is counted {old}."
        unverified = (*unverified, told)
    version_because = _why_version(build, option, fixed=version is not None)
    return EngineChoice(
        option=option,
        engine=Decision(value=option.engine, because=taken.because),
        version=Decision(value=build.version, because=version_because),
        image=Decision(value=image, because=f"Listed for {region} on {build.date}."),
        ami_version=_ami(build),
        facts=_facts(option, build.version),
        warnings=(
            *unverified,
            *option_warnings(serving.overrides, read_as),
            *(parser_warnings(serving.overrides, option.engine) if reads_parsers else ()),
        ),
    )


def _given_image(taken: _Taken, uri: str, version: str | None) -> EngineChoice:
    named, _, digest = uri.rpartition("/")[2].partition("@")
    name, _, tag = named.partition(":")
    cuda = re.search(r"cu\d+", tag)
    release = version or tag or digest
    because = "The spec fixes it." if version else f"The {'tag' if tag else 'digest'} of the image in the spec."
    return EngineChoice(
        option=taken.option,
        engine=Decision(value=taken.option.engine, because=taken.because),
        version=Decision(value=release, because=because),
        image=Decision(value=Image(uri=uri, repository=name, tag=tag), because="The spec fixes it."),
        ami_version=_ami_of(cuda[0] if cuda else None),
        facts=_facts(taken.option, release),
        warnings=(f"The image {uri} is used as given, without checks.",),
    )


def _facts(option: EngineCandidate, version: str) -> Engine:
    # Whatever engine runs on AWS Neuron, its shapes are compiled, and its constants are those of `neuron`.
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


def refuse_on_neuron(loaded: LoadedSpec, architecture: Architecture, allowed: Sequence[Instance], option: str) -> None:
    """Refuse what an engine for AWS Neuron can't serve, every problem at once; an engine for GPUs is not looked at.

    Args:
        allowed: The allowed instance types, in NeuronCores.

    Raises:
        PlanError: SEA225 for a model or a chip that the engine has no code for, SEA226 for a degree that the chips or
            the model do not take, SEA227 for a feature that is not there.
    """
    engine = neuron.NEURON_ENGINES.get(option)
    chips = [instance for instance in allowed if neuron.is_neuron(instance)]
    if engine is None or not chips:
        return
    problems: list[Finding] = []
    family = architecture.family
    if family != _UNKNOWN_FAMILY and family not in engine.families:
        hint = f"it serves {', '.join(engine.families)}; or use GPUs"
        if others := [each.option for each in neuron.NEURON_ENGINES.rows if family in each.families]:
            name = others[0].removesuffix("-neuronx")
            hint = f"serve with {'serving.backend: neuronx' if name == 'lmi' else f'serving.engine: {name}'}"
        message = f"{engine.option} has no code for {architecture.id} (model_type {family})"
        problems.append(loaded.problem(("model",), "SEA225", message, hint))
    if not any(instance.accelerator in engine.accelerators for instance in chips):
        message = f"{engine.option} has no image for the {chips[0].accelerator} of {chips[0].instance_type}"
        hint = f"it runs on {', '.join(engine.accelerators)}"
        problems.append(loaded.problem(("serving", "instance_types"), "SEA225", message, hint))
    problems += [*_core_problems(loaded, architecture, chips), *_feature_problems(loaded, architecture)]
    if problems:
        raise PlanError(problems)


def _core_problems(loaded: LoadedSpec, architecture: Architecture, chips: Sequence[Instance]) -> Iterator[Finding]:
    degree = loaded.endpoint.serving.overrides.tensor_parallel_degree
    possible = sorted({each for instance in chips for each in neuron.degrees(architecture, instance)})
    if degree in possible or (degree is None and possible):
        return
    valid = ", ".join(map(str, possible)) or "none"
    subject = (
        f"tensor_parallel_degree {degree} is" if degree is not None else "there is no tensor_parallel_degree that is"
    )
    message = (
        f"{subject} {'not ' if degree is not None else ''}one that {chips[0].instance_type} takes for "
        f"{architecture.attention_heads} attention heads and {architecture.kv_heads} KV heads; it counts NeuronCores"
    )
    field = ("serving", "overrides", "tensor_parallel_degree")
    yield loaded.problem(field, "SEA226", message, f"valid: {valid}; or name a larger instance type")


def _feature_problems(loaded: LoadedSpec, architecture: Architecture) -> Iterator[Finding]:
    overrides = loaded.endpoint.serving.overrides
    of_recipe = fields_of(loaded.endpoint.optimization)  # they are refused with the nearest recipe (SEA233)
    for name, nothing in _FEATURES:
        value = getattr(overrides, name)
        if value is not None and value != nothing and name not in of_recipe:
            yield loaded.problem(
                ("serving", "overrides", name), "SEA227", f"{name} is not supported on AWS Neuron", "leave it out"
            )
    quantization = architecture.quantization(overrides.quantization)
    if quantization is not None and "quantization" not in of_recipe:
        written = overrides.quantization is not None
        path: tuple[str, ...] = ("serving", "overrides", "quantization") if written else ("model",)
        message = f"{quantization} weights are not supported on AWS Neuron"
        yield loaded.problem(
            path, "SEA227", message, "leave quantization out and give a repository with 16-bit weights"
        )


def allowed_instances(loaded: LoadedSpec) -> tuple[tuple[Instance, ...], tuple[str, ...]]:
    """Return the instance types that spec and environment both allow, and a warning for each the catalog lacks.

    With instance pools it is the first of them. Nothing given allows every type of the catalog that has NVIDIA GPUs.
    Accelerators of AWS Neuron are counted in NeuronCores.

    Raises:
        PlanError: SEA110 when the catalog knows none of them.
    """
    endpoint, rails = loaded.endpoint, loaded.rails.instance_types
    # The first pool is planned; a copy of it must fit the others, too (`pool_problems`).
    requested = endpoint.serving.instance_types or (endpoint.hosting.instance_pools or ())[:1] or rails
    if requested is None:
        return tuple(priced(instance, loaded) for instance in INSTANCES.rows if not neuron.is_neuron(instance)), ()
    by_name = {name: find_instance(name) for name in requested if rails is None or name in rails}
    unknown = [name for name, instance in by_name.items() if instance is None]
    known = tuple(neuron.in_cores(priced(instance, loaded)) for instance in by_name.values() if instance is not None)
    if not known:
        message = f"not in the catalog: {', '.join(unknown)}"
        hint = f"similar in the catalog: {', '.join(similar_types(*unknown)) or 'none'}"
        raise PlanError([loaded.problem(("serving", "instance_types"), "SEA110", message, hint)])
    return known, tuple(f"SEA110: {name} is not in the catalog and was ignored." for name in unknown)


def similar_types(*missing: str) -> tuple[str, ...]:
    """Return the names of the catalog's instance types that are nearest to names that it lacks."""
    types = [instance.instance_type for instance in INSTANCES.rows]
    return tuple(dict.fromkeys(near for name in missing for near in nearest_names(name, types)))


def token_warnings(loaded: LoadedSpec) -> tuple[str, ...]:
    """Warn that a hub token is readable once it is deployed, and how to do without."""
    model = loaded.endpoint.model
    if model.hub_token_secret is None or model.s3_uri is not None:
        return ()
    warning = (
        "The hub token is readable with sagemaker:DescribeModel. Weights staged to S3 (model.s3_uri) need no token."
    )
    return (warning,)


def names_neuron(loaded: LoadedSpec) -> bool:
    """Tell whether the spec names instance types with AWS Neuron, and no others that the catalog has."""
    named = [find_instance(name) for name in loaded.endpoint.serving.instance_types or ()]
    known = [instance for instance in named if instance is not None]
    return bool(known) and all(neuron.is_neuron(instance) for instance in known)


def check_model_fields(loaded: LoadedSpec, architecture: Architecture) -> None:
    """Check what the spec asks of the model against its architecture.

    Raises:
        PlanError: SEA208 when the context is too short, SEA204 when the degree does not divide the heads, SEA352 for a
            backend or a pipeline that the planner can't place.
    """
    problems, serving = _context_problems(loaded, architecture), loaded.endpoint.serving
    degree = serving.overrides.tensor_parallel_degree
    if not (degree is None or names_neuron(loaded) or shards_evenly(architecture, degree)):
        works = ", ".join(map(str, possible_degrees(architecture, _WIDEST_INSTANCE)))
        heads = f"{architecture.attention_heads} attention heads and {architecture.kv_heads} KV heads"
        message = f"tensor_parallel_degree {degree} does not divide the {heads} of {architecture.id}"
        field = ("serving", "overrides", "tensor_parallel_degree")
        problems.append(loaded.problem(field, "SEA204", message, f"valid: {works}"))
    if serving.backend == "neuronx" and not names_neuron(loaded):
        message = "the backend neuronx needs instance types with AWS Neuron"
        hint = "name them in serving.instance_types, as ml.inf2.xlarge, or choose a backend for GPUs"
        problems.append(loaded.problem(("serving", "backend"), "SEA352", message, hint))
    if (serving.overrides.pipeline_parallel_degree or 1) > 1:
        message = "pipeline parallelism is not supported"
        path = ("serving", "overrides", "pipeline_parallel_degree")
        problems.append(loaded.problem(path, "SEA352", message, "set tensor_parallel_degree instead"))
    if problems:
        raise PlanError(problems)


def batching_warnings(loaded: LoadedSpec) -> tuple[str, ...]:
    """Warn that predictions are of continuous batching where the spec asks for another kind."""
    serving = loaded.endpoint.serving
    if serving.backend != "python" and serving.overrides.dynamic_batching is None:
        return ()
    warning = "Predictions assume continuous batching; dynamic batching gives far less throughput. Rely on the trial."
    return (warning,)


def arrivals_of(loaded: LoadedSpec) -> Arrivals | None:
    """Return when requests arrive at a copy, at random where the spec says a rate alone; `None` without a rate."""
    workload = loaded.endpoint.workload
    if workload.requests_per_second is None:
        return None
    kind = ARRIVALS[workload.arrivals]
    # a closed loop would measure no queue, though the users of a rate make one
    kind = kind if kind.is_open else Poisson
    return kind(smoothness=workload.arrival_smoothness, times_s=loaded.dataset.times_s)


def arrival_warnings(loaded: LoadedSpec) -> tuple[str, ...]:
    """Warn where a trial measures no queue, though users make one; say how fast recorded requests come."""
    workload, times_s = loaded.endpoint.workload, loaded.dataset.times_s
    rate = workload.requests_per_second
    if rate is None:
        return ()
    if not ARRIVALS[workload.arrivals].is_open:
        queue = "Latencies are predicted for requests at random times."
        return (f"{queue} The trial waits for answers, so it measures no queue: write workload.arrivals: poisson.",)
    if not times_s:
        return ()
    speed = replay_speed(times_s, rate)
    pace = f"{speed:.3g} times as fast as they were recorded" if speed else "all at once, as they were recorded"
    return (f"{len(times_s):,} requests of the dataset come {pace}.",)


def prefix_warnings(loaded: LoadedSpec) -> tuple[str, ...]:
    """Warn that a shared prefix is counted as computed where nothing says that the engine caches it."""
    shared, caches = loaded.endpoint.workload.shared_prefix_tokens, loaded.endpoint.serving.overrides.prefix_caching
    if loaded.conversations is not None:
        return (_repeated(loaded, loaded.conversations),)
    if not shared or caches is True:
        return ()
    off = "prefix caching is off" if caches is False else "the spec does not turn prefix caching on"
    return (
        f"Prompts share {shared:,} tokens, but {off}: they are counted as computed. Add prefix_cache to optimization.",
    )


def _repeated(loaded: LoadedSpec, conversations: Conversations) -> str:
    """Say what is assumed of the prompt tokens that were sent with earlier turns."""
    endpoint = loaded.endpoint
    share = cached_share(conversations, endpoint.workload.shared_prefix_tokens)
    repeated = f"{share:.0%} of the prompt tokens are of earlier turns"
    if endpoint.serving.overrides.prefix_caching is not True:
        return f"{repeated} and are counted as computed. Add prefix_cache to optimization."
    if endpoint.hosting.routing.strategy == "prefix_aware":
        return f"{repeated} and are counted as cached: by prefix-aware routing a conversation stays on an instance."
    return (
        f"{repeated} and are counted as cached, as on one instance. On several, write hosting.routing.strategy: "
        "prefix_aware, or turns come to instances that did not cache them."
    )


def _context_problems(loaded: LoadedSpec, architecture: Architecture) -> list[Finding]:
    workload, fixed = loaded.endpoint.workload, fixed_max_model_len(loaded.endpoint)
    tokens, context = loaded.lengths.longest, architecture.max_context
    name = architecture.id
    if tokens > context:
        longest = "" if loaded.lengths.are_fixed else " for its longest request"
        message = f"the workload needs {tokens:,} tokens{longest}; the context of {name} is {context:,}"
        hint = (
            f"shorten input_tokens or output_tokens by {tokens - context:,}, choose a model with a longer context, or "
            "stretch its positions, where its model card says so: serving.overrides.rope_scaling: {kind: yarn, "
            f"factor: {tokens:,} over the trained length, rounded up, original_max_position_embeddings: the trained "
            "length}"
        )
        return [loaded.problem(("workload", "input_tokens"), "SEA208", message, hint)]
    if fixed is not None and fixed > context:
        message = f"max_model_len {fixed:,} exceeds the context of {name}, {context:,} tokens"
        in_workload = workload.max_model_len is not None
        field = ("workload", "max_model_len") if in_workload else ("serving", "overrides", "max_model_len")
        return [loaded.problem(field, "SEA208", message, f"set it to at most {context:,}")]
    return []
