#!/bin/sh
# The pinned CDK CLI with the virtual environment's Node, else that of PATH: `make install` puts this at .venv/bin/cdk.
bin=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
PATH="$bin:$PATH" exec node "$bin/../../node_modules/aws-cdk/bin/cdk" "$@"
