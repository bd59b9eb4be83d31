"""How a program of the project ends: 0 done, 1 the answer is no, 2 a user's mistake, 70 a bug, 130 interrupted."""

import errno
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

from configs.errors import UserError

DONE, ANSWER_IS_NO, USER_MISTAKE, BUG, INTERRUPTED = 0, 1, 2, 70, 130


def run_to_exit_code(program: Callable[[], object]) -> None:
    """Run a program and end the process: a user's mistake is one line, a bug its traceback."""
    try:
        program()
    except UserError as error:
        print(f"explore: {error}", file=sys.stderr)
        sys.exit(USER_MISTAKE)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            _tell_bug()
        print("explore: no space left where the result was to go; give another place", file=sys.stderr)
        sys.exit(USER_MISTAKE)
    except KeyboardInterrupt:
        print("explore: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except Exception:  # noqa: BLE001 - the last place where a bug can get its exit code
        _tell_bug()


def _tell_bug() -> NoReturn:
    traceback.print_exc()
    print("explore: this is a bug of the tool, not of your input", file=sys.stderr)
    sys.exit(BUG)
