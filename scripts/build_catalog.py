"""Writes the catalog's instances and models from collected facts.

    python scripts/build_catalog.py
    python scripts/add_models.py

`scripts/facts/collected/` holds what was collected at once, `instances.json` and `models.json`; `scripts/facts/` what
was looked up one by one: `models.json`, and in `prices.json` the prices that the collected `instances.json` lacks, with
estimates for types whose price SageMaker does not publish.
The output is sorted, one row a line, so that a refresh reads as a diff. `images.json` and `engine_options.json` have
scripts of their own; `add_models.py` adds the models whose `config.json` is known. `engines.json`
is not built: its constants were fitted or read by people, and say so.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TypeAlias

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
Row: TypeAlias = dict[str, Json]

DATA = Path(__file__).resolve().parent.parent / "packages" / "seatrial-base" / "seatrial_base" / "catalog" / "data"
OWN_FACTS = Path(__file__).resolve().parent / "facts"
COLLECTED = OWN_FACTS / "collected"
MIB, TERA, GIGA = 2**20, 10**12, 10**9

# Repositories that the hub knows by a second name.
RENAMED = {
    "meta-llama/Meta-Llama-3.1-8B": "meta-llama/Llama-3.1-8B",
    "meta-llama/Meta-Llama-3.1-70B": "meta-llama/Llama-3.1-70B",
    "meta-llama/Meta-Llama-3.1-405B": "meta-llama/Llama-3.1-405B",
}
QWEN_INSTRUCT_CONTEXT = 32768  # the note of the Qwen2.5 rows: the -Instruct configs ship this context
DTYPES = {"float16": "fp16", "bfloat16": "bf16"}


def main() -> None:
    """Read the facts, write the data files, print what was written."""
    _write("instances.json", _instances(_read(COLLECTED / "instances.json"), _read(OWN_FACTS / "prices.json")))
    _write("models.json", _models(_read(COLLECTED / "models.json"), _read(OWN_FACTS / "models.json")))


def _read(path: Path) -> Row:
    return _row(json.loads(path.read_text(encoding="utf-8")))


def _row(value: Json) -> Row:
    if not isinstance(value, dict):
        raise TypeError(f"expected a JSON object, not {value!r}")
    return value


def _rows(value: Json) -> list[Row]:
    if not isinstance(value, list):
        raise TypeError(f"expected a JSON array, not {value!r}")
    return [_row(item) for item in value]


def _write(name: str, parts: dict[str, Json]) -> None:
    lines = ",\n".join(f"{json.dumps(part)}: {_lines(value)}" for part, value in parts.items())
    (DATA / name).write_text("{\n" + lines + "\n}\n", encoding="utf-8")
    print(f"{name}: {', '.join(f'{len(value)} {part}' for part, value in parts.items() if isinstance(value, list))}")


def _lines(value: Json) -> str:
    if not isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    return "[\n" + ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in value) + "\n]"


def _scaled(value: Json, factor: int) -> int | None:
    return round(value * factor) if isinstance(value, int | float) else None


# ------------------------------------------------------------------ instances


def _instances(facts: Row, own: Row) -> dict[str, Json]:
    prices = {str(price["instance_type"]): price for price in _rows(own["prices"])}
    estimates = {str(each["instance_type"]): each for each in _rows(own["estimates"])}
    every = _row(facts["instances"])
    date = str(_row(facts["_meta"])["generated"])
    rows = [_instance(name, _row(every[name]), prices.get(name), date) for name in sorted(every)]
    return {"rows": [{**row, **estimates.get(str(row["instance_type"]), {})} for row in rows]}


def _instance(name: str, fact: Row, price: Row | None, date: str) -> Row:
    capability = fact["compute_capability"]
    return {
        "instance_type": name,
        "accelerator": str(fact["accelerator"]).split(" (")[0],
        "accelerator_count": fact["accelerator_count"],
        "accelerator_memory_bytes": _scaled(fact["accelerator_memory_mib_each"], MIB),
        "memory_bandwidth_bytes_s": _scaled(fact["memory_bandwidth_gbps_each"], GIGA),
        "flops_16bit": _scaled(fact["bf16_fp16_dense_tflops_each"], TERA),
        "flops_8bit": _scaled(fact["fp8_dense_tflops_each"], TERA),
        "has_bf16": not isinstance(capability, str) or float(capability) >= 8.0,  # noqa: PLR2004 (Ampere is 8.0)
        "link": _link(fact),
        "vcpus": fact["vcpus"],
        "memory_mib": fact["memory_mib"],
        "nvme_gb": fact["local_nvme_gb"],
        **_price(fact, price),
        "source": f"{_public(fact['spec_source'])}; {_public(fact['shape_source'])}",
        "date": date,
        **({"reservable": True} if "reservable" in fact else {}),
    }


def _price(fact: Row, own: Row | None) -> Row:
    """Return the price that was looked up later, else that of Hosting in us-east-1, else nothing."""
    usd = fact["price_usd_per_hour_hosting_us_east_1"]
    if own is not None:
        return {name: value for name, value in own.items() if name != "instance_type"}
    return {
        "usd_per_hour": usd,
        "price_region": None if usd is None else "us-east-1",
        "price_component": None if usd is None else "Hosting",
        "price_source": fact["price_source"],
        "price_date": fact["price_date"],
    }


def _public(source: Json) -> str:
    """Leave out the labels that mean something only in the collection of facts."""
    return re.sub(r" \(index id \d+\)|seed \d+: ", "", str(source))


def _link(fact: Row) -> str:
    if str(fact["accelerator"]).startswith("AWS"):
        return "neuron"
    if fact["accelerator_count"] == 1:
        return "single"
    return "nvlink" if str(fact["interconnect"]).startswith("NVLink") else "pcie"


# --------------------------------------------------------------------- models


def _models(facts: Row, own: Row) -> dict[str, Json]:
    date = str(_row(facts["_meta"])["generated"])
    by_id = {str(fact["id"]): fact for fact in (*_rows(facts["models"]), *_rows(own["models"]))}
    every = [by_id[name] for name in sorted(by_id) if "MLA" not in str(by_id[name]["family"])]  # add_models.py has them
    return {"rows": [_model(fact, date) for fact in every], "aliases": [*_aliases(every)]}


def _model(fact: Row, date: str) -> Row:
    return {
        "id": fact["id"],
        "family": str(fact["family"]).split(" ")[0],
        "layers": fact["num_layers"],
        "hidden_size": fact["hidden_size"],
        "attention_heads": fact["num_attention_heads"],
        "kv_heads": fact["num_key_value_heads"],
        "head_dim": fact["head_dim"],
        "vocab": fact["vocab_size"],
        "max_context": fact["max_context"],
        "dtype": DTYPES[str(fact["torch_dtype"]).split(" ")[0]],
        "params_total": fact["params_total_computed"],
        "params_active": fact["params_active_per_token_computed"],
        "experts": fact.get("num_experts"),
        "experts_per_token": fact.get("experts_per_token"),
        "tied_embeddings": bool(fact.get("tie_word_embeddings")),
        "sliding_window": fact.get("sliding_window"),
        "parallel_attention": fact["family"] == "falcon",
        "checkpoint_quantization": str(fact["quantization"]).split(" ")[0] if fact.get("quantization") else None,
        "source": fact["source"],
        "date": fact.get("date", date),
        "sliding_layers": _sliding_layers(fact),
        ("expert_width" if fact.get("num_experts") else "mlp_width"): fact["intermediate_size"],
    }


def _sliding_layers(fact: Row) -> Json:
    """The layers that have the window where not all do; those of gpt-oss take turns with full ones."""
    if fact["family"] == "gpt_oss":
        return int(str(fact["num_layers"])) // 2
    return fact.get("sliding_layers")


def _aliases(models: list[Row]) -> list[Json]:
    rows: list[Row] = [{"alias": alias, "id": model, "max_context": None} for alias, model in RENAMED.items()]
    for fact in models:
        if "-Instruct configs ship" in str(fact.get("note")):
            alias = f"{fact['id']}-Instruct"
            rows.append({"alias": alias, "id": fact["id"], "max_context": QWEN_INSTRUCT_CONTEXT})
    return [*sorted(rows, key=lambda row: str(row["alias"]))]


if __name__ == "__main__":
    main()
