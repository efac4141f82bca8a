"""An MCP server over stdio whose tools are what a file says: `described.py TOOLS.json`. Each call is noted beside it."""

import json
import sys

path = sys.argv[1]


def answer(request, result):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    request = json.loads(line)
    if request.get("method") == "initialize":
        answer(request, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                         "serverInfo": {"name": "described", "version": "1"}})
    elif request.get("method") == "tools/list":
        with open(path) as tools:
            answer(request, {"tools": json.load(tools)})
    elif request.get("method") == "tools/call":
        with open(path + ".calls", "a") as calls:
            calls.write(request["params"]["name"] + "\n")
        answer(request, {"content": [{"type": "text", "text": "did " + request["params"]["name"]}]})
