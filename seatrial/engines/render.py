"""Renders a plan as the configuration of its engine; with where its container gets the weights: hub, or S3 by mount."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from seatrial.engines.rendered import RenderedConfig, refuse_credentials, refuse_replaced
from seatrial.specs.architecture import read_architecture
from seatrial.specs.endpoint import ServingOverrides
from seatrial.specs.guardrails.checks import template_rail_problems
from seatrial.specs.recipe import is_quantized_at_start, quantizes
from seatrial.specs.spec_files import RELATIVE, kind_in_repository, repository_root, stays_in, why_away
from seatrial_base.catalog import jumpstart
from seatrial_base.catalog.engine_options import model_parsers, options_decided_by, reserved_names
from seatrial_base.catalog.engine_versions import dialect_of, spelled_version
from seatrial_base.catalog.jumpstart import find_jumpstart_model, nearest_jumpstart_ids
from seatrial_base.errors import RenderError
from seatrial_base.findings import Finding, Place
from seatrial_base.secrets import credentials, holds_credential, redacted
from seatrial_lint.engines.config import ServingConfig
from seatrial_lint.engines.neutral import Form, Rendered, render_config
from seatrial_lint.engines.properties import parse_properties

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.engine_versions import EngineName
    from seatrial_base.findings import Finding

FIELD = ("serving", "code")
RENDERED = "serving.properties"
MOST_BYTES = 10 * 2**20  # of all files together: it is code; weights are staged
_LEFT_OUT = "__pycache__"
# Files that hold nothing but keys. Those that begin with a dot (`.env`, `.netrc`, `.aws`) are left out anyway.
_KEY_FILES = re.compile(
    r".*\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk)|id_(?:rsa|dsa|ecdsa|ed25519)|credentials|_?netrc|kubeconfig|htpasswd",
    re.IGNORECASE,
)
_Wrong = tuple[str, str, str]  # rule, what is wrong, remedy
_MEND = "revoke it and remove it; read it from Secrets Manager at container start"


def render_plan(
    loaded: LoadedSpec, plan: Plan, *, packaged: bool = True, templates: Path | None = None
) -> RenderedConfig:
    """Render a plan as files and environment of its container.

    A hub model on LMI is configured by a packaged `serving.properties`; weights mounted from S3 fill the model's
    folder, so their configuration is the environment, as it is for every other engine.

    Args:
        packaged: Files may be packaged; without, everything is in the environment.
        templates: Folder of templates that override ours file by file; default: `serving_templates/` of the spec's
            repository, where there is one.

    Raises:
        RenderError: SEA301 to SEA310, SEA368 and SEA369, every problem at once; SEA374 when a credential is left;
            SEA137 for what would be replaced when it is deployed; SEA111 for what a template loads and a rail forbids.
    """
    engine = _engine(plan)
    source = model_source(loaded)
    # Mounted weights fill the model's folder, where a packaged file would be.
    form: Form = "properties" if packaged and engine == "lmi" and not source.is_mounted else "env"
    if problems := list(_problems(loaded, plan, engine, form)):
        raise RenderError(problems)
    project = repository_root(loaded.path) / "serving_templates"
    own = templates or (project if project.is_dir() else None)
    rendered = _rendered(loaded, plan, source, form, own)
    rails = loaded.rails
    pins = rails.remote_code != "allowed" or rails.revisions == "pinned"
    if own is not None and (rails.judges_what_is_loaded or pins):
        # Seatrial's own options were judged with the spec; only what the team's templates add or change is left to
        # judge.
        plain = _options(_rendered(loaded, plan, source, form, None))
        added = {name: text for name, text in _options(rendered).items() if plain.get(name) != text}
        if problems := list(template_rail_problems(loaded, added, own.as_posix())):
            raise RenderError(problems)
    where = f"serving configuration of {loaded.endpoint.name}"
    texts = {**rendered.env, "image": plan.image.value.uri, "weights": source.weights_s3_uri or ""}
    # A template of the repository may write what no field of the spec holds, which the reader has searched.
    refuse_credentials({**rendered.files, **texts}, where=where)
    refuse_replaced(texts, where=where)
    # No option: the container passes SM_VLLM_ names alone on as flags (awslabs/ml-container-creator pull request 177).
    # Without it vLLM's own server refuses the adapters of components at /adapters.
    loads = engine == "vllm" and loaded.endpoint.serving.adapters
    adapters = {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "true"} if loads else {}
    return RenderedConfig(
        engine=engine,
        engine_version=plan.engine_version.value,
        image=plan.image.value.uri,
        payload_schema=_SCHEMAS[engine],
        files={**rendered.files, **code_files(loaded)},
        container_env={**rendered.env, **adapters},
        secret_env=source.secret_env,
        weights_s3_uri=source.weights_s3_uri,
        isolated=loaded.environment.network.isolated,
        notes=(*(f"{note.field}: {note.message}" for note in source.notes), *map(str, rendered.notes)),
    )


def _options(rendered: Rendered) -> dict[str, str]:
    """Return what a container reads: the keys of its file and its variables."""
    return {**parse_properties(rendered.files.get(RENDERED, "")), **rendered.env}


_OPTION_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_SCHEMAS: dict[EngineName, Literal["lmi", "tgi", "openai_chat"]] = {
    "lmi": "lmi",
    "tgi": "tgi",
    "vllm": "openai_chat",
    "sglang": "openai_chat",
}


def _engine(plan: Plan) -> EngineName:
    return next(name for name in _SCHEMAS if name == plan.engine.value)


def _problems(loaded: LoadedSpec, plan: Plan, engine: EngineName, form: Form) -> Iterator[Finding]:
    """Yield what the engine can't take: an extra option that is decided or no name, too few tokens, custom code."""
    batched, longest = (
        plan.max_num_batched_tokens.value,
        plan.max_model_len.value - loaded.endpoint.workload.output_tokens,
    )
    if engine == "tgi" and not is_on_neuron(plan) and batched < longest:
        message = f"{batched} prefill tokens are below the longest prompt, {longest}"
        field = ("serving", "overrides", "max_num_batched_tokens")
        yield loaded.problem(field, "SEA305", message, f"set it to at least {longest}")
    if loaded.endpoint.serving.code is not None and form == "env" and loaded.endpoint.model.hub_id is not None:
        message = "this engine reads its configuration from the environment and runs no custom code"
        yield loaded.problem(FIELD, "SEA368", message, "leave it out, or serve with lmi")
    seen: dict[str, str] = {}
    for name in loaded.endpoint.serving.overrides.extra:
        path = ("serving", "overrides", "extra", name)
        decided = reserved_names(engine).get(name.lower())
        if decided is not None:
            hint = f"set {decided} instead" if decided else "leave it out"
            yield loaded.problem(path, "SEA304", f"{name} is decided by the plan", hint)
        elif name.lower() in seen:
            yield loaded.problem(path, "SEA304", f"{name} and {seen[name.lower()]} are one option", "keep one of them")
        elif not _OPTION_NAME.fullmatch(name):
            message = f"{name!r} is not an option name"
            yield loaded.problem(path, "SEA304", message, "letters, digits and underscores, without `option.`")
        seen[name.lower()] = name


