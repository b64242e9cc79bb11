#!/bin/sh
# Installs into a virtual environment and node_modules: install.sh PYTHON VENV UV_VERSION [uv sync options…]
set -eu
python=$1 venv=$2 uv_version=$3
shift 3

say() { printf '  %s\n' "$*" >&2; }

began=$(date +%s)
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11, 4))' 2>/dev/null; then
    say "Seatrial needs Python 3.11.4 or newer; '$python' is $("$python" --version 2>&1 || echo missing)."
    say "Name another: make PYTHON=python3.12 …"
    exit 1
fi
if [ ! -x "$venv/bin/python" ]; then
    say "making $venv with $("$python" --version)"
    if ! "$python" -m venv "$venv"; then
        rm -rf "$venv"
        say "python can't make virtual environments here; on Debian and Ubuntu: apt install python3-venv"
        exit 1
    fi
fi
if [ "$("$venv/bin/uv" --version 2>/dev/null | cut -d' ' -f2)" != "$uv_version" ]; then
    say "installing uv $uv_version"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "uv==$uv_version"
fi
say "installing the locked Python packages"
sync() { UV_PROJECT_ENVIRONMENT="$venv" "$venv/bin/uv" sync --quiet --locked --inexact --extra cdk --extra local "$@"; }
sync "$@"
# Two packages bring this file, uv installs them side by side, and aws-cdk-lib needs its own: without it, jsii knows no
# annotation of a construct.
shared=$(echo "$venv"/lib/python3*/site-packages/aws_cdk/cloud_assembly_schema/__init__.py)
if ! grep -q 'aws-cdk-lib.cloud_assembly_schema' "$shared"; then
    sync --reinstall-package aws-cdk-lib "$@"
fi
if [ ! -f node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
    say "installing the CDK CLI and the chart library"
    PATH="$PWD/$venv/bin:$PATH" "$venv/bin/npm" ci --silent --no-audit --no-fund --ignore-scripts
    touch node_modules/.package-lock.json
fi
charts=seatrial/report/charts/plot.min.js
if [ ! -f $charts ] || [ node_modules/.package-lock.json -nt $charts ] || [ scripts/build_charts.mjs -nt $charts ]; then
    say "building the report's charts"
    "$venv/bin/node" scripts/build_charts.mjs
fi
case " $* " in
*" --no-dev "*) ;;
*)
    browser=tests/browser
    if [ ! -f $browser/node_modules/.package-lock.json ] || [ $browser/package-lock.json -nt $browser/node_modules/.package-lock.json ]; then
        say "installing the browser of the report's tests"
        if PATH="$PWD/$venv/bin:$PATH" "$venv/bin/npm" ci --prefix $browser --silent --no-audit --no-fund --ignore-scripts; then
            touch $browser/node_modules/.package-lock.json
        else
            say "it can't be installed: the tests that open the report in Chromium will be skipped"
        fi
    fi
    ;;
esac
install -m 755 scripts/cdk.sh "$venv/bin/cdk"
say "installed in $(($(date +%s) - began)) s"
