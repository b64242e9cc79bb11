"""The function of an environment's optimization jobs; it needs boto3 only."""
