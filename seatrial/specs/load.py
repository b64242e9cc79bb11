"""Loads specs and environments: everything that is wrong with all the files, in one error; and the digest."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from seatrial.specs.contradictions import contradictions
from seatrial.specs.endpoint import EndpointSpec
from seatrial.specs.environment import (
    EnvironmentSpec,
    environment_problems,
    region_problems,
    tag_count_problems,
    tag_problems,
)
from seatrial.specs.guardrails.checks import guard_rail_problems, image_problems, set_by, waiver_name
from seatrial.specs.local_values import LocalSpec, LocalValue, local_spec
from seatrial.specs.optimization import SPECULATIONS
from seatrial.specs.prices import PRICES_FILE, TeamPrices, prices_path, region_document
from seatrial.specs.recipe import expanded
from seatrial.specs.spec_files import calibration_document, why_away
from seatrial.specs.workload import (
    conversations_of_spec,
    lengths_of_spec,
    read_dataset,
    too_long_conversations,
    with_hit_rate,
)
from seatrial.specs.yaml_edit import with_values
from seatrial.specs.yaml_source import (
    OVERRIDES,
    Document,
    YamlSource,
    file_problems,
    merge_environment,
    newer_schema,
    parse_source,
    read_source,
    secret_values,
    validation_problems,
    without_secrets,
)
from seatrial_base.errors import SpecError
from seatrial_base.files import follow_links, kind_of, read_text
from seatrial_base.findings import Finding, Place
from seatrial_base.frozen_model import FrozenModel, digest, digested
from seatrial_load.prompts.dataset import Dataset

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.specs.guardrails.limits import GuardRails
    from seatrial.specs.optimization import Recipe
    from seatrial.specs.yaml_source import Yaml
    from seatrial_load.measure.lengths import Conversations, RequestLengths


ENVIRONMENTS = "environments"
DEFAULTS = "defaults"
"""What stands for the file of an environment that has none."""
COMMAND_LINE = "command line"
"""What stands for the file of a spec that is given by options."""
FILES: dict[str, type[FrozenModel]] = {"the endpoint's spec": EndpointSpec, "environments/ENV.yaml": EnvironmentSpec}
Spec = TypeVar("Spec", bound=FrozenModel)


@dataclass(frozen=True, slots=True)
class LoadedSpec:
    """What is requested, in one environment.

    Attributes:
        path: The endpoint's file.
        endpoint: Its spec with the environment's overrides merged and its recipe expanded.
        document: The merged document, which knows the file and line of every field.
        place: The environment's document, which knows them too.
        config_file: The content of `model.config_file` in canonical form; `None` without one.
        calibration_json: What trials measured of this endpoint in this environment, as JSON; `None` without any.
        prices: The team's prices file; `None` without one.
        dataset: What is taken of `workload.dataset`; empty without one.
        local_values: What the laptop has in place of what was requested; empty elsewhere.
    """

    path: Path
    endpoint: EndpointSpec
    environment: EnvironmentSpec
    document: Document
    place: Document
    config_file: str | None = None
    calibration_json: str | None = None
    prices: TeamPrices | None = None
    dataset: Dataset = field(default_factory=Dataset)
    local_values: tuple[LocalValue, ...] = ()

    @property
    def has_spec(self) -> bool:
        """Whether the spec has a file, beside which its lock can lie."""
        return Path(self.document.path).name != COMMAND_LINE

    @property
    def has_environment(self) -> bool:
        """Whether the environment has a file, without which nothing is deployed."""
        return self.place.path != DEFAULTS

    @property
    def rails(self) -> GuardRails:
        """The guard rails that hold for this endpoint, without those that are waived."""
        return self.environment.guard_rails.for_endpoint(waiver_name(self.endpoint, self.document))

    @property
    def lengths(self) -> RequestLengths:
        """How long prompts and answers are: what is planned for, and what a trial sends."""
        return lengths_of_spec(self.endpoint, self.dataset)

    @property
    def conversations(self) -> Conversations | None:
        """The conversations whose turns the requests are; None where they are single ones."""
        return conversations_of_spec(self.endpoint, self.dataset)

    @property
    def calibration(self) -> Mapping[str, object] | None:
        """What trials measured of this endpoint in this environment, read again each time; `None` without any."""
        if self.calibration_json is None:
            return None
        content: dict[str, object] = json.loads(self.calibration_json)
        return content

    @property
    def digest(self) -> str:
        """Digest of everything that can change the plan or its trial; a lock made from another digest is stale."""
        prices = None if self.prices is None else region_document(self.prices, self.environment.region)
        return fingerprint(
            self.endpoint,
            self.environment.model_copy(update={"guard_rails": self.rails}),
            config_file=self.config_file,
            dataset=self.dataset,
            calibration=self.calibration,
            prices=prices,
        )

    def set_by(self, rail: str) -> str:
        """Return who set a guard rail and where, as `set by the-team in environments/prod.yaml:12`."""
        return set_by(self.environment, self.place, rail)

    def problem(self, path: tuple[str | int, ...], rule: str, message: str, hint: str = "") -> Finding:
        """Return a problem placed where the user wrote the field."""
        return self.document.problem(path, rule, message, hint)


def load_spec(path: Path, environment: str, *, environments: Path, default_region: str | None = None) -> LoadedSpec:
    """Load an endpoint's spec for one environment.

    `default_region`: region of the environment where that folder has none at all; `None` refuses that.

    Raises:
        SpecError: With every problem of both files and of the calibration.
    """
    return load_source(read_source(path), path, environment, environments=environments, default_region=default_region)


def load_source(
    source: YamlSource, path: Path, environment: str, *, environments: Path, default_region: str | None = None
) -> LoadedSpec:
    """Load an endpoint's spec that was read already.

    `path`: the file beside which its lock and calibration are.

    Raises:
        SpecError: With every problem of both files and of the calibration.
    """
    # Alone: in a newer schema, whatever else seems wrong may be right.
    if (newer := newer_schema(source)) is not None:
        raise SpecError([newer])
    problems = [*file_problems(source)]
    # A default only where there is no environment at all: next to others, a missing file is a mistake.
    region = None if environment_names(environments) else default_region
    problems += _unknown_overrides(source, environments) if region is None else ()
    place, place_document, wrong_place = _read_environment(environments, environment, region)
    problems += wrong_place
    document = merge_environment(source, environment)
    endpoint: EndpointSpec | None = None
    if source.data:
        endpoint, wrong = validated(EndpointSpec, document)
        problems += (*wrong, *contradictions(document), *tag_problems(document))
    dataset, unread = read_dataset(path, endpoint, document)
    problems += unread
    if endpoint is not None:
        # The longest conversation is computed, which takes values that are all right.
        problems += () if problems else too_long_conversations(endpoint, dataset, document)
        # The rails below judge what is deployed: the recipe's checkpoint in place of the model, for example.
        endpoint = with_hit_rate(expanded(endpoint), dataset)
        if place is not None and place_document is not None:
            problems += guard_rail_problems(endpoint, place, document, place_document)
            problems += image_problems(endpoint, place, document)
            problems += tag_count_problems(endpoint, place, document)
    calibration, unreadable = _read_calibration(path, environment)
    problems += unreadable
    prices, wrong_prices = _read_place_prices(environments, place, place_document)
    problems += wrong_prices
    if problems or endpoint is None or place is None or place_document is None:
        raise SpecError(ordered(problems, secret_values(source)))
    name = endpoint.model.config_file
    config_file = None if name is None else config_file_content(path.parent / name)
    # Last, so that rails and rules see the spec as it is written, not as the laptop shortens it.
    here = local_spec(endpoint, dataset, document) if place.is_embedded else LocalSpec(endpoint, dataset, ())
    return LoadedSpec(
        path,
        here.endpoint,
        place,
        document,
        place_document,
        config_file,
        calibration,
        prices,
        here.dataset,
        here.values,
    )


def with_recipe(loaded: LoadedSpec, recipe: Recipe) -> LoadedSpec:
    """Return what is requested with another recipe in place of its own.

    Raises:
        SpecError: With everything that contradicts the recipe in the spec, placed at the fields.
    """
    written: list[Yaml] = [entry.model_dump(mode="json", exclude_unset=True, exclude_none=True) for entry in recipe]
    return with_fields(loaded, {("optimization",): written})


def with_fields(loaded: LoadedSpec, fields: Mapping[tuple[str, ...], Yaml]) -> LoadedSpec:
    """Return what is requested with other values of some fields, as if they were written so.

    Raises:
        SpecError: With everything in the spec that contradicts them, and every guard rail that they break.
    """
    document = replace(loaded.document, data=with_values(loaded.document.data, fields))
    endpoint = EndpointSpec.model_validate_json(json.dumps(document.data), strict=True)
    problems = list(contradictions(document))
    if not problems:
        endpoint = with_hit_rate(expanded(endpoint), loaded.dataset)
        problems = list(guard_rail_problems(endpoint, loaded.environment, document, loaded.place))
    if problems:
        raise SpecError(dict.fromkeys(problems))
    return replace(loaded, endpoint=endpoint, document=document)


def read_prices(environments: Path, named: str | None) -> tuple[TeamPrices | None, list[Finding]]:
    """Return the prices file of an environment, or `None` when there is none, with its problems.

    `named`: the file that the environment names, relative to that folder; `None` where it names none.
    """
    file = prices_path(environments, named)
    if named is None and not kind_of(file):
        return None, []
    source = read_source(file)
    document = merge_environment(source, None)
    prices, problems = validated(TeamPrices, document) if not source.problems else (None, [])
    return prices, [*source.problems, *problems]


def _read_place_prices(
    environments: Path, place: EnvironmentSpec | None, document: Document | None
) -> tuple[TeamPrices | None, list[Finding]]:
    """Return the prices of an environment with their problems; a file of another repository is not read."""
    named = None if place is None else place.prices
    if named is None or document is None or not (because := why_away(environments / "environment.yaml", named)):
        return read_prices(environments, named)
    return None, [document.problem(("prices",), "SEA138", because, "copy it into the repository")]


def _read_calibration(path: Path, environment: str) -> tuple[str | None, tuple[Finding, ...]]:
    try:
        document = calibration_document(path, environment)
    except SpecError as error:
        return None, error.problems
    return (None if document is None else json.dumps(document, sort_keys=True)), ()


def load_environment(environments: Path, name: str) -> EnvironmentSpec:
    """Load one environment of a folder.

    Raises:
        SpecError: With every problem of its file.
    """
    spec, _, problems = _read_environment(environments, name)
    if problems or spec is None:
        raise SpecError(ordered(problems))
    return spec


def environments_of(spec: Path) -> Path:
    """Return the folder of environments of a spec: that of its app, else `environments` next to it or its folder."""
    beside, root = spec.parent / ENVIRONMENTS, spec.absolute().parent.parent
    # Synthesis reads the app's environments. So those that a change puts next to a spec, or to what a spec is a link
    # to, do not count before them.
    folder = root / ENVIRONMENTS
    if not ((root / "cdk.json").is_file() and kind_of(folder) == "folder"):
        if kind_of(beside) == "folder":
            return beside
        if kind_of(folder) != "folder":
            folder = follow_links(spec).parent.parent / ENVIRONMENTS
    return folder if spec.is_absolute() else Path(os.path.relpath(folder))


def environment_names(environments: Path) -> tuple[str, ...]:
    """Return the names of a folder's environments, sorted; the prices file next to them is none."""
    return tuple(sorted(file.stem for file in environments.glob("*.yaml") if file.name != PRICES_FILE))


