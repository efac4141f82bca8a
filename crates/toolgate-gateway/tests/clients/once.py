"""Lists the tools and makes one call with the official Python client: once.py MODE TOOL ARGUMENTS COMMAND ARGS..."""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters


async def main():
    mode, tool, arguments, command, *words = sys.argv[1:]
    async with Client(StdioServerParameters(command=command, args=words), mode=mode) as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool(tool, json.loads(arguments))
        result = json.loads(result.model_dump_json(by_alias=True, exclude_none=True))
        print(json.dumps({"tools": [tool.name for tool in tools], "result": result}))


asyncio.run(main())
