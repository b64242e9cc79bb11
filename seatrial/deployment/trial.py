"""The trial that a deployment is put through, from its spec and plan."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

from seatrial.engines.rendered import configuration_digest, refuse_replaced
from seatrial.specs.workload import BEYOND_SHARES, rates_of, requests_of_spec
from seatrial_base.errors import BenchError, SpecError
from seatrial_base.field_facts import made_of
from seatrial_base.files import read_file_bytes
from seatrial_base.findings import Finding, Place
from seatrial_base.secrets import holds_credential
from seatrial_base.text import replaced_text
from seatrial_base.units import S_PER_MINUTE
from seatrial_load.documents.request import (
    Expected,
    Gate,
    Load,
    Objective,
    PredictedLevel,
    Prior,
    QualityFloor,
    QualityObjective,
    ScaledValue,
    TrialRequest,
    TrialTarget,
)
from seatrial_load.documents.request_checks import check_trial_request, read_trial_request
from seatrial_load.measure.lengths import holds_conversations
from seatrial_load.quality.scores import MOST_SET_BYTES, evaluation_set
from seatrial_load.quality.scores import RULE as SET_RULE
from seatrial_load.slo.evaluate import requests_at_gate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from seatrial.deployment.document import Deployment
    from seatrial.documents.live import LiveStack
    from seatrial.documents.plan import Plan
    from seatrial.engines.rendered import RenderedConfig
    from seatrial.specs.endpoint import QualitySpec, Slo
    from seatrial.specs.load import LoadedSpec
    from seatrial_load.documents.request import Api, Metric, PayloadSchema, Statistic, Workload
    from seatrial_load.quality.scores import EvaluationSet


ONLY_THE_STACK_KNOWS = ("target", "expected", "manner", "alarms")


def trial_request(
    loaded: LoadedSpec, plan: Plan, serving: RenderedConfig, target: TrialTarget, expected: Expected | None
) -> TrialRequest:
    """Return the trial of one deployment.

    Args:
        expected: What the live endpoint must consist of; `None` when nothing is to be proven.
    """
    endpoint = loaded.endpoint
    # Return what the plan predicts of one copy; its batch limit is the lesser of the engine's and of the KV room.
    levels = tuple(made_of(PredictedLevel, point, e2e_mean_ms=point.e2e_latency_ms) for point in plan.curve)
    return TrialRequest(
        endpoint=endpoint.name,
        environment=loaded.environment.name,
        plan_digest=plan.digest,
        target=target,
        expected=expected,
        workload=trial_workload(loaded, trial_schema(loaded, serving), trial_api(loaded, serving.engine)),
        load=_load(loaded, plan),
        objectives=tuple(slo_objectives(endpoint.slo)),
        gate_concurrency=plan.gate_concurrency_per_copy.value,
        copy_count=plan.copy_count.value,
        mode=endpoint.trial.mode,
        usd_per_hour_per_copy=plan.cost.usd_per_hour_per_copy,
        fallback_target_concurrency=plan.target_concurrency_per_copy.value,
        target_utilization=endpoint.scaling.target_utilization,
        gate=made_of(Gate, endpoint.trial),
        prior=Prior(levels=levels, batch_limit=min(plan.max_num_seqs.value, plan.memory.kv_limited_batch)),
        quality=quality_floor(loaded, serving),
        target_knee=endpoint.trial.target,
        overload=endpoint.trial.overload,
        configuration_digest=configuration_digest(loaded, plan, serving),
        scaled=tuple(
            ScaledValue(field=each.field, asked=each.asked_words, used=each.used_words) for each in loaded.local_values
        ),
    )


OPENAI_ENGINES: Final = ("vllm", "sglang")
"""Containers whose streams OpenAI clients read, and which count exactly on that path (`docs/how-to/client.md`)."""


def trial_api(loaded: LoadedSpec, engine: str) -> Api:
    """Return the path that a trial takes: the spec's, else the one that the engine serves best."""
    endpoint = loaded.endpoint
    serves = engine in OPENAI_ENGINES and endpoint.hosting.asynchronous is None
    return endpoint.workload.api or ("openai" if serves else "invoke")


def trial_schema(loaded: LoadedSpec, serving: RenderedConfig) -> PayloadSchema:
    """Return how a trial spells its requests: the OpenAI path takes chats alone."""
    return "openai_chat" if trial_api(loaded, serving.engine) == "openai" else serving.payload_schema


def trial_workload(loaded: LoadedSpec, schema: PayloadSchema, api: Api) -> Workload:
    """Return the requests that a trial of this spec sends; of a dataset, made-up ones of its lengths.

    What users wrote is in no template: `seatrial bench --prompts` sends it.
    """
    endpoint, requests = loaded.endpoint, requests_of_spec(loaded.endpoint, loaded.dataset)
    prefix = requests if requests.shared_prefix_tokens else endpoint.trial  # the older spelling
    is_routed = endpoint.hosting.routing.strategy == "prefix_aware" and holds_conversations(requests)
    return replace(
        requests,
        schema=schema,
        api=api,
        times_s=loaded.dataset.times_s,
        shared_prefix_tokens=prefix.shared_prefix_tokens,
        prefix_groups=prefix.prefix_groups,
        sends_prefix_id=api == "invoke" and is_routed,
    )


