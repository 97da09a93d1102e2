# SPDX-License-Identifier: LGPL-2.1-or-later
"""What `subutai report` leaves to Python: the page (--html), tables (--parquet, --csv) and speedscope's files.

command     the command line
analysis    the figures: a process `subutai report --json`, which alone computes them
timeline    what each thread did, aggregated to the size of a picture
figures     the pictures, by plotly
stacks      call stacks of waits, for the flame graph and for speedscope
tables      the tables' rows
page        the page, by Jinja; its template, style and script are in web/
export      data frames as Parquet
output      files that are whole or not there
"""


class ReportError(Exception):
    """Ends the report with a line. `refused`: because of what it was given."""

    def __init__(self, text: str, *, refused: bool = True) -> None:
        super().__init__(text)
        self.refused = refused
