import { PassThrough } from "node:stream";
import { createInterface } from "node:readline";
import { lazy } from "../../../src/mcp/lazy.ts";
import { createFollowing } from "../../../src/mcp/server-options.ts";
import { createRequestStates, UnattendedClients } from "../../../src/mcp/form-state.ts";
import { serveOverStdio, type StdioOptions } from "../../../src/mcp/stdio.ts";
import type { Tool } from "../../../src/tools/define.ts";
import { listToolNames } from "../../../src/tools/tool-names.ts";
import { availablePrompts } from "../../../src/mcp/prompts/prompts.ts";
import { LIBRARY } from "../../../src/mcp/resources/library.ts";
import { toolsOf } from "../../../src/tools/toolsets.ts";
import { depsOf, FakeEngine, TOOLSET_SETTINGS } from "../tools/fake-engine.ts";

const AGENT = listToolNames(["agent"], TOOLSET_SETTINGS.query);

type Message = Record<string, unknown>;

interface WireOptions extends Partial<StdioOptions> {
  readonly tools?: readonly Tool[];
}

/** A server in this process behind two streams; a `Wire` is the client's transport for either SDK. */
export class Wire {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly engine = new FakeEngine();
  readonly deps = depsOf(this.engine);
  /** Every line that the server wrote. */
  readonly lines: string[] = [];
  readonly warnings: object[] = [];
  closes = 0;
  depsMade = 0;
  readonly server: { close(): Promise<void> };

  // oxlint-disable-next-line typescript/no-explicit-any -- the two SDKs have different types for the same message
  onmessage?: (message: any) => void;
  onclose?: () => void;
  onerror?: (error: Error) => void;

  constructor({ tools = toolsOf(["agent"], TOOLSET_SETTINGS), ...options }: WireOptions = {}) {
    const lines = createInterface({ input: this.stdout });
    lines.on("error", () => undefined);
    let chunk: string[] | undefined;
    lines.on("line", (line) => {
      this.lines.push(line);
      chunk ??= this.#arriving(() => (chunk = undefined));
      chunk.push(line);
    });
    const offered = {
      offer: () => Promise.resolve({ tools, library: LIBRARY, prompts: availablePrompts(options.toolNames ?? AGENT) }),
      deps: lazy(() => {
        this.depsMade += 1;
        return Promise.resolve(this.deps);
      }),
      log: {
        error: (_: string, fields?: object) => void this.warnings.push(fields ?? {}),
        warn: (_: string, fields?: object) => void this.warnings.push(fields ?? {}),
      },
    };
    this.server = serveOverStdio({
      ...offered,
      following: createFollowing({ ...offered, ...options }),
      toolNames: AGENT,
      logs: true,
      reported: undefined,
      limits: { maxWaitMs: 45_000 },
      states: createRequestStates(async () => Promise.resolve(new Uint8Array(32))),
      unattended: new UnattendedClients({ info: () => undefined }),
      tasks: undefined,
      events: undefined,
      lastAnswersMs: 45_000,
      info: { name: "claude-agents-mcp", version: "1.2.3" },
      onClose: () => {
        this.closes += 1;
      },
      streams: { stdin: this.stdin, stdout: this.stdout },
      ...options,
    });
  }

  /** Acts like a pipe: lines written together arrive in one chunk and are handled in one turn of the event loop. */
  #arriving(onWhole: () => void): string[] {
    const chunk: string[] = [];
    process.nextTick(onWhole);
    setImmediate(() => {
      for (const line of chunk) this.onmessage?.(JSON.parse(line));
    });
    return chunk;
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  send(message: object): Promise<void> {
    this.stdin.write(`${JSON.stringify(message)}\n`);
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.stdin.end();
    this.onclose?.();
    return Promise.resolve();
  }

  /** Resolves with the first message from the server for which `fits` is true. */
  async waitForMessage(fits: (message: Message) => boolean): Promise<Message> {
    for (;;) {
      const found = this.lines.map((line) => JSON.parse(line) as Message).find(fits);
      if (found) return found;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}
