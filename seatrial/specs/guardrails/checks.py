"""The guard rails that a spec breaks by itself.

Those on a plan are in `seatrial.locks.guard_rails`: plans are in a layer above specs, whose reader checks these.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from seatrial.specs.endpoint import Percentiles
from seatrial.specs.guardrails.fleets import fleets_of, least_size
from seatrial.specs.guardrails.limits import GuardRails
from seatrial.specs.guardrails.references import loaded_things, option_things
from seatrial_base.catalog import images
from seatrial_base.catalog.engine_options import bare_name
from seatrial_base.catalog.engine_versions import EngineName
from seatrial_base.catalog.image_addresses import judge_image
from seatrial_base.catalog.images import image_repository_uri
from seatrial_base.catalog.models import licence_of
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seatrial.specs.endpoint import EndpointSpec
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial.specs.guardrails.fleets import InstanceFleet
    from seatrial.specs.guardrails.references import LoadedThing
    from seatrial.specs.yaml_source import Document, FieldPath

_RULE = "SEA111"
_LATENCIES = ("ttft_ms", "tpot_ms", "e2e_latency_ms")


def set_by(environment: EnvironmentSpec, place: Document, rail: str) -> str:
    """Return who set a guard rail and where, as `set by platform-team in environments/prod.yaml:12`.

    `rail`: the field of `guard_rails`; with dots where it is within another, as `slo.error_rate`.
    """
    who = "" if environment.owner is None else f" by {environment.owner}"
    return f"set{who} in {place.where(('guard_rails', *rail.split('.')))}"


def guard_rail_problems(
    endpoint: EndpointSpec, environment: EnvironmentSpec, document: Document, place: Document
) -> Iterator[Finding]:
    """Yield every guard rail that a spec breaks by itself; the planner keeps those on cost."""
    rails = _Rails(endpoint, environment, document, place)
    for rule in (
        *(rails.sizes, rails.models, rails.revisions, rails.licences, rails.engine, rails.images),
        *(rails.hub_token, rails.objectives, rails.trial, rails.tags, rails.shells),
    ):
        yield from rule()
    if environment.network.isolated and endpoint.model.hub_id is not None:
        message = f"{environment.name} has network isolation, so the weights can't come from a hub"
        yield document.problem(("model",), _RULE, message, "stage the weights to S3 and give model.s3_uri")
    if (arn := endpoint.hosting.capacity_reservation_arn) is not None:
        region, account = arn.split(":")[3:5]
        for what, there, here in (("region", region, environment.region), ("account", account, environment.account)):
            if here not in {there, None}:
                message = f"the capacity reservation is in {what} {there}, and {environment.name} in {here}"
                hint = f"name a reservation of {what} {here}, or leave it out for {environment.name}"
                yield document.problem(("hosting", "capacity_reservation_arn"), "SEA146", message, hint)


def template_rail_problems(
    endpoint: EndpointSpec, environment: EnvironmentSpec, place: Document, options: Mapping[str, str], template: str
) -> Iterator[Finding]:
    """Yield every option that a serving template of the repository adds and that loads what a rail does not allow.

    `options`: what the template writes otherwise than Seatrial's own: values by key or variable.
    """
    rails = environment.guard_rails
    rail = next((name for name in ("models", "licences") if getattr(rails, name) is not None), None)
    for name, value in options.items() if rail is not None else ():
        bare = bare_name(name)
        for each in option_things(bare, value, endpoint.model.hub_id):
            if each.kind == "revision":
                if _is_own(str(each.name), rails.models or ()):
                    continue
                what, hint = _strangers(str(each.name)), _owners_hint(environment, place, str(each.name))
            else:
                by_name = each.name is not None and _matches(each.name, rails.models or ("*",))
                if bare in map(str.lower, rails.extra) or (
                    by_name and (rails.licences is None or each.licence in rails.licences)
                ):
                    continue
                what = each.because or f"{each.name} is not allowed in {environment.name}"
                mend = f"`extra: [{bare}]` below guard_rails"
                hint = f"remove it from the template, or let {environment.name} allow it: {mend}"
            message = f"{what} ({set_by(environment, place, str(rail))})"
            yield Finding(_RULE, Place.at(template, name), message, hint)


# Revisions that are the owner's: a commit, a tag, a branch.
# The hub keeps the pull requests of strangers as `refs/pr/N`, and what robots convert as `refs/convert/NAME`
# (huggingface_hub, "Interact with Discussions and PRs"). Git takes `a/b` for `refs/a/b` before it takes it for a branch
# (gitrevisions), so a branch with a slash counts only as `refs/heads/a/b`. The commits of a pull request are in the
# same repository: a hash can't be told from one of the owner's without asking the hub.
_OWN = re.compile(r"(refs/(heads|tags)/([\w+-][\w.+-]*/)*)?[\w+-][\w.+-]*", re.ASCII)


def _is_own(named: str, models: Iterable[str]) -> bool:
    """Return whether `REPOSITORY@REVISION` is the owner's, or is allowed by a pattern with an at sign."""
    revision = named.rpartition("@")[2]
    by_name = [pattern for pattern in models if "@" in pattern]
    return ".." not in revision and (_OWN.fullmatch(revision) is not None or _matches(named, by_name))