def _read_environment(
    environments: Path, name: str, default_region: str | None = None
) -> tuple[EnvironmentSpec | None, Document | None, list[Finding]]:
    file = environments / f"{name}.yaml"
    if default_region is not None:
        source = parse_source(f"name: {json.dumps(name)}\nregion: {json.dumps(default_region)}\n", DEFAULTS)
    elif kind_of(file) == "file":
        source = read_source(file)
    else:
        known = ", ".join(environment_names(environments))
        hint = (
            f"known environments: {known} (in {environments.as_posix()})"
            if known
            else f"write {file.as_posix()} with `name: {file.stem}` and `region: us-east-1`, or run `seatrial init`"
        )
        return None, None, [Finding("SEA109", Place.at(file.as_posix()), f"there is no environment {name}", hint)]
    if (newer := newer_schema(source)) is not None:
        return None, None, [newer]
    document = merge_environment(source, None)
    spec, problems = validated(EnvironmentSpec, document) if source.data else (None, [])
    problems += environment_problems(document)
    problems += source_problems(environments, environment_names(environments), name, document)
    problems += region_problems(spec, document) if spec is not None else ()
    if spec is not None and spec.name != name:
        message = f"the name {spec.name} differs from the file name {name}"
        problems.append(
            Finding("SEA108", Place.at(document.where(("name",)), "name"), message, f"write `name: {name}`")
        )
    return spec, document, [*file_problems(source), *problems]