def request_template(loaded: LoadedSpec, plan: Plan, serving: RenderedConfig) -> str:
    """Return the trial's request as JSON, without what only the stack knows: target, expected, manner and alarms.

    Raises:
        BenchError: SEA501, with every value that the deployed trial would refuse.
        SpecError: SEA108, an open loop of so few requests that the budget ends before they prove the SLO.
        RenderError: SEA137 for what would be replaced when it is deployed.
    """
    nowhere = TrialTarget(endpoint_name="", inference_component=None, region=loaded.environment.region)
    request = trial_request(loaded, plan, serving, nowhere, None)
    check_trial_request(request)
    fields = json.loads(request.to_json())
    left_out = ONLY_THE_STACK_KNOWS if request.quality else (*ONLY_THE_STACK_KNOWS, "quality")
    text = json.dumps({key: value for key, value in fields.items() if key not in left_out}, sort_keys=True)
    refuse_replaced({"trial": text}, where=f"trial of {loaded.endpoint.name}")
    return text


_LATENCIES: Final[tuple[Metric, ...]] = ("ttft_ms", "tpot_ms", "e2e_latency_ms")
_PERCENTILES: Final[tuple[Statistic, ...]] = ("p50", "p90", "p95", "p99")


def slo_objectives(slo: Slo) -> Iterator[Objective]:
    """Yield every bound of an SLO as an objective of the trial."""
    for metric in _LATENCIES:
        for statistic in _PERCENTILES:
            if (bound := getattr(getattr(slo, metric), statistic)) is not None:
                yield Objective(metric=metric, statistic=statistic, bound=bound, sense="at_most")
    yield Objective(metric="error_rate", statistic="value", bound=slo.error_rate, sense="at_most")
    if slo.output_tok_s is not None:
        yield Objective(metric="output_tok_s", statistic="value", bound=slo.output_tok_s, sense="at_least")


def _load(loaded: LoadedSpec, plan: Plan) -> Load:
    trial, workload = loaded.endpoint.trial, loaded.endpoint.workload
    rates = rates_of(loaded.endpoint)
    return made_of(
        Load,
        trial,
        workload,
        concurrency_levels=plan.concurrency_levels.value,
        max_requests_per_concurrency=trial.max_requests_per_concurrency or 2 * trial.requests_per_concurrency,
        budget_s=trial.budget_minutes * S_PER_MINUTE,
        arrival=workload.arrivals if rates else "closed",
        rates_per_s=rates + rates_of(loaded.endpoint, BEYOND_SHARES),
        gate_rate_per_s=rates[-1] if rates else None,
        rates_for_copies=plan.copy_count.value if rates else None,
        level_s=level_s(loaded, plan.copy_count.value, rates) if rates else SHORTEST_LEVEL_S,
    )


SHORTEST_LEVEL_S: Final = 30.0
LONGEST_LEVEL_S: Final = 600.0
"""A function loads for 14 minutes at most; what is in flight at the end is waited for."""
_MORE_ARRIVALS: Final = 1.5  # than are needed on average: chance gives fewer, and ramps and failures take some
_LEVELS_SHARE: Final = 0.8  # of the budget; the rest is for proofs, warm-up and what is in flight at the end


def level_s(loaded: LoadedSpec, copies: int, rates: Sequence[float]) -> float:
    """Return how long each level of an open loop sends: until one copy's share of the rate can prove the SLO.

    Args:
        copies: Copies that the rates are for; a candidate is one of them.
        rates: The levels up to the gate, ascending; those beyond take what time is left.

    Raises:
        SpecError: SEA108, so few requests come that the budget ends before.
    """
    trial = loaded.endpoint.trial
    needed = requests_at_gate(tuple(slo_objectives(loaded.endpoint.slo)), trial.confidence)
    wanted_s = max(SHORTEST_LEVEL_S, math.ceil(_MORE_ARRIVALS * needed * copies / rates[-1]))
    most_s = min(LONGEST_LEVEL_S, _LEVELS_SHARE * trial.budget_minutes * S_PER_MINUTE / len(rates))
    if wanted_s <= most_s or trial.mode == "off":
        return min(wanted_s, most_s)
    message = (
        f"one copy gets {rates[-1] / copies:.3g} requests/s: {needed} requests, which prove the SLO, take "
        f"{wanted_s:,.0f} s in each of {len(rates)} levels; {most_s:,.0f} s are left for one"
    )
    hint = "raise trial.budget_minutes, lower trial.confidence, bound a lower percentile, or write arrivals: closed"
    raise SpecError([loaded.problem(("workload", "arrivals"), "SEA108", message, hint)])