def _strangers(named: str) -> str:
    repository, _, revision = named.rpartition("@")
    return f"{revision} may be a pull request, which anybody may open, not the work of the owner of {repository}"


def _owners_hint(environment: EnvironmentSpec, place: Document, named: str) -> str:
    own = "name a commit or a tag, or a branch as refs/heads/NAME"
    if ".." in named:
        return own
    allowed = environment.guard_rails.models or ("*",)
    patterns = ", ".join(f"'{each}'" for each in (*allowed, named))
    return f"{own}; or let {environment.name} allow it: `models: [{patterns}]` below guard_rails in {place.path}"


class _Rails:
    """The guard rails of one environment, held against one spec."""

    def __init__(
        self, endpoint: EndpointSpec, environment: EnvironmentSpec, document: Document, place: Document
    ) -> None:
        self._endpoint, self._environment = endpoint, environment
        self._document, self._place = document, place
        self._rails = environment.guard_rails

    def _problem(self, path: FieldPath, rail: str, message: str, hint: str) -> Finding:
        text = f"{message} ({set_by(self._environment, self._place, rail)})" if rail else message
        return self._document.problem(path, _RULE, text, hint)

    def sizes(self) -> Iterator[Finding]:
        """Yield too many copies, and instance types of which none is allowed."""
        name, most, copies = self._environment.name, self._rails.max_copies, self._endpoint.scaling.max_copies
        if most is not None and copies > most:
            message = f"max_copies {copies} exceeds {name}'s guard rail {most}"
            yield self._problem(("scaling", "max_copies"), "max_copies", message, f"at most {most}")
        elif most is not None and (fewest := sum(each.copies for each in self._fleets)) > most:
            path = max(self._fleets, key=lambda fleet: fleet.copies).path
            message = f"at least {fewest} copies of all variants exceed {name}'s guard rail {most}"
            yield self._problem(path, "max_copies", message, f"at most {most} together")
        requested, allowed = self._endpoint.serving.instance_types or (), self._rails.instance_types
        if allowed is not None and requested and not set(requested) & set(allowed):
            message = f"none of {', '.join(requested)} is allowed in {name}"
            hint = f"allowed: {', '.join(allowed)}"
            yield self._problem(("serving", "instance_types"), "instance_types", message, hint)
        for path, kind in _named_types(self._endpoint):
            if allowed is not None and kind not in allowed:
                message = f"{kind} is not allowed in {name}"
                yield self._problem(path, "instance_types", message, f"allowed: {', '.join(allowed)}")

    @cached_property
    def _fleets(self) -> tuple[InstanceFleet, ...]:
        """The fewest instances that any plan has; a variant of another spec has one at least."""
        endpoint, size = self._endpoint, least_size(self._endpoint)
        shadow, one = endpoint.hosting.shadow, (endpoint, replace(size, instance_count=1))
        specs = [*(each.spec for each in endpoint.hosting.variants or ()), shadow.spec if shadow else None]
        return fleets_of(endpoint, size, {name: one for name in specs if name is not None})

    @cached_property
    def _things(self) -> tuple[LoadedThing, ...]:
        """What is loaded, without what the environment allows by another rail."""
        things = loaded_things(self._endpoint, self._environment.region, Path(self._document.path).parent)
        return tuple(
            each
            for each in things
            if not (each.kind == "option" and each.path[-1] in self._rails.extra)
            and not (each.kind == "code" and self._rails.code is not None)
        )

    def models(self) -> Iterator[Finding]:
        """Yield everything that is loaded and that no pattern allows, or that is unknown."""
        allowed, name = self._rails.models, self._environment.name
        for each in self._things if allowed is not None else ():
            if each.name is None:
                yield self._unjudged(each, "models")
            elif each.kind != "revision" and not _matches(each.name, allowed or ()):
                message = f"the model {each.name} is not allowed in {name}"
                listed = f"allowed: {', '.join(allowed or ())}"
                yield self._problem(each.path, "models", message, f"{listed}{self._or_let(each)}")
        if self._rails.code == "refused" and self._endpoint.serving.code is not None:
            yield self._problem(("serving", "code"), "code", f"code is not allowed in {name}", "leave it out")

    def revisions(self) -> Iterator[Finding]:
        """Yield each revision that may be the work of somebody else than the repository's owner."""
        rail = next((name for name in ("models", "licences") if getattr(self._rails, name) is not None), None)
        for each in self._things if rail is not None else ():
            if each.kind == "revision" and not _is_own(str(each.name), self._rails.models or ()):
                hint = _owners_hint(self._environment, self._place, str(each.name))
                yield self._problem(each.path, str(rail), _strangers(str(each.name)), hint)

    def _or_let(self, thing: LoadedThing) -> str:
        """Return how the environment may allow an option that names something; empty for what is no option."""
        if thing.kind != "option":
            return ""
        place = self._place.path
        return f"; or let {self._environment.name} allow it: `extra: [{thing.path[-1]}]` below guard_rails in {place}"

    def _unjudged(self, thing: LoadedThing, rail: str) -> Finding:
        """Return the problem of something that loads what is unknown, with who can allow it."""
        name, place = self._environment.name, self._place.path
        mend = {"code": "`code: allowed`", "option": f"`extra: [{thing.path[-1]}]`"}.get(thing.kind)
        hint = "leave it out" if mend is None else f"leave it out, or let {name} allow it: {mend} below guard_rails"
        message = f"{thing.because}, and {name} allows only listed {rail}"
        return self._problem(thing.path, rail, message, f"{hint} in {place}" if mend else hint)

    def licences(self) -> Iterator[Finding]:
        """Yield everything that is loaded and whose licence is unknown or not allowed.

        Adapters are a team's own work more often than not, and data has none.
        """
        allowed, model = self._rails.licences, self._endpoint.model
        if allowed is None:
            return
        # A package goes before `s3_uri`, which then only names what its role may read.
        fields = ("hub_id", "jumpstart_id", "model_package_arn", "s3_uri")
        field = next(field for field in fields if getattr(model, field) is not None or field == "s3_uri")
        path, name = ("model", field), str(getattr(model, field) or "")
        yield from self._licence(path, name, licence_of(name) or model.licence, allowed)
        for each in self._things:
            if each.name is not None and each.kind in ("draft", "option"):
                yield from self._licence(each.path, each.name, each.licence, allowed, self._or_let(each))
            elif each.name is None and self._rails.models is None:
                yield self._unjudged(each, "licences")

    def _licence(
        self, path: FieldPath, name: str, licence: str | None, allowed: tuple[str, ...], otherwise: str = ""
    ) -> Iterator[Finding]:
        listed = f"allowed: {', '.join(allowed)}"
        if licence is None:
            message = f"the licence of {name} is unknown, and {self._environment.name} allows only listed licences"
            hint = f"{listed}; `seatrial models list` shows the known ones, and model.licence declares another"
            yield self._problem(path, "licences", message, f"{hint}{otherwise}")
        elif licence not in allowed:
            message = f"the licence of {name}, {licence}, is not allowed in {self._environment.name}"
            yield self._problem(path, "licences", message, f"{listed}{otherwise}")

    def images(self) -> Iterator[Finding]:
        """Yield each image that AWS does not publish for an allowed engine and that nothing else allows.

        Without the rail `images`, those of the environment's own account are allowed where no rail asks what runs in
        them. A model package brings an image that only AWS knows: the package itself must be an allowed model then.
        """
        rails, environment = self._rails, self._environment
        allowed, package = rails.images or (), self._endpoint.model.model_package_arn
        if rails == GuardRails():
            return
        # An image of the own account may hold any engine and model, so it counts only where no rail requests them.
        own = None if rails.judges_what_is_loaded else environment.account
        for path, uri in named_images(self._endpoint):
            repository = image_repository_uri(uri)
            if repository in self._published or _matches(uri, allowed) or _matches(repository, allowed):
                continue
            if own is not None and uri.startswith(f"{own}.dkr.ecr."):
                continue
            message = f"the image {uri} is not allowed in {environment.name}"
            yield self._problem(path, self._image_rail, message, self._image_hint(repository, own))
        if package is not None and rails.judges_what_is_loaded and rails.models is None:
            message = f"the image of {package} can't be judged in {environment.name}"
            hint = f"let {environment.name} allow the package: its ARN below guard_rails.models in {self._place.path}"
            yield self._problem(("model", "model_package_arn"), self._image_rail, message, hint)

    @cached_property
    def _published(self) -> frozenset[str]:
        """The repositories that AWS publishes for the allowed engines in the region."""
        registry = images.registry(self._environment.region)
        engines = self._rails.engines or get_args(EngineName)
        names = (name for engine in engines for name in images.repositories(engine))
        return frozenset(f"{registry}/{name}" for name in names if registry)

    @property
    def _image_rail(self) -> str:
        """The rail for which images are judged: `images` itself, else the first that asks what runs in them."""
        names = ("images", "models", "licences", "engines")
        return next((name for name in names if getattr(self._rails, name) is not None), "")

    def _image_hint(self, repository: str, own: str | None) -> str:
        name = self._environment.name
        whose = f"take one of AWS or of the account {own}" if own else "take one that AWS publishes for the engine"
        return f"{whose}, or let {name} allow it: `images: [{repository}]` below guard_rails in {self._place.path}"

    def hub_token(self) -> Iterator[Finding]:
        """Yield a secret that is not among those that endpoints may read."""
        allowed, secret = self._rails.hub_token_secrets, self._endpoint.model.hub_token_secret
        if allowed is not None and secret is not None and not _matches(secret, allowed):
            message = f"the secret {secret} is not allowed in {self._environment.name}"
            path, hint = ("model", "hub_token_secret"), f"allowed: {', '.join(allowed)}"
            yield self._problem(path, "hub_token_secrets", message, hint)

    def shells(self) -> Iterator[Finding]:
        """Yield a shell in the containers where the environment does not allow it."""
        if self._endpoint.hosting.ssm_access and self._rails.ssm_access == "refused":
            message = f"shells in containers are not allowed in {self._environment.name}"
            hint = f"leave it out, or let {self._place.path} allow it: `ssm_access: allowed` below guard_rails"
            yield self._problem(("hosting", "ssm_access"), "ssm_access", message, hint)

    def engine(self) -> Iterator[Finding]:
        """Yield an engine, or a backend of LMI, that is not allowed; `auto` is decided among the allowed ones."""
        serving, allowed = self._endpoint.serving, self._rails.engines
        by_backend = serving.engine == "auto" and serving.backend != "auto"
        chosen = "lmi" if by_backend else serving.engine
        if allowed is not None and chosen not in (*allowed, "auto"):
            what = f"the backend {serving.backend} is one of lmi, which" if by_backend else f"the engine {chosen}"
            message = f"{what} is not allowed in {self._environment.name}"
            path = ("serving", "backend" if by_backend else "engine")
            yield self._problem(path, "engines", message, f"allowed: {', '.join(allowed)}, or auto")

    def objectives(self) -> Iterator[Finding]:
        """Yield each required objective that is missing or looser."""
        for metric in _LATENCIES:
            stated, required = getattr(self._endpoint.slo, metric), getattr(self._rails.slo, metric)
            names = list(Percentiles.model_fields)
            for index, name in enumerate(names):
                # The strictest bound at this percentile or a higher one: what holds there holds below it too.
                bounds = (getattr(stated, higher) for higher in names[index:])
                given = min((each for each in bounds if each is not None), default=None)
                bound = getattr(required, name)
                if bound is not None and (given is None or given > bound):
                    yield self._objective(f"{metric}.{name}", given, bound, "at most", " ms")
        slo, rails = self._endpoint.slo, self._rails.slo
        if rails.error_rate is not None and slo.error_rate > rails.error_rate:
            yield self._objective("error_rate", slo.error_rate, rails.error_rate, "at most", "")
        if rails.output_tok_s is not None and (slo.output_tok_s is None or slo.output_tok_s < rails.output_tok_s):
            yield self._objective("output_tok_s", slo.output_tok_s, rails.output_tok_s, "at least", " tok/s")

    def _objective(self, name: str, given: float | None, bound: float, sense: str, unit: str) -> Finding:
        needed = f"{sense} {bound:,.12g}{unit}"
        actual = "is missing" if given is None else f"is {given:,.12g}{unit}"
        message = f"slo.{name} {actual}; {self._environment.name} requires {needed}"
        return self._problem(("slo", *name.split(".")), f"slo.{name}", message, f"set slo.{name} to {needed}")

    def trial(self) -> Iterator[Finding]:
        """Yield another trial mode than the required one, and what makes a trial pass whatever is deployed."""
        required, trial = self._rails.trial_mode, self._endpoint.trial
        if required not in (None, trial.mode):
            message = f"the trial mode is {trial.mode}; {self._environment.name} requires {required}"
            yield self._problem(("trial", "mode"), "trial_mode", message, f"write `mode: {required}`")
        must = self._rails.required_trial
        if must.updates is not None and trial.update not in must.updates:
            yield self._looser("update", trial.update, " or ".join(must.updates), must.updates[0])
        if must.confidence is not None and trial.confidence < must.confidence:
            yield self._looser("confidence", trial.confidence, f"at least {must.confidence:g}", must.confidence)
        if must.on_inconclusive == "fail" and trial.on_inconclusive == "pass":
            yield self._looser("on_inconclusive", "pass", "fail", "fail")
        least, given = must.requests_per_concurrency, trial.requests_per_concurrency
        if least is not None and given < least:
            yield self._looser("requests_per_concurrency", given, f"at least {least}", least)

    def _looser(self, field: str, given: object, needed: str, value: object) -> Finding:
        """Return the problem of a trial that is looser than its environment requires."""
        rail = {"update": "trial.updates"}.get(field, f"trial.{field}")
        written = self._place.value("guard_rails", *rail.split(".")) is not None
        message = f"trial.{field} is {given}; {self._environment.name} requires {needed}"
        hint = f"write `{field}: {value}`; {self._place.path} may say otherwise as guard_rails.{rail}"
        return self._problem(("trial", field), rail if written else "trial_mode", message, hint)

    def tags(self) -> Iterator[Finding]:
        """Yield each required tag that neither the endpoint nor the environment has, or that says nothing."""
        tags = {**self._environment.tags, **self._endpoint.tags}
        for key in self._rails.required_tags:
            value = tags.get(key)
            if not any(map(str.isalnum, value or "")):
                actual = "is missing" if value is None else f"is {value!r}"
                message = f"the tag {key} {actual}; {self._environment.name} requires it, with a letter or a digit"
                yield self._problem(("tags", key), "required_tags", message, f"add `{key}: …` below tags")


