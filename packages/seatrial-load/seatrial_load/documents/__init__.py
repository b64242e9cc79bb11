"""The documents of a trial: request, progress, result; no behaviour, and no import of other parts."""
