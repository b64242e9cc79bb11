"""Writes the catalog's engine options from collected facts.

    python scripts/build_engine_options.py --facts DIR

DIR holds `vllm_engine_args.json`: the fields of vLLM's `EngineArgs` by version. LMI passes `option.NAME` on to vLLM
exactly when NAME is such a field of the bundled version, and drops any other name without a word, but for its own.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "packages" / "seatrial-base" / "seatrial_base" / "catalog" / "data"
LMI_OF_VLLM = {"0.8.4": 15, "0.10.2": 16, "0.11.1": 17, "0.12.0": 18, "0.15.1": 20, "0.23.0": 27, "0.26.0": 28}
LMI_SOURCE = "deepjavalibrary/djl-serving@d21927c4 serving/docs/lmi, python handlers' property classes"
DATE = "2026-11-20"
LMI_DATE = "2026-06-24"
# Names that LMI itself reads beside vLLM's own.
LMI_NAMES = """
async_mode chat_template chat_template_content_format cpu_offload_gb_per_gpu device_map enable_auto_tool_choice
enable_lora enable_reasoning enable_stateful_sessions enable_streaming entryPoint fully_sharded_loras is_peft_model
lmcache_auto_config lmcache_config_file load_on_devices long_lora_scaling_factors lora_dtype lora_extra_vocab_size
low_cpu_mem_usage max_cpu_loras max_lora_rank max_loras max_rolling_batch_prefill_tokens max_rolling_batch_size
model_id model_loading_timeout output_formatter parallel_loading pipeline_parallel_degree predict_timeout quantize
reasoning_parser revision rolling_batch sessions_expiration sessions_path task tensor_parallel_degree tgi_compat
tool_call_parser trust_remote_code
"""


def main() -> None:
    """Read the facts, write the data file, print what was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=Path, required=True, help="folder of the collected facts")
    facts = json.loads((parser.parse_args().facts / "vllm_engine_args.json").read_text(encoding="utf-8"))
    source = facts["_meta"]["source"]
    own = {"lmi": None, "vllm": None, "options": sorted(LMI_NAMES.split()), "source": LMI_SOURCE, "date": LMI_DATE}
    rows = [
        {"lmi": lmi, "vllm": version, "options": sorted(facts["engine_args"][version]), "source": source, "date": DATE}
        for version, lmi in sorted(LMI_OF_VLLM.items(), key=lambda pair: pair[1])
    ]
    lines = ",\n".join(json.dumps(row) for row in [own, *rows])
    file = DATA / "engine_options.json"
    file.write_text(f'{{\n"rows": [\n{lines}\n]\n}}\n', encoding="utf-8")
    print(f"{file.name}: {len(rows)} versions")


if __name__ == "__main__":
    main()
