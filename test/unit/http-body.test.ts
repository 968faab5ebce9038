import { expect, it } from "vitest";

import { readJson } from "../../src/http/json-body.ts";

const post = (body: string, headers: Record<string, string> = {}) =>
  new Request("http://127.0.0.1/", { method: "POST", body, headers });

it.each([
  ["", { "content-length": "7" }],
  [" without a content-length", {}],
])("a body%s of exactly the limit is read, and a longer one is refused with a 413", async (_, headers) => {
  expect(await readJson(post('"12345"', headers), 7)).toEqual({ value: "12345", bytes: 7 });
  const { refusal } = (await readJson(post('"12345"', headers), 6)) as { refusal: Response };
  expect(refusal.status).toBe(413);
  expect(await refusal.text()).toContain("more than 6 bytes.");
});

it("a request without a body has no value, and a body that is not JSON is reported as such", async () => {
  const get = new Request("http://127.0.0.1/");
  expect(await Promise.all([get, post("")].map(async (each) => readJson(each, 9)))).toEqual([
    { value: undefined, bytes: 0 },
    { value: undefined, bytes: 0 },
  ]);
  expect(await readJson(post("{"), 9)).toEqual({ notJson: true });
});

it("a byte order mark is not part of a body", async () => {
  expect(await readJson(post("\uFEFF{}"), 9)).toMatchObject({ value: {} });
});
