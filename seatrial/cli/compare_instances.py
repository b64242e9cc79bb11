"""`seatrial compare-instances`: the instance types beside each other, as the published articles print them."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from seatrial.cli.support.options import EnvironmentName, EnvironmentsFolder, SpecFile, environments_folder
from seatrial_base.terminal import show, show_json, show_text


def compare_instances_command(
    spec: SpecFile,
    environment: EnvironmentName,
    environments: EnvironmentsFolder = None,
    output_format: Annotated[Literal["text", "json", "csv"], typer.Option("--format", help="Output format.")] = "text",
) -> None:
    """Predict latency, throughput and price of one instance of each type, best price per token first."""
    from seatrial.planner.compare import basis_of, compare_instance_types
    from seatrial.report.terminal.instances import comparison_csv, comparison_rows, instances_view
    from seatrial.specs.load import load_spec

    loaded = load_spec(spec, environment, environments=environments_folder(environments, spec))
    compared = compare_instance_types(loaded)
    basis = basis_of(loaded)
    if output_format == "json":
        show_json({"predicted": True, "instances": comparison_rows(compared, basis)})
    elif output_format == "csv":
        show_text(comparison_csv(compared, basis))
    else:
        title = f"Instance types for {loaded.endpoint.name} in {loaded.environment.name}"
        show(instances_view(compared, basis, title))
