"""The serving configuration: from a plan to the files and the environment that a container reads."""
