"""A trial's result as a preset of the team: names and numbers only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.locks.locked_plan import read_locked_plan
from seatrial.specs.recipe import recipe_name
from seatrial_base.catalog.presets import MEASURED, Preset, preset_name
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec
    from seatrial_load.documents.result import LevelResult, TrialResult

_SOURCES = ("hub_id", "jumpstart_id", "s3_uri")


def measured_preset(result: TrialResult, loaded: LoadedSpec, *, where: str) -> Preset:
    """Return what a trial measured as a preset: at the knee, or at the gate where no knee was found.

    Raises:
        SpecError: SEA252 when the result is not of the locked plan, of a local engine, or without a measured level; as
            `read_locked_plan`.
    """
    plan = read_locked_plan(loaded, stale=True)
    level = _level(result)
    model = next((str(value) for name in _SOURCES if (value := loaded.document.value("model", name))), None)
    if reason := _unfit(result, plan, level, model):
        message, hint = reason
        raise SpecError.of("SEA252", message, hint=hint, where=where)
    if level is None or model is None:
        raise AssertionError(where)
    recipe = loaded.endpoint.optimization
    copies = result.request.copy_count
    knee = result.knee.concurrency if result.knee else None
    price = result.request.usd_per_hour_per_copy
    tok_s = level.output_tok_s
    # 3,600 s of an hour by a million tokens.
    usd = price * copies / tok_s / 0.0036 if price and tok_s else None
    names = tuple(sorted(entry.name for entry in recipe))
    return Preset(
        name=f"{loaded.endpoint.name.lower()}.{preset_name(model, plan.instance_type.value, names)}",
        model=model,
        instance_type=plan.instance_type.value,
        tensor_parallel_degree=plan.tensor_parallel_degree.value,
        recipe=recipe_name(recipe),
        input_tokens=result.request.workload.input_tokens,
        output_tokens=result.request.workload.output_tokens,
        concurrency=level.concurrency * copies,
        output_tok_s=_rounded(tok_s),
        tpot_ms=_rounded(level.tpot_ms.p50 if level.tpot_ms else None),
        usd_per_million_output_tokens=_rounded(usd),
        provenance=MEASURED,
        source=f"trial of {result.started_at[:10]} in {result.request.environment}, plan {plan.digest[:12]}",
        endpoint=loaded.endpoint.name,
        knee_concurrency_per_copy=_rounded(knee),
        verdict=result.verdict.status,
    )


def _level(result: TrialResult) -> LevelResult | None:
    # The endpoint is scaled to its knee, so no level above it is how it runs; a void one proves nothing.
    valid = [level for level in result.levels if level.valid and level.output_tok_s]
    highest = result.knee.concurrency if result.knee and result.knee.concurrency else result.request.gate_concurrency
    return next((level for level in reversed(valid) if level.concurrency <= highest), valid[0] if valid else None)


def _unfit(result: TrialResult, plan: Plan, level: LevelResult | None, model: str | None) -> tuple[str, str] | None:
    if result.engine_note:
        return f"a local or simulated engine was measured: {result.engine_note}", "measure an endpoint on AWS"
    if result.request.plan_digest != plan.digest:
        message = f"the trial tried the plan {result.request.plan_digest[:12]}, and the lock has {plan.digest[:12]}"
        return message, "give the spec and lock of the trial with --spec, or the newest result"
    if level is None:
        return "no level was measured with a throughput", "run a trial with load"
    if model is None:
        return "the model has neither a hub id nor a JumpStart id nor an S3 prefix", "name the model in the spec"
    return None


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
