"""Runs a command at a terminal of its own, and types a line once it is asked: at_terminal.py LINE COMMAND..."""

import os
import pty
import sys

line, command = sys.argv[1], sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    os.execv(command[0], command)
told, answered = b"", False
while True:
    try:
        data = os.read(terminal, 4096)
    except OSError:
        break
    if not data:
        break
    told += data
    if not answered and b"[y/N]" in told:
        os.write(terminal, line.encode() + b"\n")
        answered = True
sys.stdout.buffer.write(told)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