def complete_request(deployment: Deployment, stack: LiveStack) -> TrialRequest:
    """Return the trial of a deployed stack: the deployment's, with what only the stack knows.

    Raises:
        BenchError: SEA502 when the stack lacks an output.
    """
    has_component = deployment.endpoint.hosting.kind == "inference_component"
    target = TrialTarget(
        endpoint_name=stack.output("EndpointName"),
        inference_component=stack.output("InferenceComponentName") if has_component else None,
        region=deployment.environment.region,
    )
    expected = Expected(
        endpoint_config_name=stack.output("EndpointConfigName"),
        model_name=stack.output("ModelName"),
        image=deployment.serving.image,
    )
    fields = json.loads(deployment.trial_request) | {"target": asdict(target), "expected": asdict(expected)}
    return read_trial_request(json.dumps(fields))


MOST_GATE_PROMPTS: Final = 200
MOST_GATE_BYTES: Final = 48 * 1024
"""CloudFormation sends the request to the function twice on an update, old and new: together at most 256 KiB."""
MOST_GATE_TOKENS: Final = 256
RULE: Final = "SEA533"


def quality_floor(loaded: LoadedSpec, serving: RenderedConfig) -> QualityFloor | None:
    """Return the quality floor that a trial proves after its levels; None where the spec bounds no quality.

    Raises:
        SpecError: SEA527 for an evaluation set with bad lines, SEA533 for one that is too large for a trial or has no
            references for `exact_match`, SEA113 and SEA137 for prompts that no template may hold.
    """
    quality = loaded.endpoint.slo.quality
    objectives = () if quality is None else tuple(_objectives(quality))
    if quality is None or not objectives:
        return None
    path = loaded.path.parent / quality.evaluation_set
    questions = read_evaluation_set(path, chat=trial_schema(loaded, serving) == "openai_chat")
    where = path.as_posix()
    problems = [
        Finding(RULE, Place.at(where, field), message, hint) for field, message, hint in _impossible(quality, questions)
    ]
    if problems := problems or list(_undeployable(questions, where)):
        raise SpecError(problems)
    return QualityFloor(
        evaluation_set=questions.digest,
        prompts=questions.prompts,
        objectives=objectives,
        most_tokens=min(MOST_GATE_TOKENS, loaded.endpoint.workload.output_tokens),
    )


def _undeployable(questions: EvaluationSet, where: str) -> Iterator[Finding]:
    """Yield each prompt, by its number, that the template must not hold."""
    for number, prompt in enumerate(questions.prompts, 1):
        text, field = json.dumps(asdict(prompt), ensure_ascii=False), f"prompt {number}"
        if holds_credential(text):
            hint = "revoke it, and take it out: the prompts stand in the template"
            yield Finding("SEA113", Place.at(where, field), "looks like a credential in plain text", hint)
        if reference := replaced_text(text):
            yield Finding("SEA137", Place.at(where, field), f"the text holds {reference}", "take it out")


def _objectives(quality: QualitySpec) -> Iterator[QualityObjective]:
    if quality.exact_match is not None:
        yield QualityObjective(metric="exact_match", bound=quality.exact_match, sense="at_least")
    if quality.mean_logprob is not None:
        yield QualityObjective(metric="mean_logprob", bound=quality.mean_logprob, sense="at_least")
    if quality.perplexity is not None:
        yield QualityObjective(metric="perplexity", bound=quality.perplexity, sense="at_most")


def _impossible(quality: QualitySpec, questions: EvaluationSet) -> Iterator[tuple[str, str, str]]:
    hint = "give a smaller set; seatrial compare --evaluation-set takes the larger one"
    if len(questions.prompts) > MOST_GATE_PROMPTS:
        yield "slo.quality", f"{len(questions.prompts):,} prompts; a trial asks at most {MOST_GATE_PROMPTS}", hint
    size = len(json.dumps([asdict(prompt) for prompt in questions.prompts]))
    if size > MOST_GATE_BYTES:
        yield "slo.quality", f"{size:,} bytes as JSON; a trial's request holds at most {MOST_GATE_BYTES:,}", hint
    if quality.exact_match is not None and not questions.has_references:
        message = "no prompt has a reference"
        yield "slo.quality.exact_match", message, 'add "reference" to the lines, or remove exact_match'


def read_evaluation_set(path: Path, *, chat: bool) -> EvaluationSet:
    """Read an evaluation set from its file.

    Raises:
        SpecError: SEA527, with every bad line, or when the file is missing, unreadable, empty or too large.
    """
    try:
        content = read_file_bytes(path, most_bytes=MOST_SET_BYTES)
    except OSError as unread:
        hint = "name a file of JSON objects, one a line"
        message = f"can't be read: {unread.strerror}"
        raise SpecError.of(SET_RULE, message, where=path.as_posix(), hint=hint) from unread
    try:
        return evaluation_set(content, path.as_posix(), chat=chat)
    except BenchError as wrong:
        raise SpecError(wrong.problems) from wrong
