"""Source of a container's weights: fetched from the hub by itself, or mounted from S3 by the service."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial_base.catalog import jumpstart
from seatrial_base.catalog.jumpstart import find_jumpstart_model, nearest_jumpstart_ids
from seatrial_base.errors import RenderError
from seatrial_base.findings import Finding

if TYPE_CHECKING:
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.findings import Finding

MOUNT = "/opt/ml/model"

_COMMIT = re.compile(r"[0-9a-f]{7,40}")


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where the weights come from.

    Attributes:
        model_id: What the container is told to load: a hub id, or the mount point.
        weights_s3_uri: What the service mounts, a prefix with its final slash or a `.tar.gz` object that it unpacks;
            `None` for a hub model.
        secret_env: Environment variable to Secrets Manager name of the hub token.
        notes: Warnings that stop nothing.
        is_packaged: A model package says what the service mounts.
    """

    model_id: str
    revision: str | None
    weights_s3_uri: str | None
    secret_env: dict[str, str]
    notes: tuple[Finding, ...] = ()
    is_packaged: bool = False

    @property
    def is_mounted(self) -> bool:
        """Whether the service mounts the weights, so that no file can be packaged beside them."""
        return self.is_packaged or self.weights_s3_uri is not None


def model_source(loaded: LoadedSpec) -> ModelSource:
    """Return where the weights come from.

    Raises:
        RenderError: SEA366 for a JumpStart id whose artifact is not known.
    """
    model = loaded.endpoint.model
    # First of all: `s3_uri` beside a package only names what the role may read, and is not mounted.
    if model.model_package_arn is not None:
        return ModelSource(MOUNT, None, None, {}, is_packaged=True)
    if model.s3_uri is not None:
        return ModelSource(MOUNT, None, model.s3_uri, {})
    if model.hub_id is not None:
        secret = {"HF_TOKEN": model.hub_token_secret} if model.hub_token_secret else {}
        return ModelSource(model.hub_id, model.revision, None, secret, _unpinned(loaded, model.hub_id))
    if model.jumpstart_id is not None:
        return _jumpstart_source(loaded, model.jumpstart_id)
    message, hint = (
        "the model has no source",
        "give model.hub_id, model.s3_uri, model.jumpstart_id or model.model_package_arn",
    )
    raise RenderError([loaded.problem(("model",), "SEA305", message, hint)])


def _unpinned(loaded: LoadedSpec, hub_id: str) -> tuple[Finding, ...]:
    revision = loaded.endpoint.model.revision
    if revision is not None and _COMMIT.fullmatch(revision):
        return ()
    what = f"the revision {revision} is a branch or a tag" if revision else "no revision"
    message = f"{what}: {hub_id} may change between container starts"
    hint = "set model.revision to the commit on the model's hub page"
    return (_warning(loaded, ("model", "revision" if revision else "hub_id"), message, hint),)


def _warning(loaded: LoadedSpec, path: tuple[str, ...], message: str, hint: str) -> Finding:
    placed = loaded.problem(path, "SEA365", message, hint)
    return replace(placed, severity="warning")


def _jumpstart_source(loaded: LoadedSpec, model_id: str) -> ModelSource:
    model = _jumpstart_model(loaded, model_id)
    region = loaded.environment.region
    path = ("model", "jumpstart_id")
    if region not in jumpstart.jumpstart_regions():
        message = f"JumpStart has no bucket in {region}"
        hint = "stage the weights to a bucket of that region (seatrial stage) and give model.s3_uri"
        raise RenderError([loaded.problem(path, "SEA366", message, hint)])
    uri = model.s3_uri(region)
    message = f"the artifact of {model_id} {model.version} comes from the catalog and may change"
    note = _warning(loaded, path, message, f"pin it: model.s3_uri: {uri}")
    return ModelSource(MOUNT, None, uri, {}, (note,))


def _jumpstart_model(loaded: LoadedSpec, model_id: str) -> jumpstart.JumpStartModel:
    metadata = loaded.endpoint.model.jumpstart_metadata
    if metadata is not None:
        try:
            return jumpstart.read_metadata(loaded.path.parent / metadata, model_id)
        except jumpstart.MetadataError as error:
            path = ("model", "jumpstart_metadata")
            hint = "it holds JumpStart's own specification of the model, as JSON"
            raise RenderError([loaded.problem(path, "SEA366", f"{error}", hint)]) from error
    known = find_jumpstart_model(model_id)
    if known is None:
        near = ", ".join(nearest_jumpstart_ids(model_id))
        hint = (
            f"{f'near in the catalog: {near}; ' if near else ''}give model.s3_uri, the artifact's prefix as the "
            "model's page names it, or model.jumpstart_metadata, a copy of its specification "
            "(scripts/fetch_jumpstart.py writes one with the SageMaker SDK and your credentials)"
        )
        message = f"the catalog has no JumpStart model {model_id}"
        raise RenderError([loaded.problem(("model", "jumpstart_id"), "SEA366", message, hint)])
    return known
