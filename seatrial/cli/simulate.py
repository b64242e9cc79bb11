"""`seatrial simulate`: what an endpoint would cost and what users would notice under days of traffic."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seatrial.cli.support.options import EnvironmentName, EnvironmentsFolder, SpecFile, environments_folder
from seatrial.cli.support.specs import load_specs
from seatrial_base.errors import PlanError, SpecError
from seatrial_base.terminal import show_json_text, show_text
from seatrial_base.units import counted, usd

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import JsonValue

    from seatrial.documents.plan import Plan
    from seatrial.documents.simulation import CheapestSchedule, Simulation
    from seatrial.specs.load import LoadedSpec

_MOST_OBJECTIVES = 5


def simulate_command(
    spec: SpecFile,
    environment: EnvironmentName,
    traffic: Annotated[
        Path,
        typer.Option(
            "--traffic", metavar="FILE", help="Traffic document (YAML), or a recording as `bench --trace` replays it."
        ),
    ],
    environments: EnvironmentsFolder = None,
    *,
    from_endpoint: Annotated[
        str | None,
        typer.Option(
            "--from-endpoint",
            metavar="NAME",
            help="First write the traffic of this endpoint's last seven days to FILE, from CloudWatch.",
        ),
    ] = None,
    days: Annotated[
        int | None, typer.Option("--days", min=1, max=366, help="Days; default: those of FILE, a profile's are 7.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the random arrivals.")] = 1,
    instance_start_s: Annotated[
        float | None,
        typer.Option(
            "--instance-start-s", min=0, max=86_400, help="Measured start of an instance with its image, in seconds."
        ),
    ] = None,
    copy_start_s: Annotated[
        float | None,
        typer.Option("--copy-start-s", min=0, max=86_400, help="Measured start of a copy on an instance, in seconds."),
    ] = None,
    quota: Annotated[
        int | None,
        typer.Option("--quota", min=1, help="Most instances of the plan's type that the account may have."),
    ] = None,
    cheapest: Annotated[
        bool,
        typer.Option("--cheapest", help="Search type, copies, target, cooldowns and schedules for the least cost."),
    ] = False,
    share: Annotated[
        float | None,
        typer.Option(
            "--share",
            min=0,
            max=1,
            help="Of all requests within the SLO, for --cheapest; default: what the SLO and its error rate demand.",
        ),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write what --cheapest changes into the spec, for this environment.")
    ] = False,
    output_format: Annotated[Literal["text", "json", "html"], typer.Option("--format", help="Output format.")] = "text",
) -> None:
    """Simulate days of traffic with scaling, starts, refusals and cost; nothing is measured.

    The locked plan is simulated, without a lock the plan that would be made. With --cheapest, other schedules are too.
    """
    needs = "needs --cheapest"
    for option, is_wrong, message in (
        ("--share", share is not None and not cheapest, needs),
        ("--write", write and not cheapest, needs),
        ("--format html", cheapest and output_format == "html", "is not written with --cheapest"),
    ):
        if is_wrong:
            raise typer.BadParameter(message, param_hint=f"'{option}'")
    from seatrial.deployment.starts import start_parts, start_warnings
    from seatrial.documents.simulation import CheapestSchedule
    from seatrial.operations.fleet import simulate_days
    from seatrial.operations.traffic import read_traffic

    (loaded,) = load_specs([spec], environment, environments)
    if from_endpoint is not None:
        _write_traffic(from_endpoint, loaded.environment.region, traffic)
    plan = _plan_of(loaded)
    target = plan.target_concurrency_per_copy.value
    usual = min(plan.curve, key=lambda point: abs(point.concurrency - target))
    source = read_traffic(traffic, lambda tokens: (usual.ttft_ms + usual.tpot_ms * (tokens - 1)) / 1_000)
    starts_of = partial(start_parts, instance_s=instance_start_s, copy_s=copy_start_s)
    starts, days = starts_of(plan, loaded), days or source.days
    for warning in start_warnings(plan, loaded, starts):
        typer.echo(f"warning: {warning}", err=True)
    prompts_of = partial(prompts_seconds, prompts=source.prompts)
    done: Simulation | CheapestSchedule
    if cheapest:
        from seatrial.operations.schedule_search import ScheduleSearch
        from seatrial.planner.planner import make_plan

        # A lock may be of another release's prediction: what is compared is all planned by this one.
        plan = make_plan(loaded)
        done = ScheduleSearch(loaded, plan, source, days, seed, starts_of, share, prompts_of, quota).run()
        lines = schedule_lines(done, f"{spec.as_posix()} -e {environment}", is_written=write)
    else:
        prompts_s = prompts_of(loaded, plan)
        done = simulate_days(
            loaded, plan, source, days=days, seed=seed, starts=starts, prompts_s=prompts_s, quota=quota
        )
        lines = screen_lines(done)
        if output_format == "html":
            from seatrial.report.document.simulation import simulation_html

            show_text(simulation_html(done))
    if output_format == "json":
        show_json_text(done.model_dump_json(indent=1))
    elif output_format == "text":
        show_text("".join(f"{line}\n" for line in lines))
    # Last, so that a text that can't be edited costs no result.
    if write and isinstance(done, CheapestSchedule) and done.changes:
        from seatrial.operations.schedule_search import write_schedule

        write_schedule(loaded, done.cheapest, environments_folder(environments, spec))


def _plan_of(loaded: LoadedSpec) -> Plan:
    from seatrial.locks.lock_file import is_locked
    from seatrial.locks.locked_plan import read_locked_plan

    if is_locked(loaded):
        return read_locked_plan(loaded)
    from seatrial.planner.planner import make_plan

    return make_plan(loaded)


def prompts_seconds(loaded: LoadedSpec, plan: Plan, prompts: Sequence[float]) -> tuple[float, ...]:
    """Return how much longer the planner's prefill takes for each prompt than for one of mean length, if it knows."""
    from seatrial.planner.calibration import measured_copy
    from seatrial.planner.predict.iteration_cost import costs_of

    with suppress(PlanError):
        copy = measured_copy(loaded, plan)
        costs, computed = costs_of(copy), 1 - copy.prefix_hit_rate
        mean_s = costs.prefill(1.0, copy.prefilled_tokens)
        return tuple(costs.prefill(1.0, max(1, round(tokens * computed))) - mean_s for tokens in prompts)
    return ()


