import { describe, expect, it } from "vitest";

import { checkDiskResume, isWrongToken, resumeToken, type DiskResume } from "../../src/tools/resume-token.ts";

const sessionId = "s1";
const SECRET: DiskResume = { allowed: true, secret: "k" };
const token = resumeToken(SECRET, "local", sessionId);

const verdict = (policy: DiskResume, given: string | undefined, principal = "local") => {
  try {
    checkDiskResume(policy, principal, { sessionId, token: given });
    return "may";
  } catch (error) {
    return String(error);
  }
};

it("a token depends on its secret, its principal and its session", () => {
  const others = [
    resumeToken({ allowed: true, secret: "other" }, "local", sessionId),
    resumeToken(SECRET, "ann", sessionId),
    resumeToken(SECRET, "local", "s2"),
  ];
  expect(token).toMatch(/^[0-9a-f]{64}$/);
  expect(new Set([token, ...others]).size).toBe(4);
  expect(resumeToken({ allowed: true, secret: undefined }, "local", sessionId)).toBeUndefined();
});

describe("a session from disk", () => {
  it.each<[string, DiskResume, string | undefined, string]>([
    ["may be resumed without a token if there is no secret", { allowed: true, secret: undefined }, undefined, "may"],
    ["may be resumed with its token", SECRET, token, "may"],
    ["may not be resumed if disk resume is off", { allowed: false, secret: "k" }, token, "is not allowed here"],
    ["may not be resumed without its token", SECRET, undefined, "A resumeToken is required"],
    ["may not be resumed with another token", SECRET, "0".repeat(64), "The resumeToken is wrong"],
    ["may not be resumed with a part of its token", SECRET, token?.slice(1), "The resumeToken is wrong"],
  ])("a session from disk %s", (_, policy, given, expected) => {
    expect(verdict(policy, given)).toContain(expected);
  });

  it("a session from disk may not be resumed with the token of another user", () => {
    expect(verdict(SECRET, token, "ann")).toContain("The resumeToken is wrong");
  });
});

it("a token is never wrong if there is no secret", () => {
  expect(isWrongToken({ allowed: true, secret: undefined }, "local", { sessionId, token: "any" })).toBe(false);
  expect(isWrongToken(SECRET, "local", { sessionId, token: "any" })).toBe(true);
});
