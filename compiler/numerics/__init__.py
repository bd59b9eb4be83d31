"""Do programs compute what they should? Schedules run on values at small sizes of the same structure.

In the order of the flow: `small_sizes` (from a schedule to small cases), `small_values`, `layout` (where values lie),
`small_cache`, `small_kernel`, `small_softmax` (the state of a case and the host's part), `emulation` (the declared
order of additions once more, without programs), `linear` and `attention` (run and compare), `report`, `shrink` (the
smallest case that still fails), `check` (the question as the search asks it).
"""
