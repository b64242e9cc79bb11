"""What a measured or predicted level is: percentiles, intervals, windows and knees, once for every part of Seatrial.

Standard library and `seatrial_base.units` only: it ships in the trial's Lambda functions.
"""
