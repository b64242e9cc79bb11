"""The embedded AWS: MiniStack, and in front of it SageMaker, Application Auto Scaling and the SageMaker runtime."""
