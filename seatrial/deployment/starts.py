"""The start of a copy, part by part: what it takes by bounds, publications and measurements, and what shortens it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from seatrial.documents.calibration import read_calibration
from seatrial.documents.simulation import CopyStart, StartPart
from seatrial.specs.architecture import read_architecture
from seatrial.specs.recipe import compiles, is_quantized_at_start, quantizes
from seatrial.specs.spec_files import calibration_path
from seatrial_base import bounds
from seatrial_base.autoscaling import FROM_ZERO_PERIOD_S, HIGH_PERIODS, PREDEFINED
from seatrial_base.catalog.engine_versions import read_version, within
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.neuron import is_neuron
from seatrial_base.catalog.optimizations import build_seconds
from seatrial_base.catalog.rows import CatalogTable
from seatrial_base.units import MS_PER_S, gib

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.engine_versions import EngineName

_BYTES_16BIT: Final = 2
_ALARM_S: Final = HIGH_PERIODS * PREDEFINED["SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"][3]
_LOAD, _ENGINE = "weights into accelerators", "engine"
_ASSUMED, _MEASURED = "assumed, slow on purpose", "measured by trial"
_IMAGE: Final = "each GB less of the image (serving.image)"
_OTHER_PARTITIONS: Final = ("cn-", "us-gov-", "us-iso", "eu-isoe-", "eusc-")  # publications are of commercial Regions


@dataclass(frozen=True, slots=True)
class _Fact:
    """What was published of a part, on families of instance types; or of a loader, in images of AWS since a release."""

    part: str
    condition: str
    source: str
    families: tuple[str, ...] = ()
    seconds: float | None = None
    bytes_s: float | None = None  # where it depends on the size
    most_bytes: float | None = None  # of the weights that it was published for
    since: str | None = None
    load_share: float = 1.0  # of the usual loader's time


_FACTS: Final = CatalogTable(_Fact, "starts.json", key="part")


def start_parts(
    plan: Plan, loaded: LoadedSpec, *, instance_s: float | None = None, copy_s: float | None = None
) -> tuple[StartPart, ...]:
    """Return what the start of a copy takes, part by part, each with its source.

    Measured seconds replace bounds: `instance_s` until an instance has its image, `copy_s` from there on; without them
    those of a trial of this deployment, which `seatrial calibrate` wrote.

    Raises:
        SpecError: SEA406, the endpoint's calibration is malformed.
    """
    size, (home, speed) = _stored_bytes(plan, loaded), _home(loaded)
    once: dict[str, float] = {"instance": bounds.INSTANCE_START_S, "image pull": bounds.IMAGE_PULL_S}
    each: dict[str, float] = {home: size / speed, _LOAD: size / bounds.LOAD_BYTES_S, _ENGINE: bounds.ENGINE_START_S}
    each |= _compilation(plan, loaded)
    *seconds, trial = _measured(plan, loaded, sum(each.values()))
    groups = ("instance", once, instance_s, "--instance-start-s"), ("copy", each, copy_s, "--copy-start-s")
    parts: list[StartPart] = []
    for (name, assumed, given_s, option), measured_s in zip(groups, seconds, strict=True):
        known_s, source = (measured_s, trial) if given_s is None else (given_s, option)
        for part, part_s in (assumed if known_s is None else {name: known_s}).items():
            likely_s, likely = _published(part, size, plan, loaded) if known_s is None else (known_s, source)
            shown = f"{part}, {gib(size)}" if part == home else part
            values = {"part": shown, "seconds": round(part_s, 1), "further": name == "copy", "likely_source": likely}
            values |= {"source": _ASSUMED if known_s is None else source}
            values |= {"likely_s": None if likely_s is None else round(likely_s, 1)}
            parts.append(StartPart.model_validate(values))
    return tuple(parts)


def copy_start(plan: Plan, loaded: LoadedSpec) -> CopyStart:
    """Return what the start of a planned copy takes, what would shorten it, and what SageMaker waits for at most.

    Raises:
        SpecError: SEA406, the endpoint's calibration is malformed.
    """
    parts = start_parts(plan, loaded)
    further, first_s = [part for part in parts if part.further], plan.curve[0].ttft_ms / MS_PER_S if plan.curve else 0
    waits = f"{plan.download_timeout_s.value:,} s for weights in S3 and {plan.startup_timeout_s.value:,} s"
    return CopyStart(
        parts=parts,
        totals=(
            _total("first copy, from zero", FROM_ZERO_PERIOD_S + first_s, parts),
            _total("further copy, on a new instance", _ALARM_S + first_s, parts),
            _total("further copy, on an instance in service", _ALARM_S + first_s, further),
        ),
        shortcuts=tuple(
            StartPart(part=part, seconds=round(saved_s, 1), further=part != _IMAGE, source=source)
            for part, saved_s, source in _shortcuts(plan, loaded)
        ),
        waits=f"SageMaker waits {waits} for the container, at most {bounds.LONGEST_START_S:,} s for each",
        warnings=start_warnings(plan, loaded, parts),
    )


def start_warnings(plan: Plan, loaded: LoadedSpec, parts: Sequence[StartPart]) -> tuple[str, ...]:
    """Return a warning where a copy starts longer than SageMaker waits for it; one that a trial measured did serve."""
    copy_s, startup_s = sum(part.seconds for part in parts if part.further), plan.startup_timeout_s.value
    # Weights from the hub are downloaded by the container, which starts meanwhile.
    download_s = 0 if loaded.endpoint.model.hub_id else plan.download_timeout_s.value
    if copy_s <= download_s + startup_s or parts[-1].source.startswith(_MEASURED):
        return ()
    sources = ", ".join(dict.fromkeys(part.source for part in parts if part.further))
    waits = f"SageMaker waits {download_s:,} s for weights and {startup_s:,} s for the container"
    mended = "shorten the start (`seatrial plan --section start` says by what), or measure it with a trial"
    return (f"SEA571: A copy starts in {copy_s:,.0f} s ({sources}), and {waits}: it may never serve. Mend: {mended}.",)


def _total(of: str, before_s: float, parts: Sequence[StartPart]) -> StartPart:
    unknown = ", ".join(part.part for part in parts if part.likely_s is None)
    likely_s = before_s + sum(part.seconds if part.likely_s is None else part.likely_s for part in parts)
    return StartPart(
        part=of,
        seconds=round(before_s + sum(part.seconds for part in parts), 1),
        further="further" in of,
        source="alarm, parts and first token",
        likely_s=round(likely_s, 1),
        likely_source=f"likely time unknown, assumed slow: {unknown}" if unknown else "",
    )


def _home(loaded: LoadedSpec) -> tuple[str, int]:
    is_hub = loaded.endpoint.model.hub_id is not None
    return ("weights from the hub", bounds.HUB_BYTES_S) if is_hub else ("weights from S3", bounds.S3_BYTES_S)


def _stored_bytes(plan: Plan, loaded: LoadedSpec) -> float:
    """Return the bytes that are downloaded: all 16 bits where the engine itself makes fewer of them."""
    endpoint = loaded.endpoint
    # Without a precision nothing is quantized: no architecture is read then, whose file may be elsewhere by now.
    has_precision = endpoint.serving.overrides.quantization is not None
    if has_precision and is_quantized_at_start(endpoint, architecture := read_architecture(loaded)):
        return float(architecture.params_total * _BYTES_16BIT)
    return float(plan.memory.weights_bytes * plan.tensor_parallel_degree.value)


def _compilation(plan: Plan, loaded: LoadedSpec) -> dict[str, float]:
    recipe, instance = loaded.endpoint.optimization, find_instance(plan.instance_type.value)
    compilation = compiles(recipe)
    if compilation is not None and compilation.when != "startup":
        return {}
    if instance is not None and is_neuron(instance):  # nobody knows how long: as long as the container is waited for
        size = _stored_bytes(plan, loaded)
        started_s = bounds.ENGINE_START_S + size / bounds.LOAD_BYTES_S
        started_s += size / bounds.HUB_BYTES_S if loaded.endpoint.model.hub_id else 0
        return {"compilation for AWS Neuron": max(plan.startup_timeout_s.value - started_s, 0.0)}
    if compilation is None or compilation.target != "trtllm":
        return {}
    whole = read_architecture(loaded).params_total * _BYTES_16BIT
    return {"build of TensorRT-LLM": build_seconds(whole, quantizes=quantizes(recipe) is not None)}


def _published(part: str, size: float, plan: Plan, loaded: LoadedSpec) -> tuple[float | None, str]:
    row = _FACTS.get(_ENGINE if part == _LOAD else part)  # loading is within the published time of an engine
    is_other = loaded.environment.region.startswith(_OTHER_PARTITIONS)
    if row is None or is_other or plan.instance_type.value.split(".")[1] not in row.families:
        return None, ""
    if row.most_bytes is not None and size > row.most_bytes:
        return None, ""
    return 0.0 if part == _LOAD else size / row.bytes_s if row.bytes_s else row.seconds, f"published: {row.condition}"


def _measured(plan: Plan, loaded: LoadedSpec, bound_s: float) -> tuple[float | None, float | None, str]:
    """Return the seconds of instance and copy by a trial of the planned deployment, and their source."""
    entry = read_calibration(loaded.calibration, calibration_path(loaded.path).as_posix())
    if entry is None or (start := entry.source.start) is None or start.simulated:
        return None, None, ""
    of = (entry.instance_type, entry.tensor_parallel_degree, entry.engine, entry.quantization, entry.model)
    degree, engine = plan.tensor_parallel_degree.value, plan.engine.value
    if of != (plan.instance_type.value, degree, engine, plan.quantization, plan.model_name):
        return None, None, ""
    # Of one span for both, what the copy takes at most is the copy's.
    copy_s = min(start.seconds, bound_s) if start.instances_added else start.seconds
    instance_s = start.seconds - copy_s if start.instances_added else None
    return instance_s, copy_s, f"{_MEASURED} {entry.source.digest} of {start.created_at[:10]}"


def _shortcuts(plan: Plan, loaded: LoadedSpec) -> Iterator[tuple[str, float, str]]:
    """Yield what would shorten the start, the seconds that it saves of the bounds, and why."""
    endpoint, size = loaded.endpoint, _stored_bytes(plan, loaded)
    (home, speed), engine, load_s = _home(loaded), plan.engine.value, size / bounds.LOAD_BYTES_S
    if endpoint.model.hub_id is not None:
        yield "weights in S3 (seatrial stage)", size / speed - size / bounds.S3_BYTES_S, _ASSUMED
    elif not endpoint.hosting.data_cache and plan.hosting_kind is None:
        yield "hosting.data_cache: true", size / speed, "on an instance that had a copy: without the " + home
    kept = plan.memory.weights_bytes * plan.tensor_parallel_degree.value
    if kept < size:
        saved_s = (size - kept) / speed + (size - kept) / bounds.LOAD_BYTES_S
        yield f"a checkpoint in {plan.quantization}", saved_s, "the engine makes it of 16 bits at each start"
    for name, seconds in _compilation(plan, loaded).items():
        yield "compile, when: ahead_of_time", seconds, f"without the {name}"
    row = _FACTS.get(f"{engine} runai_streamer")
    version = read_version(cast("EngineName", engine), plan.engine_version.value)
    has_loader = row is not None and version is not None and within(version, row.since, None)
    if row is not None and has_loader and "load_format" not in endpoint.serving.overrides.extra:
        yield "serving.overrides.extra: {load_format: runai_streamer}", load_s * (1 - row.load_share), row.condition
    yield _IMAGE, bounds.IMAGE_PULL_S / bounds.IMAGE_GB, _ASSUMED + ", where the instance pulls it"
