// Makes calls with version 2 of the official TypeScript client: usage client_v2.mjs MODE (URL | COMMAND ARGS...)
// MODE is auto, legacy or a revision of the protocol.
import { createRequire } from 'node:module';

import { show } from './show.mjs';

const require = createRequire(process.env.TOOLGATE_PEERS + '/node/');
const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

const [wanted, target, ...args] = process.argv.slice(2);
const mode = wanted === 'legacy' || wanted === 'auto' ? wanted : { pin: wanted };
const client = new Client({ name: 'client_v2', version: '1' }, { versionNegotiation: { mode } });
const transport = target.startsWith('http://')
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args });
await client.connect(transport);
await show(client, () => client.getNegotiatedProtocolVersion());
