"""What ships together: stacks create constructs and connect them, nothing else."""
