import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { EventReceiver, newSecret, Subscriber } from "../kit/clients/event-receiver.ts";
import { constants } from "../kit/servers/constants.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { preloading } from "../kit/servers/preload.ts";
import { useWorld } from "../kit/world.ts";

/** Clients that name webhooks to reach what they must not, or to keep the server busy (SEP-3415). */

const world = useWorld({ agent: "stand-in" });
const { args: PRINCIPALS, tokens } = namedUsers({ ada: {}, eve: {} });
const SECRET = newSecret("the secret of the one attacked");
const IMPATIENT = constants({ notifyRetryMs: 50, notifyTimeoutMs: 500 });
const REFUSED = { code: -32_015, data: { reason: "connection_refused" } };

let receiver: EventReceiver;
afterEach(async () => receiver.close());

async function startServer(reach: "any" | "public", env: Record<string, string> = {}) {
  receiver = await new EventReceiver(SECRET).open();
  const args = [...PRINCIPALS, "--event-webhooks", reach, "--store", join(world.folder(), "store.db")];
  return world.http({ args, env: { ...IMPATIENT, ...env } });
}

/** Replaces the look-up of names in a server: `answers` of each name in turn, the last one repeatedly. */
function namesOf(answers: Readonly<Record<string, readonly (readonly string[])[]>>): Record<string, string> {
  const file = join(world.folder(), "names.mjs");
  writeFileSync(
    file,
    `import dns from "node:dns";
import { syncBuiltinESMExports } from "node:module";
const answers = ${JSON.stringify(answers)};
const plain = dns.promises.lookup;
const next = (name) => {
  const own = answers[name];
  const found = own?.length > 1 ? own.shift() : own?.[0];
  return found?.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
};
dns.promises.lookup = async (name, ...rest) => next(name) ?? plain(name, ...rest);
dns.lookup = (name, options, callback = options) => {
  const found = next(name) ?? [{ address: "127.0.0.1", family: 4 }];
  process.nextTick(() => (options.all ? callback(null, found) : callback(null, found[0].address, found[0].family)));
};
syncBuiltinESMExports();
`,
  );
  return { NODE_OPTIONS: preloading(file, {}) };
}

