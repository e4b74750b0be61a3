import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("crfkit", deadline=None, derandomize=True)
settings.load_profile("crfkit")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def data_home():
    """The folder of real data, which are no part of the package."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    home = Path(os.environ.get("CRFKIT_DATA", default))
    if not home.is_dir():
        pytest.skip(f"no real data: {home} does not exist (set CRFKIT_DATA to their folder)")
    return home
