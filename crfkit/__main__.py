"""``python -m crfkit`` and the command ``crfkit``."""

from __future__ import annotations

import sys

EXIT_INTERRUPTED = 130


def main() -> int:
    """Run the command line; an interrupt while it is being imported is one as well."""
    try:
        from crfkit.cli import main as run

        return run(tells="--quiet" not in sys.argv)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
