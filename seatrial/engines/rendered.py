"""The rendered configuration as a document: what the container will read, and nothing else; and its files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Literal

from seatrial.documents.plan import copy_values
from seatrial_base.catalog.engine_versions import EngineName
from seatrial_base.catalog.images import image_digest, registry
from seatrial_base.errors import RenderError
from seatrial_base.files import write_folder
from seatrial_base.findings import Finding, Place
from seatrial_base.frozen_model import FrozenModel, digest
from seatrial_base.secrets import credentials, redacted
from seatrial_base.text import replaced_text
from seatrial_lint.engines.properties import write_env

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec


_REGION: Final = 3  # of the dots before it in the host of a registry
_MODEL = ("hub_id", "revision", "jumpstart_id", "trust_remote_code")


class RenderedConfig(FrozenModel):
    """One container's whole configuration, as its engine spells it.

    Attributes:
        engine_version: Container version as the catalog writes it.
        image: URI of the container image.
        payload_schema: Request and response schema that `/invocations` speaks.
        files: Files of the code artifact by name; empty when everything is in the environment.
        secret_env: Environment variable to Secrets Manager name or ARN, resolved at deployment, never written here.
        weights_s3_uri: S3 prefix that the service mounts at `/opt/ml/model`; `None` when the container fetches them.
        isolated: The container makes no outbound connection.
        notes: What the engine can't do or does differently, as text.
    """

    engine: EngineName
    engine_version: str
    image: str
    payload_schema: Literal["lmi", "tgi", "openai_chat"]
    files: dict[str, str]
    container_env: dict[str, str]
    secret_env: dict[str, str]
    weights_s3_uri: str | None
    isolated: bool
    notes: tuple[str, ...] = ()

    @property
    def container_digest(self) -> str:
        """A digest of what the container reads: image, files, variables, and the names of its secrets."""
        read = [self.image, self.files, self.container_env, self.secret_env]
        return digest(json.dumps(read, sort_keys=True))


def refuse_credentials(texts: Mapping[str, str], *, where: str) -> None:
    """Refuse texts that would be deployed with a credential in them: the last look before template and archive."""
    problems = []
    for name, text in texts.items():
        kinds = {match.kind: None for match in (*credentials(name), *credentials(text, name=name))}
        if kinds:
            message = f"{' and '.join(kinds)} would be deployed in plain text"
            hint = "store it in Secrets Manager and give its name, as model.hub_token_secret does; revoke this one"
            problems.append(Finding("SEA374", Place.at(where, redacted(name)), message, hint))
    if problems:
        raise RenderError(problems)


def refuse_replaced(texts: Mapping[str, str], *, where: str) -> None:
    """Refuse texts that would be something else once they are deployed: the last look before the template."""
    hint = "find where it comes from, and remove it"
    problems = [
        Finding("SEA137", Place.at(where, name), f"the text holds {reference}", hint)
        for name, text in texts.items()
        if (reference := replaced_text(name) or replaced_text(text))
    ]
    if problems:
        raise RenderError(problems)


def rendered_files(config: RenderedConfig) -> dict[str, str]:
    """Return the text of every rendered file by name; secrets are shown as references."""
    files = dict(config.files)
    secrets = {name: f"(from Secrets Manager: {secret})" for name, secret in config.secret_env.items()}
    if config.container_env or secrets:
        files["container.env"] = write_env(config.container_env | secrets)
    return files


def write_config(config: RenderedConfig, folder: Path) -> tuple[Path, ...]:
    """Write the rendered files to a new or empty folder and return their paths.

    Raises:
        RenderError: SEA301 when the folder holds something already or can't be written.
    """
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            message, hint = "the folder is not empty", "choose a new folder"
            raise RenderError.of("SEA301", message, where=folder.as_posix(), hint=hint)
        write_folder(folder, rendered_files(config))
    except OSError as error:
        raise RenderError.of("SEA301", f"can't be written: {error.strerror}", where=folder.as_posix()) from error
    return tuple(folder / name for name in sorted(rendered_files(config)))


def served_identity(loaded: LoadedSpec, config: RenderedConfig) -> Mapping[str, str]:
    """Return everything that a container reads, by name; texts without comments and without the weights' place."""
    model, weights = loaded.endpoint.model, loaded.endpoint.model.s3_uri
    identity = {f"model.{name}": f"{getattr(model, name)}" for name in _MODEL}
    identity |= {"engine": config.engine, "payload schema": config.payload_schema}
    identity |= {f"environment variable {name}": value for name, value in config.container_env.items()}
    # Each environment has a secret of its own: only that there is one is compared, never its ARN.
    identity |= {f"environment variable {name}": "from Secrets Manager" for name in config.secret_env}
    for file, text in config.files.items():
        identity |= {f"{file}: {name}": line for name, line in _file_lines(file, text)}
    # Each environment may keep the weights in a bucket of its own: the place differs, the revision in it must not.
    return {name: value.replace(weights, "WEIGHTS") if weights else value for name, value in identity.items()}


def _file_lines(file: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the options of a properties file; of any other file, its text as a whole."""
    if not file.endswith(".properties"):
        yield "text", text
        return
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            name, _, value = line.partition("=")
            yield name, value


def configuration_digest(loaded: LoadedSpec, plan: Plan, config: RenderedConfig) -> str:
    """Return the digest of all that decides how one copy serves: that of a promoted plan is the digest that was tried.

    Of the plan that is what is promoted, of the container what it reads; neither holds what an environment has of its
    own. After a dot follows the digest of the weights' place, which an environment may have of its own.
    """
    model = loaded.endpoint.model
    places = {name: getattr(model, name) for name in ("s3_uri", "model_package_arn", "hub_content_arn")}
    kinds = sorted(f"{name} {str(place).endswith('.tar.gz')}" for name, place in places.items() if place)
    plan_values = {**copy_values(plan), "image": _image_identity(plan.image.value.uri)}
    served = [plan_values, served_identity(loaded, config), kinds]
    written = (json.dumps(each, sort_keys=True, ensure_ascii=False) for each in (served, places))
    return ".".join(map(digest, written))


def _image_identity(uri: str) -> str:
    """Return what an image is: its digest, else its address, without the registry where that is AWS's of a Region."""
    host, _, rest = uri.partition("/")
    region = host.split(".")[3] if host.count(".") > _REGION else ""
    return image_digest(uri) or (rest if host == registry(region) else uri)
