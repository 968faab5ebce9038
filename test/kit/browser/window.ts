import { join } from "node:path";
import axe from "axe-core";
import type { Browser, BrowserContext, BrowserContextOptions, ConsoleMessage, Page } from "playwright-core";

import type { HttpServer } from "../servers/http-server.ts";

/** Folder for screenshots, ignored by git: of failed tests and, with PICTURES=1, of views. */
export const PICTURES = "test-output/console";

/** A window of the console, and all faults in that window. */
export interface OpenWindow {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Unexpected errors, console messages, policy violations, requests to other origins and dialogs. */
  readonly troubles: string[];
  /** Ignores console messages that match `of`, for tests in which the server refuses requests or is gone. */
  allowFailures(of: RegExp): void;
  /** Goes to a view by its address. */
  go(hash: string): Promise<void>;
  /** Returns the violations that `axe` finds in the present view. */
  violations(): Promise<string[]>;
  /** Width by which the document exceeds the window, px. */
  overhang(): Promise<number>;
  /** Takes a screenshot of the whole page, or of the visible part if `isWhole` is false. */
  shot(name: string, isWhole?: boolean): Promise<void>;
  /** Like `shot`, only with PICTURES=1. */
  picture(name: string, isWhole?: boolean): Promise<void>;
}

export interface WindowOptions extends Pick<BrowserContextOptions, "viewport" | "colorScheme" | "hasTouch"> {
  /** Token of the user of the window; "" stays signed out. */
  readonly token?: string;
  /** Fragment of the address, without #. */
  readonly hash?: string;
  /** Installs `page.clock`: time runs as usual and can be moved. */
  readonly hasClock?: boolean;
}

export const DESKTOP = { width: 1280, height: 900 };
export const PHONE = { width: 360, height: 740 };

export async function openWindow(
  browser: Browser,
  http: HttpServer,
  { hasClock = false, hash = "", token = http.token, ...options }: WindowOptions,
): Promise<OpenWindow> {
  const context = await browser.newContext({
    viewport: DESKTOP,
    colorScheme: "light",
    reducedMotion: "reduce",
    locale: "en-GB",
    timezoneId: "Europe/Berlin",
    ...options,
  });
  const page = await context.newPage();
  // Far above every real wait, so that a slow machine causes no failure.
  page.setDefaultTimeout(60_000);
  const allowed: RegExp[] = [UNKNOWN_YET];
  const troubles = watch(page, http.origin, allowed);
  if (hasClock) await page.clock.install();
  await page.addInitScript(TELL_OF_VIOLATIONS);
  await page.goto(`${http.origin}/console/`);
  if (token !== "") {
    await page.getByLabel("Access token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("navigation").waitFor();
  }
  const window: OpenWindow = {
    page,
    context,
    troubles,
    allowFailures: (of) => void allowed.push(of),
    go: async (to) => {
      await page.evaluate(`location.hash = ${JSON.stringify(to)}`);
    },
    async violations() {
      if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(axe.source);
      const found = await page.evaluate<Violation[]>(RUN_AXE);
      return found.flatMap(({ id, nodes }) => nodes.map(({ target, why }) => `${id}: ${target.join(" ")} ${why}`));
    },
    overhang: async () =>
      page.evaluate<number>("document.documentElement.scrollWidth - document.documentElement.clientWidth"),
    async shot(name, isWhole = true) {
      await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: isWhole });
    },
    async picture(name, isWhole) {
      if (process.env["PICTURES"] === "1") await window.shot(name, isWhole);
    },
  };
  if (hash !== "") await window.go(hash);
  return window;
}

/** Message about the page's request for the current user before the sign-in. */
const UNKNOWN_YET = /status of 401 .*\/console\/api\/me$/;

function watch(page: Page, origin: string, allowed: readonly RegExp[]): string[] {
  const troubles: string[] = [];
  const note = (trouble: string) => {
    if (!troubles.includes(trouble) && !allowed.some((pattern) => pattern.test(trouble))) troubles.push(trouble);
  };
  page.on("pageerror", (error) => note(`error: ${error.stack ?? error.message}`));
  page.on("console", (message: ConsoleMessage) => {
    if (["error", "warning"].includes(message.type())) note(`console: ${message.text()} ${message.location().url}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(`${origin}/`)) note(`request to ${request.url()}`);
  });
  page.on("dialog", (dialog) => {
    note(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("popup", (popup) => note(`popup: ${popup.url()}`));
  page.on("download", (download) => note(`download: ${download.url()}`));
  return troubles;
}

/** Logs all violations of the content security policy with `console.error`; the browser itself logs most of them. */
const TELL_OF_VIOLATIONS = `document.addEventListener("securitypolicyviolation", (event) =>
  console.error("policy: " + event.violatedDirective + " " + event.blockedURI + " " + event.sample));`;

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly target: readonly string[]; readonly why: string }[];
}

const RUN_AXE = `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
  violations.map(({ id, nodes }) => ({
    id,
    nodes: nodes.map(({ failureSummary, target }) => ({ target, why: failureSummary.replaceAll("\\n", " ") })),
  })))`;
