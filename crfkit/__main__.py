"""``python -m crfkit`` is ``crfkit``."""

import sys

from crfkit.cli import main

sys.exit(main())
