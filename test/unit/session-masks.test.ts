import { describe, expect, it } from "vitest";
import { createSessionMasks } from "../../src/log/session-masks.ts";

const said = "of-the-server of-one-client of-two-clients of-the-call";

describe("masks of sessions", () => {
  const masks = createSessionMasks({ OWN_KEY: "of-the-server" });
  masks.learn({ A_KEY: "of-one-client", PATH: "/one" });
  masks.learn({ B_KEY: "of-two-clients" });

  it("the log of the server is masked by all known values", () => {
    expect(masks.text(said)).toBe("[masked] [masked] [masked] of-the-call");
    expect(masks.fields({ said })).toEqual({ said: "[masked] [masked] [masked] of-the-call" });
  });

  it("a session's events are masked by the session's own values, or by all values before those are known", () => {
    const session = masks.ofSession("session");
    expect(session.text(said)).toBe("[masked] [masked] [masked] of-the-call");
    masks.learn({ A_KEY: "of-one-client" }, "session");
    expect(session.text(said)).toBe("[masked] [masked] of-two-clients of-the-call");
    masks.learn({ CALL_TOKEN: "of-the-call" }, "session");
    expect(session.text(said)).toBe("[masked] [masked] of-two-clients [masked]");
    expect(masks.ofSession("other").text(said)).toBe("[masked] [masked] [masked] [masked]");
    masks.learn({}, "other");
    expect(masks.ofSession("other").text(said)).toBe("[masked] of-one-client of-two-clients of-the-call");
    expect(session.event({ type: "message", data: { message: { [said]: said } } })).toEqual({
      type: "message",
      data: { message: { "[masked] [masked] of-two-clients [masked]": "[masked] [masked] of-two-clients [masked]" } },
    });
  });

  it("the last 2,000 values are kept, and always those of the server", () => {
    const many = createSessionMasks({ OWN_KEY: "of-the-server" });
    many.learn({ A_KEY: "of-one-client" });
    for (let count = 0; count < 1_999; count += 1) many.learn({ N_KEY: `value-${String(count)}` });
    expect(many.text(said)).toBe("[masked] [masked] of-two-clients of-the-call");
    // Learned again, the value is no longer the oldest.
    many.learn({ A_KEY: "of-one-client" });
    many.learn({ B_KEY: "of-two-clients" });
    expect(many.text(`${said} value-0 value-1998`)).toBe("[masked] [masked] [masked] of-the-call value-0 [masked]");
  });

  it("a session's events are masked by all known values once a thousand other sessions came after it", () => {
    const many = createSessionMasks({});
    many.learn({ A_KEY: "of-one-client" });
    for (let count = 0; count <= 1_000; count += 1) many.learn({}, String(count));
    expect(many.ofSession("0").text(said)).toContain("[masked]");
    expect(many.ofSession("1").text(said)).not.toContain("[masked]");
  });
});
