"""Keys that the container doesn't read: unknown, renamed, removed, dropped, in the wrong case, or written twice."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.engine_options import PREFIXES, known_names
from seatrial_base.catalog.engine_versions import version_text, within
from seatrial_base.catalog.rows import CatalogTable, Sourced
from seatrial_lint.lint.known import is_known_option, judge, nearest_in
from seatrial_lint.lint.rules import finding, key_like, remove, rename, rule
from seatrial_lint.lint.target import NamedOption

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.findings import Finding
    from seatrial_lint.lint.rules import Subject
    from seatrial_lint.lint.target import TargetContainer

FOREIGN = ("OPTION_", "SERVING_", "SM_VLLM_", "SM_SGLANG_")
# An archive may hold a handler that reads options of its own.
_PACKAGED = {"model_data_url", "artifact_url"}
_OPTION = re.compile(r"\boption\.(\w+)")
_NEAR_SERVER_KEY = 0.8
_ANYBODYS = frozenset(["HF_TOKEN", "MODEL_ID", "MODEL_DIR", "MODEL_NAME", "TRUST_REMOTE_CODE"])
# deepjavalibrary/djl-serving@7e13b081 engines/python/.../PyModel.java, load: the cases of its switch over the options.
NEED_PREFIX = frozenset(
    [
        *("entryPoint", "model_loading_timeout", "predict_timeout", "pythonExecutable", "parallel_loading"),
        *("enable_venv", "handler", "mpi_mode", "async_mode"),
    ]
)
# deepjavalibrary/djl-serving 0.27.0-dlc and 0.28.0-dlc serving/docker/dockerd-entrypoint-with-cuda-compat.sh,
# translateTGIToLMI: TGI's names, the first LMI that translates them, and LMI's own.
TRANSLATED: dict[str, tuple[int, str]] = {
    "HF_MODEL_QUANTIZE": (9, "OPTION_QUANTIZE"),
    "HF_MODEL_TRUST_REMOTE_CODE": (9, "OPTION_TRUST_REMOTE_CODE"),
    "SM_NUM_GPUS": (9, "TENSOR_PARALLEL_DEGREE"),
    "MAX_CONCURRENT_REQUESTS": (9, "SERVING_JOB_QUEUE_SIZE"),
    "MAX_BATCH_PREFILL_TOKENS": (9, "OPTION_MAX_ROLLING_BATCH_PREFILL_TOKENS"),
    "MAX_BATCH_SIZE": (9, "OPTION_MAX_ROLLING_BATCH_SIZE"),
    "CUDA_MEMORY_FRACTION": (10, "OPTION_GPU_MEMORY_UTILIZATION"),
}
# Fields of SageMaker's API and arguments of its SDK that were read in environments (aws/amazon-sagemaker-examples
# issue 3432), in small letters, and where they belong.
_API_FIELDS = {
    "container_startup_health_check_timeout": "ContainerStartupHealthCheckTimeoutInSeconds of the endpoint config",
    "container_startup_health_check_timeout_in_seconds": (
        "ContainerStartupHealthCheckTimeoutInSeconds of the endpoint config"
    ),
    "containerstartuphealthchecktimeoutinseconds": "ContainerStartupHealthCheckTimeoutInSeconds of the endpoint config",
    "model_data_download_timeout": "ModelDataDownloadTimeoutInSeconds of the endpoint config",
    "model_data_download_timeout_in_seconds": "ModelDataDownloadTimeoutInSeconds of the endpoint config",
    "modeldatadownloadtimeoutinseconds": "ModelDataDownloadTimeoutInSeconds of the endpoint config",
    "volume_size": "VolumeSizeInGB of the endpoint config",
    "volumesizeingb": "VolumeSizeInGB of the endpoint config",
    "instance_type": "InstanceType of the endpoint config",
    "instancetype": "InstanceType of the endpoint config",
    "initial_instance_count": "InitialInstanceCount of the endpoint config",
    "initialinstancecount": "InitialInstanceCount of the endpoint config",
    "inference_ami_version": "InferenceAmiVersion of the endpoint config",
    "inferenceamiversion": "InferenceAmiVersion of the endpoint config",
    "enable_network_isolation": "EnableNetworkIsolation of the model",
    "enablenetworkisolation": "EnableNetworkIsolation of the model",
}


@dataclass(frozen=True, slots=True)
class Renamed(Sourced):
    """An option that has another name in some versions."""

    dialects: tuple[str, ...]
    name: str
    to: str
    since: str
    because: str


@dataclass(frozen=True, slots=True)
class Dropped(Sourced):
    """Options that are read or passed over, and have no effect."""

    dialects: tuple[str, ...]
    names: tuple[str, ...]
    because: str
    fix: str
    since: str | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class Successor:
    """What to write instead of an option that is gone."""

    name: str
    instead: str


RENAMED: Final = CatalogTable(Renamed, "engine_options.json#renamed", key="name")
DROPPED: Final = CatalogTable(Dropped, "engine_options.json#dropped", key="names")
SUCCESSORS: Final = CatalogTable(Successor, "engine_options.json#successors", key="name")


@rule("SEA313", "SEA315", "SEA337", reads="one option")
def unknown_keys(subject: Subject) -> Iterator[Finding]:
    """A key that this version does not read."""
    target = subject.target
    if target is None or subject.source.facts.keys() & _PACKAGED:
        return
    for option in subject.options:
        has_rule = _renamed_to(target, option.name) or _dropped(target, option.name)
        if option.space == ("env" if target.engine == "tgi" else "option") and not has_rule:
            yield from _judged(subject, target, option)


def _judged(subject: Subject, target: TargetContainer, option: NamedOption) -> Iterator[Finding]:
    verdict = judge(target, option.name)
    if verdict is None:
        return
    name, lowered = option.name, option.name.lower()
    mixed = (known for known in ("entryPoint", "pythonExecutable") if known.lower() == lowered)
    cased = lowered if is_known_option(target, lowered) else next(mixed, "")
    if target.engine == "lmi" and cased and cased != name:
        key = (
            f"option.{cased}"
            if option.entry.form == "properties"
            else f"OPTION_{cased.upper() if cased.islower() else cased}"
        )
        message = f"case matters: {target.called} reads {option.name}, but the key is {cased}"
        yield finding(
            subject, "SEA337", option.entry, message, f"write {key}", rename(subject.source, option.entry, key)
        )
    elif verdict.kind == "elsewhere":
        successor = SUCCESSORS.get(option.name)
        fix = _in_form(option, successor.instead) if successor else "leave it out"
        yield finding(subject, "SEA315", option.entry, f"{option.name} {verdict.because}", fix)
    else:
        nearest = key_like(option, verdict.nearest) if verdict.nearest else ""
        fix = f"did you mean {nearest}?" if nearest else "leave it out"
        yield finding(subject, "SEA313", option.entry, f"{option.name} {verdict.because}", fix)


def _in_form(option: NamedOption, fix: str) -> str:
    """Write the keys of a text as this option's is written: with the prefix of a file, or as a variable."""
    return _OPTION.sub(lambda key: key_like(option, key[1]), fix)


