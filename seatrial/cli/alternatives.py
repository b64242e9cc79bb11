"""`seatrial compare-instances` and `seatrial recipes`: what else could be deployed, predicted side by side."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from seatrial.cli.support.model_options import (
    EnvironmentOrDefault,
    ModelOptions,
    SpecOrModel,
    load_specs_or_model,
    takes_model,
)
from seatrial.cli.support.options import EnvironmentsFolder
from seatrial_base.terminal import show, show_json, show_text


@takes_model
def compare_instances_command(
    spec: SpecOrModel,
    environment: EnvironmentOrDefault = None,
    environments: EnvironmentsFolder = None,
    output_format: Annotated[Literal["text", "json", "csv"], typer.Option("--format", help="Output format.")] = "text",
    *,
    wide: Annotated[bool, typer.Option("--wide", help="Show every column and every type.")] = False,
    model_options: ModelOptions,
) -> None:
    """Predict speed and price of each instance type, first those that keep the SLO; `--wide` shows all of them."""
    from seatrial.planner.comparisons import basis_of, compare_instance_types, types_at_load
    from seatrial.report.terminal.alternatives import (
        comparison_csv,
        comparison_rows,
        first_instances_view,
        instances_view,
    )

    (loaded,) = load_specs_or_model([spec], environment, environments, model_options)
    compared = compare_instance_types(loaded)
    basis = basis_of(loaded)
    if output_format == "json":
        show_json({"predicted": True, "instances": comparison_rows(compared, basis)})
    elif output_format == "csv":
        show_text(comparison_csv(compared, basis))
    else:
        title = f"Instance types for {loaded.endpoint.name} in {loaded.environment.name}"
        if wide:
            show(instances_view(compared, basis, title))
        else:
            has_slo = loaded.endpoint.slo.bounds_speed
            show(first_instances_view(compared, types_at_load(loaded), basis, title, has_slo=has_slo))


@takes_model
def recipes_command(
    spec: SpecOrModel,
    environment: EnvironmentOrDefault = None,
    environments: EnvironmentsFolder = None,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="Combine up to three optimizations; without, at most two.")
    ] = False,
    wide: Annotated[bool, typer.Option("--wide", help="Show every column and every recipe.")] = False,
    output_format: Annotated[Literal["text", "json", "csv"], typer.Option("--format", help="Output format.")] = "text",
    model_options: ModelOptions,
) -> None:
    """Predict speed, memory and price of the model with each optimization and combination, the best first."""
    from seatrial.planner.comparisons import recipe_rows
    from seatrial.report.terminal.alternatives import first_recipes_view, recipe_documents, recipes_csv, recipes_view

    (loaded,) = load_specs_or_model([spec], environment, environments, model_options)
    rows = recipe_rows(loaded, every=every)
    if output_format == "json":
        show_json({"predicted": True, "objective": loaded.endpoint.objective.goal, "recipes": recipe_documents(rows)})
    elif output_format == "csv":
        show_text(recipes_csv(rows))
    else:
        title = f"Recipes for {loaded.endpoint.name} in {loaded.environment.name}"
        has_slo = loaded.endpoint.slo.bounds_speed
        has_rate = loaded.endpoint.workload.requests_per_second is not None
        first = first_recipes_view(rows, title, has_slo=has_slo, has_rate=has_rate)
        show(recipes_view(rows, title) if wide else first)
