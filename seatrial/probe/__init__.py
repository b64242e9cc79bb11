"""`seatrial probe`: one level of the plan's deployment and of a cheaper one, measured against the prediction."""
