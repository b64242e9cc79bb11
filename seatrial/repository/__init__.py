"""A team's repository of endpoints: what `seatrial init` writes."""
