"""Commands that take a model with its load in place of a spec, and need no environment's file."""

from __future__ import annotations

import inspect
import math
import os
import re
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from seatrial.cli.support.options import environments_folder
from seatrial.cli.support.specs import SUFFIXES, is_list, of_every, spec_files
from seatrial.specs.spec_files import CONFIG, is_weights_folder
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatrial.specs.load import LoadedSpec
    from seatrial.specs.presets import ModelLoad

DEFAULT_ENVIRONMENT: Final = "dev"
DEFAULT_REGION: Final = "us-east-1"
_PANEL: Final = "A model in place of a spec"
_LEAST_IN_FLIGHT, _LEAST_TOK_S = 16, 500  # requests in flight and output tokens per second of a small copy
_WORD = r"[A-Za-z0-9][\w.-]*"
_PAGE: Final = re.compile(r"^(https?:/+)?(huggingface\.co|hf\.co)/")

SpecOrModel = Annotated[
    Path,
    typer.Argument(
        metavar="SPEC",
        help="The endpoint's YAML file, or a model: hub id or folder with a config.json.",
        show_default=False,
    ),
]
SpecsOrModel = Annotated[
    list[Path],
    typer.Argument(
        metavar="SPEC…",
        help="YAML files of endpoints, folders of them, or a model: hub id or folder with a config.json.",
        show_default=False,
    ),
]
EnvironmentOrDefault = Annotated[
    str | None,
    typer.Option(
        "--environment",
        "-e",
        metavar="ENV",
        help="Name of the environment. Default: the only one there is; where no file is, `dev`.",
        show_default=False,
    ),
]
_BESIDE_OUTPUT: Final = Annotated[
    int | None, typer.Option("--output-tokens", metavar="TOKENS", help="Mean answer length.", rich_help_panel=_PANEL)
]
"""Of a command that has an option `--output` of its own."""
_SPELLINGS: Final = {
    "input_tokens": "--input",
    "output_tokens": "--output",
    "concurrency": "--concurrency",
    "requests_per_second": "--rate",
    "ttft_p95_ms": "--ttft-p95",
    "tpot_p95_ms": "--tpot-p95",
    "usd_per_hour": "--budget",
    "headroom": "--headroom",
    "save": "--save",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """The options of a model that is given in place of a spec; `None` where an option is not given.

    Attributes:
        texts: The text of the spec that they make, once it was loaded; `save_spec` writes it.
    """

    input_tokens: Annotated[
        int | None, typer.Option("--input", metavar="TOKENS", help="Mean prompt length.", rich_help_panel=_PANEL)
    ] = None
    output_tokens: Annotated[
        int | None,
        typer.Option(
            "--output", "--output-tokens", metavar="TOKENS", help="Mean answer length.", rich_help_panel=_PANEL
        ),
    ] = None
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", help="Requests in flight at peak.", rich_help_panel=_PANEL)
    ] = None
    requests_per_second: Annotated[
        float | None,
        typer.Option("--rate", "--requests-per-second", help="Requests per second at peak.", rich_help_panel=_PANEL),
    ] = None
    ttft_p95_ms: Annotated[
        float | None,
        typer.Option("--ttft-p95", metavar="MS", help="Bound of the time to first token.", rich_help_panel=_PANEL),
    ] = None
    tpot_p95_ms: Annotated[
        float | None,
        typer.Option("--tpot-p95", metavar="MS", help="Bound of the time per token.", rich_help_panel=_PANEL),
    ] = None
    usd_per_hour: Annotated[
        float | None, typer.Option("--budget", metavar="USD", help="Highest cost per hour.", rich_help_panel=_PANEL)
    ] = None
    headroom: Annotated[float | None, typer.Option(help="Chance to carry the rate.", rich_help_panel=_PANEL)] = None
    region: Annotated[
        str | None,
        typer.Option(
            help="AWS region where no environment's file is. Default: AWS_REGION, else us-east-1.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the spec that gives this plan.", rich_help_panel=_PANEL)
    ] = None
    texts: list[str] = field(default_factory=list)


