"""Tables of deployments for `seatrial predict`: what is read of a row, and what is predicted of it."""
