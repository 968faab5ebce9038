import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { Webhook } from "standardwebhooks";

/** Somebody who is told: a server on loopback that verifies what comes with the library that receivers use. */

export const SECRET = `whsec_${Buffer.from("the secret of these tests, 32 by").toString("base64")}`;

export interface Delivery {
  readonly headers: IncomingHttpHeaders;
  /** Verified. */
  readonly payload: Record<string, unknown>;
  readonly response: ServerResponse;
}

export interface ReceiverServer {
  readonly url: string;
  readonly got: readonly Delivery[];
  /** Resolves with the next delivery, from the first on, that is as wanted. */
  next(wanted?: (delivery: Delivery) => boolean): Promise<Delivery>;
  close(): Promise<void>;
}

/** `answer` is called with each delivery whose signature is good; the others are answered 401. */
export async function startReceiver(
  answer: (delivery: Delivery, index: number) => void = ({ response }) => void response.end(),
  port = 0,
): Promise<ReceiverServer> {
  const webhook = new Webhook(SECRET);
  const got: Delivery[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      try {
        const headers = Object.fromEntries(
          Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
        );
        const payload = webhook.verify(Buffer.concat(chunks).toString("utf8"), headers) as Record<string, unknown>;
        const delivery = { headers: request.headers, payload, response };
        got.push(delivery);
        answer(delivery, got.length - 1);
        server.emit("delivered");
      } catch {
        response.writeHead(401).end();
      }
    });
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const listening = typeof address === "object" && address !== null ? address.port : 0;
  let seen = 0;
  return {
    url: `http://127.0.0.1:${String(listening)}/hook`,
    got,
    async next(wanted = () => true) {
      for (;;) {
        for (; seen < got.length; seen += 1) {
          const delivery = got[seen];
          if (!delivery || !wanted(delivery)) continue;
          seen += 1;
          return delivery;
        }
        await once(server, "delivered");
      }
    },
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
