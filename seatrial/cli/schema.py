"""`seatrial schema`: the JSON schemas of the documents that users write, and of a trial's result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from seatrial_base.errors import SpecError

FOLDER = Path("docs/schema")


def schema_command(
    document: Annotated[
        Literal[
            "endpoint", "environment", "product", "trial-result", "served-record", "traffic", "simulation", "schedule"
        ],
        typer.Argument(help="Which document."),
    ] = "endpoint",
    *,
    write: Annotated[bool, typer.Option("--write", help=f"Write all schemas to {FOLDER}.")] = False,
    check: Annotated[bool, typer.Option("--check", help=f"Fail unless all schemas in {FOLDER} are current.")] = False,
) -> None:
    """Print a document's JSON schema: for editors that check and complete YAML, and for readers of results."""
    from seatrial.documents.simulation import CheapestSchedule, Simulation, Traffic
    from seatrial.report.result_schema import document_schema_text, result_schema_text
    from seatrial.specs.schema import schema_text, schema_texts
    from seatrial_load.documents.served_record import ServedRecord

    texts = {**schema_texts(), "trial-result": result_schema_text()}
    texts["served-record"] = document_schema_text(ServedRecord, "Record of what serves, schema 1")
    texts |= {model.__name__.lower(): schema_text(model.model_json_schema()) for model in (Traffic, Simulation)}
    texts["schedule"] = schema_text(CheapestSchedule.model_json_schema())
    if write:
        from seatrial_base.files import write_whole

        try:
            FOLDER.mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                write_whole(FOLDER / f"{name}.schema.json", text)
        except OSError as error:
            message, hint = f"the schemas can't be written: {error.strerror}", "run it in the repository root"
            raise SpecError.of("SEA101", message, where=FOLDER.as_posix(), hint=hint) from error
    elif check:
        for name, text in texts.items():
            file = FOLDER / f"{name}.schema.json"
            if not file.is_file() or file.read_text(encoding="utf-8") != text:
                hint = "seatrial schema --write"
                raise SpecError.of("SEA101", "the schema is not current", where=file.as_posix(), hint=hint)
    else:
        typer.echo(texts[document], nl=False)
