"""Writes the models of `scripts/facts/configs.json` into the catalog.

    python scripts/add_models.py

The facts are the fields of published `config.json` files that tell a model's shape, each with its source and date; the
parameters are counted from them as for a user's own file. Run it after `build_catalog.py`; what the catalog has beside
is kept. An alias is a repository of the same shape, which may ship another context length.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TypeAlias

from seatrial_base.catalog.architecture import Architecture, architecture_of
from seatrial_base.catalog.config_json import checked_config_json

Row: TypeAlias = dict[str, object]

_ROOT = Path(__file__).resolve().parent.parent
_FACTS = _ROOT / "scripts" / "facts" / "configs.json"
_CATALOG = _ROOT / "packages" / "seatrial-base" / "seatrial_base" / "catalog" / "data" / "models.json"
_LEFT_OUT = {  # where a row has the default
    "linear_layers": 0,
    "latent_dim": None,
    "is_multimodal": False,
    "sparse_tokens": None,
    "mixed_layers": 0,
    "state_bytes": 0,
    "unknown_family": None,
    "mlp_width": None,
    "expert_width": None,
    "shared_width": 0,
    "weight_block": None,
    "weight_method": None,
}


def main() -> None:
    """Read facts and catalog, write the catalog, print what it holds."""
    facts: dict[str, list[Row]] = json.loads(_FACTS.read_text(encoding="utf-8"))
    catalog: dict[str, list[Row]] = json.loads(_CATALOG.read_text(encoding="utf-8"))
    rows = {str(row["id"]): row for row in (*catalog["rows"], *map(_row, facts["models"]))}
    aliases = {str(row["alias"]): row for row in (*catalog["aliases"], *facts["aliases"])}
    parts = {"rows": [rows[key] for key in sorted(rows)], "aliases": [aliases[key] for key in sorted(aliases)]}
    text = ",\n".join(f"{json.dumps(part)}: {_lines(found)}" for part, found in parts.items())
    _CATALOG.write_text("{\n" + text + "\n}\n", encoding="utf-8")
    print(", ".join(f"{len(found)} {part}" for part, found in parts.items()))


def _row(fact: Row) -> Row:
    model_id, fields = str(fact["id"]), fact["config"]
    if not isinstance(fields, dict):
        raise TypeError(f"{model_id}: the config is not a JSON object")
    config = checked_config_json(fields, model_id)
    found = architecture_of(config, name=model_id, source=str(fact["source"]), date=str(fact["date"]))
    return _as_row(found)


def _as_row(architecture: Architecture) -> Row:
    row: Row = dataclasses.asdict(architecture)
    return {key: value for key, value in row.items() if key not in _LEFT_OUT or value != _LEFT_OUT[key]}


def _lines(rows: list[Row]) -> str:
    return "[\n" + ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in rows) + "\n]"


if __name__ == "__main__":
    main()
