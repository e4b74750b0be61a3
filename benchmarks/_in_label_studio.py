"""Convert tasks to another format as Label Studio exports them.

    python _in_label_studio.py FORMAT TASKS.json OUT

Runs where label-studio-sdk is installed, not crfkit: its converter is what Label Studio exports by.
"""

import shutil
import sys
import tempfile
from pathlib import Path

CONFIG = """
<View>
  <Labels name="label" toName="text"><Label value="PER"/></Labels>
  <Text name="text" value="$text"/>
</View>
"""


def main() -> None:
    """Convert."""
    from label_studio_sdk.converter import Converter

    form, source, target = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        Converter(CONFIG, folder).convert(source, folder, form, is_dir=False)
        (found,) = Path(folder).glob("result.*")
        shutil.copy(found, target)


if __name__ == "__main__":
    main()
