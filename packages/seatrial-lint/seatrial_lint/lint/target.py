"""The container that reads a configuration, from its image or guessed from its keys; its options, and its handler."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, get_args

from seatrial_base.catalog import engine_versions
from seatrial_base.catalog.engine_options import NEURON_PREFIX, PREFIXES
from seatrial_base.catalog.engine_versions import (
    EngineName,
    Version,
    given_version,
    is_older,
    read_version,
    version_text,
)
from seatrial_base.catalog.image_addresses import UPSTREAM, is_of_aws, read_address
from seatrial_base.catalog.images import IMAGES, find_image

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seatrial_base.catalog.engine_versions import DialectName
    from seatrial_lint.lint.source import ConfigSource, SourceEntry

Space = Literal["option", "server", "env"]
_CAPITALS = re.compile(r"[A-Z0-9_]+")
# The container's entrypoint and Java side read these beside OPTION_* (DJL Serving, dockerd-entrypoint-with-cuda-compat,
# LmiUtils, LmiConfigRecommender).
_LMI_ENV = {
    "HF_MODEL_ID": "model_id",
    "HF_REVISION": "revision",
    "HF_TASK": "task",
    "HF_TRUST_REMOTE_CODE": "trust_remote_code",
    "HF_MODEL_TRUST_REMOTE_CODE": "trust_remote_code",
    "HF_MODEL_QUANTIZE": "quantize",
    "TENSOR_PARALLEL_DEGREE": "tensor_parallel_degree",
    "SM_NUM_GPUS": "tensor_parallel_degree",
    "PIPELINE_PARALLEL_DEGREE": "pipeline_parallel_degree",
    "MAX_BATCH_PREFILL_TOKENS": "max_rolling_batch_prefill_tokens",
    "MAX_BATCH_SIZE": "max_rolling_batch_size",
    "CUDA_MEMORY_FRACTION": "gpu_memory_utilization",
    "PREDICT_TIMEOUT": "predict_timeout",
    "MODEL_LOADING_TIMEOUT": "model_loading_timeout",
}
_LMI_SERVER_ENV = {
    "MAX_CONCURRENT_REQUESTS": "job_queue_size",
    "SERVING_MIN_WORKERS": "minWorkers",
    "SERVING_MAX_WORKERS": "maxWorkers",
    "OPTION_ENGINE": "engine",
}
# TGI's sagemaker-entrypoint.sh.
_TGI_ENV = {
    "HF_MODEL_ID": "MODEL_ID",
    "HF_MODEL_REVISION": "REVISION",
    "SM_NUM_GPUS": "NUM_SHARD",
    "HF_MODEL_QUANTIZE": "QUANTIZE",
    "HF_MODEL_TRUST_REMOTE_CODE": "TRUST_REMOTE_CODE",
}
Flavour = Literal["vllm", "trtllm", "neuronx", "deepspeed", ""]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
FIRST_ASYNC = (15,)
LAST_LMI_DIST = (14,)
_TGI_NAMES = frozenset(
    [
        *("MAX_INPUT_LENGTH", "MAX_INPUT_TOKENS", "MAX_TOTAL_TOKENS", "MAX_BATCH_TOTAL_TOKENS", "NUM_SHARD"),
        *("WAITING_SERVED_RATIO", "MAX_WAITING_TOKENS", "MESSAGES_API_ENABLED", "HF_MODEL_REVISION"),
        *("HF_MODEL_QUANTIZE", "QUANTIZE", "SM_NUM_GPUS", "MAX_BATCH_PREFILL_TOKENS", "MAX_BEST_OF"),
        *("SPECULATE", "CUDA_GRAPHS"),
    ]
)
_IMAGE_ENGINES: tuple[tuple[str, EngineName], ...] = (
    ("djl-inference", "lmi"),
    ("djl-serving", "lmi"),
    ("tgi-inference", "tgi"),
    ("text-generation-inference", "tgi"),
    ("sglang", "sglang"),
    ("vllm", "vllm"),
)
# Images that read neither of these engines' options: Hugging Face's toolkit, embeddings, Triton, and AWS's frameworks.
_OTHER_IMAGES = frozenset(
    [
        *("tei", "embeddings", "tritonserver", "pytorch", "tensorflow", "mxnet", "xgboost", "scikit", "sklearn"),
        *("autogluon", "llama", "whisperx", "neuronx"),
    ]
)
# What only one batcher or era of LMI reads, and the newest build that does (REFERENCE: DJL branches).
_ROLLING: dict[str, DialectName] = {
    "vllm": "lmi-vllm",
    "lmi-dist": "lmi-dist",
    "trtllm": "lmi-trtllm",
    "tnx": "lmi-neuronx",
    "deepspeed": "lmi-deepspeed",
    "scheduler": "lmi-python",
    "disable": "lmi-python",
}
# LMI 17: LmiConfigRecommender turns the asynchronous handler on.
ASYNC_BY_DEFAULT = (17,)
Handler = Literal["own", "user", "java"]
OWN_HANDLERS = "djl_python"
# Engines of DJL without a Python process (deepjavalibrary/djl-serving@7e13b081 serving/docs/modes.md and
# serving/docs/lmi/user_guides/embedding-user-guide.md): their options go to the Java translator.
JAVA_ENGINES = frozenset(
    ["rust", "onnxruntime", "pytorch", "tensorflow", "tensorrt", "mxnet", "xgboost", "lightgbm", "llama"]
)


def _content_engine(source: ConfigSource) -> tuple[EngineName | None, str]:
    if source.kind == "serving.properties":
        return "lmi", "a serving.properties is read by LMI"
    keys = [entry.key for entry in source.entries]
    for engine, container, prefixes, names in _MARKS:
        marks = [key for key in keys if key.startswith(prefixes)] or [key for key in keys if key in names]
        if marks:
            return engine, f"{marks[0]} is a variable of {container}"
    return None, ""


# What a variable tells of the container, in order: prefixes, then names.
_MARKS: tuple[tuple[EngineName, str, tuple[str, ...], frozenset[str]], ...] = (
    *((engine, f"the {engine} container", (prefix,), frozenset[str]()) for engine, prefix in PREFIXES.items()),
    ("vllm", "the vLLM container for AWS Neuron", (NEURON_PREFIX,), frozenset()),
    ("lmi", "LMI", ("OPTION_", "SERVING_"), frozenset({"TENSOR_PARALLEL_DEGREE", "HF_REVISION"})),
    ("tgi", "TGI", (), frozenset(_TGI_NAMES)),
)
# Of an engine: its dialects for GPUs and for AWS Neuron, and how variables begin that only the latter reads.
_ON_NEURON: dict[EngineName, tuple[DialectName, DialectName, tuple[str, ...]]] = {
    "tgi": ("tgi", "tgi-neuronx", ("HF_NUM_CORES", "HF_AUTO_CAST_TYPE")),
    "vllm": ("vllm", "vllm-neuronx", (NEURON_PREFIX,)),
}
# For engines of which the catalog lists no image: the newest that REFERENCE names (DLC documentation, 2026-08-21).
_NEWEST_KNOWN: dict[EngineName, Version] = {"lmi": (27,), "tgi": (3, 3, 6), "vllm": (0, 30, 0), "sglang": (0, 5, 20)}


@dataclass(frozen=True, slots=True)
class NamedOption:
    """One option: its name as the container's code calls it, and where that was written.

    `space`: `option` of the engine, `server` of the model server, or a plain variable.
    """

    space: Space
    name: str
    entry: SourceEntry

    @property
    def value(self) -> str:
        """The written value."""
        return self.entry.value


def read_options(engine: EngineName, entries: Iterable[SourceEntry]) -> tuple[NamedOption, ...]:
    """Return the options that a container makes of written keys, in their order."""
    return tuple(NamedOption(*_meaning(engine, entry), entry) for entry in entries)


def _meaning(engine: EngineName, entry: SourceEntry) -> tuple[Space, str]:
    key = entry.key
    if entry.form == "properties":
        return ("option", key.removeprefix("option.")) if key.startswith("option.") else ("server", key)
    if engine == "lmi":
        return _lmi_variable(key)
    if engine == "tgi":
        return ("env", _TGI_ENV.get(key, key))
    prefix = NEURON_PREFIX if key.startswith(NEURON_PREFIX) else PREFIXES[engine]
    return ("option", key.removeprefix(prefix).lower()) if key.startswith(prefix) else ("env", key)


def _lmi_variable(key: str) -> tuple[Space, str]:
    if name := _LMI_ENV.get(key):
        return "option", name
    if name := _LMI_SERVER_ENV.get(key):
        return "server", name
    if key.startswith("OPTION_"):
        name = key.removeprefix("OPTION_")
        lowered = name.lower() if _CAPITALS.fullmatch(name) else name
        return "option", "entryPoint" if lowered == "entrypoint" else lowered
    # Which ConfigManager.java reads nowhere.
    if key.startswith("SERVING_") and key != "SERVING_ENGINE":
        return "server", key.removeprefix("SERVING_").lower()
    return "env", key


@dataclass(frozen=True, slots=True)
class TargetContainer:
    """The container that a configuration is read for.

    Attributes:
        flavour: What the image carries; empty when no image is named.
        assumed: Nothing names the version; the newest one that has this dialect is taken.
        because: Where engine and version come from.
        others: Further ways in which an image that is not named may read the same text.
        is_candidate: One of several versions that it may be: only whether something is found counts.
        is_stock: The image is AWS's, a copy of it, or not named; one's own may read other variables.
        is_old: The image names a version from before those of the catalog.
    """

    engine: EngineName
    version: Version
    dialect: DialectName
    flavour: Flavour
    assumed: bool
    because: str
    others: tuple[DialectName, ...] = ()
    is_candidate: bool = False
    is_stock: bool = True
    is_old: bool = False

    @property
    def called(self) -> str:
        """The container's version for users."""
        if self.is_old:
            return f"{version_text(self.engine, self.version).partition(' ')[0]} from before what is known"
        if self.dialect == "tgi-neuronx" and self.version < (1,):
            return f"TGI of optimum-neuron {'.'.join(map(str, self.version))}"
        return version_text(self.engine, self.version)


