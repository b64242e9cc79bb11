"""What one stack is synthesized from: spec, locked plan, serving configuration and trial, checked together."""