def _rendered(loaded: LoadedSpec, plan: Plan, source: ModelSource, form: Form, templates: Path | None) -> Rendered:
    on_neuron = is_on_neuron(plan)
    version = spelled_version(_engine(plan), plan.engine_version.value, on_neuron=on_neuron)
    dialect = dialect_of(_engine(plan), version, loaded.endpoint.serving.backend, on_neuron=on_neuron)
    header = f"Rendered by Seatrial for {plan.endpoint} in {plan.environment}; edit the spec, not this file."
    try:
        return render_config(
            plan_config(loaded, plan, source), dialect, version, form, header=header, templates=templates
        )
    except RenderError as error:
        raise RenderError(_placed(loaded, problem) for problem in error.problems) from error


def _placed(loaded: LoadedSpec, problem: Finding) -> Finding:
    """Return a problem at the field of the spec that it concerns, else at the endpoint."""
    name, *members = problem.field.partition(" and ")[0].split(".")
    if problem.where or name not in ServingOverrides.model_fields:
        where = problem.where or f"serving configuration of {loaded.endpoint.name}"
        return replace(problem, place=Place.at(where, problem.field))
    placed = loaded.problem(("serving", "overrides", name, *members), problem.rule, problem.message, problem.hint)
    return placed if " and " not in problem.field else replace(placed, message=f"{problem.field}: {problem.message}")


PREDICT_TIMEOUT_S = (
    480  # a streamed invocation may last 8 minutes (SageMaker runtime, InvokeEndpointWithResponseStream)
)
_NAMED_TO_TGI = ("awq", "gptq")  # TGI 1.x loads such a checkpoint only with --quantize


def is_on_neuron(plan: Plan) -> bool:
    """Return whether the image of a plan is for AWS Neuron."""
    image = plan.image.value
    return "neuron" in f"{image.repository}:{image.tag}"


