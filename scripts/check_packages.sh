#!/bin/sh
# Installs each package of the workspace alone into a new virtual environment and runs its command there; prints what
# the installation weighs. It needs the package registry of Python.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
uv=$root/.venv/bin/uv
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset PYTHONPATH VIRTUAL_ENV
"$uv" build --quiet --all-packages --wheel --out-dir "$scratch/wheels" --directory "$root"

install() { # install PACKAGE: a virtual environment of that name with the package and what it needs
    "$uv" venv --quiet --python "$root/.venv/bin/python" "$scratch/$1"
    before=$(du -sk "$scratch/$1" | cut -f1)
    "$uv" pip install --quiet --link-mode copy --find-links "$scratch/wheels" --python "$scratch/$1/bin/python" "$1"
    echo "$1: $((($(du -sk "$scratch/$1" | cut -f1) - before) / 1024)) MiB installed"
}

install seatrial-load
"$scratch/seatrial-load/bin/seatrial-load" --help >/dev/null

install seatrial-lint
printf 'option.model_id=a/b\noption.dtype=bfloat16\n' >"$scratch/serving.properties"
cd "$scratch"
status=0
seatrial-lint/bin/seatrial-lint lint serving.properties --quiet || status=$?
[ "$status" -eq 1 ]
seatrial-lint/bin/seatrial-lint convert serving.properties --to vllm >/dev/null || [ $? -eq 1 ]
echo '{"Resources": {}}' >empty.template.json
seatrial-lint/bin/seatrial-lint check empty.template.json

install seatrial-laptop
seatrial-laptop/bin/python -c 'import seatrial_laptop.lifecycle, seatrial_laptop.engine.settings'

install seatrial
seatrial/bin/seatrial --version
seatrial/bin/seatrial plan Qwen/Qwen3-32B --input 2000 --output 300 --concurrency 16
seatrial/bin/seatrial lint serving.properties --quiet && exit 1
! seatrial/bin/python -c 'import aws_cdk' 2>/dev/null
