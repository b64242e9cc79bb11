"""Statistics of measured and predicted levels: percentiles, intervals, windows, saturation, lengths.

Standard library and `seatrial_base.units` only: it ships in the trial's Lambda functions.
"""
