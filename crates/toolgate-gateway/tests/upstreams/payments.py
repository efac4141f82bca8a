"""An MCP server over stdio that pays, and then behaves as its first argument says. Tests run it.

Each payment is a line of the file that its second argument names: what was done, whatever was answered.
"""

import json
import os
import sys
import time

mode, book = sys.argv[1:3]
more = sys.argv[3:]


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(request, result):
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def payments():
    if not os.path.exists(book):
        return []
    with open(book) as lines:
        return [line.rstrip("\n") for line in lines]


def pay(key):
    with open(book, "a") as lines:
        lines.write(key + "\n")


def called(request):
    params = request["params"]
    key = params.get("_meta", {}).get("vendor.example/key", "")
    result = {"content": [], "structuredContent": {"paid": 5}}
    if mode == "busy":
        # Nothing of this server is paid twice with one key.
        if key not in payments():
            pay(key)
            os._exit(1)
        return answer(request, result)
    if mode == "refuses_late":
        time.sleep(float(more[0]))
        return send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32000, "message": "no"}})
    pay(key)
    if mode == "late":
        time.sleep(float(more[0]))
        return answer(request, result)
    if mode == "dies":
        os._exit(1)
    if mode == "hangs_up":
        # It lives on, and nobody hears of it any more.
        sys.stdout.close()
        os.close(1)
        time.sleep(1000)
    if mode == "babbles":
        return send({"jsonrpc": "2.0", "id": request["id"], "result": {}, "more": 1})
    if mode == "silent":
        return None
    return answer(request, result)


for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        answer(message, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                         "serverInfo": {"name": "payments", "version": "1"}})
    elif method == "ping":
        answer(message, {})
    elif method == "tools/call":
        called(message)
