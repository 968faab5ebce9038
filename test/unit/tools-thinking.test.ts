import { describe, expect, it } from "vitest";
import { thinkingWarnings } from "../../src/tools/check-options.ts";

const thinking = { type: "enabled", budgetTokens: 2_048 } as const;

describe("a token budget for thinking", () => {
  it.each([
    "claude-3-7-sonnet-20250219",
    "claude-sonnet-4-20250514",
    "us.anthropic.claude-opus-4-1-20250805-v1:0",
    "claude-sonnet-4-5",
    "us.anthropic.claude-haiku-4-5-20251001-v1:0",
    "my-gateway-model",
  ])("a token budget for thinking is accepted for %s", (model) => {
    expect(thinkingWarnings({ model, thinking })).toEqual([]);
  });

  it.each([
    undefined,
    "opus",
    "sonnet[1m]",
    "claude-opus-4-0",
    "claude-opus-4-1-20250805",
    "claude-opus-4-6",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
    "claude-fable-5-2",
  ])("a token budget for thinking causes a warning with %s", (model) => {
    const options = { thinking, ...(model !== undefined && { model }) };
    expect(thinkingWarnings(options)).toHaveLength(1);
  });

  it("a token budget is irrelevant if thinking is left to the model", () => {
    expect(thinkingWarnings({ thinking: { type: "adaptive" } })).toEqual([]);
    expect(thinkingWarnings({})).toEqual([]);
  });
});

/** Expectations measured with the Claude Code of the pinned SDK. */
describe("`disabled` thinking", () => {
  const disabled = { type: "disabled" } as const;

  it.each([
    "claude-3-7-sonnet-20250219",
    "claude-opus-4-8",
    "claude-sonnet-5",
    "claude-sonnet-5-20260101",
    "claude-opus-5",
    "my-gateway-model",
  ])("`disabled` thinking is accepted for %s", (model) => {
    expect(thinkingWarnings({ model, thinking: disabled })).toEqual([]);
  });

  it.each([
    undefined,
    "haiku",
    "opus[1m]",
    "claude-opus-4-1",
    "us.anthropic.claude-sonnet-5-5-v1:0",
    "claude-opus-5-5",
    "claude-fable-5",
  ])("`disabled` thinking causes a warning with %s", (model) => {
    const options = { thinking: disabled, ...(model !== undefined && { model }) };
    expect(thinkingWarnings(options)).toEqual([expect.stringMatching(/^thinking.type: disabled has no effect with /)]);
  });
});
