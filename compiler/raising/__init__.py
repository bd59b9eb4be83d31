"""From an exported PyTorch program to a graph: rules recognise operators, what is left becomes bodies.

program   the exported program, its parameters, constants, caches and states
marks     operators of our own that a captured model calls where its meaning is known beforehand
rules     ATen patterns and marks -> operators; `masks` reads windows off a mask by evaluating it
regions   what no rule took: recurrences over states, and computations between operators
assemble  all of it put in order as a graph
"""
