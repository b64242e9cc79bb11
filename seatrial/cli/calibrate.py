"""`seatrial calibrate`: let measured points of an endpoint correct its predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.support.files import check_outputs, spec_inputs
from seatrial.cli.support.options import EnvironmentName, EnvironmentsFolder, SpecFile, environments_folder
from seatrial_base.errors import SpecError
from seatrial_base.terminal import show

if TYPE_CHECKING:
    from seatrial.documents.calibration import CalibrationSource, MeasuredPoint
    from seatrial.documents.plan import Plan
    from seatrial.planner.benchmark_jobs import BenchmarkFile
    from seatrial.specs.load import LoadedSpec


def calibrate_command(
    spec: SpecFile,
    environment: EnvironmentName,
    environments: EnvironmentsFolder = None,
    *,
    result: Annotated[
        Path | None, typer.Option("--result", help="Result of a trial, such as the report.json of `seatrial bench`.")
    ] = None,
    points: Annotated[
        Path | None,
        typer.Option("--points", help="CSV: concurrency, output_tok_s, ms_per_token (p90); or rows of benchmarks.gpu."),
    ] = None,
    benchmarks: Annotated[
        list[str] | None,
        typer.Option(
            "--benchmark",
            metavar="[N=]FILE",
            help="Result of a SageMaker benchmark job, its output.tar.gz, with N requests in flight; repeat it.",
        ),
    ] = None,
    probes: Annotated[str | None, typer.Option("--probes", help="Use only these concurrencies, as in 1,64.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Write the calibration next to the spec.")] = False,
) -> None:
    """Fit the predictions of the deployed plan to two or more measured points of one copy.

    Levels that are not among the probes show how well the calibration predicts them.
    """
    from seatrial.locks.locked_plan import read_locked_plan
    from seatrial.planner.calibration import calibrate_endpoint as fit
    from seatrial.planner.calibration import chosen, outlook_of_entry, write_calibration
    from seatrial.report.terminal.trial import calibration_view
    from seatrial.specs.load import load_spec
    from seatrial.specs.spec_files import calibration_path

    folder = environments_folder(environments, spec)
    if write:
        read = {**spec_inputs(spec, folder, environment), "--result": result, "--points": points}
        read |= {f"--benchmark {file.path.name}": file.path for file in _files(benchmarks)}
        del read["the calibration"]  # it is changed in place
        check_outputs({"--write": calibration_path(spec)}, read)
    loaded = load_spec(spec, environment, environments=folder)
    plan = read_locked_plan(loaded, stale=True)
    measured, source = _measured(result, points, benchmarks, loaded, plan)
    if write and source.engine_note:
        message = f"measured on {source.engine_note}: CPU results can't calibrate a GPU plan"
        hint = "leave out --write to see the fit, or calibrate with a trial on AWS"
        raise SpecError.of("SEA615", message, hint=hint, where=source.file)
    entry = fit(loaded, plan, chosen(measured, _levels(probes), source.file), source)
    show(calibration_view(outlook_of_entry(entry, measured, plan, loaded), entry))
    if write:
        typer.echo(f"calibration written to {write_calibration(entry, spec, environment).as_posix()}", err=True)
        again = f"seatrial plan {spec.as_posix()} --environment {environment} --write"
        typer.echo(f"the lock is now stale; plan again: {again}", err=True)


def _levels(text: str | None) -> frozenset[int] | None:
    try:
        return None if text is None else frozenset(int(level) for level in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a list of whole numbers as in 1,64", param_hint="--probes") from None


def _measured(
    result: Path | None, points: Path | None, benchmarks: list[str] | None, loaded: LoadedSpec, plan: Plan
) -> tuple[tuple[MeasuredPoint, ...], CalibrationSource]:
    from seatrial.documents.calibration import CalibrationSource
    from seatrial.planner.calibration import read_points
    from seatrial_base.files import read_text
    from seatrial_base.frozen_model import digest

    if [result is None, points is None, not benchmarks].count(False) != 1:
        raise typer.BadParameter("give one of --result, --points and --benchmark", param_hint="--result")
    if benchmarks:
        from seatrial.planner.benchmark_jobs import benchmark_points

        results = _files(benchmarks)
        measured_points, text = benchmark_points(results, loaded, plan)
        name = ", ".join(each.path.name for each in results)
        return measured_points, CalibrationSource(file=name, digest=digest(text))
    file = result or points or Path()
    try:
        text = read_text(file)
    except (OSError, UnicodeDecodeError) as error:
        message = f"the measured points can't be read: {error}"
        raise SpecError.of("SEA407", message, where=file.as_posix()) from error
    if points is not None and text.lstrip().startswith("{"):
        from seatrial.planner.gpu_rows import gpu_points

        same, others = gpu_points(text, file.as_posix(), loaded, plan)
        typer.echo(f"rows of this deployment: {len(same)}; measured otherwise and left out: {others}", err=True)
        return same, CalibrationSource(file=file.name, digest=digest(text))
    if points is not None:
        return read_points(text, file.as_posix()), CalibrationSource(file=file.name, digest=digest(text))
    from seatrial.planner.calibration import check_trial, points_of_trial, usable
    from seatrial_load.documents.result import TrialResult

    trial = TrialResult.from_json(text)
    request, workload = trial.request, trial.request.workload
    measured = (request.endpoint, request.environment, workload.input_tokens, workload.output_tokens)
    check_trial(measured, loaded, file.as_posix())
    about = {"file": file.name, "digest": digest(text), "engine_note": trial.engine_note, "start": trial.start}
    source = CalibrationSource.model_validate(about)
    return usable(points_of_trial(trial), file.as_posix()), source


def _files(benchmarks: list[str] | None) -> tuple[BenchmarkFile, ...]:
    from seatrial.planner.benchmark_jobs import BenchmarkFile

    split = [(*given.partition("="), given) for given in benchmarks or ()]
    return tuple(
        BenchmarkFile(Path(file), int(number)) if number.isdecimal() and equals else BenchmarkFile(Path(given))
        for number, equals, file, given in split
    )
