"""Asks aiconfigurator about the published cells, once per engine that it knows.

Runs in aiconfigurator's own environment: `run_peers.sh`. The A100 cells come from its tables of measured kernels (the
80 GB card: it has none of the 40 GB card), the A10G cells from its speed-of-light mode with `given/systems/a10g.yaml`:
it has no table of that card either, and its other modes refuse a card without one.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from aiconfigurator.cli.api import cli_estimate  # type: ignore[import-not-found]  # in its own environment only

from benchmarks.planner_accuracy.cells import Cell, write_peer

GIVEN = Path(__file__).parent / "given"
SYSTEMS = {"ml.p4d.24xlarge": ("a100_sxm", "SILICON")}
A10G = ("a10g", "SOL")
ENGINES = ("vllm", "trtllm", "sglang")


def main() -> None:
    """Write one file of predictions per engine."""
    for engine in ENGINES:
        write_peer(f"aiconfigurator-{engine}", partial(_serve, engine))


def _serve(engine: str, cell: Cell, batch: int) -> float | None:
    system, mode = SYSTEMS.get(cell.instance_type, A10G)
    try:
        estimate = cli_estimate(
            str(GIVEN / "llama-2-7b"),
            system,
            backend_name=engine,
            database_mode=mode,
            isl=cell.input_tokens,
            osl=cell.output_tokens,
            batch_size=batch,
            tp_size=cell.tp_degree,
            systems_paths=f"{GIVEN / 'systems'},default",
        )
    except RuntimeError as refusal:
        if "does not fit in GPU memory" not in str(refusal):
            raise
        return None
    return None if estimate.kv_cache_warning else float(estimate.raw["tokens/s"])


if __name__ == "__main__":
    main()
