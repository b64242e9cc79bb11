"""What the trial asks AWS: deployment check, wake-up, clock skew, credentials, signatures, CloudWatch."""
