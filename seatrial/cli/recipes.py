"""`seatrial recipes`: the optimization recipes of one model beside each other."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from seatrial.cli.support.options import EnvironmentName, EnvironmentsFolder, SpecFile, environments_folder
from seatrial_base.terminal import show, show_json, show_text


def recipes_command(
    spec: SpecFile,
    environment: EnvironmentName,
    environments: EnvironmentsFolder = None,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="Combine up to three optimizations; without, at most two.")
    ] = False,
    output_format: Annotated[Literal["text", "json", "csv"], typer.Option("--format", help="Output format.")] = "text",
) -> None:
    """Predict speed, memory and price of the model with each optimization and combination, the best first."""
    from seatrial.planner.recipe_rows import recipe_rows
    from seatrial.report.terminal.recipes import recipe_documents, recipes_csv, recipes_view
    from seatrial.specs.load import load_spec

    loaded = load_spec(spec, environment, environments=environments_folder(environments, spec))
    rows = recipe_rows(loaded, every=every)
    if output_format == "json":
        show_json({"predicted": True, "objective": loaded.endpoint.objective, "recipes": recipe_documents(rows)})
    elif output_format == "csv":
        show_text(recipes_csv(rows))
    else:
        show(recipes_view(rows, f"Recipes for {loaded.endpoint.name} in {loaded.environment.name}"))
