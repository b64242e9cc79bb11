"""What a container, or SageMaker, makes of a configuration before anything is deployed."""
