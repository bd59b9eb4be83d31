"""Learned cost of a task: XGBoost on log(simulated time / lower bound) from closed-form features."""
