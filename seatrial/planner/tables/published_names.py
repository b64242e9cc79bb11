"""Reads engines, versions, precisions and accelerators as published tables write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from seatrial_base.catalog import engine_versions, neuron, precision
from seatrial_base.catalog.engines import find_engine
from seatrial_base.catalog.instances import ACCELERATORS, INSTANCES, find_instance
from seatrial_base.catalog.precision import find_precision
from seatrial_base.catalog.rows import nearest_names

if TYPE_CHECKING:
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.engines import Engine, Family
    from seatrial_base.catalog.instances import Instance

NEWEST = ""  # where no version is given: the newest that the catalog knows
_FAMILIES: dict[str, Family] = {
    "tgi": "tgi",
    "hftgi": "tgi",
    "huggingfacetgi": "tgi",
    "huggingfacellm": "tgi",
    "huggingfacetextgenerationinference": "tgi",
    "textgenerationinference": "tgi",
    "lmi": "lmi",
    "djl": "lmi",
    "djllmi": "lmi",
    "djlinference": "lmi",
    "djlserving": "lmi",
    "largemodelinference": "lmi",
    "vllm": "vllm",
    "vllmopenai": "vllm",
    "vllmvllmopenai": "vllm",
    "sgl": "sglang",
    "sglang": "sglang",
    "lmsysorgsglang": "sglang",
    "trt": "trtllm",
    "trtllm": "trtllm",
    "tensorrt": "trtllm",
    "tensorrtllm": "trtllm",
    "neuron": "neuron",
    "optimumneuron": "neuron",
    "nvidiatensorrtllm": "trtllm",
}
_ENGINE = re.compile(r"(?P<name>.*?[a-z])[\s:@=_-]*(?P<version>v?\d[\w.+-]*|nightly[\w.+-]*|latest)?")
_RELEASE = re.compile(r"(?:.*[^\d.a-z])?v?(?P<release>\d+(?:\.\d+)*(?:[a-z.+-][\w.+-]*)?)")
_RELEASE_WITHIN = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+(?:[a-z+-][\w.+-]*)?)")
_NOTHING = frozenset({"", "-", "?", "n/a", "na", "none", "null", "tbd", "unknown"})
_UNRELEASED = re.compile(r"(nightly|main|master|dev|latest|newest)\b.*")
_TAG = re.compile(r"[a-z][a-z0-9]*(?:[._-][a-z0-9]+)+")
_ARCHITECTURES_OF_VLLM = ("v0", "v1")  # vLLM V1 is the name of its core, not a version
_PRECISIONS = {
    **dict.fromkeys(("bf16", "bfloat16", "fp16", "float16", "f16", "half", "16bit", "w16a16", "unquantized"), None),
    **dict.fromkeys(("fp8", "float8", "fp8dynamic", "fp8static", "fp8block", "fp8blockwise", "fp8e4m3"), "fp8"),
    **dict.fromkeys(("e4m3", "fp8w8a8", "w8a8fp8", "compressedtensorsfp8"), "fp8"),
    **dict.fromkeys(("int8", "w8a8", "int8w8a8", "w8a8int8", "smoothquant"), "int8"),
    **dict.fromkeys(("w8a16", "int8wo", "int8w8a16", "w8a16int8", "gptqint8", "int8gptq", "gptq8bit"), "w8a16"),
    **dict.fromkeys(("int4", "w4a16", "4bit", "int4w4a16", "w4a16int4"), "int4"),
    **dict.fromkeys(("awq", "awqint4", "int4awq", "awqmarlin", "awq4bit"), "awq"),
    **dict.fromkeys(("gptq", "gptqint4", "int4gptq", "gptqmarlin", "gptq4bit"), "gptq"),
    "mxfp4": "mxfp4",
    "nvfp4": "nvfp4",
    "fp4": "fp4",
}
_NEAR = {"w4a8": "int4", "w4afp8": "int4", "w4afp": "int4", "mxfp8": "fp8"}
PRECISIONS_SHOWN = ("bf16", "fp16", "fp8", "int8", "w8a16", "int4", "awq", "gptq", "mxfp4", "nvfp4", "fp4")
_CHECKPOINT = ("", "auto", "default", "na", "native", "none", "unknown")
KvPrecision = Literal["16bit", "fp8"]
_KV_8BIT = ("fp8", "fp8e4m3", "fp8e5m2", "e4m3", "e5m2")
_KV_16BIT = ("bf16", "bfloat16", "fp16", "float16", "16bit")
# TensorRT-LLM takes the KV cache of the checkpoint, and the quantized ones of its Model Optimizer have FP8 (the note of
# its benchmark pages: "KV cache fp8 when precision is fp8"). The other engines keep 16 bits by default.
_BITS_8 = 8
_COUNTED = re.compile(r"(?:(?P<before>\d{1,3})\s*[x×*]\s*)?(?P<name>.*?)(?:\s*[x×*]\s*(?P<after>\d{1,3}))?")
_IGNORED = frozenset(
    {"nvidia", "tesla", "tensor", "core", "gpu", "gpus", "hgx", "dgx", "ac", "edition"}
    | {"hbm2e", "hbm3", "hbm3e", "gddr6", "gddr7"}
)
_EXTRA = frozenset({"sxm", "blackwell", "server"})
_MEMORY = re.compile(r"(\d+)g(?:i?b)?")
_MEMORY_NEAR = 0.1  # EC2 counts the B200's 180 GB and the H200's 141 GB a little differently from the data sheets
_GB = 1_000_000_000


@dataclass(frozen=True, slots=True)
class NamedEngine:
    """An engine and its version."""

    facts: Engine
    version: str


def read_engine_name(text: str) -> tuple[Family, str] | None:
    """Read `vLLM`, `TensorRT-LLM 1.0` or `djl-lmi`: the family, and the version where one is written.

    Returns:
        `None` when there is no such engine.
    """
    match = _ENGINE.fullmatch(text.strip().lower())
    family = _FAMILIES.get(_compact(match["name"])) if match else None
    if match is None or family is None:
        return None
    version = match["version"] or NEWEST
    return family, NEWEST if family == "vllm" and version in _ARCHITECTURES_OF_VLLM else version


def engine_within(text: str) -> tuple[Family, str] | None:
    """Read a text that names one engine among other words: `trtllm-serve`, `vLLM (nightly)`, `dynamo-sglang 0.5.9`.

    Returns:
        The family, and the release where one is written; `None` where no engine or several are named.
    """
    written = text.strip().lower()
    words = re.findall(r"[a-z]+", written)
    named = {_FAMILIES.get(word) for word in (*words, *map("".join, pairwise(words)))} - {None}
    family = named.pop() if len(named) == 1 else None
    release = _RELEASE_WITHIN.search(written)
    return None if family is None else (family, release[1] if release else NEWEST)


def read_engine_version(family: Family, text: str) -> NamedEngine | None:
    """Read a version: `v0.11`, `0.5.6.post2`, `lmi15`; an empty one, a nightly build or another tag is the newest.

    Returns:
        `None` when the text names no version.
    """
    written = text.strip().lower()
    if written in _NOTHING or _UNRELEASED.fullmatch(written):
        return newest_engine(family)
    number = engine_versions.read_version("lmi", re.sub(r"^v(?=\d+$)", "", written)) if family == "lmi" else None
    version = str(number[0]) if number is not None else _release(written)
    if version is None and is_tag(text):
        return newest_engine(family)
    return None if version is None else NamedEngine(find_engine(family, version), version)


def newest_engine(family: Family) -> NamedEngine:
    """Return the newest version of an engine that the catalog knows."""
    return NamedEngine(find_engine(family, NEWEST), NEWEST)


def is_tag(text: str) -> bool:
    """Tell whether a version is the tag of a container that names no release: `gpt-oss-dev`, `glm5-hopper`."""
    written = text.strip().lower()
    return bool(_TAG.fullmatch(written)) and not _UNRELEASED.fullmatch(written) and _release(written) is None


def _release(text: str) -> str | None:
    """Return a release as the catalog writes it, `1.1.0`; `1` is `1.0`."""
    match = _RELEASE.fullmatch(text)
    within = None if match else _RELEASE_WITHIN.search(text)
    if match is None and within is None:
        return None
    release = match["release"] if match else within[1] if within else ""
    return f"{release}.0" if release.isdigit() else release


def is_precision(text: str) -> bool:
    """Tell whether a text is a precision of weights, or leaves it to the checkpoint."""
    return _compact(text) in _CHECKPOINT or _compact(text) in _PRECISIONS


def precision_within(text: str) -> str | None:
    """Return the precision of weights among the words of a text, as a precision is written; `None` without one.

    `w4a8_mxfp4_fp8` is `mxfp4`: of several it is the narrowest, since activations and cache are wider. Weights of
    4 bits with activations of 8 (`w4a8`, `w4afp8`) are `int4`, the nearest that is known.
    """
    words = [word for word in re.findall(r"[a-z0-9]+", text.lower()) if word != "kv"]
    known = [word for word in words if word in _PRECISIONS] or [_NEAR[word] for word in words if word in _NEAR]

    def bits(written: str) -> float:
        named = _PRECISIONS[written]
        row = find_precision("nvfp4" if named == "fp4" else named)
        return row.bits if row else precision.BITS_16BIT

    return min(known, key=bits, default=None)


def read_precision(text: str, architecture: Architecture, checkpoint: str | None) -> str | None:
    """Read a precision of weights as a quantization of the catalog; `None` is 16 bits.

    `int4` means groups over every linear layer, as GPTQ writes them; the experts alone where the checkpoint has it so.
    `fp4` is MXFP4 where the checkpoint is, else NVFP4.

    Args:
        checkpoint: Quantization of the checkpoint, which an empty cell takes.
    """
    written = _compact(text)
    if written in _CHECKPOINT:
        return checkpoint
    named = _PRECISIONS[written]
    if named == "fp4":
        return "mxfp4" if "mxfp4" in {checkpoint, architecture.checkpoint_quantization} else "nvfp4"
    if named == "int4" and "int4" not in {checkpoint, architecture.checkpoint_quantization}:
        return "gptq"
    return named


def is_for_experts_alone(quantization: str | None) -> bool:
    """Tell whether a quantization is known for the experts of a model only."""
    known = find_precision(quantization)
    return known is not None and known.scope == "experts"


def read_kv_precision(text: str, family: Family, quantization: str | None) -> KvPrecision | None:
    """Read the precision of the KV cache; an empty cell or `auto` is the engine's default.

    Returns:
        `None` when the text is no precision.
    """
    written = _compact(text)
    if written in _CHECKPOINT:
        return "fp8" if precision.default_kv_bits(family, quantization) == _BITS_8 else "16bit"
    if written in _KV_8BIT:
        return "fp8"
    return "16bit" if written in _KV_16BIT else None


@dataclass(frozen=True, slots=True)
class PublishedInstance:
    """An instance type, or an accelerator of which the instance type is still to be chosen.

    Attributes:
        candidates: Instance types that the text may mean.
        accelerator: Name of the accelerator; `None` where the text was an instance type.
        count: Accelerators that the text counts, `8xH100`, 1 without a count; of an instance type all.
    """

    candidates: tuple[Instance, ...]
    accelerator: str | None
    count: int

    @property
    def on_neuron(self) -> bool:
        """Whether its accelerators are AWS Neuron's; they are counted in NeuronCores."""
        return all(neuron.is_neuron(each) for each in self.candidates)

    def smallest(self, accelerators: int) -> Instance | None:
        """Return the smallest instance type with accelerators enough; of several the cheapest."""
        counted = self.count if self.accelerator else 0
        largest = max(each.accelerator_count for each in self.candidates)
        need = max(accelerators, min(counted, largest))
        enough = [each for each in self.candidates if each.accelerator_count >= need]

        def size(instance: Instance) -> tuple[int, float, int]:
            price = float("inf") if instance.usd_per_hour is None else instance.usd_per_hour
            return instance.accelerator_count, price, instance.vcpus

        return min(enough, key=size, default=None)


