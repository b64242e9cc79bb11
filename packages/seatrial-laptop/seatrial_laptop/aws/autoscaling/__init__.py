"""Application Auto Scaling: scalable targets, policies, and the alarms of target tracking."""