def _write_traffic(endpoint: str, region: str, file: Path) -> None:
    from seatrial.account.clients import clients_of_region
    from seatrial.operations.traffic import endpoint_traffic
    from seatrial.specs.yaml_source import yaml_text

    if file.exists():
        hint = "give a new file, or leave --from-endpoint out to simulate what was read before"
        raise SpecError.of("SEA565", "the file exists already", where=file.as_posix(), hint=hint)
    clients = clients_of_region(region, where=endpoint)
    read = endpoint_traffic(clients.alarms, clients.endpoints, endpoint, datetime.now(UTC))
    try:
        file.write_text(yaml_text(read.model_dump(mode="json", exclude_none=True)), encoding="utf-8")
    except OSError as error:
        raise SpecError.of("SEA101", f"the file can't be written: {error.strerror}", where=file.as_posix()) from error


def screen_lines(simulation: Simulation) -> Iterator[str]:
    """Yield a simulation in at most 15 lines."""
    done, minutes, cost = simulation, simulation.minutes, simulation.cost
    about = f"{counted(done.days, 'day')} from {done.starts_at}, {done.traffic}, seed {done.seed}"
    yield f"Simulation of {done.endpoint} in {done.environment}, not a measurement: {about}"
    refused = (done.refused_without_copy + done.refused_full) / max(done.requests, 1)
    reasons = f"{done.refused_without_copy:,} without a copy, {done.refused_full:,} as all were full"
    yield f"Requests     {done.requests:,}: {refused:.2%} refused ({reasons}), {done.waited:.2%} waited"
    judged = {True: "the SLO is met", False: "the SLO is missed", None: "no latency is bounded"}[done.meets_slo]
    within = f"{done.within_slo:.2%} of the requests: {judged}"
    yield f"Within SLO   {within if done.requests else 'nothing to judge: no request came'}"
    for each in done.objectives[: _MOST_OBJECTIVES if done.requests else 0]:
        kept = f"{each.share:.2%} of {each.required:.0%}, {'met' if each.met else 'missed'}"
        yield f"             {each.objective} <= {each.bound_ms:,.0f} ms: {kept}"
    short = f"; {counted(done.copies_over_quota, 'more copy', 'more copies')} wanted" if done.copies_over_quota else ""
    limited = f"; limited by the quota of {done.quota_instances}{short}" if short else ""
    for name, values, more in (("Copies   ", minutes.copies, ""), ("Instances", minutes.instances, limited)):
        yield f"{name}    {min(values)} to {max(values)}, {fmean(values):.1f} on average{more}"
    yield f"Changes      {len(done.events):,} of the number of copies; worst hour: {_worst_hour(done)}"
    further_s = sum(part.seconds for part in done.starts if part.further)
    new_s = sum(part.seconds for part in done.starts)
    sources = ", ".join(dict.fromkeys(part.source.partition(":")[0] for part in done.starts))
    on = f"{new_s / 60:.1f} min on a new instance, {further_s / 60:.1f} min on one in service"
    yield f"Start        of a copy: {on} ({sources})"
    if cost is None:
        yield "Cost         unknown: the plan has no price"
    else:
        parts = f"serving {usd(cost.serving_usd_per_day)}, starting {usd(cost.starting_usd_per_day)}"
        total = f"{usd(cost.usd_per_day)} a day ({parts}, idle {usd(cost.idle_usd_per_day)})"
        bought = (
            f"{cost.purchase.replace('_', ' ')}, {usd(cost.usd_per_instance_hour)} an instance hour{cost.elsewhere}"
        )
        used = "" if cost.purchase == "on_demand" else "; only if others use the hours that are bought"
        yield f"Cost         {total}, {usd(cost.usd_per_month)} a month; {bought}{used}"
    if (other := done.second_region) is not None:
        needs = f"{counted(other.copies, 'copy', 'copies')} on {counted(other.instances, 'instance')}"
        at = f"{other.requests_per_second_per_copy:.3g} requests/s a copy"
        peak = f"up to {other.peak_requests_per_second:.3g}/s"
        yield f"2nd Region   would take over {other.requests:,} requests, {peak}: {needs}, at {at}"
    yield f"Left out     {'; '.join(done.not_simulated)}"


