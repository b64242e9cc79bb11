"""Writes a rendered configuration to a folder, whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_base.errors import RenderError
from seatrial_base.files import write_folder
from seatrial_lint.engines.properties import write_env

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.engines.rendered import RenderedConfig


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
        _refuse_to_mix(folder)
        write_folder(folder, rendered_files(config))
    except OSError as error:
        raise RenderError.of("SEA301", f"can't be written: {error.strerror}", where=folder.as_posix()) from error
    return tuple(folder / name for name in sorted(rendered_files(config)))


def _refuse_to_mix(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RenderError.of("SEA301", "the folder is not empty", where=folder.as_posix(), hint="choose a new folder")