def guess(
    source: ConfigSource,
    engine: EngineName | None = None,
    version: str | None = None,
    options: tuple[NamedOption, ...] | None = None,
) -> TargetContainer | None:
    """Return the container of a configuration; what is given overrules what is written, `None` when nothing tells.

    `options`: what the engine makes of the keys, when that was read before.

    Raises:
        ValueError: When the given version is none of the engine's.
    """
    image = _Image(source.image)
    of_image = image.engine
    content, why = _content_engine(source)
    if of_image not in (None, content) and image.is_own:
        # One's own image, whose variables are another container's: its entrypoint makes of them what nobody knows.
        of_image = content = None
    chosen = engine or of_image or (None if image.is_other else content)
    if chosen is None:
        return None
    is_stock = image.is_stock
    image = image if of_image == chosen else _Image("")
    named = _named_version(chosen, version, image, is_stock=is_stock)
    flavour = _flavour_of(chosen, version, image)
    read = options if options is not None else read_options(chosen, source.entries)
    written = {option.name: option.value for option in read}
    dialect = _dialect(chosen, source, named, flavour, written)
    number = named or _newest(dialect, source)
    return TargetContainer(
        chosen,
        number,
        dialect,
        flavour,
        assumed=named is None,
        because="as given" if engine else f"image {image.tag}" if image.text else why,
        others=_others(chosen, written, flavour, number),
        is_stock=is_stock,
        is_old=is_stock and version is None and is_older(chosen, image.tag),
    )


