"""Keeps transformers from logging and warning about configurations that are tiny on purpose."""

import logging as levels
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils import logging


@contextmanager
def quiet() -> Iterator[None]:
    """Run the body without warnings and without log lines of transformers below an error."""
    level = logging.get_verbosity()
    logging.set_verbosity(levels.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