def _matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a pattern has a name; `*` stands for slashes too, so a step up could lead anywhere."""
    return ".." not in name.split("/") and any(fnmatchcase(name, pattern) for pattern in patterns)


def _named_types(endpoint: EndpointSpec) -> Iterator[tuple[FieldPath, str]]:
    """Yield every instance type that is used whatever the plan chooses: those of pools, and those of jobs."""
    for index, pool in enumerate(endpoint.hosting.instance_pools or ()):
        yield ("hosting", "instance_pools", index), pool
    for index, entry in enumerate(endpoint.optimization):
        if entry.job is not None and entry.job.instance_type is not None:
            yield ("optimization", index, entry.name, "job", "instance_type"), entry.job.instance_type


def image_problems(endpoint: EndpointSpec, environment: EnvironmentSpec, document: Document) -> Iterator[Finding]:
    """Yield every image that SageMaker can't pull where it is deployed: of another Region, or of a wrong account."""
    for path, uri in () if environment.is_embedded else named_images(endpoint):
        for problem in judge_image(uri, environment.region, environment.account or ""):
            if problem.kind == "place" and problem.severity is None:
                yield document.problem(path, "SEA389", problem.message, problem.hint)


def named_images(endpoint: EndpointSpec) -> Iterator[tuple[FieldPath, str]]:
    """Yield every image that a spec names."""
    hosting = endpoint.hosting
    named: tuple[tuple[FieldPath, str | None], ...] = (
        (("serving", "image"), endpoint.serving.image),
        *((("hosting", "variants", at, "image"), each.image) for at, each in enumerate(hosting.variants or ())),
        (("hosting", "shadow", "image"), hosting.shadow.image if hosting.shadow else None),
    )
    return ((path, uri) for path, uri in named if uri is not None)
