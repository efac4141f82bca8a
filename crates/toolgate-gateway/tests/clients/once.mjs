// Lists the tools and makes one call with an official TypeScript client: once.mjs MODE TOOL ARGUMENTS COMMAND ARGS...
// MODE is v1 for version 1 of the SDK; auto, legacy or a revision of the protocol for version 2.
import { createRequire } from 'node:module';

const require = createRequire(process.env.TOOLGATE_PEERS + '/node/');
const [wanted, tool, given, command, ...args] = process.argv.slice(2);

async function connected() {
  const about = { name: 'once', version: '1' };
  if (wanted === 'v1') {
    const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
    const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
    const client = new Client(about);
    await client.connect(new StdioClientTransport({ command, args }));
    return client;
  }
  const { Client } = require('@modelcontextprotocol/client');
  const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');
  const mode = wanted === 'legacy' || wanted === 'auto' ? wanted : { pin: wanted };
  const client = new Client(about, { versionNegotiation: { mode } });
  await client.connect(new StdioClientTransport({ command, args }));
  return client;
}

const client = await connected();
const { tools } = await client.listTools();
const result = await client.callTool({ name: tool, arguments: JSON.parse(given) });
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), result }));
await client.close();