@cache
def read_place(text: str) -> tuple[PublishedInstance, ...]:
    """Read `ml.g6e.12xlarge`, `g6e.12xlarge`, `p5en`, `L40S` or `8x H100 SXM`; several where it may mean several."""
    written = text.strip().lower()
    known = find_instance(written) or find_instance(f"ml.{written}")
    if known is not None:
        seen = neuron.in_cores(known)
        return (PublishedInstance((seen,), None, seen.accelerator_count),)
    if places := _of_family(written.removeprefix("ml.")):
        return places
    counted = _COUNTED.fullmatch(written)
    if counted is None:
        return ()
    count = int(counted["before"] or counted["after"] or 1)
    matching = [name for name in _accelerator_names() if _means(counted["name"], name)]
    return tuple(PublishedInstance(_with(name), name, count * _cores(name)) for name in matching if _with(name))


def _of_family(text: str) -> tuple[PublishedInstance, ...]:
    """Return the instance types of a family, `p5en` or `p6`, by accelerator; none where the text is no family."""
    families = [(each, each.instance_type.split(".")[1]) for each in INSTANCES.rows]
    members = [each for each, family in families if family == text or family.startswith(f"{text}-")]
    names = dict.fromkeys(each.accelerator for each in members)
    types = {name: tuple(neuron.in_cores(each) for each in members if each.accelerator == name) for name in names}
    return tuple(PublishedInstance(types[name], name, _cores(name)) for name in names)


