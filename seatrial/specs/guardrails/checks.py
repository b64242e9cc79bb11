"""The guard rails that a spec breaks by itself, and the artifacts that they judge: all that a container loads or runs.

Those on a plan are in `seatrial.locks.guard_rails`: plans are in a layer above specs, whose reader checks these.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from seatrial.specs.endpoint import Percentiles
from seatrial.specs.guardrails.fleets import fleets_of, least_size
from seatrial.specs.product import PRODUCT_ENDPOINT
from seatrial_base.catalog import images, jumpstart
from seatrial_base.catalog.engine_options import LOADING_OPTIONS, bare_name, every_known_name
from seatrial_base.catalog.engine_versions import EngineName
from seatrial_base.catalog.image_addresses import judge_image
from seatrial_base.catalog.images import image_repository_uri
from seatrial_base.catalog.jumpstart import find_jumpstart_model
from seatrial_base.catalog.models import licence_of
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seatrial.specs.endpoint import EndpointSpec, ModelSpec
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial.specs.guardrails.fleets import InstanceFleet
    from seatrial.specs.guardrails.limits import GuardRails
    from seatrial.specs.hosting import HostingSpec
    from seatrial.specs.load import LoadedSpec
    from seatrial.specs.yaml_source import Document, FieldPath
    from seatrial_lint.engines.engine_options import OptionValue


MOUNT = "/opt/ml/model"
"""Where the model's own files are in a container."""
EXTRA = ("serving", "overrides", "extra")
_WORDS = frozenset({"", "auto", "vllm", "none", "true", "false"})  # values that name nothing
_ON = frozenset({"1", "true", "yes", "on"})
_TEMPLATES = ("chat_template", "completion_template")  # with braces it is the template itself, else its file
_NAMES_FILES = frozenset({"a model", "a file, folder or repository", "code"})
_METHODS = frozenset({"method", "quant_method", "rope_type", "type"})  # of JSON options: words, no names of models
# Options and members that name code, whatever the engine calls the rest of them.
_OF_CODE = re.compile(
    r"(^|_)(plugins?|modules?|cls|class(es)?|handlers?|scripts?|entrypoint|middlewares?|hooks?|callbacks?|factory)(_|$)"
)
_LONGEST = 8_192  # characters of a value that is judged: each of its words is held against each pattern
_LISTED = re.compile(r"[\s,;|]+")
_MODULE = re.compile(r"[A-Za-z_]\w*([.:][A-Za-z_]\w*)+")  # `package.Class`, `package:function`, `file.py`


@dataclass(frozen=True, slots=True)
class LoadedThing:
    """Something that a container loads.

    Attributes:
        kind: What it is; `option` is what an option of `serving.overrides.extra` names.
        name: Hub id, URI, ARN or JumpStart id; of a revision, `REPOSITORY@REVISION`; `None` where it is unknown what
            is loaded.
        because: Why it is unknown; empty with a name.
        licence: Id of its licence on the hub; `None` when it is unknown.
    """

    path: FieldPath
    kind: Literal["model", "draft", "adapter", "data", "option", "code", "revision"]
    name: str | None
    because: str = ""
    licence: str | None = None


def loaded_things(endpoint: EndpointSpec, region: str, folder: Path) -> Iterator[LoadedThing]:
    """Yield everything that is loaded, each with its field.

    A path in the container is left out: what is there came with the model's own weights, or with the image.

    `region`: the environment's region, whose bucket has what JumpStart's metadata names.
    """
    yield from _model(endpoint.model, region, folder)
    yield from _recipe(endpoint)
    draft = endpoint.serving.overrides.speculative_decoding
    if draft is not None and draft.model is not None and not draft.model.startswith("/"):
        path = ("serving", "overrides", "speculative_decoding", "model")
        yield LoadedThing(path, "draft", draft.model, licence=licence_of(draft.model))
    lora = endpoint.serving.overrides.lora
    for index, adapter in enumerate((lora.adapters if lora is not None else None) or ()):
        if not adapter.path.startswith("/"):
            yield LoadedThing(("serving", "overrides", "lora", "adapters", index, "path"), "adapter", adapter.path)
    for index, component in enumerate(endpoint.serving.adapters):
        yield LoadedThing(("serving", "adapters", index, "s3_uri"), "adapter", component.s3_uri)
    if endpoint.serving.code is not None:
        yield LoadedThing(("serving", "code"), "code", None, "code loads what it likes")
    for name, value in endpoint.serving.overrides.extra.items():
        for thing in option_things(name, value, endpoint.model.hub_id):
            yield replace(thing, path=(*EXTRA, name))


