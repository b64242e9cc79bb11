#!/bin/sh
# Synthesizes every environment of this repository, and checks the templates with the rule book, cfn-lint and checkov.
# It needs the package registry of Python: checkov is run in an environment of its own, because it pins much.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$root"
PATH="$root/.venv/bin:$PATH"
cdk synth --quiet --output "$out"
failed=0
seatrial check "$out" || failed=1
# W3005 dislikes a DependsOn beside a reference; the CDK writes both.
find "$out" -name '*.template.json' -exec cfn-lint --ignore-checks W3005 --template {} + || failed=1
uvx --quiet --from checkov==3.3.30 checkov --config-file "$root/.checkov.yaml" --directory "$out" || failed=1
exit "$failed"
