import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld();

it("a server uses the user's login, although the application that started it logs in for its own sessions", async () => {
  const login = {
    accessToken: "sk-ant-oat01-of-these-tests",
    refreshToken: "sk-ant-ort01-of-these-tests",
    expiresAt: Date.now() + 86_400_000,
    scopes: ["user:inference", "user:profile"],
    subscriptionType: "max",
  };
  writeFileSync(join(world.configFolder, ".credentials.json"), JSON.stringify({ claudeAiOauth: login }));
  const ofTheApplication = {
    CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST: "1",
    CLAUDE_CODE_HOST_AUTH_ENV_VAR: "ANTHROPIC_AUTH_TOKEN",
    CLAUDE_CODE_SDK_HAS_HOST_AUTH_REFRESH: "1",
    CLAUDE_CODE_ENTRYPOINT: "claude-desktop",
    // Replaces the key of the scripted model: with a login by subscription, the environment has no key.
    ANTHROPIC_API_KEY: "",
  };
  const server = await world.server({ env: ofTheApplication });
  const told = await server.call("claude_code", {
    prompt: scriptTag([{ text: "logged in" }]),
    cwd: world.folder(),
    waitMs: 40_000,
  });
  expect(told).toMatchObject({ status: "idle" });
  expect(JSON.stringify(told)).toContain("logged in");
});
