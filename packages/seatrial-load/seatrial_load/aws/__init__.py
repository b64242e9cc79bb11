"""The trial's calls of AWS: deployment check, clock skew, credentials, signatures, CloudWatch."""
