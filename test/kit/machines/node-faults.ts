import type { TestNode } from "./nodes.ts";

/** A fault of a node, and its end. */
export interface NodeFault {
  readonly begin: (node: TestNode) => void | Promise<void>;
  readonly end: (node: TestNode) => void | Promise<void>;
  /** True if the machine ends its Claude Code when its lease ends, while the fault lasts. */
  readonly endsClaude: boolean;
}

/** Faults by their continuation of "a node ". Each leaves the server as it was, without a new start. */
export const PAUSES: Readonly<Record<string, NodeFault>> = {
  "whose server is frozen": {
    begin: ({ server }) => server.signal("SIGSTOP"),
    end: ({ server }) => server.signal("SIGCONT"),
    endsClaude: true,
  },
  "that is frozen as a whole": {
    begin: ({ machine }) => machine.freeze(),
    end: ({ machine, server }) => {
      machine.continue();
      server.signal("SIGCONT");
    },
    endsClaude: false,
  },
  "whose connections to the database are cut": {
    begin: ({ network }) => network.cut(),
    end: ({ network }) => network.continue(),
    endsClaude: true,
  },
  "that the network cuts off without a word": {
    begin: ({ network }) => network.freeze(),
    end: ({ network }) => network.continue(),
    endsClaude: true,
  },
};

export const KILLS: Readonly<Record<string, NodeFault>> = {
  "whose machine is killed": {
    begin: async (node) => node.kill(),
    end: async (node) => node.start(),
    endsClaude: true,
  },
  "whose server is killed": {
    begin: async (node) => {
      await node.killServer();
      await node.start();
    },
    end: () => undefined,
    endsClaude: false,
  },
};
