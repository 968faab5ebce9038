import { expect, it } from "vitest";

import { RequestLinks } from "../../src/console/request-links.ts";

const MINUTE = 60_000;
const WHICH = { sessionId: "s", requestId: "r" };
const ann = { principal: "ann", scopes: ["read", "approve"] as const, attended: true };

function linksAt(): {
  links: RequestLinks;
  clock: { now: number };
  find: (url: string) => ReturnType<RequestLinks["find"]>;
} {
  const clock = { now: 5 };
  const links = new RequestLinks({ address: () => "http://h/#link=", lifetimeMs: 10 * MINUTE, now: () => clock.now });
  return { links, clock, find: (url) => links.find(url.replace("http://h/#link=", "")) };
}

it("a link, and then its page, expire ten minutes after they were made", () => {
  const { clock, find, links } = linksAt();
  const link = find(links.urlFor(ann, WHICH))!;
  clock.now += 10 * MINUTE - 1;
  expect(links.hasExpired(link)).toBe(false);
  const page = links.use(link);
  clock.now += 10 * MINUTE - 1;
  expect(links.hasExpired(links.findPage(link.id, page)!)).toBe(false);
  clock.now += 1;
  expect(links.hasExpired(link)).toBe(true);
  expect(links.isOpen(WHICH)).toBe(false);
});

it("a client gets its unused link again in the first five minutes, and a new one after that or after the use", () => {
  const { clock, find, links } = linksAt();
  const first = links.urlFor(ann, WHICH);
  clock.now += 5 * MINUTE - 1;
  expect(links.urlFor(ann, WHICH)).toBe(first);
  clock.now += 1;
  const second = links.urlFor(ann, WHICH);
  expect(second).not.toBe(first);
  links.use(find(second)!);
  expect([first, second]).not.toContain(links.urlFor(ann, WHICH));
});

it("a client without a person, of another user or of another request never gets the link of an attended client", () => {
  const { find, links } = linksAt();
  const { attended: _, ...alone } = ann;
  const urls = [
    links.urlFor(ann, WHICH),
    links.urlFor(alone, WHICH),
    links.urlFor({ ...ann, principal: "bob" }, WHICH),
    links.urlFor(ann, { ...WHICH, requestId: "other" }),
    links.urlFor({ ...ann, scopes: ["approve", "decide", "admin"] }, WHICH),
  ];
  expect(new Set(urls).size).toBe(5);
  expect(urls.map((url) => find(url)?.caller)).toEqual([
    { principal: "ann", scopes: ["approve"], attended: true },
    { principal: "ann", scopes: ["approve"] },
    { principal: "bob", scopes: ["approve"], attended: true },
    { principal: "ann", scopes: ["approve"], attended: true },
    { principal: "ann", scopes: ["approve", "decide"], attended: true },
  ]);
});

it("a request counts as open on a page for 70 s after the page was expected or last seen", () => {
  const { clock, find, links } = linksAt();
  const link = find(links.urlFor(ann, WHICH))!;
  expect(links.isOpen(WHICH)).toBe(false);
  links.noteAccepted(WHICH);
  clock.now += 69_999;
  expect(links.isOpen(WHICH)).toBe(true);
  expect(links.isOpen({ ...WHICH, requestId: "other" })).toBe(false);
  clock.now += 1;
  expect(links.isOpen(WHICH)).toBe(false);
  const page = links.use(link);
  clock.now += 70_000;
  expect(links.isOpen(WHICH)).toBe(false);
  links.findPage(link.id, page);
  expect(links.isOpen(WHICH)).toBe(true);
});

it("an expired link is forgotten after an hour, when a new one is made, and a wrong page secret finds nothing", () => {
  const { clock, find, links } = linksAt();
  const url = links.urlFor(ann, WHICH);
  const { id } = find(url)!;
  expect(links.findPage(id, "")).toBeUndefined();
  clock.now += 60 * MINUTE - 1;
  links.urlFor(ann, WHICH);
  expect(find(url)).toBeDefined();
  clock.now += 1;
  links.urlFor(ann, { ...WHICH, requestId: "other" });
  expect(find(url)).toBeUndefined();
});