def _others(engine: EngineName, written: dict[str, str], flavour: Flavour, version: Version) -> tuple[DialectName, ...]:
    """Return what `rolling_batch=auto`, or nothing, comes to in the other images of LMI, when none is named."""
    if engine != "lmi" or flavour:
        return ()
    if written.get("rolling_batch", "auto") not in ("", "auto") or written.get("entryPoint"):
        return ()
    return tuple(name for name in ("lmi-trtllm", "lmi-neuronx", "lmi-deepspeed") if version <= newest_build(name))


@dataclass(frozen=True, slots=True)
class _Image:
    """An image as it is written; empty where none is."""

    text: str

    @property
    def engine(self) -> EngineName | None:
        """The engine that the repository's name tells."""
        repository = self.text.lower().partition(":")[0]
        return next((engine for mark, engine in _IMAGE_ENGINES if mark in repository), None)

    @property
    def tag(self) -> str:
        """The tag; the name where there is none."""
        name = self.text.rpartition("/")[2]
        return name.partition("@")[0].partition(":")[2] or name

    @property
    def is_stock(self) -> bool:
        """Whether it is AWS's, or not named."""
        return not self.text or has_stock_entrypoint(self.text)

    @property
    def is_upstream(self) -> bool:
        """Whether it has the name of an engine's project alone."""
        address = read_address(self.text)
        return address is not None and address.name in UPSTREAM

    @property
    def is_own(self) -> bool:
        """Whether it is neither AWS's nor the project's."""
        return not self.is_stock and not self.is_upstream

    @property
    def is_other(self) -> bool:
        """Whether it is known to be of another kind, whatever its variables are called."""
        name = self.text.rpartition("/")[2].lower().partition(":")[0]
        return not _OTHER_IMAGES.isdisjoint(name.replace("_", "-").split("-"))


