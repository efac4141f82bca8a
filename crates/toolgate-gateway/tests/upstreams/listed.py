"""An MCP server over stdio whose tools stand in FOLDER/tools.json: a list of pages, read anew for each list.

Each call is noted in FOLDER/calls and answered with its arguments. FOLDER/die makes the next call the last one of this
process, FOLDER/changed makes it tell that its list has changed. While there is FOLDER/deaf no list is answered; each that
is asked for is noted in FOLDER/lists. FOLDER/name is what it calls itself. Tests run it:
listed.py FOLDER.
"""

import json
import os
import sys
import threading
import time

folder = sys.argv[1]


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def note(name, line):
    with open(os.path.join(folder, name), "a") as file:
        file.write(line + "\n")


def page(message):
    while os.path.exists(os.path.join(folder, "deaf")):
        time.sleep(0.02)
    with open(os.path.join(folder, "tools.json")) as file:
        pages = json.load(file)
    number = int((message.get("params") or {}).get("cursor", "0"))
    result = {"tools": pages[number]}
    if number + 1 < len(pages):
        result["nextCursor"] = str(number + 1)
    send({"jsonrpc": "2.0", "id": message["id"], "result": result})


def taken(name):
    path = os.path.join(folder, name)
    there = os.path.exists(path)
    if there:
        os.remove(path)
    return there


note("starts", "started")
name = "listed"
if os.path.exists(os.path.join(folder, "name")):
    with open(os.path.join(folder, "name")) as file:
        name = file.read()

for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if "id" not in message:
        continue
    result = {}
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}},
                  "serverInfo": {"name": name, "version": "1"}}
    elif method == "tools/list":
        note("lists", "listed")
        if os.path.exists(os.path.join(folder, "deaf")):
            threading.Thread(target=page, args=(message,), daemon=True).start()
        else:
            page(message)
        continue
    elif method == "tools/call":
        note("calls", message["params"]["name"])
        if taken("die"):
            os._exit(1)
        result = {"content": [{"type": "text", "text": json.dumps(message["params"]["arguments"])}]}
        if taken("changed"):
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    send({"jsonrpc": "2.0", "id": message["id"], "result": result})
