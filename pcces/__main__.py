"""The entry point of the command line: says what is missing if it cannot start."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    try:
        from pcces.cli import app
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("pcces"):
            raise
        print(f"error: the command line needs {error.name}: pip install 'pcces[rl]'", file=sys.stderr)
        sys.exit(2)
    app(prog_name="pcces")


if __name__ == "__main__":
    main()