def _named_version(engine: EngineName, given: str | None, image: _Image, *, is_stock: bool) -> Version | None:
    """Return the version that the user or the image names; a tag that names none leaves it unknown."""
    if given is not None:
        return given_version(engine, given)
    address = read_address(image.text)
    build = find_image(address.name, address.tag) if address and is_stock else None
    if build and build.flavour == "server":
        # Its tag counts AWS's own releases.
        return read_version(engine, (build.bundles or "").rpartition(" ")[2])
    # The number of one's own image is that of the engine where the image has the project's name alone.
    is_of_engine = is_stock or engine in image.tag or image.is_upstream
    return read_version(engine, image.tag) if "." in image.tag and is_of_engine else None


def has_stock_entrypoint(image: str) -> bool:
    """Return whether an image is AWS's, or a copy of it; a tag or a name alone is that of the SDK's helpers."""
    address = read_address(image)
    return is_of_aws(address) if address else re.fullmatch(r"[\w.:-]+", image) is not None


_FLAVOURS: dict[str, Flavour] = {
    "tensorrtllm": "trtllm",
    "neuronx": "neuronx",
    "deepspeed": "deepspeed",
    "lmi": "vllm",
}


def _flavour_of(engine: EngineName, version: str | None, image: _Image) -> Flavour:
    """Return what an image of LMI carries: by its tag, or by a version that is given: `0.29.0-tensorrtllm0.11.0`."""
    tags = (image.tag.lower(), version.lower() if version and "-" in version else "") if engine == "lmi" else ()
    return next((flavour for tag in tags for mark, flavour in _FLAVOURS.items() if mark in tag), "")


def _dialect(
    engine: EngineName, source: ConfigSource, version: Version | None, flavour: Flavour, written: dict[str, str]
) -> DialectName:
    if engine != "lmi":
        return _on_neuron(engine, source, version) or engine
    number = version or ((7,) if "paged_attention" in written else _newest_build("lmi"))
    return (
        ("lmi-python" if written.get("engine", "").lower() in JAVA_ENGINES else None)
        or _of_handler(written, flavour)
        or _of_rolling_batch(written, version, number)
        or _of_auto(written, number, flavour)
    )


def _on_neuron(engine: EngineName, source: ConfigSource, version: Version | None) -> DialectName | None:
    """Return the dialect for AWS Neuron where image, version or variables tell it."""
    if engine not in _ON_NEURON:
        return None
    name, dialect, marks = _ON_NEURON[engine]
    on_gpus = engine_versions.DIALECTS[name]
    image = source.image.lower()
    if "neuron" in image:
        return dialect
    # An image for GPUs that is older than what the catalog knows is no image for Neuron.
    if version is not None and not image and not engine_versions.has_dialect(on_gpus, version):
        return dialect if engine_versions.has_dialect(engine_versions.DIALECTS[dialect], version) else None
    marked = any(entry.key.startswith(marks) for entry in source.entries)
    return dialect if marked and version is None else None


def _of_handler(written: dict[str, str], flavour: Flavour) -> DialectName | None:
    entry_point, rolling = written.get("entryPoint", ""), written.get("rolling_batch", "")
    if "neuronx" in entry_point:
        return "lmi-neuronx"
    if "trtllm" in entry_point or (flavour == "trtllm" and rolling in ("", "auto")):
        return "lmi-trtllm"
    is_async = written.get("async_mode", "").lower() == "true" or "vllm_async" in entry_point
    return "lmi-async" if is_async else None


