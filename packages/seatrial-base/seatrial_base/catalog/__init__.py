"""Facts as data: instance types, models, images, engine constants; each row with its source and date.

`data/*.json` is read when first asked for. Instances, models and images are written by `scripts/build_catalog.py`.
"""
