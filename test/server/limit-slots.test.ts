import { expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { constants } from "../kit/servers/constants.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in", plan: true });

it("a turn that waits at a limit gives its slot to another session, and goes on in a new process after the reset", async () => {
  const server = await world.server({ args: ["--max-live", "1"], env: constants({ limitMarginMs: 50 }) });
  const limited = scriptTag([
    { error: { status: 429, plan: { claim: "five_hour", resetsInS: 7 } }, text: "I went on." },
  ]);
  const about = { cwd: world.folder(), advanced: { onLimit: "wait" } };
  const { sessionId } = await server.call("claude_code", { prompt: limited, ...about });
  const get = async () => (await server.call("claude_code_session", { action: "get", sessionId })).sessions[0];
  const waits = { status: "running", waiting: { kind: "usage_limit", window: "five_hour" } };
  await expect.poll(get).toMatchObject({ ...waits, processLive: true });
  const other = await server.call("claude_code", { prompt: scriptTag([{ text: "ok" }]), ...about, waitMs: 20_000 });
  expect(other).toMatchObject({ status: "idle", result: { result: "ok" } });
  expect(await get()).toMatchObject({ ...waits, processLive: false });
  expect(await server.end(sessionId)).toMatchObject({
    status: "idle",
    result: { result: "I went on.", isError: false },
  });
  const sent = world.model.requests.filter((request) => request.sessionId === sessionId);
  expect(sent.map(({ digest }) => digest)).toEqual([sent[0]?.digest, sent[0]?.digest]);
});