def _of_rolling_batch(written: dict[str, str], version: Version | None, number: Version) -> DialectName | None:
    rolling = written.get("rolling_batch", "")
    if rolling == "lmi-dist" and version is not None and number > LAST_LMI_DIST:
        # Rewritten by the Java side, with a warning.
        return "lmi-vllm"
    if is_accelerate_trap(written, number):
        # What was meant; a rule says what happens.
        return "lmi-async"
    if rolling in _ROLLING:
        return _ROLLING[rolling]
    is_deepspeed = written.get("engine", "").lower() == "deepspeed" or "deepspeed" in written.get("entryPoint", "")
    return "lmi-deepspeed" if is_deepspeed else None


def _of_auto(written: dict[str, str], number: Version, flavour: Flavour) -> DialectName:
    """Return what `rolling_batch=auto`, or nothing, comes to (DJL Serving, LmiConfigRecommender by branch)."""
    if flavour == "neuronx" or "n_positions" in written:
        return "lmi-neuronx"
    if batches_dynamically(written):
        return "lmi-python"
    if number >= ASYNC_BY_DEFAULT:
        return "lmi-async"
    if number >= FIRST_ASYNC:
        return "lmi-vllm"
    by_hand = number <= (7,) and written.get("rolling_batch") is None and written.get("engine", "").lower() != "mpi"
    return "lmi-python" if by_hand else "lmi-dist"


def _newest(dialect: DialectName, source: ConfigSource) -> Version:
    """Return the newest version that has a dialect and reads what is written."""
    keys = {entry.key for entry in source.entries}
    if dialect.startswith("lmi") and keys & {"option.paged_attention", "OPTION_PAGED_ATTENTION"}:
        return (7,)
    return newest_build(dialect)


@cache
def newest_build(dialect: DialectName) -> Version:
    """Return the newest version with an image that has a dialect."""
    row = engine_versions.DIALECTS[dialect]
    last = row.last_image or row.until
    if last is not None and (version := read_version(row.engine, last)):
        return version
    return _newest_build(row.engine)


@cache
def _newest_build(engine: EngineName) -> Version:
    builds = (build for build in IMAGES.rows if build.flavour != "neuronx" or engine == "lmi")
    texts = [build.version for build in builds if build.family == engine and build.documented]
    versions = [version for text in texts if (version := read_version(engine, text))]
    return max(versions) if versions else _NEWEST_KNOWN[engine]


def is_accelerate_trap(written: dict[str, str], number: Version) -> bool:
    """Return whether `rolling_batch=disable` is alone where that leads to Hugging Face Accelerate, not vLLM."""
    meant = written.get("quantize", "") in ("bitsandbytes4", "bitsandbytes8") or batches_dynamically(written)
    generates = written.get("task", "text-generation") in ("", "text-generation")
    alone = not meant and generates and not written.keys() & {"entryPoint", "device_map"}
    not_async = written.get("async_mode", "").lower() != "true"
    return written.get("rolling_batch") == "disable" and number >= ASYNC_BY_DEFAULT and alone and not_async


def batches_dynamically(written: dict[str, str]) -> bool:
    """Return whether whole requests are batched."""
    return is_above_one(written.get("batch_size", written.get("max_dynamic_batch_size", "1")))


def is_above_one(text: str) -> bool:
    """Return whether a text is a whole number above 1."""
    digits = text.strip()
    return digits.isascii() and digits.isdigit() and digits.lstrip("0") not in ("", "1")


def handler_of(written: Mapping[str, str], *, has_model_py: bool) -> Handler:
    """Return who reads the options of an LMI configuration, so that another's names and values are not judged.

    Args:
        written: Options by name, of `engine` without `option.` as well.
        has_model_py: A `model.py` is next to the file: PyModel.java takes it for the handler.
    """
    if written.get("engine", "").strip().lower() in JAVA_ENGINES:
        return "java"
    entry_point = written.get("entryPoint", "")
    if has_model_py or (entry_point and not entry_point.startswith(OWN_HANDLERS)):
        return "user"
    return "own"