def validated(model: type[Spec], document: Document) -> tuple[Spec | None, list[Finding]]:
    """Return a document as its model, or `None` with what is wrong with it."""
    try:
        text = json.dumps(document.data)  # as JSON, lists may be tuples and yet `yes` is no number
        return model.model_validate_json(text, strict=True), []
    except ValidationError as error:
        return None, list(dict.fromkeys(validation_problems(error, model, document, FILES)))


def _unknown_overrides(source: YamlSource, environments: Path) -> Iterator[Finding]:
    overrides = source.data.get(OVERRIDES)
    if overrides is not None and not isinstance(overrides, dict):
        where = f"{source.path}:{source.lines[(OVERRIDES,)]}"
        yield Finding(
            "SEA105", Place.at(where, OVERRIDES), "must be a mapping of environments", "write `dev:` below it"
        )
        return
    known = environment_names(environments)
    for name, fields in (overrides or {}).items():
        where = f"{source.path}:{source.lines[(OVERRIDES, name)]}"
        if name not in known:
            hint = f"known environments: {', '.join(known) or 'none'} (in {environments.as_posix()})"
            yield Finding("SEA109", Place.at(where, f"{OVERRIDES}.{name}"), f"there is no environment {name}", hint)
        if fields is not None and not isinstance(fields, dict):
            yield Finding("SEA105", Place.at(where, f"{OVERRIDES}.{name}"), "must be a mapping of fields")


