"""What changes in a program when a little changes in what it is for: edits instead of a new program.

`alignment` pairs the instructions of two programs, `program` makes and applies edits, `growth` is what they are for: a
context that grew.
"""
