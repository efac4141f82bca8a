// Shows a shop to version 2 of the official TypeScript client: usage client_v2.mjs MODE COMMAND ARGS...
// MODE is auto, legacy or a revision of the protocol. The calls stand on stdin. Prints one JSON object.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

import { show } from './show.mjs';

const require = createRequire(process.env.TOOLGATE_PEERS + '/node/');
const { Client } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

const calls = JSON.parse(readFileSync(0, 'utf8'));
const [wanted, command, ...args] = process.argv.slice(2);
const mode = wanted === 'legacy' || wanted === 'auto' ? wanted : { pin: wanted };
const client = new Client({ name: 'client_v2', version: '1' }, { versionNegotiation: { mode } });
await client.connect(new StdioClientTransport({ command, args }));
await show(client, calls, () => client.getNegotiatedProtocolVersion());