def schedule_lines(search: CheapestSchedule, spec: str, *, is_written: bool) -> Iterator[str]:
    """Yield the cheapest schedule in at most 15 lines; `spec`: the arguments of the commands that come next."""
    about = f"{counted(search.days, 'day')} of {search.traffic}, seed {search.seed}"
    yield f"Cheapest schedule of {search.endpoint} in {search.environment}, simulated, not measured: {about}"
    wanted = "every objective and the error rate" if search.share is None else f"{search.share:.2%} within the SLO"
    yield f"Kept         {wanted}; {search.screened} schedules, {search.simulated} of them simulated in full"
    rows = (("As it is ", search.current), ("Cheapest ", search.cheapest), ("Runner-up", search.runner_up))
    for name, each in rows:
        if each is not None:
            cost, verdict = each.cost, "kept" if each.keeps_share else "missed"
            causes = f"serving {usd(cost.serving_usd_per_day)}, starting {usd(cost.starting_usd_per_day)}"
            causes = f"a day {causes}, idle {usd(cost.idle_usd_per_day)}"
            within = f"{each.within_slo:.2%} within the SLO, {verdict}"
            used = "" if cost.purchase == "on_demand" else ", only if others use the hours that are bought"
            price = f"{usd(each.usd_per_month)} a month{cost.elsewhere}{used}"
            yield f"{name}    {price} ({causes}); {within}; from {each.deployment} on"
    for place, change in enumerate(search.changes):
        before, after = (_value_words(value) for value in (change.before, change.after))
        yield f"{'' if place else 'Changes':13}{change.field} {before} -> {after}: {change.because}"
    if saved := search.cheapest.savings_plan_usd_per_month:
        base = counted(search.cheapest.base_instances, "instance")
        yield f"Base load    {base} all the time: a Savings Plan of 1 year saves {usd(saved)} a month, counted above"
    if not search.changes:
        yield "Next         nothing: no schedule that keeps it costs less than the spec as it is"
    elif is_written:
        yield f"Next         seatrial plan {spec} --write, then seatrial diff {spec}"
    else:
        yield "Next         the same command with --write puts it into the spec"


def _value_words(value: JsonValue) -> str:
    if isinstance(value, list):
        return f"[{'; '.join(map(_value_words, value))}]"
    if isinstance(value, dict):
        return " ".join(f"{name} {inner}" for name, inner in value.items() if name not in {"name", "timezone"})
    return "default" if value is None else f"{value}"


def _worst_hour(simulation: Simulation) -> str:
    minutes = simulation.minutes
    hours = [slice(first, first + 60) for first in range(0, len(minutes.requests), 60)]
    bad = [sum(minutes.refused[hour]) + sum(minutes.late[hour]) for hour in hours]
    worst = max(range(len(hours)), key=bad.__getitem__)
    if not bad[worst]:
        return "none" if not simulation.requests else "none, every answer was within the SLO"
    came = sum(minutes.requests[hours[worst]])
    begun = datetime.fromisoformat(simulation.starts_at)
    # Late ones count when their answer begins, which may be in the hour after they came.
    return f"{_clock(begun, worst)}, {bad[worst]:,} requests refused or late, {came:,} came"


def _clock(begun: datetime, hours: int) -> str:
    """Return the hour of a day, by the clock at the beginning: a change of the clock moves no hour."""
    at = begun + timedelta(hours=hours)
    return f"{at:%H}:00 of day {(at.date() - begun.date()).days + 1}"
