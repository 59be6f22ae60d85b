"""`python -m springback` is the console command `springback`."""

import sys

from springback.deploy.cli import main

sys.exit(main())
