import { describe, expect, it } from "vitest";
import { PartialText } from "../../src/claude/process/partial.ts";
import { LastLines } from "../../src/claude/supervise/output.ts";
import { createMasker } from "../../src/log/mask.ts";

/** Returns all texts shown while `text` arrives in pieces of `size` characters. */
function shownOf(text: string, size = 1, masker = createMasker({})): string[] {
  const shown: string[] = [];
  const partial = new PartialText((each) => shown.push(each), masker);
  for (let at = 0; at < text.length; at += size) {
    const event = { type: "content_block_delta", delta: { type: "text_delta", text: text.slice(at, at + size) } };
    partial.read({ type: "stream_event", parent_tool_use_id: null, event } as never);
  }
  return shown;
}

/** Three characters of `secret` in a row are more than chance. */
function leaks(text: string, secret: string): boolean {
  const parts = Array.from({ length: secret.length - 2 }, (_, at) => secret.slice(at, at + 3));
  return parts.some((part) => text.includes(part));
}

describe("masking", () => {
  const masker = createMasker({
    API_KEY: "abc.def+12345",
    OTHER_TOKEN: "abc.def+12345-longer\n",
    TLS_SECRET: "two\nlines",
    MY_PASSWORD: "short",
    GIT_AUTHOR_NAME: "Ada Lovelace",
    LANG: "en_GB.UTF-8",
    UNSET_TOKEN: undefined,
  });
  const key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----";

  it.each<[string, string, string]>([
    ["a secret of the environment", "is abc.def+12345, twice abc.def+12345", "is [masked], twice [masked]"],
    ["the longer of two that begin alike", "abc.def+12345-longer", "[masked]"],
    ["a secret inside a JSON text", JSON.stringify({ a: "two\nlines" }), '{"a":"[masked]"}'],
    ["a short value", "short", "short"],
    ["an author and a locale", "Ada Lovelace en_GB.UTF-8", "Ada Lovelace en_GB.UTF-8"],
    ["a key of Anthropic", "key sk-ant-api03-AbC_d-9 end", "key [masked] end"],
    ["a token of a server over HTTP", `"ccm_${"a-_Z0".repeat(5)}" ccm_short`, '"[masked]" ccm_short'],
    ["a bearer", "Authorization: Bearer eyJh.bG-ci_O/i==", "Authorization: Bearer [masked]"],
    ["a private key", `a ${key} b`, "a [masked] b"],
    ["a private key inside a JSON text", JSON.stringify([key]), '["[masked]"]'],
    ["a private key that was cut off", key.slice(0, 40), "[masked]"],
    ["a password in a URL", "http://me:pw@proxy:80/a@b", "http://[masked]@proxy:80/a@b"],
    ["a URL without one", "http://host:80/a@b", "http://host:80/a@b"],
  ])("secrets are masked, and nothing else: %s", (_, text, expected) => {
    expect(masker.text(text)).toBe(expected);
  });

  it("fields are masked at any depth, including errors, without changing them in place", () => {
    const error = new Error("abc.def+12345", { cause: { token: "abc.def+12345" } });
    const date = new Date(0);
    const fields: Record<string, unknown> = { list: [{ a: "x abc.def+12345" }], error, date, number: 1, none: null };
    fields["self"] = fields;
    expect(masker.fields(fields)).toMatchObject({
      list: [{ a: "x [masked]" }],
      error: { name: "Error", message: "[masked]", cause: { token: "[masked]" } },
      date,
      number: 1,
      none: null,
      self: "[circular]",
    });
    expect(JSON.stringify(masker.fields(fields))).not.toContain("abc.def");
    expect(error.message).toBe("abc.def+12345");
  });

  it("masking works without secrets in the environment", () => {
    expect(createMasker({}).text("plain")).toBe("plain");
  });
});

