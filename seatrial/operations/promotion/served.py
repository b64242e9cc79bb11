"""Whether two environments serve a model alike: what the containers read, name by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.engines.render import render_plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.documents.plan import Plan
    from seatrial.engines.rendered import RenderedConfig
    from seatrial.operations.promotion.evidence import PromotionStep
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.findings import Finding

_MODEL = ("hub_id", "revision", "jumpstart_id", "trust_remote_code")
_LONGEST_SHOWN = 80


def served_problems(promotion: PromotionStep, plan: Plan) -> Iterator[Finding]:
    """Yield everything in which the promoted plan's container would not be the tried one.

    Weights may lie in a bucket of each environment's own: where they lie is not compared.

    Args:
        promotion: The step.
        plan: The promoted plan.

    Raises:
        RenderError: When one of the plans can't be rendered.
    """
    tried = _told(promotion.source, render_plan(promotion.source, promotion.plan))
    here = _told(promotion.target, render_plan(promotion.target, plan))
    names = promotion.source.environment.name, promotion.target.environment.name
    for name in sorted({*tried, *here}):
        before, after = tried.get(name), here.get(name)
        if before != after:
            message = f"{name}: {_shown(before)} in {names[0]}, {_shown(after)} in {names[1]}"
            hint = f"give both environments the same model and serving options, and try them in {names[0]}"
            yield promotion.problem("SEA476", message, hint)


def _told(loaded: LoadedSpec, config: RenderedConfig) -> Mapping[str, str]:
    """Return everything that a container reads, by name; texts without comments and without the weights' place."""
    model, weights = loaded.endpoint.model, loaded.endpoint.model.s3_uri
    told = {f"model.{name}": f"{getattr(model, name)}" for name in _MODEL}
    told |= {"engine": config.engine, "payload schema": config.payload_schema}
    told |= {f"environment variable {name}": value for name, value in config.container_env.items()}
    told |= {f"environment variable {name}": "from Secrets Manager" for name in config.secret_env}
    for file, text in config.files.items():
        told |= {f"{file}: {name}": line for name, line in _lines(file, text)}
    return {name: value.replace(weights, "WEIGHTS") if weights else value for name, value in told.items()}


def _lines(file: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the options of a properties file; of any other file, its text as a whole."""
    if not file.endswith(".properties"):
        yield "text", text
        return
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            name, _, value = line.partition("=")
            yield name, value


def _shown(value: str | None) -> str:
    if value is None:
        return "absent"
    return value if len(value) <= _LONGEST_SHOWN else f"{value[:_LONGEST_SHOWN]}…"
