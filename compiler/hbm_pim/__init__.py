"""Lowering to HBM-PIM: the same operators, schedules and closed forms as for units in lock-step, with its own kernel."""
