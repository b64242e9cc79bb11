#!/bin/sh
# Predicts every measured row while its model, accelerator, engine, precision, degree or lengths are left out of the fit,
# and writes all that follows: left_out.csv, the bands of the catalog, the tables, the scoreboard and the picture.
# 6 minutes of CPU time.
set -eu
cd "$(dirname "$0")/../.."
module=benchmarks.planner_accuracy
uv run --isolated --with scipy==1.17.1 python -m $module.left_out --jobs "${1:-2}"
python -m $module.roofline_rows
python -m $module.earned_bands --write
python -m $module.accuracy --write
python -m $module.arrivals --write
python -m $module.scoreboard --write
uv run --isolated --with matplotlib==3.11.2 python -m $module.scatter
