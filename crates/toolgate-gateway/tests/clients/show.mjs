// What both versions of the TypeScript client do. On stdin stand {"calls": [{"tool", "arguments"}], "together": [...]}: the
// first are made one after the other, the second at once. Prints one JSON object: what was agreed on, the tools, and how the
// calls ended.
import { readFileSync } from 'node:fs';

export async function show(client, agreed) {
  const wanted = JSON.parse(readFileSync(0, 'utf8'));
  const outcome = async (call) => {
    try {
      return { result: await client.callTool({ name: call.tool, arguments: call.arguments }) };
    } catch (error) {
      if (typeof error.code !== 'number') throw error;
      return { error: { code: error.code, data: error.data } };
    }
  };
  const { tools } = await client.listTools();
  const calls = [];
  for (const call of wanted.calls) calls.push(await outcome(call));
  const together = await Promise.all(wanted.together.map(outcome));
  const names = tools.map((tool) => tool.name).sort();
  console.log(JSON.stringify({ agreed: agreed(), tools: names, calls, together }));
  await client.close();
}
