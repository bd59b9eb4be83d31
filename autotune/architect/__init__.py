"""What a run tells a hardware architect; every statement names the simulated points that back it."""