def plan_config(loaded: LoadedSpec, plan: Plan, source: ModelSource) -> ServingConfig:
    """Return the neutral configuration of a plan."""
    model, overrides = loaded.endpoint.model, loaded.endpoint.serving.overrides
    tgi, lmi, drafted = plan.engine.value == "tgi", plan.engine.value == "lmi", overrides.speculative_decoding
    quantization = _engine_quantization(loaded, plan)
    return ServingConfig.model_validate(
        {
            "model_id": source.model_id,
            "revision": source.revision,
            "trust_remote_code": True if model.trust_remote_code else None,
            "tensor_parallel_degree": plan.tensor_parallel_degree.value,
            "dtype": None if tgi and quantization else plan.dtype.value,  # TGI refuses the two together
            "quantization": quantization,
            "max_input_len": plan.max_model_len.value - loaded.endpoint.workload.output_tokens if tgi else None,
            "max_model_len": plan.max_model_len.value,
            "max_num_seqs": plan.max_num_seqs.value,
            "max_num_batched_tokens": plan.max_num_batched_tokens.value,
            "max_queued_requests": plan.max_queued_requests.value,
            "max_queued_tokens": None if plan.max_queued_tokens is None else plan.max_queued_tokens.value,
            "model_loading_timeout_s": plan.startup_timeout_s.value if lmi else None,
            "predict_timeout_s": PREDICT_TIMEOUT_S if lmi else None,
            # What the spec fixes and the planner does not decide.
            **{name: getattr(overrides, name) for name in options_decided_by("spec")},
            "speculative_decoding": None
            if drafted is None or drafted.method is None
            else {"method": drafted.method, "model": drafted.model, "draft_tokens": drafted.draft_tokens},
            **_parsers(loaded, plan),
            "extra": {
                name: (str(value).lower() if isinstance(value, bool) else str(value))
                for name, value in overrides.extra.items()
            }
            | _dealt_experts(plan),
        }
    )


def _dealt_experts(plan: Plan) -> dict[str, str]:
    """Return the engine's option for experts that the plan deals out to the accelerators."""
    if plan.expert_parallel_degree is None:
        return {}
    if plan.engine.value == "sglang":
        return {"ep_size": str(plan.expert_parallel_degree.value)}
    return {"enable_expert_parallel": "true"}


def _engine_quantization(loaded: LoadedSpec, plan: Plan) -> str | None:
    """Return the quantization that the engine needs as an option: the spec's, and for TGI a checkpoint's AWQ or GPTQ.

    The other engines read a quantized checkpoint's own, and naming it turns vLLM's faster kernels off (SEA339). What a
    recipe quantizes is an option where the engine makes it: FP8 at loading, and every kind by TensorRT-LLM.
    """
    if plan.engine.value == "tgi" and plan.quantization in _NAMED_TO_TGI:
        return plan.quantization
    entry = quantizes(loaded.endpoint.optimization)
    if entry is None:
        return loaded.endpoint.serving.overrides.quantization
    return entry.name if is_quantized_at_start(loaded.endpoint, read_architecture(loaded)) else None


def _parsers(loaded: LoadedSpec, plan: Plan) -> dict[str, str]:
    """Return the parsers that the spec leaves to the catalog, by the model of the plan.

    Raises:
        RenderError: SEA308, with each that the catalog lacks for this model and engine.
    """
    overrides, engine, model = loaded.endpoint.serving.overrides, _engine(plan), plan.model_name
    left_open = [name for name in PARSERS if getattr(overrides, name) == "auto"]
    row = model_parsers(engine, loaded.endpoint.model.hub_id or plan.architecture) if left_open else None
    known = {name: getattr(row, name, None) for name in left_open}
    hint = "name one that the engine's documentation gives for the model, or leave it out"
    if missing := [name for name, value in known.items() if value is None]:
        texts = {name: f"the catalog has no {name} for {model} on {engine}" for name in missing}
        raise RenderError(
            loaded.problem(("serving", "overrides", name), "SEA308", text, hint) for name, text in texts.items()
        )
    return {name: str(value) for name, value in known.items()}


PARSERS = ("tool_call_parser", "reasoning_parser")


