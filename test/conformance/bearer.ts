import { once } from "node:events";
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Served } from "./judge.ts";

/** Starts a proxy on loopback that adds `token` to each request, because the suite sends none. */
export async function withToken(url: string, token: string): Promise<Served> {
  const { hostname, pathname, port } = new URL(url);
  const server = createServer((incoming, outgoing) => {
    const headers = [...incoming.rawHeaders, "Authorization", `Bearer ${token}`];
    const { method, url: path } = incoming;
    pipeBothWays(incoming, outgoing, request({ hostname, port, method, path, headers, agent: false }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}${pathname}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Pipes `incoming` and `passed` until either side ends. */
function pipeBothWays(incoming: IncomingMessage, outgoing: ServerResponse, passed: ReturnType<typeof request>): void {
  passed.on("response", (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
    outgoing.flushHeaders();
    answer.pipe(outgoing);
    answer.once("error", () => outgoing.destroy());
  });
  passed.once("error", () => outgoing.destroy());
  outgoing.once("close", () => passed.destroy());
  incoming.pipe(passed);
}
