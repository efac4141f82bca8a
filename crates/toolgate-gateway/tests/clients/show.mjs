// What both versions of the TypeScript client are shown.

async function outcome(client, tool, args) {
  try {
    return { result: await client.callTool({ name: tool, arguments: args }) };
  } catch (error) {
    if (typeof error.code !== 'number') throw error;
    return { error: { code: error.code, data: error.data } };
  }
}

export async function show(client, calls, agreed) {
  const { tools } = await client.listTools();
  const outcomes = [];
  for (const call of calls) outcomes.push(await outcome(client, call.tool, call.arguments));
  const order = () => outcome(client, 'get_order', { order_id: 'ord_4821' });
  const together = await Promise.all(Array.from({ length: 10 }, order));
  const names = tools.map((tool) => tool.name).sort();
  console.log(JSON.stringify({ agreed: agreed(), tools: names, outcomes, together }));
  await client.close();
}
