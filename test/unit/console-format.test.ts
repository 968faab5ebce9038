import { describe, expect, it } from "vitest";
import { ago, count, duration, shortPath, runningDuration, usd } from "../../console/src/parts/format.ts";
import { displayLine, displayText } from "../../console/src/parts/text.ts";

describe("the console's texts for times, costs and names", () => {
  it.each<[number, string]>([
    [-5, "0.0 s"],
    [420, "0.4 s"],
    [9_990, "10.0 s"],
    [59_400, "59 s"],
    [59_600, "1 min 00 s"],
    [185_000, "3 min 05 s"],
    [3_600_000, "1 h 00 min"],
    [90_000_000, "1 d 1 h"],
  ])("a duration of %i ms is shown as %s", (ms, words) => {
    expect(duration(ms)).toBe(words);
  });

  it.each<[number, string]>([
    [-60_000, "just now"],
    [9_000, "just now"],
    [59_999, "59 s ago"],
    [60_000, "1 min ago"],
    [7_200_000, "2 h ago"],
    [86_400_000, "1 d ago"],
  ])("an age of %i ms is shown as %s", (ms, words) => {
    const now = Date.UTC(2026, 0, 31);
    expect(ago(now - ms, now)).toBe(words);
  });

  it("a running duration counts in whole seconds", () => {
    expect(runningDuration(-1)).toBe("0 s");
    expect(runningDuration(4_700)).toBe("4 s");
    expect(runningDuration(119_900)).toBe("1 min 59 s");
  });

  it("`usd` shows cents, and <$0.01 for less than a cent; `count` has the noun in singular or plural", () => {
    expect([0, 0.004, 0.01, 1234.5].map(usd)).toEqual(["$0.00", "<$0.01", "$0.01", "$1,234.50"]);
    expect([count(1, "turn"), count(2000, "turn"), count(0, "reply", "replies")]).toEqual([
      "1 turn",
      "2,000 turns",
      "0 replies",
    ]);
  });

  it("a long path is shortened to its end, with at least its last name", () => {
    expect(shortPath("/home/ada")).toBe("/home/ada");
    expect(shortPath("/home/ada/projects/customers/shop/backend", 20)).toBe("…/shop/backend");
    expect(shortPath("C:\\Users\\Ada\\projects\\customers\\shop", 20)).toBe("…\\customers\\shop");
    expect(shortPath("/a/name-that-is-longer-than-all-that-is-allowed", 20)).toBe(
      "…/name-that-is-longer-than-all-that-is-allowed",
    );
  });
});

describe("text of agents", () => {
  it("text of agents is shown without terminal colours and titles", () => {
    expect(displayText("\u001b[1;31mred\u001b[0m \u001b]0;title\u0007done")).toBe("red done");
  });

  it("invisible characters, and those that reverse the text, are shown as code points", () => {
    expect(displayText("a\u0000b\u202Ecod.exe\u200B\u009b")).toBe("a⟨U+0000⟩b⟨U+202E⟩cod.exe⟨U+200B⟩⟨U+009B⟩");
  });

  it("text of agents keeps lines, tabs and letters of all scripts; `displayLine` joins the lines", () => {
    expect(displayText("a\r\n\tשלום 👩‍💻")).toBe("a\n\tשלום 👩‍💻");
    expect(displayLine("  a\r\n\tb ")).toBe("a b");
  });
});
