"""The command line: one file per command. Importing a file adds its command; the help lists them in this order."""

# ruff: noqa: F401, I001
from .app import UsageError, app
from . import running
from . import planning
from . import watching
from . import plotting
from . import best
from . import validating
from . import reporting
from . import listing
from . import recording
from . import exchanging
from . import pretraining
from . import tuning
from . import fleet
from . import checking
