# What the page is made of. `__init__.py` reads this file: a name stands here and nowhere else.

from .posteriors import InlineReport as InlineReport
from .posteriors import describe_run as describe_run
from .posteriors import posterior_report as posterior_report
from .posteriors import report as report
from .tables import MEANS as MEANS
from .tables import aligned_table as aligned_table
from .tables import comparison_table as comparison_table
from .tables import cost_table as cost_table
from .tables import health_table as health_table
from .tables import means_table as means_table
