"""The one error a user can cause; every layer raises it, and the command line prints it as one line."""


class UserError(Exception):
    """Raised when something the user gave (a file, a name, a value) cannot be used; it is never a bug of ours."""

    def __init__(self, *, where: str, expected: str, found: str, way_out: str) -> None:
        """Keep the four parts of the message: where it happened, expected against found, and the way out."""
        super().__init__(f"{where}: expected {expected}, found {found}; {way_out}")
        self.where = where
        self.expected = expected
        self.found = found
        self.way_out = way_out


def unwritable(where: str, error: OSError) -> UserError:
    """Return the error for a file the user named that cannot be written."""
    return UserError(
        where=where,
        expected="a file that can be written",
        found=error.strerror or "an error",
        way_out="check that the folder exists and is writable",
    )
