"""`seatrial bench`: put a deployed endpoint, or any OpenAI-compatible server, through a sea trial now."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seatrial.cli.bench_files import PromptFiles, keeping, prompted
from seatrial.cli.bench_load import ArrivalChoice, LoadOptions, loaded_so
from seatrial.cli.bench_server import ServerOptions, request_of_server
from seatrial.cli.bench_show import conclude, watched
from seatrial.cli.options import EnvironmentsFolder, environments_folder
from seatrial.cli.results import read_result

if TYPE_CHECKING:
    from seatrial.bench.events import Watch
    from seatrial.bench.request import TrialRequest
    from seatrial.bench.result import TrialResult
    from seatrial.deployment.document import Deployment
    from seatrial.plan.document import Plan


def bench(
    spec: Annotated[Path | None, typer.Argument(metavar="[SPEC]", help="The endpoint's YAML file.")] = None,
    environment: Annotated[
        str | None, typer.Option("--environment", "-e", metavar="ENV", help="Name of the environment.")
    ] = None,
    environments: EnvironmentsFolder = None,
    *,
    url: Annotated[
        str | None, typer.Option("--url", help="Base URL of an OpenAI-compatible server, instead of SPEC.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="With --url: the model of a request.")] = None,
    api_key_variable: Annotated[
        str | None, typer.Option("--api-key-variable", metavar="NAME", help="With --url: variable that holds the key.")
    ] = None,
    input_tokens: Annotated[int, typer.Option("--input-tokens", help="With --url: length of a prompt.")] = 256,
    output_tokens: Annotated[int, typer.Option("--output-tokens", help="With --url: length of an answer.")] = 128,
    slo: Annotated[
        list[str] | None, typer.Option("--slo", help="With --url: a bound, as in ttft_ms.p95=500; may be repeated.")
    ] = None,
    gate: Annotated[int | None, typer.Option("--gate", help="With --url: concurrency at which the SLO holds.")] = None,
    usd_per_hour: Annotated[float | None, typer.Option("--usd-per-hour", help="With --url: what it costs.")] = None,
    levels: Annotated[str | None, typer.Option("--levels", help="Concurrency per copy, as in 1,2,4.")] = None,
    search: Annotated[Literal["sweep", "adaptive"] | None, typer.Option("--search", help="How levels follow.")] = None,
    goal: Annotated[
        Literal["knee", "max_concurrency", "max_goodput"] | None,
        typer.Option("--goal", help="What an adaptive search looks for."),
    ] = None,
    requests: Annotated[int | None, typer.Option("--requests", help="Measured requests of every level.")] = None,
    rate: Annotated[
        str | None, typer.Option("--rate", help="Open loop: requests per second, as in 1,2,4; of a ramp start,end.")
    ] = None,
    arrival: Annotated[
        ArrivalChoice, typer.Option("--arrival", help="With --rate: how requests are timed.")
    ] = "poisson",
    level_seconds: Annotated[
        float | None, typer.Option("--level-seconds", help="With --rate: time of a level.")
    ] = None,
    connections: Annotated[
        int | None, typer.Option("--connections", help="With --rate or --trace: most requests in flight.")
    ] = None,
    prompts: Annotated[Path | None, typer.Option("--prompts", help="JSONL file of prompts.")] = None,
    trace: Annotated[Path | None, typer.Option("--trace", help="Recorded trace to replay: CSV or JSONL.")] = None,
    speed: Annotated[float, typer.Option("--speed", help="With --trace: how much faster than recorded.")] = 1.0,
    tokenizer: Annotated[
        Path | None, typer.Option("--tokenizer", help="tokenizer.json: prompts of exactly that many tokens.")
    ] = None,
    budget: Annotated[float | None, typer.Option("--budget", metavar="MINUTES", help="It ends after this.")] = None,
    budget_usd: Annotated[float | None, typer.Option("--budget-usd", help="It ends before it costs more.")] = None,
    timeout: Annotated[float | None, typer.Option("--timeout", metavar="S", help="A request ends after this.")] = None,
    stall_timeout: Annotated[
        float | None, typer.Option("--stall-timeout", metavar="S", help="A silent stream ends after this.")
    ] = None,
    retries: Annotated[int | None, typer.Option("--retries", help="Repetitions where throttled or not ready.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", help="Processes that load.")] = None,
    protocol: Annotated[
        Literal["jumpstart-2024"] | None, typer.Option("--protocol", help="Measure as that article did.")
    ] = None,
    records: Annotated[Path | None, typer.Option("--records", help="Write every request here, as JSONL.")] = None,
    against: Annotated[
        str | None, typer.Option("--against", help="Earlier result to compare with: a file or an s3:// URI.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="DIR", help="Write the report here.")] = None,
) -> None:
    """Load an endpoint, find its knee and judge it; exit 1 unless it passes.

    With SPEC it refuses to measure unless what is live is what the stack deployed. With --url it loads any server that
    speaks OpenAI's API.
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
            usd_per_hour=usd_per_hour,
            gate=gate,
        )
    asked, plan = _asked(spec, environment, environments, server)
    options = LoadOptions(
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
    for number in (signal.SIGINT, signal.SIGTERM):  # a job in the background is started with Ctrl-C ignored
        signal.signal(number, signal.default_int_handler)
    files = PromptFiles(prompts=prompts, trace=trace, speed=speed, tokenizer=tokenizer)
    conclude(_measured(loaded_so(asked, options), files, records, against), plan, output)


def _asked(
    spec: Path | None, environment: str | None, environments: Path | None, server: ServerOptions | None
) -> tuple[TrialRequest, Plan | None]:
    if (spec is None) == (server is None):
        raise typer.BadParameter("give either SPEC or --url", param_hint="SPEC")
    if server is not None:
        return request_of_server(server), None
    if spec is None or environment is None:
        raise typer.BadParameter("SPEC needs an environment: add `-e ENV`", param_hint="--environment")
    from seatrial.deployment.load import load_deployment

    deployment = load_deployment(spec, environments_folder(environments, spec), environment)
    return _request(deployment), deployment.plan


def _measured(request: TrialRequest, files: PromptFiles, records: Path | None, against: str | None) -> TrialResult:
    from seatrial.bench.result import TrialResult
    from seatrial.bench.tools import Tools
    from seatrial.bench.trial import run_trial

    baseline = None if against is None else read_result(against)
    with prompted(request, files) as (asked, file), keeping(records) as keep:
        asked.check()
        tools = Tools(prompts_file=file, replay_speed=files.speed)
        tools = tools if keep is None else replace(tools, keep=keep)

        def run(watch: Watch) -> TrialResult:
            result = run_trial(asked, tools=replace(tools, watch=watch), baseline=baseline, baseline_uri=against or "")
            if not isinstance(result, TrialResult):
                raise TypeError("a trial that never pauses has paused")
            return result

        return watched(asked, run)


def _request(deployment: Deployment) -> TrialRequest:
    import boto3

    from seatrial.deployment.aws_failures import aws_failures
    from seatrial.deployment.live_stack import describe_stack
    from seatrial.deployment.trial import complete_request

    with aws_failures(deployment.stack_name):
        cloudformation = boto3.client("cloudformation", region_name=deployment.environment.region)
    return complete_request(deployment, describe_stack(deployment.stack_name, cloudformation))
