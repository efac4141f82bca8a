// Makes calls with version 1 of the official TypeScript SDK: usage client_v1.mjs (URL | COMMAND ARGS...)
import { createRequire } from 'node:module';

import { show } from './show.mjs';

const require = createRequire(process.env.TOOLGATE_PEERS + '/node/');
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');

const [target, ...args] = process.argv.slice(2);
const transport = target.startsWith('http://')
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args });
// The client tells its transport alone what was agreed on.
const tell = transport.setProtocolVersion?.bind(transport);
let agreed = null;
transport.setProtocolVersion = (version) => {
  agreed = version;
  tell?.(version);
};
const client = new Client({ name: 'client_v1', version: '1' });
await client.connect(transport);
await show(client, () => agreed);
