// What version 1 of the official TypeScript SDK makes of a 401: usage client_auth.mjs URL TOKEN. Prints one JSON object: what it
// found out of where to log in, and the tools that it is shown once it has the token.
import { createRequire } from 'node:module';

const require = createRequire(process.env.TOOLGATE_PEERS + '/node/');
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');
const auth = require('@modelcontextprotocol/sdk/client/auth.js');

const [url, token] = process.argv.slice(2);
const refused = await fetch(url, {
  method: 'POST',
  headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
});
const told = auth.extractWWWAuthenticateParams(refused);
const metadata = await auth.discoverOAuthProtectedResourceMetadata(url, { resourceMetadataUrl: told.resourceMetadataUrl });
const guessed = await auth.discoverOAuthProtectedResourceMetadata(url);
const resource = await auth.selectResourceURL(url, {}, metadata);
const client = new Client({ name: 'client_auth', version: '1' });
const authProvider = { tokens: () => ({ access_token: token, token_type: 'Bearer' }) };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider }));
const { tools } = await client.listTools();
const found = { status: refused.status, told, metadata, guessed, resource, tools: tools.map((tool) => tool.name) };
console.log(JSON.stringify(found));
await client.close();
