#!/bin/sh
# Checks the library with the lowest, then with the highest versions of what it needs, each in a virtual environment.
set -eu
folder=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
for resolution in lowest-direct highest; do
    sh "$folder/check_library.sh" "$resolution"
done
