// A program with the MCP client of the AI SDK, which needs Node 22: subscribes, receives webhooks on loopback, and obeys lines of
// JSON on stdin: { "do": "subscribe" | "rotate" | "refresh" | "unsubscribe" }. Writes a line of JSON for each result and event.
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [packages, url, token] = process.argv.slice(2);
const entry = createRequire(join(packages, "index.js")).resolve("@ai-sdk/mcp");
const { createMCPClient, experimental_createMCPEventWebhook: createWebhook } = await import(pathToFileURL(entry).href);

const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);

const rows = new Map();
const store = {
  get: (key) => Promise.resolve(rows.get(key)),
  getById: (id) => Promise.resolve([...rows.values()].find((row) => row.id === id)),
  set: (row) => Promise.resolve(void rows.set(row.key, row)),
  update: (key, patch) => Promise.resolve(void rows.set(key, { ...rows.get(key), ...patch })),
  delete: (key) => Promise.resolve(void rows.delete(key)),
};

const webhook = createWebhook({
  store,
  onEvent: ({ event, subscription }) => Promise.resolve(say({ event, id: subscription.id })),
  onError: (error) => say({ error: String(error) }),
});

async function receive(request, response) {
  const { headers, method, url: path } = request;
  const body = Buffer.concat(await Array.fromAsync(request));
  const answer = await webhook(new Request(new URL(path, base), { method, headers, body }));
  response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(Buffer.from(await answer.arrayBuffer()));
}

const server = createServer((request, response) => void receive(request, response));
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const base = `http://127.0.0.1:${server.address().port}`;

const client = await createMCPClient({
  transport: { type: "http", url, headers: { Authorization: `Bearer ${token}` } },
  experimental_events: { store },
});
const { experimental_events: events } = client;

const actions = {
  subscribe: () =>
    events.subscribe({
      name: "turn.ended",
      delivery: { mode: "webhook", url: `${base}/hook`, allowInsecureLocalhost: true },
    }),
  rotate: async ({ id }) => {
    const { delivery, key } = await store.getById(id);
    await store.update(key, { delivery: { ...delivery, secret: `whsec_${randomBytes(32).toString("base64")}` } });
    return events.refresh({ id });
  },
  refresh: ({ id }) => events.refresh({ id }),
  unsubscribe: async ({ id }) => {
    await events.unsubscribe({ id });
    return {};
  },
};

say({ ready: true });
for await (const line of createInterface({ input: process.stdin })) {
  const { do: name, ...given } = JSON.parse(line);
  await actions[name](given).then(
    (result) => say({ did: name, result }),
    (error) => say({ did: name, error: String(error) }),
  );
}
await client.close();
server.close();