def _model(model: ModelSpec, region: str, folder: Path) -> Iterator[LoadedThing]:
    for field in ("hub_id", "s3_uri", "jumpstart_id", "model_package_arn", "hub_content_arn"):
        name = getattr(model, field)
        if name is not None:
            yield LoadedThing(("model", field), "model", name, licence=licence_of(name) or model.licence)
    if model.hub_id is not None and model.revision is not None:
        yield LoadedThing(("model", "revision"), "revision", f"{model.hub_id}@{model.revision}")
    if model.jumpstart_metadata is None or model.jumpstart_id is None:
        return
    known, path = find_jumpstart_model(model.jumpstart_id), ("model", "jumpstart_metadata")
    try:
        artifact = jumpstart.read_metadata(folder / model.jumpstart_metadata, model.jumpstart_id)
    except jumpstart.MetadataError as error:
        yield LoadedThing(path, "model", None, str(error))
        return
    if known is None or known.key != artifact.key:
        yield LoadedThing(path, "model", artifact.s3_uri(region), licence=model.licence)


def _recipe(endpoint: EndpointSpec) -> Iterator[LoadedThing]:
    """Yield what the jobs and compilers of a recipe read; its checkpoints and drafts are in the expanded spec."""
    for index, entry in enumerate(endpoint.optimization):
        path: FieldPath = ("optimization", index, entry.name)
        if entry.compile is not None and entry.compile.artifacts is not None:
            yield LoadedThing((*path, "artifacts"), "model", entry.compile.artifacts, licence=endpoint.model.licence)
        if entry.job is not None and entry.job.training_data_s3_uri is not None:
            yield LoadedThing((*path, "job", "training_data_s3_uri"), "data", entry.job.training_data_s3_uri)


def option_things(name: str, value: OptionValue, hub_id: str | None) -> Iterator[LoadedThing]:
    """Yield what an option of an engine loads; nothing where it is known to load nothing, or is a number.

    What an option names is known of some, by the table; of every other one its texts tell it, and those of its members
    where it is JSON: a path, a repository, a module. So a new option, or a new member of an old one, is judged too. An
    option that no container's sources know may load anything, so its text can't be judged.

    `hub_id`: the model's repository, which the option's revision is of; `None` where it has none.
    """
    if not isinstance(value, str):
        return
    what = _what(name)
    is_configuration = what == "a configuration that may name a model"
    members: object = value
    # Any option may be given JSON: an engine that reads it would load what a text of it names.
    if is_configuration or value.lstrip()[:1] in ("{", "[", '"'):
        with suppress(ValueError, RecursionError):  # a text all the same, such as a template
            members = json.loads(value)
    if because := _unjudged(name, value, what) or (
        f"the option {name} is no JSON object" if is_configuration and not isinstance(members, dict) else ""
    ):
        yield LoadedThing((name,), "option", None, because)
        return
    for member, text, repository in _texts(members, name, hub_id or ""):
        if _is_revision(member):
            yield LoadedThing((name,), "revision", f"{repository}@{text}")
        else:
            # A member of an unknown name is what its option names.
            whole = "a model" if is_configuration and member not in _METHODS else None
            yield from _text(name, member, text, _what(member) or (what if what in _NAMES_FILES else whole))


