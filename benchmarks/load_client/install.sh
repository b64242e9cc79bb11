#!/bin/sh
# Makes one environment per peer under benchmarks/load_client/.venv: guidellm (5.6 GB).
# Needs uv (a development dependency of Seatrial) and a package index.
set -eu
cd "$(dirname "$0")/../.."
folder=benchmarks/load_client
for peer in ${*:-guidellm}; do
    environment="$folder/.venv/$peer"
    [ -d "$environment" ] || uv venv --quiet --python 3.11 "$environment"
    uv pip install --quiet --python "$environment/bin/python" --requirement "$folder/requirements/$peer.txt"
done