def ordered(problems: list[Finding], secrets: tuple[str, ...] = ()) -> list[Finding]:
    """Return problems by file and line, each once, without what must not be repeated."""

    def place(problem: Finding) -> tuple[str, int, str]:
        return problem.place.file, problem.place.line, problem.rule

    return sorted(dict.fromkeys(without_secrets(problems, secrets)), key=place)


_SOURCE = ("promotion", "source")


def source_problems(environments: Path, known: tuple[str, ...], name: str, document: Document) -> Iterator[Finding]:
    """Yield the source of an environment that has no file, or that is promoted, in the end, from the environment."""
    source = document.value(*_SOURCE)
    if not isinstance(source, str):
        return
    if source not in known:
        message = f"there is no environment {source}"
        hint = f"known environments: {', '.join(known) or 'none'} (in {environments.as_posix()})"
        yield document.problem(_SOURCE, "SEA109", message, hint)
        return
    order = _sources(environments, known, [name, source])
    if order[-1] == name:
        message = f"the promotion order is a cycle: {' → '.join(reversed(order))}"
        yield document.problem(_SOURCE, "SEA121", message, "leave out the source of the first environment")


def _sources(environments: Path, known: tuple[str, ...], order: list[str]) -> list[str]:
    """Return an environment with its source, the source's source and so on, up to the first that is there twice."""
    # Ends at a repeated name too: a cycle that does not hold the first one is reported at its own environments.
    while order[-1] not in order[:-1]:
        file = environments / f"{order[-1]}.yaml"
        before = merge_environment(read_source(file), None).value(*_SOURCE)
        if not isinstance(before, str) or before not in known:
            break
        order = [*order, before]
    return order


def fingerprint(
    endpoint: EndpointSpec,
    environment: EnvironmentSpec,
    *,
    config_file: str | None = None,
    dataset: Dataset | None = None,
    calibration: Mapping[str, object] | None = None,
    prices: Mapping[str, object] | None = None,
) -> str:
    """Return the digest of everything that can change the plan or the trial.

    Of the hub token only whether there is one counts: the plan warns of it.

    Args:
        config_file: The content of `model.config_file`; `None` without one.
        dataset: What is taken of `workload.dataset`; empty or `None` without one.
        calibration: What trials measured of this endpoint in this environment; `None` without any.
        prices: What the team's prices file says of the environment's region; `None` without any.
    """
    counted = digested(endpoint)
    if any(entry.name in SPECULATIONS for entry in endpoint.optimization):
        # The recipe says it, and the catalog its defaults: a newer default of the catalog makes no lock stale.
        counted["serving"]["overrides"].pop("speculative_decoding", None)
    document = {
        "endpoint": counted,
        "environment": digested(environment),
        "has_hub_token": endpoint.model.hub_token_secret is not None,
    }
    if config_file is not None:
        document["config_file"] = config_file
    if dataset is not None and dataset.pairs:
        document["dataset"] = digest(_canonical(dataset.pairs))
        if dataset.times_s:
            document["recorded_times"] = digest(_canonical(dataset.times_s))
        if dataset.turns:
            document["conversations"] = digest(_canonical([dataset.turns, dataset.delays_s]))
    if calibration is not None:
        document["calibration"] = calibration
    if prices is not None:
        document["prices"] = prices
    return digest(_canonical(document))


def config_file_content(path: Path) -> str:
    """Return a `config.json` in canonical form, so that only what it says counts; as it is when it is no JSON.

    A file that can't be read has no content here: whoever plans with it gets the error.
    """
    try:
        text = read_text(path, errors="replace")
    except OSError:
        return ""
    try:
        return _canonical(json.loads(text))
    except (ValueError, RecursionError):
        return text


def _canonical(document: object) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