@rule("SEA314")
def renamed(subject: Subject) -> Iterator[Finding]:
    """A key that has a newer name."""
    for option in subject.options if subject.target else ():
        row = _renamed_to(subject.target, option.name) if subject.target else None
        if row is None or (row.name == "MAX_INPUT_LENGTH" and subject.option(row.to)):
            # The two together are refused, and told as that.
            continue
        key = key_like(option, row.to)
        edit = None if subject.option(row.to) else rename(subject.source, option.entry, key)
        yield finding(subject, "SEA314", option.entry, row.because, f"write {key}", edit)


@rule("SEA316", reads="one option")
def dropped(subject: Subject) -> Iterator[Finding]:
    """A key that has no effect in this form."""
    target = subject.target
    for option in subject.options if target else ():
        if target and (row := _dropped(target, option.name)):
            yield finding(subject, "SEA316", option.entry, row.because, _in_form(option, row.fix))
        if target and target.engine == "vllm":
            flags = ("enable_prefix_caching", "enable_chunked_prefill")
            if option.name in flags and option.value.lower() == "false":
                key = f"SM_VLLM_NO_{option.name.upper()}"
                message = "the container drops flags with value false: vLLM's default, on, stays"
                yield finding(subject, "SEA316", option.entry, message, f"write {key}=true")


@rule("SEA316", handler="any", reads="one option")
def foreign(subject: Subject) -> Iterator[Finding]:
    """A variable that this container does not read."""
    target = subject.target
    for option in subject.options if target else ():
        if target and option.space == "env" and not _dropped(target, option.name):
            key = option.entry.key
            unread = _unread_by_lmi(subject, target, key) or _of_another_container(target, key)
            if key.lower() in _API_FIELDS and key != key.upper():
                message = "no container reads this field of SageMaker's API or SDK from the environment"
                yield finding(subject, "SEA316", option.entry, message, f"set {_API_FIELDS[key.lower()]}")
            elif unread is not None:
                message, fix = unread
                yield finding(subject, "SEA316", option.entry, message, fix)
        elif target and target.engine == "lmi":
            # TGI's names: LMI's start script translates them since LMI 9, and before it nothing reads them.
            tgi_key = option.entry.key
            first, own = TRANSLATED.get(tgi_key, (0, ""))
            if target.version < (first,):
                tgi_message = f"LMI reads it since {version_text('lmi', (first,))}; {target.called} ignores it silently"
                yield finding(subject, "SEA316", option.entry, tgi_message, f"write {own}")


