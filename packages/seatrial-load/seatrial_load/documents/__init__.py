"""The documents of a trial: request, progress, result; no behaviour, importing nothing above."""
