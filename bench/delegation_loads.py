# SPDX-License-Identifier: LGPL-2.1-or-later
"""The loads of bench/delegation, and the ways in which their locks work."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

TIMEOUT = 300
SERVER_THREADS = 4  # of memcached: its default

# The options of `subutai run` for each way; None: without. LOCKS: those of the load. "one core": native, on a single CPU: what
# the load would take if its cores did not fetch each other's data, and did nothing at the same time.
WAYS = {
    "native": None,
    "one core": None,
    "direct": ["--wait", "adaptive"],
    "direct, no yields": ["--wait", "adaptive", "--yields", "0"],
    "switched": ["--wait", "switch"],
    "server": ["--wait", "switch", "--delegate", "LOCKS", "--servers", "1"],
    "combine": ["--wait", "switch", "--delegate", "LOCKS"],
    "auto": ["--delegate", "auto"],
}

OF_SOME_LOADS = ("one core", "direct, no yields")


class Failed(Exception):
    """A run that did not do what it had to."""


def finished(command, env=None):
    """(stdout, stderr) of a command that must succeed."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=TIMEOUT, check=False, env=env)
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(command)}: not done after {TIMEOUT} s") from None
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout, done.stderr


def launched(subutai, way, locks, command):
    if way == "one core":
        return ["taskset", "-c", str(min(os.sched_getaffinity(0))), *command]
    if WAYS[way] is None:
        return command
    options = [locks if option == "LOCKS" else option for option in WAYS[way]]
    return [subutai, "run", "--verbose", "2", "--engine", "direct", *options, "--", *command]


def said(text):
    """What the library says at the end: sections handed over, and those of them that were behind other mutexes'."""
    handed = behind = 0
    for match in re.finditer(r"delegated: '.*': (\d+) sections in \d+ batches(?:, behind those of other mutexes (\d+))?", text):
        handed += int(match.group(1))
        behind += int(match.group(2) or 0)
    return {"handed": handed, "behind": behind}


class Program:
    """A program that prints its result and then its time. `claim`: what the slides say of it."""

    predicted = []

    def __init__(self, options, words, locks, claim, ways=()):
        self.command, self.locks, self.claim = [os.path.join(options.build_dir, "bench", words[0]), *words[1:]], locks, claim
        self.ways = [way for way in WAYS if way not in OF_SOME_LOADS or way in ways]
        self.subutai, self.result = options.subutai, None

    def missing(self):
        return None if os.path.exists(self.command[0]) else "it is not built: Berkeley DB (Debian package libdb5.3-dev) was not found"

    def words(self, threads):
        return [word.replace("THREADS", str(threads)) for word in self.command]

    def run(self, way, threads):
        """Seconds, and what the library has said. The result must be what it was in the first run."""
        out, err = finished(launched(self.subutai, way, self.locks, self.words(threads)))
        result, seconds = out.splitlines()
        self.result = self.result or result
        if result != self.result:
            raise Failed(f"{self.command[0]}, {way}, {threads} threads: '{result}', and it was '{self.result}'")
        return float(seconds), said(err)

    def observe(self, command, options, threads):
        """Under `subutai record` or `subutai profile`."""
        finished([self.subutai, command, *options, "--", *self.words(threads)])

    def trace(self, folder):
        return os.path.join(folder, os.path.basename(self.command[0]) + ".sbt")