@rule("SEA313", "SEA316", handler="any", reads="one option")
def bare(subject: Subject) -> Iterator[Finding]:
    """A key of serving.properties without `option.`.

    The model server hands all keys to the handler (ModelInfo.java: arguments; PyModel.java: addParameter); only what
    its own Java code looks up among the options needs the prefix.
    """
    for option in subject.options if subject.target and subject.handler != "java" else ():
        if option.space != "server" or option.entry.form != "properties" or option.name in known_names("lmi", "server"):
            continue
        if option.name in NEED_PREFIX:
            message = "without the prefix `option.` the model server does not read it"
            yield finding(subject, "SEA316", option.entry, message, f"write option.{option.name}")
        elif subject.handler == "own" and subject.target and not is_known_option(subject.target, option.name):
            nearest = nearest_in(option.name, tuple(sorted(known_names("lmi", "server"))), _NEAR_SERVER_KEY)
            if nearest:
                message = f"{option.name} is not a key of the model server"
                yield finding(subject, "SEA313", option.entry, message, f"did you mean {nearest}?")


def _unread_by_lmi(subject: Subject, target: TargetContainer, key: str) -> tuple[str, str] | None:
    if target.engine != "lmi":
        return None
    if key == "SERVING_ENGINE":
        return "the model server reads no SERVING_ENGINE: it chooses nothing", "write OPTION_ENGINE, or leave it out"
    packaged = subject.facts.keys() & _PACKAGED
    if subject.handler == "own" and not packaged and _unprefixed(target, key):
        return f"without the prefix OPTION_, {target.called} ignores it silently", f"write OPTION_{key}"
    return None


def _of_another_container(target: TargetContainer, key: str) -> tuple[str, str] | None:
    own = PREFIXES.get(target.engine, "OPTION_" if target.engine == "lmi" else "")
    if key.startswith(FOREIGN) and not (own and key.startswith((own, "SERVING_"))):
        message = f"{target.called} does not read variables of another container"
        return message, "convert the configuration: seatrial convert"
    instead = _TGI_ONLY.get(key)
    if target.engine == "tgi" or instead is None:
        return None
    fix = f"write {instead[target.engine]}" if target.engine in instead else "leave it out"
    return f"{target.called} does not read this variable of TGI", fix


def _unprefixed(target: TargetContainer, key: str) -> bool:
    """Return whether a variable is an option of LMI that lacks `OPTION_`; short words may be anybody's."""
    return key.isupper() and "_" in key and key not in _ANYBODYS and is_known_option(target, key.lower())


@rule("SEA320", handler="any")
def twice(subject: Subject) -> Iterator[Finding]:
    """A key that is written more than once."""
    seen: dict[str, list[NamedOption]] = defaultdict(list)
    options = subject.options or tuple(NamedOption("env", entry.key, entry) for entry in subject.source.entries)
    for option in options:
        seen[option.entry.key].append(option)
    for repeated in (options for options in seen.values() if len(options) > 1):
        last = repeated[-1].entry
        for repeated_option in repeated[:-1]:
            same = repeated_option.value == last.value
            message = f"duplicate on line {last.line}" + ("" if same else f", which takes precedence: {last.value}")
            edit = remove(repeated_option.entry) if same else None
            yield finding(subject, "SEA320", repeated_option.entry, message, "keep one of them", edit)


def _renamed_to(target: TargetContainer, name: str) -> Renamed | None:
    rows = (row for row in RENAMED.having(name) if target.dialect in row.dialects)
    return next((row for row in rows if within(target.version, row.since, None)), None)


def _dropped(target: TargetContainer, name: str) -> Dropped | None:
    rows = (row for row in DROPPED.having(name) if target.dialect in row.dialects)
    return next((row for row in rows if within(target.version, row.since, row.until)), None)


_TGI_ONLY: dict[str, dict[str, str]] = {
    "MAX_TOTAL_TOKENS": {
        "lmi": "OPTION_MAX_MODEL_LEN",
        "vllm": "SM_VLLM_MAX_MODEL_LEN",
        "sglang": "SM_SGLANG_CONTEXT_LENGTH",
    },
    "MAX_INPUT_TOKENS": {},
    "MAX_INPUT_LENGTH": {},
    "MAX_BATCH_TOTAL_TOKENS": {},
    "HF_MODEL_REVISION": {"lmi": "HF_REVISION", "vllm": "SM_VLLM_REVISION", "sglang": "SM_SGLANG_REVISION"},
    "NUM_SHARD": {
        "lmi": "TENSOR_PARALLEL_DEGREE",
        "vllm": "SM_VLLM_TENSOR_PARALLEL_SIZE",
        "sglang": "SM_SGLANG_TP",
    },
    "MESSAGES_API_ENABLED": {},
    "WAITING_SERVED_RATIO": {},
}
