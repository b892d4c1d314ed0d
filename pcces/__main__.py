"""The entry point of the command line: says what is missing if it cannot start, and ends with a code that means something."""

from __future__ import annotations

import os
import sys
import traceback

INTERRUPTED, FAILED, REFUSED = 130, 3, 2  # as in `pcces.cli.ending`, which may be what is missing


def main() -> None:
    """Run the command line."""
    try:
        from pcces.support.streams import let_go, open_closed_ones, say

        open_closed_ones()
        try:
            code = _run()
        except KeyboardInterrupt:
            say("\ninterrupted")
            code = INTERRUPTED
        let_go()
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code == INTERRUPTED:
        os._exit(code)  # at once: a compilation that still runs in the background cannot be stopped
    sys.exit(code)


def _run() -> int:
    """Its exit code."""
    try:
        from pcces.cli import app

        app(prog_name="pcces")
    except ModuleNotFoundError as error:
        if "pcces.cli" in sys.modules or (error.name or "").startswith("pcces"):
            traceback.print_exc()
            return FAILED
        print(f"error: the command line needs {error.name}: pip install 'pcces[rl]'", file=sys.stderr)
        return REFUSED
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except OSError as error:  # of a help text that cannot be written: commands deal with their own
        from pcces.cli.ending import in_words
        from pcces.support.streams import say

        say(f"error: this cannot be written ({in_words(error)})")
        return FAILED
    except Exception:  # a fault of ours; 1 would say that a policy is not certified
        traceback.print_exc()
        return FAILED
    return 0


if __name__ == "__main__":
    main()
