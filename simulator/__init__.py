"""What programs cost and compute: instruction set, timing engines, functional execution, energy, area, scaling laws."""
