"""The command line: one file per group of commands. Importing a file adds them; the help lists them in this order."""

# ruff: noqa: F401, I001
from .app import UsageError, app
from . import run
from . import tune
from . import watch
from . import plotting
from . import read
from . import score
from . import listing
from . import exchange
from . import author
from . import fleet
