"""SageMaker optimization jobs as constructs: the job, what starts and follows it, and its artifacts."""
