"""Speed of synthesis, side by side with bare L1 constructs and with a peer."""
