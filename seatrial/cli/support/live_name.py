"""An endpoint as commands are given it, by YAML file or name, as the one that is locked for an environment."""

from __future__ import annotations

from pathlib import Path

from seatrial.cli.support.options import environments_folder


def live_name(endpoint: str, environment: str, environments: Path | None) -> tuple[str, int, str]:
    """Return the endpoint's name in its spec, its locked generation and the environment's region.

    Args:
        endpoint: YAML file or name of the endpoint.
        environment: The environment's name.
        environments: Folder of environments; by default the one beside the specs'.

    Raises:
        SpecError: The spec, its lock or the environment can't be read.
    """
    from seatrial.locks.changes import generation_of
    from seatrial.locks.lock_file import document_in_lock
    from seatrial.specs.load import load_environment, load_spec

    spec = Path(endpoint)
    is_file = spec.suffix == ".yaml"
    folder = environments_folder(environments, spec if is_file else Path("endpoints/x.yaml"))
    name = load_spec(spec, environment, environments=folder).endpoint.name if is_file else endpoint
    locked = document_in_lock(spec if is_file else Path("endpoints") / f"{name}.yaml", environment)
    return name, generation_of(locked), load_environment(folder, environment).region
