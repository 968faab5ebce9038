import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";

import { Issuer } from "../kit/servers/http-auth.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { addSession, id, promptEvent, assistantEvent } from "../kit/clients/sessions-command.ts";
import { toolCalls, writeCall } from "../kit/people/fake-user.ts";
import { signIn } from "../kit/clients/console-client.ts";
import { waitForNoCards, cards, entry, press, startSession } from "../kit/browser/cards.ts";
import { openDesk, type Desk } from "../kit/browser/desk.ts";

/** Several users of a server: ownership of sessions, and users who may only read. */

const users = namedUsers({
  ann: { scopes: ["read", "run", "approve"] },
  bob: { scopes: ["read", "run", "approve"] },
  ron: { scopes: ["read", "run"] },
  rea: { scopes: ["read"] },
});
const [OF_REA, OF_ANN] = [id(1), id(2)];

let desk: Desk;
let issuer: Issuer;
beforeAll(async () => {
  issuer = await Issuer.start();
  desk = await openDesk({
    args: [...users.args, "--oauth", JSON.stringify({ issuer: issuer.url }), "--allow-dir", "/"],
    async seeded(node) {
      await addSession(node, OF_REA, {
        principal: "rea",
        events: [promptEvent("Look around."), assistantEvent("There is nothing.")],
      });
      await addSession(node, OF_ANN, { principal: "ann", events: [promptEvent("Wait."), assistantEvent("I wait.")] });
    },
  });
});
afterEach(async (test) => desk.clear(test));
afterAll(async () => {
  await desk.close();
  await issuer.close();
});

/** Sends a request with the credentials of the page's own browser; resolves with the status. */
const requestFromPage = async (page: Page, path: string, body: object) =>
  page.evaluate<number>(`(async () => {
    const [key] = Object.keys(localStorage).filter((name) => name.endsWith("console key"));
    const headers = { "content-type": "application/json", "x-console-key": localStorage.getItem(key) };
    const answer = await fetch("api/${path}", { method: "POST", headers, body: ${JSON.stringify(JSON.stringify(body))} });
    return answer.status;
  })()`);

it("two users in two windows neither see nor change each other's sessions", async () => {
  const ann = await desk.open({ token: users.tokens.ann });
  const bob = await desk.open({ token: users.tokens.bob, hasClock: true });
  await bob.page.getByRole("heading", { name: "No sessions yet" }).waitFor();
  const cwd = desk.world.folder();
  const file = join(cwd, "of-ann");
  const session = await startSession(ann.page, `Mine. ${toolCalls([writeCall(file)])}`, { cwd });
  const card = cards(ann.page);
  await card.waitFor();
  const own = desk.world.folder();
  await startSession(bob.page, `His. ${toolCalls([writeCall(join(own, "of-bob"))])}`, { cwd: own });
  await press(cards(bob.page), "Allow");
  await entry(bob.page, "Turn done").waitFor();
  await bob.page.getByRole("link", { name: "Sessions", exact: true }).click();
  await bob.page.getByRole("link", { name: /^His\./ }).waitFor();
  expect(await bob.page.getByText(/Mine\./).count()).toBe(0);
  await bob.page.getByRole("link", { name: "Approvals", exact: true }).click();
  await waitForNoCards(bob.page);
  await bob.page.getByText("No open requests.").waitFor();
  expect(await bob.page.getByText(/of-ann|Mine\./).count()).toBe(0);
  bob.allowFailures(/status of 404/);
  await bob.go(`#/sessions/${session}`);
  const heading = bob.page.getByRole("heading", { name: "Session not found" });
  await heading.waitFor();
  // The heading has the position of other views' headings.
  const top = async (of: Locator) => (await of.boundingBox())?.y;
  const here = await top(heading);
  expect(await bob.page.title()).toMatch(/Session not found · /);
  await bob.go("#/nothing");
  const missing = bob.page.getByRole("heading", { name: "Page not found" });
  await missing.waitFor();
  expect(await top(missing)).toBe(here);
  await bob.go("#/approvals");
  expect(await top(bob.page.getByRole("heading", { name: "Approvals" }))).toBe(here);
  const { requestId } = await (await signIn(desk.http, users.tokens.ann)).asked(session);
  const answer = await requestFromPage(bob.page, `sessions/${session}/requests/${requestId}`, { decision: "allow" });
  const cancel = await requestFromPage(bob.page, `sessions/${session}/cancel`, {});
  expect([answer, cancel]).toEqual([404, 404]);
  expect(existsSync(file)).toBe(false);
  await press(card, "Allow");
  await entry(ann.page, "Turn done").waitFor();
  expect(existsSync(file)).toBe(true);
  expect(await ann.page.getByText(/of-bob|His\./).count()).toBe(0);
});

it("a request answered in one window disappears from the other", async () => {
  const token = users.tokens.ann;
  const one = await desk.open({ token });
  const other = await desk.open({ token, hash: "#/approvals" });
  const cwd = desk.world.folder();
  await startSession(one.page, toolCalls([writeCall(join(cwd, "a"))]), { cwd });
  await other.page
    .getByRole("link", { name: /^Approvals/ })
    .getByText("1")
    .waitFor();
  await press(cards(other.page, "Claude Code asks to write a file"), "Allow");
  // The outcome stays visible for a moment, in case the user was typing there.
  await cards(one.page)
    .getByText(/^Allowed in the console/)
    .waitFor();
  await entry(one.page, /Allowed in the console:/).waitFor();
  await expect.poll(async () => cards(one.page).count()).toBe(0);
});

