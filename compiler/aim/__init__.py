"""AiM instruction traces of one transformer block: emission, CENT's mapping of it, ours, and their common time model.

In the order of the flow: `block` (what is mapped, and onto which channels), `emit` and `text` (programs to
instructions, instructions to text), `cent_*` (the published CENT mapping), `own_*` (the same block from our own
kernels), `latency` (accelerators and links, charged to both).
"""
