"""What an optimization job does here: a GGUF file is quantized for real; anything else is recorded, and says so."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog import images
from seatrial_base.units import MIB
from seatrial_laptop.aws.control_plane.containers import model_container
from seatrial_laptop.aws.json_document import Document, child, children, text, text_map
from seatrial_laptop.aws.runtime.artifacts import ArtifactError, object_urls, own_s3, read_object
from seatrial_laptop.aws.runtime.download_rights import refused_download, role_exists
from seatrial_laptop.engine.gguf_types import GgufType, quantize_file, stands_for
from seatrial_laptop.environment import REGION

if TYPE_CHECKING:
    from seatrial_laptop.aws.control_plane.cloud import Cloud

CONFIGS: Final = {
    "ModelQuantizationConfig": "Quantization",
    "ModelCompilationConfig": "Compilation",
    "ModelShardingConfig": "Sharding",
    "ModelSpeculativeDecodingConfig": "SpeculativeDecoding",
}
"""Kinds of configurations, and how ListOptimizationJobs calls them."""
QUANTIZE: Final = ("OPTION_QUANTIZE", "HF_MODEL_QUANTIZE")
NOTE_FILE: Final = "optimization-job.json"
RECORDED: Final = "recorded, not executed (simulated)"
EXECUTED: Final = "executed on this machine"


class RunFailed(Exception):  # noqa: N818 (named after the status)
    """The job failed; the message is its FailureReason."""


def run_optimization(cloud: Cloud, request: Document, logs: Path) -> tuple[str, str]:
    """Do or record a job, write its output to S3 and its log; return the recommended image and what was done.

    Raises:
        RunFailed: The source or the output can't be had.
    """
    try:
        source, files = _source(cloud, request)
        work = _executable(request, files)
        lines = _record(request, source) if work is None else _quantize(request, *work)
    except (ArtifactError, ValueError) as error:
        raise RunFailed(f"ClientError: {error}") from error
    name = text(request, "OptimizationJobName")
    (logs / f"optimization-job-{name}.log").write_text("".join(f"{line}\n" for line in lines))
    return _image(request), RECORDED if work is None else EXECUTED


def _source(cloud: Cloud, request: Document) -> tuple[str, list[str]]:
    """Return where the model is, and the files there."""
    source = child(request, "ModelSource")
    uri = text(child(source, "S3"), "S3Uri")
    if model := text(child(source, "SageMakerModel"), "ModelName"):
        container = model_container(cloud.store, model, {})
        uri = container.artifact_url or container.properties_prefix
    files = object_urls(uri)
    if not files:
        raise RunFailed(f"ClientError: there is no object under {uri or 'the model'}.")
    role = text(request, "RoleArn")
    if role_exists(role) and (reason := refused_download(role, files[0])):
        raise RunFailed(reason)
    return uri, files


def _executable(request: Document, files: list[str]) -> tuple[str, GgufType] | None:
    """Return the GGUF file that a job quantizes and the type that it makes; `None` for a job that is recorded."""
    configs = children(request, "OptimizationConfigs")
    weights = [url for url in files if url.endswith((".gguf", ".safetensors", ".bin", ".pt"))]
    if len(configs) != 1 or len(weights) != 1 or not weights[0].endswith(".gguf"):
        return None
    quantization = _quantization(request)
    kind = stands_for(quantization) if quantization else None
    return None if kind is None else (weights[0], kind)


def _quantization(request: Document) -> str:
    for config in children(request, "OptimizationConfigs"):
        variables = text_map(child(config, "ModelQuantizationConfig"), "OverrideEnvironment")
        for name in QUANTIZE:
            if name in variables:
                return variables[name]
    return ""


def _quantize(request: Document, source: str, kind: GgufType) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "source.gguf", Path(folder) / "made.gguf"
        given.write_bytes(read_object(source) or b"")
        quantize_file(given, made, kind)
        sizes = given.stat().st_size, made.stat().st_size
        stem = source.rpartition("/")[2].removesuffix(".gguf")
        _put(request, f"{stem}-{kind.lower()}.gguf", made.read_bytes())
    told = f"GGUF {kind} of {source}, in place of {_quantization(request)}"
    _put_note(request, {"executed": True, "note": f"{EXECUTED}: {told}", "bytes": sizes[1], "source_bytes": sizes[0]})
    return [f"{EXECUTED}: {told}", f"{sizes[0] / MIB:.1f} MiB became {sizes[1] / MIB:.1f} MiB"]


def _record(request: Document, source: str) -> list[str]:
    configs = [CONFIGS[kind] for config in children(request, "OptimizationConfigs") for kind in config]
    note = {"executed": False, "note": RECORDED, "source": source, "configurations": configs}
    _put_note(request, note)
    if quantization := _quantization(request):
        config = {"quantization_config": {"quant_method": quantization}, "note": RECORDED}
        _put(request, "config.json", json.dumps(config).encode())
    return [f"{RECORDED}: {', '.join(configs)} of {source}"]


def _put_note(request: Document, note: dict[str, object]) -> None:
    _put(request, NOTE_FILE, json.dumps(note, indent=2).encode())


def _put(request: Document, name: str, body: bytes) -> None:
    uri = text(child(request, "OutputConfig"), "S3OutputLocation").rstrip("/")
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    client = own_s3()
    try:
        client.put_object(Bucket=bucket, Key=f"{prefix}/{name}".lstrip("/"), Body=body)
    except (client.exceptions.ClientError, client.exceptions.NoSuchBucket) as error:
        raise RunFailed(f"ClientError: could not write to {uri}: {error}.") from error


def _image(request: Document) -> str:
    """Return the image that is recommended: that of the last configuration which names one, else the newest LMI."""
    named = [
        text(child(config, kind), "Image") for config in children(request, "OptimizationConfigs") for kind in config
    ]
    return next((image for image in reversed(named) if image), images.uri(images.builds_of("lmi")[-1], REGION))