it("a user with only the scope read sees no control that changes anything, and the API refuses changes", async () => {
  const window = await desk.open({ token: users.tokens.rea });
  const { page } = window;
  await page.getByRole("link", { name: "Look around." }).click();
  await entry(page, "There is nothing.").waitFor();
  await page.getByText("You can view this session but not send prompts.").waitFor();
  const acts = /^(New|Start|Send|Rename|Interrupt|Cancel|Delete|Rewind|Revoke|Allow|Deny|Run|Drop)/;
  for (const role of ["button", "link"] as const) expect(await page.getByRole(role, { name: acts }).count()).toBe(0);
  expect(await page.getByRole("textbox").count()).toBe(0);
  await window.go("#/start");
  await page.getByText("You can view sessions but not start any").waitFor();
  window.allowFailures(/status of 403/);
  expect(await requestFromPage(page, "sessions", { prompt: "x" })).toBe(403);
  for (const action of ["reply", "cancel", "delete", "rename"]) {
    expect(await requestFromPage(page, `sessions/${OF_REA}/${action}`, { prompt: "x", title: "x" })).toBe(403);
  }
});

it("a user without the scope approve sees the request and whom to ask, but cannot answer", async () => {
  const window = await desk.open({ token: users.tokens.ron });
  const { page } = window;
  const cwd = desk.world.folder();
  const file = join(cwd, "not-by-ron");
  const session = await startSession(page, toolCalls([writeCall(file)]), { cwd });
  const card = cards(page);
  await card.getByText("not-by-ron").first().waitFor();
  await card.getByText("You can view requests but not answer them.").waitFor();
  for (const button of await card.getByRole("button", { name: /^(Allow|Deny|Edit)/ }).all()) {
    expect(await button.isDisabled()).toBe(true);
  }
  await card.press("a");
  window.allowFailures(/status of 403/);
  const { requestId } = await (await signIn(desk.http, users.tokens.ron)).asked(session);
  expect(await requestFromPage(page, `sessions/${session}/requests/${requestId}`, { decision: "allow" })).toBe(403);
  expect(existsSync(file)).toBe(false);
  await card.waitFor();
});

it("an expired token leads from the page to the sign-in form, which says why; a new token leads back", async () => {
  const endsIn = async (seconds: number) =>
    issuer.sign({ sub: "joe", aud: desk.http.url, exp: Math.floor(Date.now() / 1_000) + seconds - 30 });
  const joe = await desk.open({ token: "", hash: "#/usage" });
  joe.allowFailures(/status of 401|net::ERR_/);
  await joe.page.getByLabel("Access token").fill(await endsIn(8));
  await joe.page.keyboard.press("Enter");
  await joe.page.getByRole("heading", { name: "Usage" }).waitFor();
  const alert = joe.page.getByRole("alert").filter({ hasText: "it has expired or was revoked" });
  await alert.waitFor({ timeout: 60_000 });
  expect(await joe.page.getByRole("navigation").count()).toBe(0);
  const other = await joe.context.newPage();
  await other.goto(joe.page.url());
  await other.getByLabel("Access token").fill(await endsIn(600));
  await other.getByRole("button", { name: "Sign in" }).click();
  // Signing in to either window signs in both, and clears the message of the sign-in form.
  for (const page of [other, joe.page]) await page.getByRole("heading", { name: "Usage" }).waitFor();
  await joe.page.getByRole("button", { name: /account and help$/ }).click();
  await joe.page.getByRole("button", { name: "Sign out" }).click();
  await joe.page.getByLabel("Access token").waitFor();
  expect(await alert.count()).toBe(0);
});

it("a draft belongs to its user: it returns after an expired sign-in is renewed, but not for another user", async () => {
  const window = await desk.open({ token: users.tokens.ann, hash: `#/sessions/${OF_ANN}` });
  const { context, page } = window;
  const signInAs = async (token: string) => {
    await page.getByLabel("Access token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("navigation").waitFor();
  };
  const task = page.getByLabel("What is to be done?");
  await page.getByLabel("Prompt").fill("And then");
  await window.go("#/start");
  await task.fill("Half a task");
  window.allowFailures(/status of 401/);
  await context.clearCookies();
  await window.go("#/usage");
  await page.getByRole("alert").filter({ hasText: "it has expired or was revoked" }).waitFor();
  await signInAs(users.tokens.bob);
  await window.go("#/start");
  await expect.poll(async () => task.inputValue()).toBe("");
  await page.getByRole("button", { name: /account and help$/ }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await signInAs(users.tokens.ann);
  await expect.poll(async () => task.inputValue()).toBe("Half a task");
  await window.go(`#/sessions/${OF_ANN}`);
  await expect.poll(async () => page.getByLabel("Prompt").inputValue()).toBe("And then");
});
