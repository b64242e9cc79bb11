"""The trial's fleet: many functions that load one endpoint together, where one function is not enough."""