describe("masking of incomplete texts", () => {
  const secret = "hunter2-hunter2-hunter2";
  const masker = createMasker({ MY_TOKEN: secret });

  it("names of fields are masked, and every value is kept", () => {
    const masked = masker.fields({
      [secret]: 1,
      deep: [{ [`${secret}!`]: 2, [secret]: 3 }],
      "sk-ant-abcdefgh": 4,
    });
    expect(masked).toEqual({ "[masked]": 1, deep: [{ "[masked]!": 2, "[masked]": 3 }], "[masked] 2": 4 });
  });

  it.each([1, 3, 7, 1_000])("a secret stays hidden in a text that arrives in pieces of %i", (size) => {
    const shown: string[] = [];
    const partial = new PartialText((text) => shown.push(text), masker);
    const whole = `It is ${secret} and ghp_0123456789abcdefghijklmnop. ${"word ".repeat(4_000)}${secret} is it.`;
    // Pieces between the secrets may be large, because there is nothing to split.
    const isNear = (at: number) => at < 200 || at >= whole.length - 1_000;
    for (let at = 0; at < whole.length;) {
      const delta = { type: "text_delta", text: whole.slice(at, at + (isNear(at) ? size : 500)) };
      at += delta.text.length;
      partial.read({
        type: "stream_event",
        parent_tool_use_id: null,
        event: { type: "content_block_delta", delta },
      } as never);
    }
    expect(shown.at(-1)).toContain("[masked] is");
    for (const text of shown) expect(text).not.toMatch(/hunter|ghp_|efghij/);
  });

  it.each([
    ["a word", "ghp_0123456789abcdefghij", "klmnopqrst0123456789 end"],
    ["a private key", "-----BEGIN PRIVATE KEY-----\nMIIE\n", "c2VjcmV0\nb2Yga2V5\n-----END PRIVATE KEY----- end"],
    ["a word without end", "ghp_".padEnd(70_000, "x"), "ghijklmnopqrstuvwxyz end"],
  ])("the masker hides %s whole at the cut of a long text", (_, first, second) => {
    const shown: string[] = [];
    const partial = new PartialText((text) => shown.push(text), masker);
    for (const text of ["word ".repeat(4_000) + first, second.slice(0, 9), second.slice(9), " ."]) {
      const event = { type: "content_block_delta", delta: { type: "text_delta", text } };
      partial.read({ type: "stream_event", parent_tool_use_id: null, event } as never);
    }
    expect(shown.at(-1)).toMatch(/ end $/);
    for (const text of shown) expect(text).not.toMatch(/ghp_|klm|MIIE|c2V|b2Y/);
  });

  it("an overlong word of a partial text is dropped, and the text continues after it", () => {
    const shown: string[] = [];
    const partial = new PartialText((text) => shown.push(text), masker);
    for (const text of ["begin ", "y".repeat(70_000), "yy end"]) {
      const event = { type: "content_block_delta", delta: { type: "text_delta", text } };
      partial.read({ type: "stream_event", parent_tool_use_id: null, event } as never);
    }
    // The last word of a partial text is never shown, because a secret may begin there.
    expect(shown).toEqual(["begin ", "begin ", "begin  "]);
  });

  it.each([
    ["Chinese", "潮水每天涨落两次，月亮牵引着它。"],
    ["Japanese", "潮は一日に二度満ちて、月がそれを引いている。"],
    ["Thai", "น้ำขึ้นลงวันละสองครั้งเพราะดวงจันทร์"],
    ["emoji", "🌊🌙🌊🌙👩‍🚀🇫🇷"],
  ])("a text in %s is shown to its last character, and an ASCII word in it once the word has ended", (_, text) => {
    expect(shownOf(text)).toEqual(Array.from({ length: text.length }, (__, at) => text.slice(0, at + 1)));
    expect(shownOf(`${text}word${text}`).at(-1)).toBe(`${text}word${text}`);
    expect(shownOf(`${text}http://me:80${text}，${"字".repeat(300)}`).at(-1)).toContain("字字");
    for (const ended of [text.repeat(200), text.repeat(2_000)]) {
      const [shown = ""] = shownOf(ended, ended.length);
      expect(shown).not.toMatch(/^[\udc00-\udfff]/);
      expect([ended.endsWith(shown), shown.length]).toEqual([true, Math.min(ended.length, 4_000 - (shown.length % 2))]);
    }
  });

  const phrase = "пароль корабля\nи моря";
  const words = "correct horse battery";
  const long = `L${"ong".repeat(2_000)}`;
  const aware = createMasker({ MY_TOKEN: secret, MY_PASSWORD: phrase, MY_KEY: long, MY_PASSPHRASE: words });

  it.each([
    ["a word", secret, secret],
    ["words", words, words],
    ["words of another alphabet", phrase, phrase],
    ["a very long word", long, long.slice(0, 50)],
    ["a key of Anthropic", "sk-ant-api03-AbC_d-9-zyxwvutsrqponm", "api03-AbC_d-9-zyxwvutsrqponm"],
    ["a token of GitHub", "ghp_0123456789abcdefghijklmnop", "0123456789abcdefghijklmnop"],
    ["a bearer", "Bearer eyJh.bG-ci_O/i==", "eyJh.bG-ci_O/i=="],
    ["a password in a URL", "http://ада:潮水每天涨落两次@host", "潮水每天涨落两次"],
    ["a private key", "-----BEGIN PRIVATE KEY-----\nMIIEc2Vj\ncmV0\n-----END PRIVATE KEY-----", "MIIEc2Vj\ncmV0"],
  ])("the masker hides %s between characters of any language, wherever the text is split", (_, whole, hidden) => {
    for (const [before, after] of [
      ["密钥", "。完"],
      ["🔑", "🔑 end"],
      ["is ", " end"],
    ] as const) {
      const text = `${before}${whole}${after}`;
      // Every position of a short text; a sample of positions in a very long word.
      const step = Math.ceil(text.length / 200);
      for (let at = step; at < text.length; at += step ** 2) {
        const shown = shownOf(text, at, aware);
        expect(shown.filter((each) => leaks(each, hidden))).toEqual([]);
        expect(shown.at(-1)).toContain("[masked]");
      }
    }
  });

  it("incomplete lines are omitted from the last output of a process", () => {
    const lines = new LastLines(50);
    for (const piece of ["first\n", "x".repeat(45), secret, secret, "\nlast"]) lines.take(piece);
    expect(lines.text).toBe("last");
    lines.take(" words\nmore");
    expect(lines.text).toBe("last words\nmore");
  });
});
