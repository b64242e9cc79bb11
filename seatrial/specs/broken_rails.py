"""The guard rails of an environment that a spec breaks by itself; those on a plan are in `seatrial.planner`."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from seatrial.specs.endpoint import Percentiles
from seatrial_base.catalog.model_names import licence_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.specs.endpoint import EndpointSpec, ModelSpec
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial.specs.yaml_source import Document, FieldPath
    from seatrial_base.findings import Finding


_RULE = "SEA111"
_LATENCIES = ("ttft_ms", "tpot_ms", "e2e_latency_ms")


def set_by(environment: EnvironmentSpec, place: Document, rail: str) -> str:
    """Return who set a guard rail and where, as `set by platform-team in environments/prod.yaml:12`.

    Args:
        environment: The environment.
        place: Its document.
        rail: The field of `guard_rails`; with dots where it is within another, as `slo.error_rate`.
    """
    who = "" if environment.owner is None else f" by {environment.owner}"
    return f"set{who} in {place.where(('guard_rails', *rail.split('.')))}"


def guard_rail_problems(
    endpoint: EndpointSpec, environment: EnvironmentSpec, document: Document, place: Document
) -> Iterator[Finding]:
    """Yield every guard rail that a spec breaks by itself; the planner keeps those on cost.

    Args:
        endpoint: The spec, merged for the environment.
        environment: The environment.
        document: The document of the spec.
        place: The document of the environment.
    """
    rails = _Rails(endpoint, environment, document, place)
    for rule in (rails.sizes, rails.models, rails.licences, rails.engine, rails.objectives, rails.trial, rails.tags):
        yield from rule()
    if environment.network.isolated and endpoint.model.hub_id is not None:
        message = f"{environment.name} has network isolation, so the weights can't come from a hub"
        yield document.problem(("model",), _RULE, message, "stage the weights to S3 and give model.s3_uri")


class _Rails:
    """The guard rails of one environment, held against one spec."""

    def __init__(
        self, endpoint: EndpointSpec, environment: EnvironmentSpec, document: Document, place: Document
    ) -> None:
        self._endpoint, self._environment = endpoint, environment
        self._document, self._place = document, place
        self._rails = environment.guard_rails

    def _problem(self, path: FieldPath, rail: str, message: str, hint: str) -> Finding:
        told = f"{message} ({set_by(self._environment, self._place, rail)})"
        return self._document.problem(path, _RULE, told, hint)

    def sizes(self) -> Iterator[Finding]:
        """Yield too many copies, and instance types of which none is allowed."""
        name, most, copies = self._environment.name, self._rails.max_copies, self._endpoint.scaling.max_copies
        if most is not None and copies > most:
            message = f"max_copies {copies} exceeds {name}'s guard rail {most}"
            yield self._problem(("scaling", "max_copies"), "max_copies", message, f"at most {most}")
        asked, allowed = self._endpoint.serving.instance_types or (), self._rails.instance_types
        if allowed is not None and asked and not set(asked) & set(allowed):
            message = f"none of {', '.join(asked)} is allowed in {name}"
            path, hint = ("serving", "instance_types"), f"allowed: {', '.join(allowed)}"
            yield self._problem(path, "instance_types", message, hint)
        for index, pool in enumerate(self._endpoint.hosting.instance_pools or ()):
            if allowed is not None and pool not in allowed:
                place = ("hosting", "instance_pools", index)
                hint = f"allowed: {', '.join(allowed)}"
                yield self._problem(place, "instance_types", f"{pool} is not allowed in {name}", hint)

    def models(self) -> Iterator[Finding]:
        """Yield each model, draft and adapter that no pattern allows."""
        allowed = self._rails.models
        for path, name in _models(self._endpoint) if allowed is not None else ():
            if not any(fnmatchcase(name, pattern) for pattern in allowed or ()):
                message = f"the model {name} is not allowed in {self._environment.name}"
                yield self._problem(path, "models", message, f"allowed: {', '.join(allowed or ())}")

    def licences(self) -> Iterator[Finding]:
        """Yield each model whose licence is unknown or not allowed."""
        allowed = self._rails.licences
        for path, name, licence in _licensed(self._endpoint) if allowed is not None else ():
            if licence in (allowed or ()):
                continue
            listed = f"allowed: {', '.join(allowed or ())}"
            if licence is None:
                message = f"the licence of {name} is unknown, and {self._environment.name} allows only listed licences"
                hint = f"{listed}; `seatrial models list` shows the known ones, and model.licence declares another"
                yield self._problem(path, "licences", message, hint)
            else:
                message = f"the licence of {name}, {licence}, is not allowed in {self._environment.name}"
                yield self._problem(path, "licences", message, listed)

    def engine(self) -> Iterator[Finding]:
        """Yield an engine, or a backend of LMI, that is not allowed; `auto` is decided among the allowed ones."""
        serving, allowed = self._endpoint.serving, self._rails.engines
        by_backend = serving.engine == "auto" and serving.backend != "auto"
        asked = "lmi" if by_backend else serving.engine
        if allowed is not None and asked not in (*allowed, "auto"):
            what = f"the backend {serving.backend} is one of lmi, which" if by_backend else f"the engine {asked}"
            message = f"{what} is not allowed in {self._environment.name}"
            path = ("serving", "backend" if by_backend else "engine")
            yield self._problem(path, "engines", message, f"allowed: {', '.join(allowed)}, or auto")

    def objectives(self) -> Iterator[Finding]:
        """Yield each required objective that is missing or looser."""
        for metric in _LATENCIES:
            asked, required = getattr(self._endpoint.slo, metric), getattr(self._rails.slo, metric)
            for name in Percentiles.model_fields:
                bound, given = getattr(required, name), _bound_at(asked, name)
                if bound is not None and (given is None or given > bound):
                    yield self._objective(f"{metric}.{name}", given, bound, "at most", " ms")
        slo, rails = self._endpoint.slo, self._rails.slo
        if rails.error_rate is not None and slo.error_rate > rails.error_rate:
            yield self._objective("error_rate", slo.error_rate, rails.error_rate, "at most", "")
        if rails.output_tok_s is not None and (slo.output_tok_s is None or slo.output_tok_s < rails.output_tok_s):
            yield self._objective("output_tok_s", slo.output_tok_s, rails.output_tok_s, "at least", " tok/s")

    def _objective(self, name: str, given: float | None, bound: float, sense: str, unit: str) -> Finding:
        needed = f"{sense} {bound:,.12g}{unit}"
        found = "is missing" if given is None else f"is {given:,.12g}{unit}"
        message = f"slo.{name} {found}; {self._environment.name} requires {needed}"
        return self._problem(("slo", *name.split(".")), f"slo.{name}", message, f"set slo.{name} to {needed}")

    def trial(self) -> Iterator[Finding]:
        """Yield another trial mode than the required one."""
        required, mode = self._rails.trial_mode, self._endpoint.trial.mode
        if required not in (None, mode):
            message = f"the trial mode is {mode}; {self._environment.name} requires {required}"
            yield self._problem(("trial", "mode"), "trial_mode", message, f"write `mode: {required}`")

    def tags(self) -> Iterator[Finding]:
        """Yield each required tag that neither the endpoint nor the environment has, or that is empty."""
        tags = {**self._environment.tags, **self._endpoint.tags}
        for key in self._rails.required_tags:
            if not tags.get(key):
                message = f"the tag {key} is missing; {self._environment.name} requires it"
                yield self._problem(("tags", key), "required_tags", message, f"add `{key}: …` below tags")


def _bound_at(asked: Percentiles, name: str) -> float | None:
    """Return the strictest bound at a percentile or a higher one: what holds there holds below it too."""
    names = list(Percentiles.model_fields)
    bounds = (getattr(asked, each) for each in names[names.index(name) :])
    return min((bound for bound in bounds if bound is not None), default=None)


def _models(endpoint: EndpointSpec) -> Iterator[tuple[FieldPath, str]]:
    """Yield everything that is loaded with its field: the model, its draft, its adapters.

    A path in the container is none: what lies there came with the model's own weights.
    """
    model, overrides = endpoint.model, endpoint.serving.overrides
    for field in ("hub_id", "s3_uri", "jumpstart_id"):
        name = getattr(model, field)
        if name is not None:
            yield ("model", field), name
    draft = overrides.speculative_decoding
    if draft is not None and draft.model is not None and not draft.model.startswith("/"):
        yield ("serving", "overrides", "speculative_decoding", "model"), draft.model
    adapters = overrides.lora.adapters if overrides.lora is not None else None
    for index, adapter in enumerate(adapters or ()):
        if not adapter.path.startswith("/"):
            yield ("serving", "overrides", "lora", "adapters", index, "path"), adapter.path


def _licensed(endpoint: EndpointSpec) -> Iterator[tuple[FieldPath, str, str | None]]:
    """Yield the model and its draft with field and licence; adapters are a team's own work more often than not."""
    path, name = _source(endpoint.model)
    yield path, name, licence_of(name) or endpoint.model.licence
    for path, name in _models(endpoint):
        if "speculative_decoding" in path:
            yield path, name, licence_of(name)


def _source(model: ModelSpec) -> tuple[FieldPath, str]:
    """Return what names the model's licence: its hub id or JumpStart id, else the place of its weights."""
    fields = ("hub_id", "jumpstart_id", "s3_uri")
    field = next(field for field in fields if getattr(model, field) is not None or field == "s3_uri")
    return ("model", field), str(getattr(model, field) or "")
