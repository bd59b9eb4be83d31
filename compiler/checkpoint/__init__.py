"""Checkpoints: what a folder of safetensors holds, and the exact values of its linear layers.

In the order of the flow: `listing` (names, types and shapes from the files' headers), `layouts` (which tensors make up
a linear layer, and how it is stored), `shapes` (whether they fit together), `tensors` (one tensor as an array),
`packing` (codes out of words), `integers` and `floats` (one decoder per layout, to the record of `matrix`), `reading`
(a layer by its name), `summary` (bytes by format). `quantisers` and `cache` go the other way: the one definition of how
values become each format; `part_bytes` counts what they take, `chosen` says which a model has.
"""
