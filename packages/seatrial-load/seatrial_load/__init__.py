"""The sea trial: load a live endpoint, measure what comes back, judge it, find its knee.

Ships in a Lambda function as it is: the standard library and small modules of `seatrial_base` only;
boto3 is imported by the functions that read the control plane, when they run. The way of a trial:

    TrialRequest ─▶ live ─▶ payload ─▶ client ─▶ exchange ─▶ record ─▶ level ─▶ slo, knee ─▶ TrialResult
                  (SEA502)            (arrival times, bytes)  (wire/ decodes)
"""
