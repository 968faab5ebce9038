import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in" });
const DETAILS = { CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS: "1" };

it("`claude_code` accepts one to eight commands as `verify`, refuses what only the operator may give, and keeps the option", async () => {
  const server = await world.server({ env: DETAILS });
  const prompt = scriptTag([{ text: "Nothing to do." }]);
  const start = { prompt, cwd: world.folder() };
  const nine = await server.refusal("claude_code", { ...start, advanced: { verify: Array(9).fill("true") } });
  expect(nine.text).toContain("verify");
  const own = { commands: ["true"], ownTurns: true };
  expect((await server.refusal("claude_code", { ...start, advanced: { verify: own } })).text).toContain("verify");
  const verify = { commands: ["true"], attempts: 0 };
  const { sessionId } = await server.call("claude_code", { ...start, advanced: { verify } });
  const get = { action: "get", sessionId, includeSensitive: true };
  const [session] = (await server.call("claude_code_session", get)).sessions;
  expect(session).toMatchObject({ sessionId, verify });
});
