"""An MCP server over stdio whose one write leaves a line in a log, and the wire to it that can be cut. Tests run it.

`backend.py serve LOG PID`: `put` appends `IDENTITY KEY RECEIPT` and has it on disk before it answers, a moment after it was
asked and a moment before it tells. Nothing is done only once here: whoever asks twice has two lines. `find` looks for the
line of a key.

`backend.py wire LOG PID CUTS`: a process between the gate and such a server. Some time after it passed a call on it ends,
or it keeps the answer for itself, and says so with a line in CUTS. The server goes on with what it was asked.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time

role, log, pid = sys.argv[1:4]
telling = threading.Lock()


def append(path, line):
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(file, (line + "\n").encode())
    os.fsync(file)
    os.close(file)


def send(message):
    with telling:
        try:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()
        except OSError:
            pass  # nobody is there any more; what was done is done


def answer(request, result):
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def structured(value):
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}


def put(request):
    identity = request["params"]["arguments"]["identity"]
    key = request["params"]["_meta"]["test/key"]
    receipt = os.urandom(8).hex()
    time.sleep(random.uniform(0, 0.02))
    append(log, " ".join([identity, key, receipt]))
    time.sleep(random.uniform(0, 0.01))
    answer(request, structured({"identity": identity, "receipt": receipt}))


def find(request):
    sought = request["params"]["arguments"]["key"]
    with open(log) as file:
        for line in file:
            identity, key, receipt = line.split()
            if key == sought:
                return answer(request, structured({"identity": identity, "receipt": receipt}))
    answer(request, structured({}))


def serve():
    open(log, "a").close()
    with open(pid, "w") as file:
        file.write(str(os.getpid()))
    tools = {"put": put, "find": find}
    for line in sys.stdin:
        request = json.loads(line)
        method = request.get("method")
        if method == "initialize":
            answer(request, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "effects", "version": "1"}})
        elif method == "tools/list":
            schema = {"type": "object", "properties": {}}
            answer(request, {"tools": [{"name": name, "inputSchema": schema} for name in tools]})
        elif method == "tools/call":
            threading.Thread(target=tools[request["params"]["name"]], args=[request]).start()
        elif "id" in request:
            send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "unknown"}})


def wire():
    cuts = sys.argv[4]
    server = subprocess.Popen([sys.executable, "-S", "-I", __file__, "serve", log, pid],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    kept = set()

    def back():
        for line in server.stdout:
            with telling:
                if json.loads(line).get("id") not in kept:
                    sys.stdout.write(line)
                    sys.stdout.flush()

    threading.Thread(target=back, daemon=True).start()
    calls_left = random.randint(2, 12)
    for line in sys.stdin:
        request = json.loads(line)
        is_write = request.get("method") == "tools/call" and request["params"]["name"] == "put"
        calls_left -= is_write
        ends = is_write and calls_left == 0
        if is_write and not ends and random.random() < 0.05:
            with telling:
                kept.add(request["id"])
            append(cuts, "kept")
        server.stdin.write(line)
        server.stdin.flush()
        if ends:
            time.sleep(random.uniform(0, 0.04))
            append(cuts, "ended")
            os._exit(0)
    server.stdin.close()
    server.wait()


{"serve": serve, "wire": wire}[role]()
