"""Renders a plan as the configuration of its engine."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from seatrial.engines.artifact import FIELD, code_files
from seatrial.engines.model_source import ModelSource, model_source
from seatrial.engines.plan_config import dialect_of, is_on_neuron, plan_config, spelled_version
from seatrial.engines.rendered import RenderedConfig, refuse_credentials
from seatrial.specs.endpoint import ServingOverrides
from seatrial_base.catalog.engine_options import reserved_names
from seatrial_base.errors import RenderError
from seatrial_base.findings import Place
from seatrial_lint.engines.neutral import Form, Rendered, render_config

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.engine_versions import EngineName
    from seatrial_base.findings import Finding


def render(loaded: LoadedSpec, plan: Plan, *, packaged: bool = True, templates: Path | None = None) -> RenderedConfig:
    """Render a plan as files and environment of its container.

    A hub model on LMI is configured by a packaged `serving.properties`; weights mounted from S3 fill the model's
    folder, so their configuration is the environment, as it is for every other engine.

    Args:
        loaded: What was asked for.
        plan: What was decided.
        packaged: Files may be packaged; without, everything is in the environment.
        templates: Folder of templates that override ours file by file; default: none.

    Raises:
        RenderError: SEA301 to SEA310, SEA368 and SEA369, every problem at once; SEA374 when a credential is left.
    """
    engine = _engine(plan)
    problems = list(_extra_option_problems(loaded, engine))
    if problems:
        raise RenderError(problems)
    source = model_source(loaded)
    _refuse_short_prefill(loaded, plan)
    form: Form = "properties" if packaged and engine == "lmi" and not source.is_mounted else "env"
    return _config(loaded, plan, source, _rendered(loaded, plan, source, form, templates))


_OPTION_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_SCHEMAS: dict[EngineName, Literal["lmi", "tgi", "openai_chat"]] = {
    "lmi": "lmi",
    "tgi": "tgi",
    "vllm": "openai_chat",
    "sglang": "openai_chat",
}


def _engine(plan: Plan) -> EngineName:
    return next(name for name in _SCHEMAS if name == plan.engine.value)


def _extra_option_problems(loaded: LoadedSpec, engine: EngineName) -> Iterator[Finding]:
    """Yield the extra options that contradict a decision of the plan, or can't be names of options."""
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
        return replace(
            problem, place=Place.at(problem.where or f"serving configuration of {loaded.endpoint.name}", problem.field)
        )
    placed = loaded.problem(("serving", "overrides", name, *members), problem.rule, problem.message, problem.hint)
    return placed if " and " not in problem.field else replace(placed, message=f"{problem.field}: {problem.message}")


def _refuse_short_prefill(loaded: LoadedSpec, plan: Plan) -> None:
    longest_prompt = plan.max_model_len.value - loaded.endpoint.workload.output_tokens
    if plan.engine.value == "tgi" and not is_on_neuron(plan) and plan.max_num_batched_tokens.value < longest_prompt:
        message = f"{plan.max_num_batched_tokens.value} prefill tokens are below the longest prompt, {longest_prompt}"
        path = ("serving", "overrides", "max_num_batched_tokens")
        raise RenderError([loaded.problem(path, "SEA305", message, f"set it to at least {longest_prompt}")])


def _config(loaded: LoadedSpec, plan: Plan, source: ModelSource, rendered: Rendered) -> RenderedConfig:
    engine = _engine(plan)
    where = f"serving configuration of {loaded.endpoint.name}"
    refuse_credentials({**rendered.files, **rendered.env, "image": plan.image.value.uri}, where=where)
    return RenderedConfig(
        engine=engine,
        engine_version=plan.engine_version.value,
        image=plan.image.value.uri,
        payload_schema=_SCHEMAS[engine],
        files={**rendered.files, **_code(loaded, rendered)},
        container_env=rendered.env,
        secret_env=source.secret_env,
        weights_s3_uri=source.weights_s3_uri,
        isolated=loaded.environment.network.isolated,
        notes=(*(f"{note.field}: {note.message}" for note in source.notes), *map(str, rendered.notes)),
    )


def _code(loaded: LoadedSpec, rendered: Rendered) -> dict[str, str]:
    """Return the user's own code, which only a container with a packaged configuration runs."""
    if loaded.endpoint.serving.code is None or rendered.files or loaded.endpoint.model.hub_id is None:
        return code_files(loaded)
    message = "this engine reads its configuration from the environment and runs no custom code"
    raise RenderError([loaded.problem(FIELD, "SEA368", message, "leave it out, or serve with lmi")])
