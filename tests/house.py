"""Where things are: the root of the repository, its package, and the data of the tests."""

from pathlib import Path

import springback

ROOT = Path(__file__).parents[1]
PACKAGE = Path(springback.__file__).parent
DATA = ROOT / "tests" / "data"
