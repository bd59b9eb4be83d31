"""Lowering to HBM-PIM: the same operators, schedules and closed forms as in lock-step, with a kernel of its own."""
