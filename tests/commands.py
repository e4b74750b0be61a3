"""The command ``crfkit`` without its start-up: a server forks a process for each call.

A shell that calls ``crfkit`` many times spends most of its time importing. Where a test is about
what commands do, and not about how Python starts, its shell finds a small script that hands its
arguments, environment, folder and standard streams over to a process that has imported all.
"""

import contextlib
import importlib
import marshal
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

CLIENT = """
import marshal, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    request = marshal.dumps((sys.argv[1:], os.getcwd(), dict(os.environ)))
    socket.send_fds(server, [len(request).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(request)
    sys.exit(server.recv(1)[0])
"""


@contextlib.contextmanager
def command_server():
    """Start a server for the length of a block; yields the folder that its ``crfkit`` is in."""
    import crfkit

    folder = Path(tempfile.mkdtemp())  # a short path, as that of a socket must be
    address, client, script = (folder / name for name in ("server", "client.py", "crfkit"))
    client.write_text(CLIENT.format(address=str(address)))
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{client}" "$@"\n')
    script.chmod(0o755)
    root = str(Path(crfkit.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": root + os.pathsep + os.environ.get("PYTHONPATH", "")}
    server = subprocess.Popen(
        [sys.executable, __file__, str(address)], stdout=subprocess.PIPE, env=environment
    )
    with server:
        assert server.stdout.readline() == b"ready\n"
        yield folder
        server.terminate()
    shutil.rmtree(folder)


def serve(address):
    """Answer calls until the process is ended."""
    from crfkit.cli import main
    from tests.compiling import compile_once

    compile_once()
    for command in ("train", "tag", "evaluate", "info", "features"):  # they load what they need
        importlib.import_module(f"crfkit.cli._{command}")
    importlib.import_module("crfkit.persistence.further_classes")  # those of model files
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        main(["demo"])  # loads what most commands call
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(16)
        print("ready", flush=True)
        while True:
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    listener.close()
                    answer(connection, main)


def answer(connection, main):
    """Become the process of a call, and tell its exit status."""
    header, streams, _, _ = socket.recv_fds(connection, 4, 3)
    size, request = int.from_bytes(header, "big"), b""
    while len(request) < size:
        request += connection.recv(size - len(request))
    arguments, folder, environment = marshal.loads(request)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    sys.stdin = open(0, encoding=encoding, closefd=False)
    sys.stdout = open(1, "w", encoding=encoding, closefd=False)
    sys.stderr = open(
        2, "w", encoding=encoding, errors="backslashreplace", closefd=False, buffering=1
    )
    try:
        status = main(arguments)
    except SystemExit as stop:
        status = stop.code
    sys.stdout.flush()
    sys.stderr.flush()
    connection.sendall(bytes([status or 0]))
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