def _cores(accelerator: str) -> int:
    """Return what one accelerator counts: 1, or the NeuronCores of a chip."""
    return next((chip.cores for chip in neuron.CHIPS.rows if chip.accelerator == accelerator), 1)


def places_like(text: str) -> str:
    """Return instance types and accelerators that are written most like this, for a hint."""
    names = [instance.instance_type for instance in INSTANCES.rows]
    short = {name.removeprefix("NVIDIA "): name for name in _accelerator_names()}
    same_chip = tuple(name for name, whole in short.items() if _chip(whole) <= _words(text))
    return ", ".join(same_chip or nearest_names(text, names) or nearest_names(text.upper(), short))


@cache
def _accelerator_names() -> tuple[str, ...]:
    return tuple(accelerator.name for accelerator in ACCELERATORS.rows)


@cache
def _with(accelerator: str) -> tuple[Instance, ...]:
    return tuple(neuron.in_cores(each) for each in INSTANCES.rows if each.accelerator == accelerator)


def _means(text: str, accelerator: str) -> bool:
    """Tell whether a text names this accelerator: its chip, and nothing that this one has not."""
    written, known = _words(text), _words(accelerator)
    sizes = {word for word in written if _MEMORY.fullmatch(word)}
    if not _chip(accelerator) <= written or not written - sizes <= known | _IGNORED:
        return False
    memories = [instance.accelerator_memory_bytes for instance in _with(accelerator)]
    written_bytes = (int(match[1]) * _GB for size in sizes if (match := _MEMORY.fullmatch(size)))
    return all(any(abs(size / memory - 1) <= _MEMORY_NEAR for memory in memories) for size in written_bytes)


def _chip(accelerator: str) -> frozenset[str]:
    """Return the words of an accelerator's name that name the chip: `rtx`, `pro`, `6000`."""
    return frozenset(word for word in _words(accelerator) - _EXTRA if not _MEMORY.fullmatch(word))


def _words(text: str) -> frozenset[str]:
    joined = re.sub(r"(\d)\s+(?=gi?b\b)", r"\1", text.lower())
    words = re.findall(r"[a-z0-9]+", joined)
    return frozenset(re.sub(r"^sxm\d$", "sxm", word) for word in words) - {"nvidia", "aws"}


def _compact(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.strip().lower())
