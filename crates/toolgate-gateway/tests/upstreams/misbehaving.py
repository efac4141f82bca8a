"""An MCP server over stdio that misbehaves as its first argument says. Tests run it."""

import json
import os
import subprocess
import sys
import time

mode = sys.argv[1]
more = sys.argv[2:]
calls = 0
lists = 0


def write(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def send(message):
    write(json.dumps(message) + "\n")


def answer(request, result):
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def error(request, code, message):
    send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}})


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def tool(name, **members):
    return {"name": name, "description": "Does it.", "inputSchema": {"type": "object", "properties": {}}, **members}


def handshake(request):
    if mode == "stateless":
        meta = request.get("params", {}).get("_meta", {})
        if meta.get("io.modelcontextprotocol/protocolVersion") != "2026-07-28":
            return error(request, -32601 if more == ["unknown"] else -32022, "no handshake")
        return answer(request, {"resultType": "complete", "supportedVersions": ["2026-07-28"],
                                "serverInfo": {"name": "stateless", "version": "1"}, "capabilities": {}})
    if mode == "future":
        return answer(request, {"protocolVersion": "2099-01-01", "capabilities": {}})
    if mode == "mute":
        with open(more[0], "w") as file:
            file.write(str(os.getpid()))
        return
    version = more[0] if mode in ("version", "batches") else "2025-06-18"
    return answer(request, {"protocolVersion": version, "capabilities": {"tools": {}},
                            "serverInfo": {"name": "bad\u001bname", "version": "1"}})


def listed(request):
    global lists
    lists += 1
    params = request.get("params") or {}
    if mode == "restless" and lists <= int(more[0]):
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    if mode == "lists_slowly":
        time.sleep(float(more[0]))
    if mode == "pages":
        page = int(params.get("cursor", "0"))
        result = {"tools": [tool("tool_%d" % page)]}
        if page < int(more[0]):
            result["nextCursor"] = str(page + 1)
        return answer(request, result)
    if mode == "circle":
        return answer(request, {"tools": [], "nextCursor": "again"})
    if mode == "many":
        return answer(request, {"tools": [tool("t%d" % n) for n in range(600)], "nextCursor": str(time.time())})
    if mode == "huge":
        return answer(request, {"tools": [tool("t", description="x" * (17 << 20))]})
    if mode == "stateless" and "_meta" not in params:
        return error(request, -32602, "no _meta")
    return answer(request, {"tools": [tool("do", annotations={"readOnlyHint": False})]})


def called(request):
    global calls
    calls += 1
    words = json.dumps(request["params"].get("arguments"))
    if mode == "noise":
        write("Server ready!\n{\"almost\": \u001b[31m\n" + "y" * 300 + "\n\n[1]\n")
    if mode == "bytes":
        for part in json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": text(words)}) + "\n":
            write(part)
        return
    if mode == "endless":
        while True:
            write("x" * (1 << 20))
    if mode == "stderr":
        for n in range(20000):
            sys.stderr.write("line %d \u001b[2J\n" % n)
        sys.stderr.flush()
    if mode == "dies":
        if more and os.path.exists(more[0]):
            return answer(request, text("alive"))
        if more:
            open(more[0], "w").close()
        os._exit(1)
    if mode == "hangs":
        return
    if mode == "stuck":
        if not os.path.exists(more[0]):
            open(more[0], "w").close()
            time.sleep(1000)
        return answer(request, text("alive"))
    if mode == "unreadable":
        return write('{"jsonrpc":"2.0","id":%s,%s}\n' % (json.dumps(request["id"]), more[0]))
    if mode == "strays":
        send({"jsonrpc": "2.0", "id": 1, "result": text("for nobody")})
        send({"jsonrpc": "2.0", "id": request["id"] + "9", "result": text("for nobody")})
        answer(request, text("first"))
        answer(request, text("second"))
        return
    if mode == "swapped":
        held.append(request)
        if len(held) == 2:
            for each in reversed(held):
                answer(each, text(json.dumps(each["params"]["arguments"])))
        return
    if mode == "slow":
        time.sleep(float(more[0]))
    if mode == "batches":
        held.append(request)
        if len(held) == 2:
            send([{"jsonrpc": "2.0", "id": each["id"], "result": text(json.dumps(each["params"]["arguments"]))}
                  for each in reversed(held)])
        return
    if mode == "asks":
        send({"jsonrpc": "2.0", "id": "q1", "method": "ping"})
        send({"jsonrpc": "2.0", "id": 2, "method": "sampling/createMessage", "params": {"messages": []}})
        send({"jsonrpc": "2.0", "id": 3, "method": "roots/list"})
        held.append(request)
        return
    if mode == "changes":
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    if mode == "broken":
        return write('{"jsonrpc":"2.0","id":%s,"result":{},"extra":1}\n' % json.dumps(request["id"]))
    if mode == "input":
        return answer(request, {"resultType": "input_required", "inputRequests": {}, "requestState": "s"})
    if mode == "cancel":
        held.append(request)
        return
    if mode == "error":
        return error(request, int(more[0]), "no such thing")
    if mode == "stateless":
        meta = request["params"].get("_meta", {})
        if not meta.get("io.modelcontextprotocol/clientInfo") or "io.modelcontextprotocol/clientCapabilities" not in meta:
            return error(request, -32602, "no _meta")
        return answer(request, {"resultType": "complete", **text(words)})
    answer(request, text(words))


held = []
answers = {}

if mode == "family":
    child = subprocess.Popen(["sleep", "300"])
    with open(more[0], "w") as file:
        file.write(str(child.pid))

for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method in ("initialize", "server/discover"):
        handshake(message)
    elif method == "tools/list":
        listed(message)
    elif method == "tools/call":
        called(message)
    elif method == "notifications/cancelled" and mode == "cancel":
        for each in held:
            if each["id"] == message["params"]["requestId"]:
                answer(each, text("cancelled in time"))
    elif "id" in message and method is None and mode == "asks":
        answers[json.dumps(message["id"])] = message.get("result", message.get("error", {}).get("code"))
        if len(answers) == 3:
            answer(held[0], text(json.dumps(answers, sort_keys=True)))

if mode == "stays":
    time.sleep(300)
