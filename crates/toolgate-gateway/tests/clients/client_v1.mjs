// Shows a shop to version 1 of the official TypeScript SDK: usage client_v1.mjs COMMAND ARGS...
// The calls stand on stdin. Prints one JSON object: what was agreed on and how the calls ended.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

import { show } from './show.mjs';

const require = createRequire(process.env.TOOLGATE_PEERS + '/node/');
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');

const calls = JSON.parse(readFileSync(0, 'utf8'));
const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'client_v1', version: '1' });
const transport = new StdioClientTransport({ command, args });
let agreed = null;
transport.setProtocolVersion = (version) => { agreed = version; };
await client.connect(transport);
await show(client, calls, () => agreed);
