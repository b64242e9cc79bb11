"""The performance model: what copies of a model do under load, in closed form and by simulation."""
