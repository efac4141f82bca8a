"""Shows a shop to the official Python client: usage client.py MODE COMMAND ARGS...

MODE is auto, legacy or a revision of the protocol. Prints one JSON object: what was agreed on and how calls ended.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

CALLS = json.loads(sys.stdin.read())


async def outcome(client, tool, arguments):
    try:
        result = await client.call_tool(tool, arguments)
    except MCPError as error:
        return {"error": {"code": error.error.code, "data": error.error.data}}
    return {"result": json.loads(result.model_dump_json(by_alias=True, exclude_none=True))}


async def main():
    mode, command, *arguments = sys.argv[1:]
    async with Client(StdioServerParameters(command=command, args=arguments), mode=mode) as client:
        tools = (await client.list_tools()).tools
        outcomes = [await outcome(client, call["tool"], call["arguments"]) for call in CALLS]
        together = await asyncio.gather(
            *(outcome(client, "get_order", {"order_id": "ord_4821"}) for _ in range(10))
        )
        print(
            json.dumps(
                {
                    "agreed": client.session.protocol_version,
                    "tools": sorted(tool.name for tool in tools),
                    "outcomes": outcomes,
                    "together": together,
                }
            )
        )


asyncio.run(main())
