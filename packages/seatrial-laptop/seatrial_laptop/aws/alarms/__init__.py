"""Alarms on the metrics of SageMaker, evaluated in virtual time."""
