"""Which parsers read the tool calls and the reasoning of a model family, by engine, and which parsers there are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from seatrial_base.catalog.rows import CatalogTable

PLUGINS: Final = {"tool_call_parser": "tool_parser_plugin", "reasoning_parser": "reasoning_parser_plugin"}
"""Each parser, and the option that brings parsers of one's own, whose names nobody knows."""


@dataclass(frozen=True, slots=True)
class ModelParsers:
    """The parsers of a model family in an engine; LMI takes the names of vLLM, which it runs.

    Attributes:
        engine: The engine whose names they are.
        models: Regular expression of hub ids in lower case.
        tool_call_parser: Of tool calls; `None` where no source names one.
        reasoning_parser: Of the reasoning; `None` where no source names one.
        source: Where it was read.
        date: When that was read.
    """

    engine: Literal["vllm", "sglang"]
    models: str
    tool_call_parser: str | None
    reasoning_parser: str | None
    source: str
    date: str


MODEL_PARSERS: Final = CatalogTable(ModelParsers, "parsers.json", key="engine")


def model_parsers(engine: str, hub_id: str) -> ModelParsers | None:
    """Return the parsers of a model, or `None` where the catalog has none for it.

    Args:
        engine: The engine that serves it.
        hub_id: The model's id on the hub, whatever its case.
    """
    spoken = "vllm" if engine == "lmi" else engine
    rows = MODEL_PARSERS.having(spoken)
    return next((row for row in rows if re.fullmatch(row.models, hub_id, re.IGNORECASE)), None)


@dataclass(frozen=True, slots=True)
class ParserNames:
    """The names that an engine takes for one of its parsers.

    Attributes:
        engine: The engine; LMI takes the names of vLLM, which it runs.
        option: Which parser.
        names: All names, ascending; those of the newest source that was read, so that an older release may lack some.
        source: Where they were read.
        date: When.
    """

    engine: Literal["vllm", "sglang"]
    option: Literal["tool_call_parser", "reasoning_parser"]
    names: tuple[str, ...]
    source: str
    date: str


PARSER_NAMES: Final = CatalogTable(ParserNames, "parsers.json#names", key=lambda row: (row.engine, row.option))


def parser_names(engine: str, option: str) -> ParserNames | None:
    """Return the names of an engine's parsers, or `None` where the catalog has none.

    Args:
        engine: The engine: `lmi`, `vllm`, `sglang`.
        option: `tool_call_parser` or `reasoning_parser`.
    """
    return PARSER_NAMES.get(("vllm" if engine == "lmi" else engine, option))