OPTIONS: Final = tuple(each.name for each in fields(ModelOptions) if each.name != "texts")
_OF_A_MODEL: Final = tuple(name for name in OPTIONS if name != "region")


def takes_model(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command with a parameter `model_options` the options of a model, which it gets there together."""

    @wraps(command)
    def run(**given: object) -> None:
        options = {name: given.pop(name) for name in OPTIONS}
        # `--output 300` is the length of an answer also where a command has a folder of that name.
        specs, output = given.get("specs"), given.get("output")
        is_model_alone = isinstance(specs, list) and len(specs) == 1 and is_model(specs[0])
        if is_model_alone and isinstance(output, Path) and output.name.isdigit() and options["output_tokens"] is None:
            given["output"], options["output_tokens"] = None, int(output.name)
        model_options = ModelOptions(**options)  # type: ignore[arg-type]  # typer has checked the types
        command(**given, model_options=model_options)
        save_spec(model_options)

    # Typer reads signatures: the options of a model are put into each command's own, so that help and completion
    # show them.
    signature = inspect.signature(command, eval_str=True)
    kept = [parameter for parameter in signature.parameters.values() if parameter.name != "model_options"]
    hints = inspect.get_annotations(ModelOptions, eval_str=True)
    if "output" in signature.parameters:
        hints["output_tokens"] = _BESIDE_OUTPUT
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hints[name])
        for name in OPTIONS
    ]
    run.__signature__ = signature.replace(parameters=[*kept, *added])  # type: ignore[attr-defined]  # typer reads it
    annotations = {name: hint for name, hint in command.__annotations__.items() if name != "model_options"}
    run.__annotations__ = {**annotations, **{name: hints[name] for name in OPTIONS}}
    return run


def load_specs_or_model(
    given: Sequence[Path],
    environment: str | None,
    environments: Path | None,
    model_options: ModelOptions,
    *,
    needs_file: bool = False,
) -> tuple[LoadedSpec, ...]:
    """Load specs, or a model with its load; print defaults that were used to standard error.

    Args:
        needs_file: Whether the environment must have a file, since something is written that is deployed there.

    Raises:
        SpecError: With every problem of every file, SEA109 without an environment, SEA514 for a file that `--save`
            would overwrite.
        BadParameter: Options of a model with a spec, or a model without its load.
    """
    if not (len(given) == 1 and is_model(given[0])):
        # Refuse `qwen3-32b`, which is no file, with the ids that end so.
        from seatrial_base.catalog.models import MODELS

        for path in given:
            name = path.as_posix().lower()
            if "/" in name or path.suffix in SUFFIXES or path.exists():
                continue
            if ids := [row.id for row in MODELS.rows if row.id.lower().endswith(f"/{name}")]:
                message = f"{path.as_posix()} is no file; the model of that name is {', '.join(ids)}"
                raise typer.BadParameter(message, param_hint="SPEC")
        _refuse_options(given, model_options)
        files = spec_files(given)
        region = None if needs_file else default_region(model_options.region)
        loaded = of_every(files, lambda file: _load_file(file, environment, environments, region))
        for spec in loaded:
            show_defaults(spec, model_options.region)
        return loaded
    return (_load_model(_without_address(given[0]), environment, environments, model_options),)


def _without_address(path: Path) -> Path:
    """Return the id of a model; the address of its page is taken too."""
    return Path(_PAGE.sub("", path.as_posix()))


def is_model(path: Path) -> bool:
    """Return whether a path is a model: a hub id or its page, no file nor named like one, or a folder of weights."""
    text = _without_address(path).as_posix()
    is_id = re.fullmatch(f"{_WORD}/{_WORD}", text) is not None and path.suffix not in SUFFIXES and not path.exists()
    return is_id or is_weights_folder(path)


def names_list(paths: Sequence[Path]) -> bool:
    """Return whether arguments request a list: several of them, or a folder of specs."""
    return is_list(paths) and not (len(paths) == 1 and is_model(paths[0]))


def _refuse_options(specs: Sequence[Path], model_options: ModelOptions) -> None:
    """Refuse the options of a model with what is none; the message names what a path meant for one lacks."""
    given = [_SPELLINGS[name] for name in _OF_A_MODEL if getattr(model_options, name) is not None]
    if not given:
        return
    if len(specs) == 1 and specs[0].suffix not in SUFFIXES and (lacking := _lacking(specs[0])):
        raise typer.BadParameter(f"{specs[0].as_posix()} {lacking}", param_hint="SPEC")
    message = "belongs to a model, as in Qwen/Qwen3-32B; a spec has its own"
    raise typer.BadParameter(message, param_hint=", ".join(given))


def _lacking(path: Path) -> str:
    """Return why a path is neither a model nor a folder of specs; empty where it is a file or has specs."""
    if not path.exists():
        return "is neither a file, a folder nor a hub id, as in Qwen/Qwen3-32B"
    has_specs = any(each.suffix in SUFFIXES for each in path.iterdir()) if path.is_dir() else True
    return "" if has_specs else "is a folder without a config.json; copy the model's there"


def _load_file(file: Path, environment: str | None, environments: Path | None, region: str | None) -> LoadedSpec:
    from seatrial.specs.load import load_spec

    folder = environments_folder(environments, file)
    name = chosen_environment(environment, folder)
    return load_spec(file, name, environments=folder, default_region=region)


def _load_model(
    model: Path, environment: str | None, environments: Path | None, model_options: ModelOptions
) -> LoadedSpec:
    from seatrial.specs.load import COMMAND_LINE, load_source
    from seatrial.specs.presets import endpoint_name, spec_text
    from seatrial.specs.yaml_source import parse_source

    missing = [_SPELLINGS[name] for name in ("input_tokens", "output_tokens") if getattr(model_options, name) is None]
    if model_options.concurrency is None and model_options.requests_per_second is None:
        missing.append("--concurrency (or --rate)")
    if missing:
        message = "a model needs its load, as in --input 2000 --output 300 --concurrency 16"
        raise typer.BadParameter(message, param_hint=", ".join(missing))
    file = model_options.save or Path(f"{endpoint_name(model.as_posix())}.yaml")
    folder = environments_folder(environments, file)
    name = environment or _first_environment(folder)
    most_copies = _most_copies(folder, name, model_options)
    if model_options.save is not None and model_options.save.exists():
        hint = "choose another file, or plan this one"
        raise SpecError.of(
            "SEA514", "the file is there already", where=model_options.save.as_posix(), field="--save", hint=hint
        )
    folder_of_spec = model if is_weights_folder(model) else Path()  # the folder of the file that an unsaved spec names
    path = folder_of_spec / file.name if is_weights_folder(model) else file
    text = spec_text(_model_load(model, path, model_options), file.stem, most_copies=most_copies)
    source = replace(parse_source(text, (folder_of_spec / COMMAND_LINE).as_posix()), lines={})
    loaded = load_source(source, path, name, environments=folder, default_region=default_region(model_options.region))
    show_defaults(loaded, model_options.region)
    if model_options.save is not None:
        model_options.texts.append(
            spec_text(_model_load(model, file, model_options), file.stem, most_copies=most_copies)
        )
    return loaded


def _model_load(model: Path, spec: Path, model_options: ModelOptions) -> ModelLoad:
    from seatrial.specs.presets import ModelLoad
    from seatrial_base.field_facts import made_of

    is_folder = is_weights_folder(model)
    return made_of(
        ModelLoad,
        model_options,
        hub_id=None if is_folder else model.as_posix(),
        config_file=_beside(spec, model / CONFIG) if is_folder else None,
        input_tokens=model_options.input_tokens or 0,
        output_tokens=model_options.output_tokens or 0,
    )


def _beside(spec: Path, file: Path) -> str:
    """Return a file's path relative to a spec that names it."""
    from seatrial.specs.spec_files import why_away

    name = Path(os.path.relpath(file, spec.parent)).as_posix()
    if because := why_away(spec, name):
        hint = "copy the folder into the repository"
        raise SpecError.of("SEA138", because, where=spec.as_posix(), field="--save", hint=hint)
    return name


def save_spec(model_options: ModelOptions) -> None:
    """Write the spec of a model whose command has ended well: one that is refused leaves no file.

    Raises:
        SpecError: SEA514 when it can't be written.
    """
    from seatrial.locks.lock_file import replace_file

    file = model_options.save
    if file is None or not model_options.texts:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"can't be made: {error.strerror}"
        raise SpecError.of("SEA514", message, where=file.parent.as_posix(), field="--save") from error
    replace_file(file, model_options.texts[-1], "SEA514")
    place = "" if model_options.region is None else f" --region {model_options.region}"
    typer.echo(f"spec written to {file.as_posix()}; `seatrial plan {file.as_posix()}{place}` plans it again", err=True)


def chosen_environment(given: str | None, folder: Path) -> str:
    """Return the environment that is given, else the only one of a folder, else `dev` where there is none.

    Raises:
        SpecError: SEA109 where there are several.
    """
    from seatrial.specs.load import environment_names

    if given is not None:
        return given
    names = environment_names(folder)
    if len(names) > 1:
        hint = f"give -e NAME: {', '.join(names)}"
        raise SpecError.of("SEA109", "there are several environments", where=folder.as_posix(), hint=hint)
    return names[0] if names else DEFAULT_ENVIRONMENT


def _first_environment(folder: Path) -> str:
    """Return the environment of a first plan: of several `dev`, else the first of an account; a choice is printed."""
    from seatrial.specs.load import environment_names, load_environment

    names = environment_names(folder)
    if len(names) < 2:  # noqa: PLR2004 (the only one needs no word)
        return chosen_environment(None, folder)
    # A plan for the laptop's engine would not show what a model needs.
    of_accounts = [name for name in names if not load_environment(folder, name).is_embedded]
    name = DEFAULT_ENVIRONMENT if DEFAULT_ENVIRONMENT in of_accounts else (of_accounts or names)[0]
    typer.echo(f"environment {name} ({(folder / name).as_posix()}.yaml); -e names another", err=True)
    return name


def _most_copies(folder: Path, environment: str, load: ModelOptions) -> int:
    """Return how many copies autoscaling may add: what the load needs of small ones, within the guard rails."""
    from seatrial.specs import shapes
    from seatrial.specs.load import load_environment
    from seatrial.specs.presets import MOST_COPIES
    from seatrial_base.files import kind_of

    # What is no number is refused with the spec.
    tok_s = (load.requests_per_second or 0) * (load.output_tokens or 0)
    tok_s = tok_s if math.isfinite(tok_s) else 0
    enough = max(MOST_COPIES, math.ceil((load.concurrency or 0) / _LEAST_IN_FLIGHT), math.ceil(tok_s / _LEAST_TOK_S))
    enough = min(enough, shapes.MOST_COPIES)
    if kind_of(folder / f"{environment}.yaml") != "file":
        return enough
    rails = load_environment(folder, environment).guard_rails
    enough = enough if rails.usd_per_hour is None else MOST_COPIES
    return min(enough, rails.max_copies or enough)


def default_region(given: str | None) -> str:
    """Return the region that is given, else that of AWS's variables, else us-east-1."""
    return given or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or DEFAULT_REGION


def show_defaults(loaded: LoadedSpec, region: str | None = None) -> None:
    """Print what is used in place of an environment's file.

    Raises:
        BadParameter: A region is given, and the environment has a file with another.
    """
    environment = loaded.environment
    if not loaded.has_environment:
        account = "account of your credentials"
        typer.echo(f"no environments/{environment.name}.yaml: region {environment.region}, {account}", err=True)
    elif region is not None and region != environment.region:
        message = f"{environment.name} is in {environment.region} ({loaded.place.path})"
        raise typer.BadParameter(message, param_hint="--region")
