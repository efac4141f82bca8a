"""Calls a second through `toolgate wrap`, beside the same client on the server's own pipe.

usage: python3 wrap.py TOOLGATE [CALLS]; $TOOLGATE_PEERS names the folder that tests/peers/install filled.
Reads a small file through the npm filesystem server, one call at a time and sixteen at once, in turns within one run.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 3


class Client:
    def __init__(self, command):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.ask(0, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                   "clientInfo": {"name": "bench", "version": "1"}})
        self.hear()
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.ask(1, "tools/list", {})
        self.hear()

    def say(self, message):
        self.process.stdin.write((json.dumps(message) + "\n").encode())
        self.process.stdin.flush()

    def ask(self, number, method, params):
        self.say({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    def hear(self):
        while True:
            message = json.loads(self.process.stdout.readline())
            if "id" in message:
                return message

    def calls_a_second(self, params, at_once, calls):
        for number in range(50):
            self.ask(10 + number, "tools/call", params)
            assert not self.hear()["result"].get("isError")
        begun, sent, heard = time.perf_counter(), 0, 0
        while heard < calls:
            while sent < calls and sent - heard < at_once:
                self.ask(1000 + sent, "tools/call", params)
                sent += 1
            self.hear()
            heard += 1
        rate = calls / (time.perf_counter() - begun)
        self.process.stdin.close()
        self.process.wait()
        return rate


def main():
    toolgate, calls = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1500
    package = "node/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as state:
        path = os.path.join(folder, "a.txt")
        with open(path, "w") as file:
            file.write("hello\n" * 20)
        direct = ["node", os.path.join(os.environ["TOOLGATE_PEERS"], package), folder]
        wrapped = [toolgate, "wrap", "--state", state, "--", *direct]
        params = {"name": "read_text_file", "arguments": {"path": path}}
        for at_once in (1, 16):
            rates = {"direct": [], "wrap": []}
            for _ in range(ROUNDS):
                rates["direct"].append(Client(direct).calls_a_second(params, at_once, calls))
                rates["wrap"].append(Client(wrapped).calls_a_second(params, at_once, calls))
            one, other = statistics.median(rates["direct"]), statistics.median(rates["wrap"])
            print(f"{at_once:2} at once: direct {one:6.0f}/s, wrap {other:6.0f}/s, {other / one:.2f} of it (goal 0.6)")


main()