describe("a webhook named by an attacker", { timeout: 60_000 }, () => {
  it("no address of this machine or network is reached, whether literal, by name, or behind a name with a public one", async () => {
    const http = await startServer(
      "public",
      namesOf({
        "private.example": [["10.0.0.1", "192.168.1.1"]],
        "loop.example": [["127.0.0.1", "::1"]],
        // A documentation address is not routed, and is special, too.
        "both.example": [["127.0.0.1", "2606:4700::ffff"]],
        "meta.example": [["169.254.169.254"]],
      }),
    );
    const subscriber = new Subscriber(await http.connect("modern", tokens.eve), receiver);
    const { port } = new URL(receiver.url);
    const literals = [
      "127.0.0.1",
      "[::1]",
      "[::ffff:127.0.0.1]",
      "10.0.0.1",
      "169.254.169.254",
      "2130706433",
      "localhost",
    ];
    for (const host of literals) {
      await expect(subscriber.refusal({ url: `https://${host}:${port}/` })).resolves.toMatchObject({ code: -32_602 });
    }
    for (const name of ["private", "loop", "meta"]) {
      await expect(subscriber.refusal({ url: `https://${name}.example:${port}/` })).resolves.toMatchObject(REFUSED);
    }
    await expect(subscriber.refusal({ url: `https://both.example:${port}/` })).resolves.toMatchObject({
      code: -32_015,
    });
    expect(receiver.paths).toEqual([]);
  });

  it("a name that changes its address after the check is connected to the checked address only", async () => {
    const http = await startServer("public", namesOf({ "rebind.example": [["2606:4700::ffff"], ["127.0.0.1"]] }));
    const subscriber = new Subscriber(await http.connect("modern", tokens.eve), receiver);
    const { port } = new URL(receiver.url);
    const { code, data } = await subscriber.refusal({ url: `https://rebind.example:${port}/` });
    // The checked address does not answer here; the second is refused.
    expect([code, ["connection_refused", "timeout"].includes(String(data["reason"]))]).toEqual([-32_015, true]);
    await expect(subscriber.refusal({ url: `https://rebind.example:${port}/` })).resolves.toMatchObject(REFUSED);
    expect(receiver.paths).toEqual([]);
  });

  it("a redirect of a receiver is not followed, neither at its verification nor at an event", async () => {
    const http = await startServer("any");
    const ada = await http.connect("modern", tokens.ada);
    const subscriber = new Subscriber(ada, receiver);
    const location = `${receiver.url}/elsewhere`;
    const consent = receiver.consent;
    receiver.consent = (_, response) => void response.writeHead(307, { location }).end();
    await expect(subscriber.refusal({})).resolves.toMatchObject({ code: -32_015, data: { reason: "http_4xx" } });
    receiver.consent = consent;
    await subscriber.subscribe();
    receiver.answer = ({ response }) => void response.writeHead(302, { location }).end();
    await ada.call("claude_code", { prompt: scriptTag([{ text: "Done." }]), cwd: world.folder(), waitMs: 40_000 });
    await receiver.until(2);
    expect(new Set(receiver.paths)).toEqual(new Set(["/hook"]));
  });

  it("huge, endless and missing answers to a verification cost a bounded time and are told without their words", async () => {
    const http = await startServer("any");
    const subscriber = new Subscriber(await http.connect("modern", tokens.eve), receiver);
    const answers: EventReceiver["consent"][] = [
      (_, response) => void response.end("inside ".repeat(1_000_000)),
      (_, response) => {
        response.writeHead(200);
        const timer = setInterval(() => response.write("inside "), 20);
        response.on("close", () => clearInterval(timer));
      },
      () => undefined,
      (_, response) => void response.writeHead(500, "inside", { inside: "inside" }).end("inside"),
    ];
    const reasons = [];
    const begun = performance.now();
    for (const answer of answers) {
      receiver.consent = answer;
      const { code, data, message } = await subscriber.refusal({});
      reasons.push(data["reason"]);
      expect([code, message.includes("inside")]).toEqual([-32_015, false]);
    }
    expect(reasons).toEqual(["challenge_failed", "timeout", "timeout", "http_5xx"]);
    expect(performance.now() - begun).toBeLessThan(20_000);
    expect(http.stderr()).not.toContain("inside");
  });

  it("another caller who knows URL, event and arguments neither ends a subscription nor replaces its secret", async () => {
    const http = await startServer("any");
    const ada = await http.connect("modern", tokens.ada);
    const { id } = await new Subscriber(ada, receiver).subscribe();
    const eve = new Subscriber(await http.connect("modern", tokens.eve), receiver);
    await expect(eve.refusal({}, "events/unsubscribe")).resolves.toMatchObject({ code: -32_011 });
    // The receiver does not consent to a secret that it does not know.
    const stolen = newSecret("a secret of the attacker");
    await expect(eve.refusal({ secret: stolen })).resolves.toMatchObject({
      code: -32_015,
      data: { reason: "http_4xx" },
    });
    await ada.call("claude_code", { prompt: scriptTag([{ text: "Done." }]), cwd: world.folder(), waitMs: 40_000 });
    await receiver.until(1);
    expect(receiver.got[0]?.headers["x-mcp-subscription-id"]).toBe(id);
  });

  it("100 silent receivers of one caller do not hold up the event of another", async () => {
    const http = await startServer("any", constants({ notifyTimeoutMs: 30_000 }));
    const prompt = scriptTag([{ text: "Done." }]);
    const eve = await http.connect("modern", tokens.eve);
    const silent = new Subscriber(eve, receiver);
    for (let n = 0; n < 100; n += 1) await silent.subscribe({ url: `${receiver.url}?${String(n)}` });
    const ada = await http.connect("modern", tokens.ada);
    const { id } = await new Subscriber(ada, receiver).subscribe();
    receiver.answer = ({ headers, response }) => void (headers["x-mcp-subscription-id"] === id && response.end());
    await eve.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
    await receiver.until(8);
    await ada.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
    await receiver.until(9);
    expect(receiver.got[8]?.headers["x-mcp-subscription-id"]).toBe(id);
  });

  it("secrets and paths of URLs are in no log and no error", async () => {
    const http = await startServer("any", { CLAUDE_CODE_MCP_LOG_LEVEL: "debug" });
    const ada = await http.connect("modern", tokens.ada);
    const subscriber = new Subscriber(ada, receiver);
    const url = `${receiver.url}/path-of-the-url?token=token-of-the-url`;
    await subscriber.subscribe({ url });
    receiver.answer = ({ response }) => void response.writeHead(410).end();
    await ada.call("claude_code", { prompt: scriptTag([{ text: "Done." }]), cwd: world.folder(), waitMs: 40_000 });
    await http.logged("a webhook delivery ended");
    const { message } = await subscriber.refusal({ url, secret: SECRET.slice(0, 30) });
    for (const text of [http.stderr(), message]) {
      for (const secret of [SECRET.slice(6, 30), "path-of-the-url", "token-of-the-url"])
        expect(text).not.toContain(secret);
    }
  });
});