def code_files(loaded: LoadedSpec) -> dict[str, str]:
    """Return the texts of the spec's code folder by name, sorted; none when the spec names no folder.

    Names that begin with a dot and `__pycache__` are left out. Nothing outside the folder is read, and the folder lies
    in the spec's repository.

    Raises:
        RenderError: SEA368 with every file that can't be packaged, or when the weights claim the model's folder; SEA369
            with every file that holds a credential.
    """
    name = loaded.endpoint.serving.code
    if name is None:
        return {}
    # A folder of another repository is not even listed.
    if because := why_away(loaded.path, name):
        raise RenderError([loaded.problem(FIELD, "SEA368", because, f"copy the folder into it; {RELATIVE}")])
    folder = loaded.path.parent / name
    paths = sorted(_paths(folder), key=lambda path: path.relative_to(folder).as_posix())
    problems = [*_place_problems(loaded, folder, paths)]
    for path in paths:
        if wrong := _place_problem(path, folder) or _content_problem(path):
            rule, what, hint = wrong
            shown = redacted(path.relative_to(folder).as_posix())
            problems.append(loaded.problem(FIELD, rule, f"{shown} {what}", hint))
    if problems:
        raise RenderError(problems)
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def _paths(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*") if kind_in_repository(folder) == "folder" else ():
        parts = path.relative_to(folder).parts
        # Hidden files are a tool's or hold secrets (.git, .env): they are left out without a word, not refused.
        left_out = any(part.startswith(".") or part == _LEFT_OUT for part in parts)
        if not left_out and (path.is_symlink() or not path.is_dir()):
            yield path


def _place_problems(loaded: LoadedSpec, folder: Path, paths: list[Path]) -> Iterator[Finding]:
    model = loaded.endpoint.model
    if model.hub_id is None:
        message = "the code and the mounted weights both use /opt/ml/model"
        yield loaded.problem(FIELD, "SEA368", message, "put the code with the weights, and stage both")
    if not paths:
        is_folder = kind_in_repository(folder) == "folder"
        message = f"the folder {folder.name} is empty" if is_folder else f"{folder.name} is not a folder"
        yield loaded.problem(FIELD, "SEA368", message, RELATIVE)
    total = sum(path.stat().st_size for path in paths if path.is_file())
    if total > MOST_BYTES:
        message = f"the folder's {total:,} bytes exceed {MOST_BYTES:,}"
        yield loaded.problem(FIELD, "SEA368", message, "stage weights instead (seatrial stage)")


def _place_problem(path: Path, folder: Path) -> _Wrong | None:
    """Return what is wrong with a file's name or place."""
    name = path.relative_to(folder).as_posix()
    if holds_credential(name) or _KEY_FILES.fullmatch(path.name):
        return "SEA369", "has the name of a credentials file", _MEND
    if name == RENDERED:
        return "SEA368", "is written from the plan", "remove it; options go to serving.overrides"
    if not stays_in(path, folder):
        return "SEA368", "points outside of the folder", "copy it into the folder"
    return None


def _content_problem(path: Path) -> _Wrong | None:
    """Return what is wrong with what a path holds; a file that is too large is counted, not read."""
    if path.is_dir():
        return "SEA368", "is a link to a folder", "copy the folder to its place"
    if not path.is_file():
        return "SEA368", "is not a file", "remove it"
    # It is counted in the total above, which is refused then: reading it would cost its size in memory.
    if path.stat().st_size > MOST_BYTES:
        return None
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = "\0"
    # A zero is in other encodings, whose words no search matches.
    if "\0" in text:
        return "SEA368", "is not UTF-8 text", "package text files only"
    ends = [matches.start() for matches in re.finditer("\n", text)]
    matches = sorted((match.kind, bisect_left(ends, match.start) + 1) for match in credentials(text))
    kinds = groupby(matches, key=lambda match: match[0])
    held = "; ".join(f"{kind} (line {', '.join(str(line) for _, line in lines)})" for kind, lines in kinds)
    return ("SEA369", f"contains {held}", _MEND) if held else None


MOUNT = "/opt/ml/model"

_COMMIT = re.compile(r"[0-9a-f]{7,40}")


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The source of the weights.

    Attributes:
        model_id: What the container loads: a hub id, or the mount point.
        weights_s3_uri: What the service mounts, a prefix with its final slash or a `.tar.gz` object that it unpacks;
            `None` for a hub model.
        secret_env: Environment variable to Secrets Manager name of the hub token.
        notes: Warnings that stop nothing.
        is_packaged: A model package decides what the service mounts.
    """

    model_id: str
    revision: str | None
    weights_s3_uri: str | None
    secret_env: dict[str, str]
    notes: tuple[Finding, ...] = ()
    is_packaged: bool = False

    @property
    def is_mounted(self) -> bool:
        """Whether the service mounts the weights, so that no file can be packaged with them."""
        return self.is_packaged or self.weights_s3_uri is not None


def model_source(loaded: LoadedSpec) -> ModelSource:
    """Return where the weights come from.

    Raises:
        RenderError: SEA366 for a JumpStart id whose artifact is not known.
    """
    model = loaded.endpoint.model
    # First of all: `s3_uri` with a package only names what the role may read, and is not mounted.
    if model.model_package_arn is not None:
        return ModelSource(MOUNT, None, None, {}, is_packaged=True)
    if model.s3_uri is not None:
        return ModelSource(MOUNT, None, model.s3_uri, {})
    if model.hub_id is not None:
        secret = {"HF_TOKEN": model.hub_token_secret} if model.hub_token_secret else {}
        return ModelSource(model.hub_id, model.revision, None, secret, _unpinned(loaded, model.hub_id))
    if model.jumpstart_id is not None:
        return _jumpstart_source(loaded, model.jumpstart_id)
    hint = "give model.hub_id, model.s3_uri, model.jumpstart_id or model.model_package_arn"
    raise RenderError([loaded.problem(("model",), "SEA305", "the model has no source", hint)])


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
