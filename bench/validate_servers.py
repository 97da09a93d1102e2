# SPDX-License-Identifier: LGPL-2.1-or-later
"""The servers of bench/validate: a server under a fixed number of requests, from its start to its end. Its client runs
beside it, as it is: without the library, not recorded, and on any CPU.
"""
import os
import shutil
import socket
import subprocess
import time

CONNECTIONS = 16
MEMCACHED_REQUESTS = 60000
REDIS_REQUESTS = 20000  # of each kind
# Numbers of threads, where it is not the table's: threads of redis compute while they wait for each other, so with more
# of them than CPUs, as on one, each round of requests takes time slices.
THREADS = {"redis": [1]}


class Server:
    """A server with `command`, which the client loads. It listens as soon as `socket` is there. Then `end` asks it to end,
    as often as it has not."""

    def __init__(self, path, command, client, end):
        self.socket, self.command, self.client, self.end = path, command, client, end

    def run(self, command, timeout):
        """The exit status of `command`, which is the server's behind whatever launches it, and what it said on stderr."""
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        with open(self.socket + ".err", "w+", encoding="utf-8", errors="replace") as err:
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err) as server:
                try:
                    until = time.monotonic() + timeout
                    while not os.path.exists(self.socket) and server.poll() is None and time.monotonic() < until:
                        time.sleep(0.001)
                    # By a pipe the end is seen at once. Without one, run() looks for it each 50 ms.
                    subprocess.run(self.client, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=timeout,
                                   check=True)
                    status = self.ended(server, until)
                except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failed:
                    status = f"of the client: {failed}"
                    err.write((failed.stderr or b"").decode(errors="replace"))
                finally:
                    server.kill()
            err.seek(0)
            return status, err.read()


    def ended(self, server, until):
        while server.poll() is None and time.monotonic() < until:
            self.end(server)
            try:
                server.wait(0.01)
            except subprocess.TimeoutExpired:
                pass
        return server.poll()


def end_memcached(path):
    """By SIGTERM, and a connection: its main thread looks for the signal when it has had something to do, or once a
    second."""
    def end(server):
        server.terminate()
        time.sleep(0.002)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect_ex(path)
    return end


def end_redis(path):
    return lambda server: subprocess.run(["redis-cli", "-s", path, "shutdown", "nosave"], stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=10, check=False)


def servers(scratch, build):
    """{name: function of the number of the server's threads that gives a Server}: those that are installed."""
    memcached, redis = os.path.join(scratch, "memcached.socket"), os.path.join(scratch, "redis.socket")
    user = ["-u", "root"] if os.geteuid() == 0 else []
    result = {
        "memcached": lambda n: Server(
            memcached, ["memcached", *user, "-s", memcached, "-t", str(n), "-m", "64"],
            [os.path.join(build, "bench", "memcached-load"), memcached, str(CONNECTIONS), str(MEMCACHED_REQUESTS)],
            end_memcached(memcached)),
        "redis": lambda n: Server(
            redis, ["redis-server", "--port", "0", "--unixsocket", redis, "--dir", scratch, "--save", "", "--io-threads", str(n)],
            ["redis-benchmark", "-s", redis, "-q", "-n", str(REDIS_REQUESTS), "-c", str(CONNECTIONS), "-t", "set,get"],
            end_redis(redis)),
    }
    needed = {"memcached": ["memcached"], "redis": ["redis-server", "redis-benchmark", "redis-cli"]}
    return {name: server for name, server in result.items() if all(shutil.which(program) for program in needed[name])}
