"""What was asked of AWS and what it answered: written without secrets, and compared with the embedded AWS."""
