import { describe, expect, it } from "vitest";
import { createMasker } from "../../src/log/mask.ts";

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
  ])("%s", (_, text, expected) => {
    expect(masker.text(text)).toBe(expected);
  });

  it("goes into fields at any depth, into errors too, and changes nothing in place", () => {
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

  it("works without secrets in the environment", () => {
    expect(createMasker({}).text("plain")).toBe("plain");
  });
});
