"""How near the search comes to exact fronts of real problems of a million designs, beside other samplers.

`problems` cuts them from the product, `ground_truth` finds and proves their fronts, `compared` names the samplers and
the search without each of its parts, `outcomes` measures their runs, `tables` and `curves` show them.
"""
