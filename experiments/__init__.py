"""Studies built on the product, each one command: search quality on enumerable spaces, fits of scaling laws."""
