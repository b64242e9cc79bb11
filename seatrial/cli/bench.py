"""`seatrial bench`: put a deployed endpoint, or any OpenAI-compatible server, through a sea trial now."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from seatrial.cli import bench_options as options
from seatrial.cli.bench_asked import DeployedSpec, asked_trial
from seatrial.cli.bench_files import PromptFiles, Unwritten, check_folder, keeping, prompted
from seatrial.cli.bench_load import LoadOptions
from seatrial.cli.bench_mistakes import Mistakes, as_mistakes, given_options
from seatrial.cli.bench_server import ServerOptions
from seatrial.cli.bench_show import conclude, watched
from seatrial.cli.interrupt import end_when_interrupted
from seatrial.cli.outputs import check_outputs, local_file, report_outputs, spec_inputs
from seatrial.cli.results import read_result

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.bench.events import Watch
    from seatrial.bench.request import TrialRequest
    from seatrial.bench.result import TrialResult


def bench(
    context: typer.Context,
    spec: options.Spec = None,
    environment: options.Environment = None,
    environments: options.Environments = None,
    *,
    url: options.Url = None,
    model: options.Model = None,
    api_key_variable: options.ApiKeyVariable = None,
    slo: options.Slo = None,
    max_error_rate: options.MaxErrorRate = None,
    gate: options.Gate = None,
    usd_per_hour: options.UsdPerHour = None,
    levels: options.Levels = None,
    search: options.Search = None,
    goal: options.Goal = None,
    requests: options.Requests = None,
    rate: options.Rate = None,
    arrival: options.Arrival = "poisson",
    level_seconds: options.LevelSeconds = None,
    connections: options.Connections = None,
    protocol: options.Protocol = None,
    workers: options.Workers = None,
    input_tokens: options.InputTokens = 256,
    output_tokens: options.OutputTokens = 128,
    prompts: options.Prompts = None,
    trace: options.Trace = None,
    speed: options.Speed = 1.0,
    tokenizer: options.Tokenizer = None,
    budget: options.Budget = None,
    budget_usd: options.BudgetUsd = None,
    timeout: options.Timeout = None,
    stall_timeout: options.StallTimeout = None,
    retries: options.Retries = None,
    records: options.Records = None,
    against: options.Against = None,
    output: options.Output = None,
) -> None:
    """Load an endpoint, find its knee and judge it.

    With SPEC it refuses to measure unless what is live is what the stack deployed. With --url it loads any server that
    speaks OpenAI's API. It exits with 0 when the trial passes, 2 when the command line is wrong, else with 1: also when
    more than 1 % of the requests of a level of --url failed.
    """
    server = None
    if url is not None:
        server = ServerOptions(
            url=url,
            model=model,
            api_key_variable=api_key_variable,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            objectives=tuple(slo or ()),
            max_error_rate=max_error_rate,
            usd_per_hour=usd_per_hour,
            gate=gate,
        )
    load = LoadOptions(
        levels=levels,
        search=search,
        goal=goal,
        requests=requests,
        budget_minutes=budget,
        budget_usd=budget_usd,
        request_timeout_s=timeout,
        stall_timeout_s=stall_timeout,
        max_retries=retries,
        workers=workers,
        rates=rate,
        arrival=arrival,
        level_s=level_seconds,
        max_connections=connections,
        protocol=protocol,
    )
    end_when_interrupted()
    files = PromptFiles(prompts=prompts, trace=trace, speed=speed, tokenizer=tokenizer)
    check_outputs(
        {"--records": records, **report_outputs(output)},
        {
            "--prompts": prompts,
            "--trace": trace,
            "--tokenizer": tokenizer,
            "--against": local_file(against),
            "AWS_CA_BUNDLE": local_file(os.environ.get("AWS_CA_BUNDLE") or None),
            **spec_inputs(spec, environments, environment),
        },
    )
    mistakes = Mistakes(given=given_options(context))
    unwritten = Unwritten()
    with as_mistakes(mistakes):
        place = DeployedSpec(spec=spec, environment=environment, environments=environments)
        request, plan = asked_trial(place, server, load, files, mistakes)
        check_folder(output)
        result = _measured(request, files, records, against, unwritten)
    conclude(result, plan, output, unwritten)


def _measured(
    request: TrialRequest, files: PromptFiles, records: Path | None, against: str | None, unwritten: Unwritten
) -> TrialResult:
    from seatrial.bench.result import TrialResult
    from seatrial.bench.tools import Tools
    from seatrial.bench.trial import run_trial

    baseline = None if against is None else read_result(against)
    with prompted(request, files) as (asked, file), keeping(records, unwritten) as keep:
        tools = Tools(prompts_file=file, replay_speed=files.speed)
        tools = tools if keep is None else replace(tools, keep=keep)

        def run(watch: Watch) -> TrialResult:
            result = run_trial(asked, tools=replace(tools, watch=watch), baseline=baseline, baseline_uri=against or "")
            if not isinstance(result, TrialResult):
                raise TypeError("a trial that never pauses has paused")
            return result

        return watched(asked, run)
