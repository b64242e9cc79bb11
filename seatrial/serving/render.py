"""Renders a plan as the configuration of its engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.errors import RenderError
from seatrial.serving.document import ServingConfig
from seatrial.serving.limits import env_problems, extra_option_problems
from seatrial.serving.model_source import ModelSource, model_source
from seatrial.serving.properties import parse_env
from seatrial.serving.templates import Hole, fill, option_text

if TYPE_CHECKING:
    from seatrial.plan.document import Plan
    from seatrial.spec.load import LoadedSpec

PREDICT_TIMEOUT_S = (
    480  # a streamed invocation may last 8 minutes (SageMaker runtime, InvokeEndpointWithResponseStream)
)
TGI_DTYPES = {"fp16": "float16", "bf16": "bfloat16", "auto": None}


def render(loaded: LoadedSpec, plan: Plan) -> ServingConfig:
    """Render a plan as files and environment of its container.

    Raises:
        RenderError: SEA301 to SEA305, every problem at once.
    """
    problems = list(extra_option_problems(loaded, plan.engine.value))
    if problems:
        raise RenderError(problems)
    source = model_source(loaded)
    config = _tgi(loaded, plan, source) if plan.engine.value == "tgi" else _lmi(loaded, plan, source)
    problems = list(env_problems(config.container_env, f"container environment of {plan.endpoint}"))
    if problems:
        raise RenderError(problems)
    return config


def _lmi(loaded: LoadedSpec, plan: Plan, source: ModelSource) -> ServingConfig:
    """Configure LMI in its asynchronous vLLM form.

    A hub model is configured by a packaged `serving.properties`; weights mounted from S3 fill the model's folder, so
    their configuration is the environment. Both together would load two models.
    """
    holes = _holes(loaded, plan, source)
    files: dict[str, str] = {}
    env: dict[str, str] = {}
    if source.weights_s3_uri is None:
        files["serving.properties"] = fill("lmi/serving.properties.j2", holes)
    else:
        extra = loaded.endpoint.serving.overrides.extra
        names = tuple((_env_name(key), option_text(extra[key])) for key in sorted(extra))
        env = parse_env(fill("lmi/container.env.j2", holes | {"extra": names}))
    return _config(loaded, plan, source, files, env)


def _env_name(option: str) -> str:
    """Write an option's name behind `OPTION_`: LMI lowers a name in capitals and takes a mixed one as it is."""
    return option.upper() if option.islower() else option


def _tgi(loaded: LoadedSpec, plan: Plan, source: ModelSource) -> ServingConfig:
    holes = _holes(loaded, plan, source)
    longest_prompt = plan.max_model_len.value - loaded.endpoint.workload.output_tokens
    if plan.max_num_batched_tokens.value < longest_prompt:
        message = f"{plan.max_num_batched_tokens.value} prefill tokens are below the longest prompt, {longest_prompt}"
        path = ("serving", "overrides", "max_num_batched_tokens")
        raise RenderError([loaded.problem(path, "SEA305", message, f"TGI wants at least {longest_prompt}")])
    tgi: dict[str, Hole] = {
        "dtype": None if plan.quantization else TGI_DTYPES[plan.dtype.value],  # TGI refuses the two together
        "max_input_tokens": longest_prompt,
        "max_concurrent_requests": plan.max_num_seqs.value + plan.max_queued_requests.value,
    }
    return _config(loaded, plan, source, {}, parse_env(fill("tgi/container.env.j2", holes | tgi)))


def _holes(loaded: LoadedSpec, plan: Plan, source: ModelSource) -> dict[str, Hole]:
    extra = loaded.endpoint.serving.overrides.extra
    return {
        "endpoint": plan.endpoint,
        "environment": plan.environment,
        "model_id": source.model_id,
        "revision": source.revision,
        "trust_remote_code": loaded.endpoint.model.trust_remote_code,
        "tensor_parallel_degree": plan.tensor_parallel_degree.value,
        "dtype": plan.dtype.value,
        "quantization": plan.quantization,
        "max_model_len": plan.max_model_len.value,
        "max_num_seqs": plan.max_num_seqs.value,
        "max_num_batched_tokens": plan.max_num_batched_tokens.value,
        "max_queued_requests": plan.max_queued_requests.value,
        "model_loading_timeout_s": plan.startup_timeout_s.value,
        "predict_timeout_s": PREDICT_TIMEOUT_S,
        "extra": tuple((key, option_text(extra[key])) for key in sorted(extra)),
    }


def _config(
    loaded: LoadedSpec, plan: Plan, source: ModelSource, files: dict[str, str], env: dict[str, str]
) -> ServingConfig:
    engine = "tgi" if plan.engine.value == "tgi" else "lmi"
    return ServingConfig(
        engine=engine,
        engine_version=plan.engine_version.value,
        image=plan.image.value.uri,
        payload_schema=engine,
        files=files,
        container_env=env,
        secret_env=source.secret_env,
        weights_s3_uri=source.weights_s3_uri,
        isolated=loaded.environment.network.isolated,
    )
