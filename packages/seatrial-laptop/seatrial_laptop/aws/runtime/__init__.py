"""The SageMaker runtime: invocations, the copies that answer them, and their metrics and logs."""
