# SPDX-License-Identifier: LGPL-2.1-or-later
"""`subutai sweep`: a grid of predictions, run on this machine, by Dask or by Slurm, as one table.

grid       the TOML file, and the runs that it asks for
predict    one run: a process `subutai predict`, and its JSON as rows
journal    what has been run so far: a file that survives the end of the sweep
pool       the engine on this machine
dask       the engine on a Dask cluster
slurm      the engine on a Slurm cluster; task is what its jobs run
table      the journal as Parquet and CSV
plot       pictures of a table
command    the command line

A run is a process of its own. That costs 2 to 3 ms, and a crash, a lack of memory or a bad value is the matter of that
run alone.
"""


class SweepError(Exception):
    """Ends the sweep with a line. `refused`: before it has begun."""

    def __init__(self, text: str, *, refused: bool = False) -> None:
        super().__init__(text)
        self.refused = refused
