"""Samsung's HBM-PIM: its registers, its reference kernels, its public controller, and its units on values."""
