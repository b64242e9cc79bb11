"""The trial's documents: request, progress, result, and the strict JSON that they are written in."""
