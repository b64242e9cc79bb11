#!/bin/sh
# Makes one environment per peer under benchmarks/planner_accuracy/.venv (about 1 GB) and asks each about every cell and
# every measured row.
# Needs uv (a development dependency of Seatrial) and a package index. A name runs that peer alone: aiconfigurator.
set -eu
cd "$(dirname "$0")/../.."
folder=benchmarks/planner_accuracy
for peer in ${*:-aiconfigurator genz llm_analysis}; do
    environment="$folder/.venv/$peer"
    [ -d "$environment" ] || uv venv --quiet --python 3.11 "$environment"
    uv pip install --quiet --python "$environment/bin/python" --requirement "$folder/requirements/$peer.txt"
    "$environment/bin/python" -m "$(echo "$folder" | tr / .).peer_$peer"
    "$environment/bin/python" -m "$(echo "$folder" | tr / .).peer_${peer}_rows"
done