def _unjudged(name: str, value: str, what: str | None) -> str:
    """Return why the text of an option can't be judged; empty when it can."""
    if what is None and not _is_revision(name) and name.lower() not in every_known_name():
        return f"the option {name} is unknown, so it may load anything"
    if len(value) > _LONGEST and not (what == "nothing" or _is_template(name, value)):
        return f"the option {name} has more than {_LONGEST:,} characters, so what it loads is unknown"
    return ""


def _what(name: str) -> str | None:
    """Return what is known that an option, or a member of one, names; `None` where its texts must tell it."""
    row = LOADING_OPTIONS.get(name.lower())
    return row.what if row is not None else "code" if _OF_CODE.search(name.lower()) else None


def _is_revision(name: str) -> bool:
    return name.lower().endswith("revision")


def _texts(members: object, name: str, repository: str) -> Iterator[tuple[str, str, str]]:
    """Yield each text of an option with the member that it is at and the repository that is named next to it."""
    waiting = [(name, members, repository)]  # no recursion: JSON nests deeper than calls do
    while waiting:
        member, node, beside = waiting.pop()
        if isinstance(node, str):
            yield member, node, beside
        elif isinstance(node, dict):
            named = node.get("model")
            inner = named if isinstance(named, str) else beside
            waiting += [(key, value, inner) for key, value in reversed(node.items())]
        elif isinstance(node, list):
            waiting += [(member, value, beside) for value in reversed(node)]


def _text(option: str, member: str, text: str, what: str | None) -> Iterator[LoadedThing]:
    """Yield what a text names: each of several that are listed, and the revision behind an at sign."""
    if what == "nothing" or _is_template(member, text):
        return
    if what == "code":
        of = "" if member == option else f" with {member}"
        yield LoadedThing((option,), "option", None, f"the option {option}{of} names code")
        return
    for part in _LISTED.split(text):
        # `sql=org/sql`, `org/sql@main`; quotes go, since an engine that reads JSON takes them off.
        named, _, revision = part.rpartition("=")[2].strip("\"'").partition("@")
        is_named = what is not None or "/" in named
        if _MODULE.fullmatch(named) and what is None:
            yield LoadedThing((option,), "option", None, f"the option {option} names {named}, which may be code")
        elif not (named in _WORDS or _is_mounted(named)) and (is_named or "\\" in named):
            yield LoadedThing((option,), "option", named, licence=licence_of(named))
        if revision and is_named:
            yield LoadedThing((option,), "revision", f"{named}@{revision}")


def _is_template(name: str, text: str) -> bool:
    return name.lower() in _TEMPLATES and "{" in text


def _is_mounted(value: str) -> bool:
    return value == MOUNT or (value.startswith(f"{MOUNT}/") and ".." not in value)


_RULE = "SEA111"
_LATENCIES = ("ttft_ms", "tpot_ms", "e2e_latency_ms")


def set_by(environment: EnvironmentSpec, place: Document, rail: str) -> str:
    """Return who set a guard rail and where, as `set by platform-team in environments/prod.yaml:12`.

    `rail`: the field of `guard_rails`; with dots where it is within another, as `slo.error_rate`.
    """
    who = "" if environment.owner is None else f" by {environment.owner}"
    return f"set{who} in {place.where(('guard_rails', *rail.split('.')))}"


def waiver_name(endpoint: EndpointSpec, document: Document) -> str:
    """Return the name that waivers have for an endpoint: its own, or that of the product which it is a size of."""
    return Path(document.path).stem if endpoint.name.startswith(f"{PRODUCT_ENDPOINT}-") else endpoint.name


