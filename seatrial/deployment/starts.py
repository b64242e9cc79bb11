"""The start of a copy, part by part: what it takes by bounds, publications and measurements, and what shortens it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from seatrial.documents.calibration import read_calibration
from seatrial.documents.simulation import CopyStart, StartPart, StartShortcut, StartTotal
from seatrial.specs.architecture import read_architecture
from seatrial.specs.recipe import compiles, is_quantized_at_start, quantizes
from seatrial.specs.spec_files import calibration_path
from seatrial_base import bounds
from seatrial_base.autoscaling import FROM_ZERO_PERIOD_S, HIGH_PERIODS, PREDEFINED
from seatrial_base.catalog.engine_versions import read_version, within
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.neuron import is_neuron
from seatrial_base.catalog.optimizations import build_seconds
from seatrial_base.catalog.rows import CatalogTable, Sourced
from seatrial_base.units import MS_PER_S, gib

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial.documents.calibration import CalibrationSource
    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.engine_versions import EngineName

_BYTES_16BIT: Final = 2
_ALARM_S: Final = HIGH_PERIODS * PREDEFINED["SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"][3]
_INSTANCE, _PULL, _LOAD, _ENGINE = "instance", "image pull", "weights into accelerators", "engine"
_OTHER_PARTITIONS: Final = ("cn-", "us-gov-", "us-iso", "eu-isoe-", "eusc-")  # publications are of commercial Regions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedTime(Sourced):
    """What was published of one part, on some families of instance types.

    Attributes:
        seconds: How long it took; `None` where that depends on the size.
        bytes_s: Bytes per second, where it does.
        most_bytes: Of the weights that it was published for.
        with_load: It includes loading the weights into the accelerators.
    """

    part: str
    families: tuple[str, ...]
    condition: str
    seconds: float | None = None
    bytes_s: float | None = None
    most_bytes: float | None = None
    with_load: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FastLoader(Sourced):
    """An option of an engine that loads weights faster, in releases whose image from AWS has what it needs.

    Attributes:
        load_share: What is left of the time of the usual loader, as a share.
    """

    engine: str
    since: str
    option: str
    value: str
    load_share: float
    condition: str


PUBLISHED: Final = CatalogTable(PublishedTime, "starts.json#published", key="part")
LOADERS: Final = CatalogTable(FastLoader, "starts.json#loaders", key="engine")


def start_parts(
    plan: Plan, loaded: LoadedSpec, *, instance_s: float | None = None, copy_s: float | None = None
) -> tuple[StartPart, ...]:
    """Return what the start of a copy takes, part by part, each with its source.

    Measured seconds replace bounds: `instance_s` until an instance has its image, `copy_s` from there on; without them
    those of a trial of this deployment, which `seatrial calibrate` wrote.

    Raises:
        SpecError: SEA406, the endpoint's calibration is malformed.
    """
    size = _stored_bytes(plan, loaded)
    home = _home(loaded)
    once = {_INSTANCE: float(bounds.INSTANCE_START_S), _PULL: float(bounds.IMAGE_PULL_S)}
    each = {home: size / _bytes_s(loaded), _LOAD: size / bounds.LOAD_BYTES_S, _ENGINE: float(bounds.ENGINE_START_S)}
    each |= _compilation(plan, loaded, sum(each.values()) - (0 if loaded.endpoint.model.hub_id else each[home]))
    given = {_INSTANCE: (instance_s, "--instance-start-s"), "copy": (copy_s, "--copy-start-s")}
    if (source := _own_source(plan, loaded)) is not None and (start := source.start) is not None:
        words = f"measured by trial {source.digest} of {start.created_at[:10]}"
        copy = min(start.seconds, sum(each.values())) if start.instances_added else start.seconds
        # Of one span for both, the copy's bound is the copy's, and the rest is the instance's.
        instance = start.seconds - copy if start.instances_added else start.instance_s
        given[_INSTANCE] = (instance, words) if instance_s is None else given[_INSTANCE]
        given["copy"] = (copy, words) if copy_s is None else given["copy"]
    parts: list[StartPart] = []
    for name, assumed in ((_INSTANCE, once), ("copy", each)):
        seconds, words = given[name]
        if seconds is not None:
            parts.append(_part(name, seconds, words, seconds, words, further=name == "copy"))
            continue
        for part, bound_s in assumed.items():
            likely = _published(part, size, plan, loaded)
            shown = f"{part}, {gib(size)}" if part == home else part
            parts.append(_part(shown, bound_s, "assumed, slow on purpose", *likely, further=name == "copy"))
    return tuple(parts)


def _part(
    name: str, seconds: float, source: str, likely_s: float | None, likely_source: str, *, further: bool
) -> StartPart:
    likely_s = None if likely_s is None else round(likely_s, 1)
    about = {"part": name, "seconds": round(seconds, 1), "further": further, "source": source}
    return StartPart.model_validate({**about, "likely_s": likely_s, "likely_source": likely_source})


def copy_start(plan: Plan, loaded: LoadedSpec) -> CopyStart:
    """Return what the start of a planned copy takes, what would shorten it, and what SageMaker waits for at most.

    Raises:
        SpecError: SEA406, the endpoint's calibration is malformed.
    """
    parts = start_parts(plan, loaded)
    first_s = plan.curve[0].ttft_ms / MS_PER_S if plan.curve else 0.0
    totals = (
        _total("first copy, from zero", FROM_ZERO_PERIOD_S + first_s, parts),
        _total("further copy, on a new instance", _ALARM_S + first_s, parts),
        _total("further copy, on an instance in service", _ALARM_S + first_s, [part for part in parts if part.further]),
    )
    return CopyStart(
        parts=parts,
        totals=totals,
        shortcuts=tuple(_shortcuts(plan, loaded)),
        download_timeout_s=plan.download_timeout_s.value,
        startup_timeout_s=plan.startup_timeout_s.value,
        longest_s=bounds.LONGEST_START_S,
        warnings=start_warnings(plan, loaded, parts),
    )


def start_warnings(plan: Plan, loaded: LoadedSpec, parts: Sequence[StartPart]) -> tuple[str, ...]:
    """Return a warning where a copy starts longer than SageMaker waits for it."""
    copy_s = sum(part.seconds for part in parts if part.further)
    # Weights from the hub are downloaded by the container, which starts meanwhile.
    download_s = 0 if loaded.endpoint.model.hub_id else plan.download_timeout_s.value
    startup_s = plan.startup_timeout_s.value
    if copy_s <= download_s + startup_s:
        return ()
    sources = ", ".join(dict.fromkeys(part.source for part in parts if part.further))
    waits = f"SageMaker waits {download_s:,} s for weights and {startup_s:,} s for the container"
    mended = "shorten the start (`seatrial plan --section start` says by what), or measure it with a trial"
    return (f"SEA571: A copy starts in {copy_s:,.0f} s ({sources}), and {waits}: it may never serve. Mend: {mended}.",)


def _total(of: str, before_s: float, parts: Sequence[StartPart]) -> StartTotal:
    likely_s = sum(part.seconds if part.likely_s is None else part.likely_s for part in parts)
    return StartTotal(
        of=of,
        seconds=round(before_s + sum(part.seconds for part in parts), 1),
        likely_s=round(before_s + likely_s, 1),
        unknown=tuple(part.part for part in parts if part.likely_s is None),
    )


def _home(loaded: LoadedSpec) -> str:
    return f"weights from {'the hub' if loaded.endpoint.model.hub_id else 'S3'}"


def _bytes_s(loaded: LoadedSpec) -> int:
    return bounds.HUB_BYTES_S if loaded.endpoint.model.hub_id else bounds.S3_BYTES_S


def _stored_bytes(plan: Plan, loaded: LoadedSpec) -> float:
    """Return the bytes that are downloaded: all 16 bits where the engine itself makes fewer of them."""
    if _is_quantized_at_start(loaded):
        return float(read_architecture(loaded).params_total * _BYTES_16BIT)
    return float(plan.memory.weights_bytes * plan.tensor_parallel_degree.value)


def _is_quantized_at_start(loaded: LoadedSpec) -> bool:
    # Without a precision nothing is quantized: no architecture is read then, whose file may be elsewhere by now.
    endpoint = loaded.endpoint
    has_precision = endpoint.serving.overrides.quantization is not None
    return has_precision and is_quantized_at_start(endpoint, read_architecture(loaded))


def _compilation(plan: Plan, loaded: LoadedSpec, started_s: float) -> dict[str, float]:
    """Return what is compiled at the start; `started_s` is what the container takes beside that."""
    recipe, instance = loaded.endpoint.optimization, find_instance(plan.instance_type.value)
    compilation = compiles(recipe)
    if compilation is not None and compilation.when != "startup":
        return {}
    if instance is not None and is_neuron(instance):
        return {"compilation for AWS Neuron": max(plan.startup_timeout_s.value - started_s, 0.0)}
    if compilation is None or compilation.target != "trtllm":
        return {}
    whole = read_architecture(loaded).params_total * _BYTES_16BIT
    return {"build of TensorRT-LLM": build_seconds(whole, quantizes=quantizes(recipe) is not None)}


def _published(part: str, size: float, plan: Plan, loaded: LoadedSpec) -> tuple[float | None, str]:
    family = plan.instance_type.value.split(".")[1]
    row = PUBLISHED.get(_ENGINE if part == _LOAD else part)
    if row is None or family not in row.families or loaded.environment.region.startswith(_OTHER_PARTITIONS):
        return None, ""
    if (row.most_bytes is not None and size > row.most_bytes) or (part == _LOAD and not row.with_load):
        return None, ""
    likely_s = 0.0 if part == _LOAD else size / row.bytes_s if row.bytes_s else row.seconds
    return likely_s, f"published: {row.condition}"


def _own_source(plan: Plan, loaded: LoadedSpec) -> CalibrationSource | None:
    """Return where a trial of the planned deployment was read, unless its start was simulated."""
    entry = read_calibration(loaded.calibration, calibration_path(loaded.path).as_posix())
    if entry is None or entry.source.start is None or entry.source.start.simulated:
        return None
    measured = (entry.instance_type, entry.tensor_parallel_degree, entry.engine, entry.quantization, entry.model)
    degree = plan.tensor_parallel_degree.value
    planned = (plan.instance_type.value, degree, plan.engine.value, plan.quantization, plan.model_name)
    return entry.source if measured == planned else None


def _shortcuts(plan: Plan, loaded: LoadedSpec) -> Iterator[StartShortcut]:
    endpoint, size = loaded.endpoint, _stored_bytes(plan, loaded)
    overrides, load_s, download_s = endpoint.serving.overrides, size / bounds.LOAD_BYTES_S, size / _bytes_s(loaded)
    rates = f"{bounds.HUB_BYTES_S / 1e6:,.0f} and {bounds.S3_BYTES_S / 1e6:,.0f} MB/s are assumed"
    if endpoint.model.hub_id is not None:
        saved_s = download_s - size / bounds.S3_BYTES_S
        yield _shortcut("weights in S3 instead of the hub", "seatrial stage", saved_s, rates)
    elif not endpoint.hosting.data_cache and plan.hosting_kind is None:
        because = "only of a further copy on an instance that keeps the weights of the one before"
        yield _shortcut("weights kept on the instance", "hosting.data_cache: true", download_s, because)
    if _is_quantized_at_start(loaded):
        less = 1 - plan.memory.weights_bytes * plan.tensor_parallel_degree.value / size
        because = f"the engine makes {plan.quantization} of 16 bits at each start"
        yield _shortcut("a checkpoint that is quantized already", "model", less * (download_s + load_s), because)
    started_s = bounds.ENGINE_START_S + load_s + (download_s if endpoint.model.hub_id else 0)
    for name, seconds in _compilation(plan, loaded, started_s).items():
        yield _shortcut(f"no {name} at the start", "compile, when: ahead_of_time", seconds, "the part falls away")
    engine, instance = plan.engine.value, find_instance(plan.instance_type.value)
    row, version = LOADERS.get(engine), read_version(cast("EngineName", engine), plan.engine_version.value)
    on_gpu = instance is not None and not is_neuron(instance)
    has_loader = row is not None and version is not None and on_gpu and within(version, row.since, None)
    if row is not None and has_loader and row.option not in overrides.extra:
        how = f"serving.overrides.extra: {{{row.option}: {row.value}}}"
        because = f"{row.load_share:.0%} of the usual loader's time was published; {row.condition}"
        yield _shortcut(f"the loader {row.value}", how, load_s * (1 - row.load_share), because)
    if on_gpu and not overrides.enforce_eager:
        because = "a part of the engine's; tokens are slower then"
        yield _shortcut("no CUDA graphs", "serving.overrides.enforce_eager: true", None, because)
    per_gb_s = bounds.IMAGE_PULL_S / bounds.IMAGE_GB
    because = f"each GB less is {per_gb_s:.0f} s (assumed) where the instance pulls it"
    yield _shortcut("a smaller image", "serving.image", None, because)


def _shortcut(what: str, how: str, saves_s: float | None, because: str) -> StartShortcut:
    return StartShortcut(what=what, how=how, saves_s=None if saves_s is None else round(saves_s, 1), because=because)
