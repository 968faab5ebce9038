import { beforeAll, describe, expect, it } from "vitest";

import { send } from "../kit/clients/console-client.ts";
import { post, type HttpServer } from "../kit/servers/http-server.ts";
import { useWorld } from "../kit/world.ts";

/** Tests the page of the console as the server serves it. */

const world = useWorld({ agent: "stand-in" });
let http: HttpServer;
beforeAll(async () => {
  http = await world.http();
});

const statusOf = async (answer: Promise<Response>) => (await answer).status;

describe("the page of the console", () => {
  it("the page comes with headers that let no foreign content load or run", async () => {
    for (const path of ["", "api/me", "assets/none.js"]) {
      const { headers } = await send(http, path);
      const policy = new Map(
        headers
          .get("content-security-policy")
          ?.split("; ")
          .map((part) => part.split(/ (.*)/s) as [string, string]),
      );
      expect(Object.fromEntries(policy)).toMatchObject({
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
      });
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("cross-origin-opener-policy")).toBe("same-origin");
    }
  });

  it("the page consists of the files of the build and no others", async () => {
    const home = await fetch(http.origin, { redirect: "manual" });
    expect([home.status, home.headers.get("location")]).toEqual([302, "console/"]);
    const page = await send(http, "");
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const [, script = ""] = /<script[^>]+src="\.\/([^"]+)"/.exec(await page.text()) ?? [];
    const code = await send(http, script);
    expect([code.status, code.headers.get("content-type")]).toEqual([200, "text/javascript; charset=utf-8"]);
    expect(code.headers.get("cache-control")).toContain("immutable");
    const known = { "if-none-match": code.headers.get("etag") ?? "" };
    expect(await statusOf(send(http, script, { headers: known }))).toBe(304);
    for (const path of ["assets/..%2f..%2f..%2fpackage.json", "%2e%2e/%2e%2e/package.json", "nothing.js", "assets"]) {
      expect([path, await statusOf(send(http, path))]).toEqual([path, 404]);
    }
  });

  it.each([
    ["sessions/1f0c", "#/sessions/1f0c"],
    ["nothing", "#/nothing"],
    ["..%2f%0d%0aa", "#/..%2f%0d%0aa"],
  ])("a browser at %s is redirected to %s", async (path, to) => {
    const { headers, status, url } = await send(http, path, { headers: { accept: "text/html, */*" } });
    const location = new URL(headers.get("location") ?? "", url).href;
    expect([status, location]).toEqual([302, `${http.origin}/console/${to}`]);
  });

  it("with --no-console, neither the page nor its API is there", async () => {
    const other = await world.http({ args: ["--no-console"] });
    for (const path of ["", "index.html", "api/me", "api/sessions"]) {
      const headers = { authorization: `Bearer ${other.token}` };
      expect([path, await statusOf(send(other, path, { headers }))]).toEqual([path, 404]);
    }
    expect(await statusOf(send(other, "api/sign-in", post({ token: other.token })))).toBe(404);
    await other.close();
  });
});
