"""Checks of arguments that several experiments take."""

import argparse

from configs.errors import UserError


def require_from_one(choice: argparse.Namespace, *names: str) -> None:
    """Raise UserError for the first of these numbers that is below 1."""
    for name in names:
        if getattr(choice, name) < 1:
            raise UserError(
                where=f"--{name}", expected="a number from 1", found=str(getattr(choice, name)), way_out="give one"
            )
