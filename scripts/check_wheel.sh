#!/bin/sh
# Builds the wheels, writes a team's repository with it in a new virtual environment, and runs `make test` there:
# check_wheel.sh [CI]. It needs the package registries of Python and npm.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$root/.venv/bin/uv" build --quiet --all-packages --wheel --out-dir "$scratch/wheels" --directory "$root"
export UV_FIND_LINKS="$scratch/wheels" PIP_FIND_LINKS="$scratch/wheels${PIP_FIND_LINKS:+ $PIP_FIND_LINKS}"
"$root/.venv/bin/uvx" --quiet --from "seatrial[cdk]" seatrial init "$scratch/team/endpoints" --ci "${1:-github}" --yes
cd "$scratch/team/endpoints"
make test
make help