class Memcached:
    """A server, with so many threads for its clients' requests, and clients that run without the library."""

    # With what it waits for its clients, which share the cores here, each prediction would be the clients' time.
    predicted = ["--without", "outside"]

    def __init__(self, options, kind, requests, claim):
        self.kind, self.requests, self.claim, self.locks = kind, requests, claim, "all"
        self.ways = [way for way in WAYS if way not in OF_SOME_LOADS]
        self.client = os.path.join(options.build_dir, "bench", "memcached-load")
        self.subutai, self.socket = options.subutai, os.path.join(options.scratch, "memcached.socket")

    def missing(self):
        return None if shutil.which("memcached") else "memcached is not installed"

    def serve(self, launcher, server_threads, clients):
        """Seconds that the clients take, and what the server has written to stderr."""
        user = ["-u", "root"] if os.geteuid() == 0 else []
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        with open(self.socket + ".err", "w+", encoding="utf-8", errors="replace") as err:
            with subprocess.Popen([*launcher, "memcached", *user, "-s", self.socket, "-t", str(server_threads), "-m", "64"],
                                  stdin=subprocess.DEVNULL, stdout=err, stderr=err) as server:
                try:
                    for _ in range(TIMEOUT * 20):
                        if os.path.exists(self.socket) or server.poll() is not None:
                            break
                        time.sleep(0.05)
                    out, _ = finished([self.client, self.socket, str(clients), str(self.requests), self.kind])
                    server.send_signal(signal.SIGTERM)
                    status = server.wait(TIMEOUT)
                finally:
                    server.kill()
            err.seek(0)
            text = err.read()
        if status not in (0, -signal.SIGTERM, 128 + signal.SIGTERM):
            raise Failed(f"memcached: exit status {status}: {text.strip()[-300:]}")
        return self.requests / float(out), text

    def run(self, way, threads):
        seconds, text = self.serve(launched(self.subutai, way, self.locks, []), SERVER_THREADS, threads)
        return seconds, said(text)

    def observe(self, command, options, threads):
        """With as many threads as clients, as a larger machine would have."""
        self.serve([self.subutai, command, *options, "--"], threads, threads)

    def trace(self, folder):
        return os.path.join(folder, "memcached.sbt")


def all_loads(options):
    quick = options.quick
    # So many that `auto` finds out in a part of the time.
    requests, asked = ("100", 2000) if quick else ("5000", 200000)
    queues, many = "faster by RCL from 60 % in sections on, and the more the higher", "many locks have convoys; a server always makes progress"
    return {
        "stock-level": Program(options, ["stock-level", "THREADS", requests], "all", many, OF_SOME_LOADS),
        "stock-level, shared": Program(options, ["stock-level", "THREADS", requests, "shared"], "all", many),
        "memcached, gets": Memcached(options, "gets", asked, "does not scale as it is"),
        "memcached, sets": Memcached(options, "sets", asked, "RCL scales; no combining, because of conditions"),
        "radiosity": Program(options, ["task-queues", "radiosity", "THREADS"], "task_lock,free_lock", queues),
        "raytrace": Program(options, ["task-queues", "raytrace", "THREADS"], "ray_lock", queues),
        "strings": Program(options, ["task-queues", "strings", "THREADS"], "piece_lock,found_lock", queues),
    }


def section_share(load, folder, threads):
    """Of the threads' active time, in percent: in sections and waits for them, of all locks and of the hottest."""
    load.observe("profile", ["--engine", "glibc", "-o", folder], threads)
    out, _ = finished([load.subutai, "report", "--json", load.trace(folder)])
    shares = [o["section_share"] for o in json.loads(out)["objects"] if "section_share" in o]
    return 100 * sum(shares), 100 * max(shares, default=0)


def predictions(load, folder, cores, servers, costs=None):
    """Times in ns on the host with so many cores, of a run with as many threads that is recorded now. `costs`: a file of
    `subutai calibrate`; None: the reference machine's."""
    trace, times = os.path.join(folder, "predicted.sbt"), {}
    machine = "host" if costs is None else "host:" + costs
    load.observe("record", ["--engine", "glibc", "-o", trace], cores)
    for name, sync in [("glibc", ["glibc"]), ("direct", ["direct"]), ("switched", ["switch"])] + \
            [(f"{n} server" + "s" * (n > 1), ["delegate", "--servers", str(n)]) for n in servers if n < cores]:
        out, _ = finished([load.subutai, "predict", "--machine", machine, "--cores", str(cores), "--json", *load.predicted, "--sync", *sync,
                          trace])
        times[name] = json.loads(out)["runs"][0]["makespan_ns"]
    os.unlink(trace)
    return times


def log(text):
    print(f"delegation: {text}", file=sys.stderr, flush=True)