def guard_rail_problems(
    endpoint: EndpointSpec, environment: EnvironmentSpec, document: Document, place: Document
) -> Iterator[Finding]:
    """Yield every guard rail that a spec breaks by itself; the planner keeps those on cost."""
    rails = _Rails(endpoint, environment, document, place)
    for rule in (
        *(rails.sizes, rails.models, rails.revisions, rails.licences, rails.engine, rails.images),
        *(rails.hub_token, rails.objectives, rails.trial, rails.tags, rails.hosting, rails.pins),
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


def template_rail_problems(loaded: LoadedSpec, options: Mapping[str, str], template: str) -> Iterator[Finding]:
    """Yield every option that a serving template of the repository adds and that loads what a rail does not allow.

    `options`: what the template writes otherwise than Seatrial's own: values by key or variable.
    """
    endpoint, environment, place, rails = loaded.endpoint, loaded.environment, loaded.place, loaded.rails
    rail = next((name for name in ("models", "licences") if getattr(rails, name) is not None), None)
    for name, value in options.items():
        bare = bare_name(name)
        things = list(option_things(bare, value, endpoint.model.hub_id))
        loose = [("revisions", moving) for _, moving in _moving(things) if rails.revisions == "pinned"]
        if bare == "trust_remote_code" and rails.remote_code != "allowed" and value.lower() in _ON:
            loose.append(("remote_code", "it runs the code of the model's repository, which the spec alone may say"))
        for pin, what in loose:
            yield Finding(_RULE, Place.at(template, name), f"{what} ({set_by(environment, place, pin)})", "remove it")
        for each in things if rail is not None else ():
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


_COMMIT = re.compile(r"[0-9a-f]{40}")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_PIN = "name a whole commit, 40 hexadecimal digits, or stage the files to S3"


def _moving(things: Iterable[LoadedThing]) -> Iterator[tuple[FieldPath, str]]:
    """Yield each repository of the hub of which another commit may be loaded tomorrow, with its field."""
    things = tuple(things)
    revisions = [each for each in things if each.kind == "revision"]
    named = {str(each.name).rpartition("@")[0] for each in revisions}
    for each in revisions:
        repository, _, revision = str(each.name).rpartition("@")
        if not _COMMIT.fullmatch(revision):
            yield each.path, f"{revision} of {repository or 'the model'} is no whole commit, so it may move"
    for each in things:
        is_of_hub = each.kind not in {"revision", "data"} and _REPOSITORY.fullmatch(each.name or "")
        if is_of_hub and each.name not in named and each.path[-1] != "jumpstart_id":
            yield each.path, f"{each.name} has no revision, so what is loaded may change"


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
        self._rails = environment.guard_rails.for_endpoint(waiver_name(endpoint, document))

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
        rails, environment, package = self._rails, self._environment, self._endpoint.model.model_package_arn
        allowed = allowed_images(rails, environment)
        if allowed is None:
            return
        for path, uri in named_images(self._endpoint):
            repository = image_repository_uri(uri)
            if not (_matches(uri, allowed) or _matches(repository, allowed)):
                message = f"the image {uri} is not allowed in {environment.name}"
                yield self._problem(path, self._image_rail, message, self._image_hint(repository))
        if package is not None and rails.judges_what_is_loaded and rails.models is None:
            message = f"the image of {package} can't be judged in {environment.name}"
            hint = f"let {environment.name} allow the package: its ARN below guard_rails.models in {self._place.path}"
            yield self._problem(("model", "model_package_arn"), self._image_rail, message, hint)

    @property
    def _image_rail(self) -> str:
        """The rail for which images are judged: `images` itself, else the first that asks what runs in them."""
        names = ("images", "models", "licences", "engines")
        return next((name for name in names if getattr(self._rails, name) is not None), "")

    def _image_hint(self, repository: str) -> str:
        name = self._environment.name
        own = None if self._rails.judges_what_is_loaded else self._environment.account
        whose = f"take one of AWS or of the account {own}" if own else "take one that AWS publishes for the engine"
        return f"{whose}, or let {name} allow it: `images: [{repository}]` below guard_rails in {self._place.path}"

    def hub_token(self) -> Iterator[Finding]:
        """Yield a secret that is not among those that endpoints may read."""
        allowed, secret = self._rails.hub_token_secrets, self._endpoint.model.hub_token_secret
        if allowed is not None and secret is not None and not _matches(secret, allowed):
            message = f"the secret {secret} is not allowed in {self._environment.name}"
            path, hint = ("model", "hub_token_secret"), f"allowed: {', '.join(allowed)}"
            yield self._problem(path, "hub_token_secrets", message, hint)

    def hosting(self) -> Iterator[Finding]:
        """Yield a shell, a public address or a place of answers where the environment does not allow it."""
        hosting, rails, name = self._endpoint.hosting, self._rails, self._environment.name
        whats = {"ssm_access": "shells in containers", "router": "routers with a public address"}
        for rail, what in whats.items():
            if getattr(hosting, rail) and getattr(rails, rail) == "refused":
                hint = f"leave it out, or let {self._place.path} allow it: `{rail}: allowed` below guard_rails"
                yield self._problem(("hosting", rail), rail, f"{what} are not allowed in {name}", hint)
        allowed = rails.output_targets or ()
        for path, target in _targets(hosting) if allowed else ():
            if not _matches(target, allowed):
                message = f"{target} is no allowed target of what endpoints of {name} write"
                yield self._problem(path, "output_targets", message, f"allowed: {', '.join(allowed)}")

    def pins(self) -> Iterator[Finding]:
        """Yield code of the model's repository that may not run, and what of the hub may change unseen."""
        rails, is_run = self._rails, self._endpoint.model.trust_remote_code
        if is_run and rails.remote_code == "refused":
            message = f"the code of the model's repository may not run in {self._environment.name}"
            hint = f"leave it out, or let {self._place.path} allow it: `remote_code: pinned` below guard_rails"
            yield self._problem(("model", "trust_remote_code"), "remote_code", message, hint)
        pins_code = is_run and rails.remote_code == "pinned"
        rail = "revisions" if rails.revisions == "pinned" else "remote_code" if pins_code else None
        for path, moving in _moving(self._things) if rail is not None else ():
            yield self._problem(path, str(rail), moving, _PIN)

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
        tags, chosen = {**self._environment.tags, **self._endpoint.tags}, self._document.chosen
        for key in self._rails.required_tags:
            value = tags.get(key)
            if key not in chosen and not any(map(str.isalnum, value or "")):
                actual = "is missing" if value is None else f"is {value!r}"
                message = f"the tag {key} {actual}; {self._environment.name} requires it, with a letter or a digit"
                yield self._problem(("tags", key), "required_tags", message, f"add `{key}: …` below tags")
        for key, allowed in self._rails.tag_values.items():
            # A launch that may choose any value may choose a wrong one.
            values = (chosen[key] or ("*",)) if key in chosen else (tags[key],) if key in tags else ()
            for value in values:
                if not any(fnmatchcase(value, pattern) for pattern in allowed):
                    message = f"the tag {key} is {value!r}, which is not allowed in {self._environment.name}"
                    yield self._problem(("tags", key), "tag_values", message, f"allowed: {', '.join(allowed)}")


def allowed_images(rails: GuardRails, environment: EnvironmentSpec) -> tuple[str, ...] | None:
    """Return the patterns of allowed images or their repositories; `None` where no guard rail is set.

    They are what AWS publishes for the allowed engines in the region, the rail `images`, and what is in the own account
    where no rail asks what runs in it: an image there may hold any engine and model.
    """
    if not rails.stated:
        return None
    registry, engines = images.registry(environment.region), rails.engines or get_args(EngineName)
    published = (f"{registry}/{name}" for engine in engines for name in images.repositories(engine) if registry)
    own = None if rails.judges_what_is_loaded else environment.account
    return (*dict.fromkeys(published), *(rails.images or ()), *([f"{own}.dkr.ecr.*"] if own else []))


def _matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a pattern has a name; `*` stands for slashes too, so a step up could lead anywhere."""
    return ".." not in name.split("/") and any(fnmatchcase(name, pattern) for pattern in patterns)


def _targets(hosting: HostingSpec) -> Iterator[tuple[FieldPath, str]]:
    """Yield every place that an endpoint writes requests, answers or its memory to."""
    parts = {("asynchronous",): hosting.asynchronous, ("data_capture",): hosting.data_capture, (): hosting}
    for part, fields in parts.items():
        for name, target in fields or ():
            if name.endswith(("s3_uri", "topic_arn")) and isinstance(target, str):
                yield ("hosting", *part, name), target


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
