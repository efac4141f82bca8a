"""Makes calls with the official Python client: usage client.py MODE (URL | COMMAND ARGS...)

MODE is auto, legacy or a revision of the protocol. On stdin stand {"calls": [{"tool", "arguments"}], "together": [...]}:
the first are made one after the other, the second at once. Prints one JSON object: what was agreed on, the tools, and how
the calls ended.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

async def outcome(client, call):
    try:
        result = await client.call_tool(call["tool"], call["arguments"])
    except MCPError as error:
        return {"error": {"code": error.error.code, "data": error.error.data}}
    return {"result": json.loads(result.model_dump_json(by_alias=True, exclude_none=True))}


async def main():
    wanted = json.loads(sys.stdin.read())
    mode, target, *arguments = sys.argv[1:]
    if not target.startswith("http://"):
        target = StdioServerParameters(command=target, args=arguments)
    async with Client(target, mode=mode) as client:
        tools = (await client.list_tools()).tools
        found = {"agreed": client.session.protocol_version, "tools": sorted(tool.name for tool in tools)}
        found["calls"] = [await outcome(client, call) for call in wanted["calls"]]
        found["together"] = await asyncio.gather(*(outcome(client, call) for call in wanted["together"]))
        print(json.dumps(found))


asyncio.run(main())
