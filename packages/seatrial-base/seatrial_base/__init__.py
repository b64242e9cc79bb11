"""What every package of Seatrial shares: errors, findings, rules and facts."""
