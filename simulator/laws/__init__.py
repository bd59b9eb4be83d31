"""Scaling laws: the device that hardware knobs make of a base device, for one choice of knobs or arrays of them."""
