"""What is described rather than computed: models, devices, scenarios, and the error a user can cause. Lowest layer."""
