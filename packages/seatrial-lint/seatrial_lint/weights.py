"""Where a container's weights come from, as its definition says it: a mount, an archive, a prefix, or the hub."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

MOUNT = "/opt/ml/model"
_ARCHIVES = (".tar.gz", ".tgz", ".tar", ".zip")


@dataclass(frozen=True, slots=True)
class WeightSource:
    """What a definition says of the weights; empty texts where it says nothing, or only the deployment knows.

    `archive` is ModelDataUrl or ArtifactUrl, a prefix of archives where it `is_multi_model`.
    """

    model_id: str = ""
    archive: str = ""
    s3_uri: str = ""
    s3_data_type: str = ""
    compression: str = ""
    is_mounted: bool = False
    is_multi_model: bool = False


class WeightProblem(NamedTuple):
    """What is wrong with it, and with which of its fields."""

    kind: Literal["form", "place"]
    field: Literal["model_id", "archive", "s3_uri"]
    message: str
    hint: str


def weight_problems(source: WeightSource) -> Iterator[WeightProblem]:
    """Yield what keeps a container from its weights, or gives it other ones."""
    model = source.model_id
    if model.startswith("s3://") and model.endswith(_ARCHIVES):
        message = f"{model} is an archive, and a model in S3 is a prefix with the files themselves"
        hint = f"unpack it below a prefix, or give it as ModelDataUrl and write {MOUNT} here"
        yield WeightProblem("form", "model_id", message, hint)
    archive = source.archive
    if archive.startswith("s3://") and not archive.endswith((".tar.gz", "…}")) and not source.is_multi_model:
        message = f"{archive} is no archive: SageMaker takes one .tar.gz here"
        hint = "name the archive, or give a prefix as ModelDataSource with S3Prefix and CompressionType None"
        yield WeightProblem("form", "archive", message, hint)
    is_archive = source.s3_uri.endswith(_ARCHIVES)
    if is_archive and (source.s3_data_type == "S3Prefix" or source.compression == "None"):
        message = f"{source.s3_uri} is an archive, which is not unpacked with S3Prefix or CompressionType None"
        hint = "write S3DataType: S3Object and CompressionType: Gzip, or unpack it below a prefix"
        yield WeightProblem("form", "s3_uri", message, hint)
    elif (
        source.s3_uri.endswith("/")
        and "…" not in source.s3_uri
        and (source.s3_data_type == "S3Object" or source.compression == "Gzip")
    ):
        message = f"{source.s3_uri} is a prefix, and S3Object or Gzip means one archive"
        yield WeightProblem("form", "s3_uri", message, "write S3DataType: S3Prefix and CompressionType: None")
    if source.is_mounted and hub_id(model):
        message = f"the weights of ModelDataSource are at {MOUNT}, and the container loads {model} from the hub instead"
        yield WeightProblem("place", "model_id", message, f"write {MOUNT} here, or leave ModelDataSource out")


def hub_id(value: str) -> bool:
    """Return whether a model id names a repository of the hub: no path, no S3 URI."""
    return bool(value) and not value.startswith(("/", ".", "~", "s3:", "djl:")) and "://" not in value
