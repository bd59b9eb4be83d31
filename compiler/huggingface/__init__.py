"""The way in for any decoder-only causal language model of HuggingFace transformers.

transformers is an optional extra; it is imported only by the modules of this package.
"""
