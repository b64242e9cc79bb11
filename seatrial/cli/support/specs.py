"""Specs and live endpoints of a command line: their files, names and Regions, and one message for all problems."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from seatrial.cli.support.options import environments_folder
from seatrial_base.errors import PlanError, RenderError, SpecError
from seatrial_base.files import follow_links, kind_of
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from seatrial.specs.load import LoadedSpec


Given = TypeVar("Given")
Made = TypeVar("Made")
ENDPOINTS = Path("endpoints")
SUFFIXES = frozenset({".yaml", ".yml"})


def spec_files(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return every spec once: a file, or the `*.yaml` and `*.yml` of a folder, sorted by name.

    Raises:
        SpecError: SEA101 and SEA420, with every file that is a link to itself, and every folder that holds no spec.
    """
    by_target: dict[Path, Path] = {}
    problems: list[Finding] = []
    for path in paths:
        files = _of_folder(path) if path.is_dir() else [path]
        if not files:
            hint = "give a spec or a folder of specs"
            problems.append(Finding("SEA420", Place.at(path.as_posix()), "no spec (*.yaml) in the folder", hint))
        for file in files:
            try:
                by_target.setdefault(follow_links(file), file)
            except OSError as error:
                problems.append(Finding("SEA101", Place.at(file.as_posix()), f"{error.strerror}", "check the path"))
    if problems:
        raise SpecError(problems)
    return tuple(by_target.values())


def given_or_own_specs(paths: Sequence[Path] | None) -> tuple[Path, ...]:
    """Return the specs that are given, else those of `endpoints`: none in a repository that offers products alone.

    Raises:
        SpecError: SEA420, with every given folder that holds no spec, and without `endpoints` and `products`.
    """
    if paths:
        return spec_files(paths)
    if Path("products").is_dir() and not (ENDPOINTS.is_dir() and _of_folder(ENDPOINTS)):
        return ()
    return spec_files([ENDPOINTS])


def endpoint_file(endpoint: str) -> Path:
    """Return the spec of an endpoint that is given by its YAML file or by its name, which its file in `endpoints` has.

    Raises:
        SpecError: SEA101 when there is no such file.
    """
    given = Path(endpoint)
    file = given if given.suffix in SUFFIXES else ENDPOINTS / f"{endpoint}.yaml"
    if kind_of(file) != "file":
        hint = "give the endpoint's YAML file, or run this in the folder above `endpoints`"
        raise SpecError.of("SEA101", "the file does not exist", where=file.as_posix(), hint=hint)
    return file


def is_list(paths: Sequence[Path]) -> bool:
    """Return whether paths request a list: several of them, or a folder, whatever it holds."""
    return len(paths) > 1 or any(path.is_dir() for path in paths)


def of_every(given: Iterable[Given], make: Callable[[Given], Made]) -> tuple[Made, ...]:
    """Make something of each.

    Raises:
        SpecError: With every problem of all of them; each problem once.
    """
    made: list[Made] = []
    problems: list[Finding] = []
    for item in given:
        try:
            made.append(make(item))
        except (SpecError, PlanError, RenderError) as error:
            problems += error.problems
    if problems:
        raise SpecError(dict.fromkeys(problems))
    return tuple(made)


def load_specs(files: Iterable[Path], environment: str, environments: Path | None) -> tuple[LoadedSpec, ...]:
    """Load specs for one environment.

    Raises:
        SpecError: With every problem of every file.
    """
    from seatrial.specs.load import load_spec

    return of_every(
        files, lambda file: load_spec(file, environment, environments=environments_folder(environments, file))
    )


def _of_folder(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES and file.is_file())


def live_name(endpoint: str, environment: str, environments: Path | None) -> tuple[str, int, str]:
    """Return the endpoint's name in its spec, its locked generation and the environment's region.

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


def refuse_options(hint: str, *rows: tuple[bool, str, Mapping[str, object]]) -> None:
    """Refuse options that mean nothing beside others.

    `rows`: whether it is so, what is wrong of `{}`, and the values of the options by their names.

    Raises:
        SpecError: SEA108 for each option that has a value.
    """
    given = (
        (name, text.format(name))
        for is_so, text, options in rows
        for name, value in options.items()
        if is_so and value not in (None, False)
    )
    if problems := [Finding("SEA108", Place("command line", field=name), text, hint) for name, text in given]:
        raise SpecError(problems)


def own_region() -> str:
    """Return the Region of AWS_REGION, as the AWS CLI does (boto3 ignores it), else that of boto3.

    Raises:
        SpecError: SEA512, it has none.
    """
    import boto3

    from seatrial.account.reader import aws_failures

    if region := os.environ.get("AWS_REGION"):
        return region
    with aws_failures("command line"):
        region = boto3.session.Session().region_name
    if not region:
        hint = "give --region, or set AWS_REGION"
        raise SpecError.of("SEA512", "no region is configured", where="command line", hint=hint)
    return region
