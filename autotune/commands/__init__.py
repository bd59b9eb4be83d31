"""The commands of `explore`, one module each; what a command needs is imported when it runs."""
