import { defineConfig } from "vitest/config";

import { amount } from "./test/support/amount.ts";
import { LongestFirst } from "./test/support/longest-first.ts";

export default defineConfig({
  test: {
    reporters: ["default", "./test/support/closing-line.ts"],
    pool: "forks",
    // `npm run test:coverage` alone sets it.
    setupFiles: process.env["COVERAGE_FOLDER"] === undefined ? [] : ["./test/support/coverage.ts"],
    globalSetup: ["./test/support/no-daemon-left.ts"],
    // For two cores: some tests wait for real time, and others work meanwhile.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // Far above what is ever waited for: a slow machine is no failure.
    expect: { poll: { timeout: 15_000 } },
    projects: [
      {
        extends: true,
        // What is imported serves all files of a worker: no test changes a module.
        test: {
          name: "unit",
          include: ["test/unit/**/*.test.ts"],
          testTimeout: amount(20_000, 400_000),
          hookTimeout: 60_000,
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: "server",
          include: ["test/server/**/*.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          // Each file has a world of its own, and nothing in a module.
          isolate: false,
        },
      },
      {
        extends: true,
        // What each earlier system offers to its callers, from its first call to its last: with the stand-in through a daemon, with Claude Code without one.
        test: {
          name: "acceptance",
          include: ["test/acceptance/**/*.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: "acceptance-real",
          include: ["test/acceptance/**/*.test.ts"],
          env: { ACCEPTANCE: "real" },
          testTimeout: 120_000,
          hookTimeout: 60_000,
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: "browser",
          include: ["test/browser/**/*.test.ts"],
          globalSetup: ["scripts/start-chromium.mjs"],
          testTimeout: 120_000,
          hookTimeout: 60_000,
          isolate: false,
        },
      },
      {
        extends: true,
        // What is about Claude Code itself: every option and its effect, what it protects, sessions of its own on the disk.
        test: {
          name: "claude",
          include: ["test/claude/**/*.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          isolate: false,
        },
      },
      {
        extends: true,
        // The page beyond its main story, which `browser` shows: every view, hostile text, windows of any size.
        test: {
          name: "page",
          include: ["test/page/**/*.test.ts"],
          globalSetup: ["scripts/start-chromium.mjs"],
          testTimeout: 120_000,
          hookTimeout: 60_000,
          isolate: false,
        },
      },
      {
        extends: true,
        // Every combination of client, transport and era; of each promise, `server` and `browser` show one.
        test: {
          name: "matrices",
          include: ["test/matrices/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 60_000,
          isolate: false,
        },
      },
      {
        extends: true,
        // What a hostile repository, model, caller or clock can do, in full tables.
        test: {
          name: "attacks",
          include: ["test/attacks/**/*.test.ts"],
          globalSetup: ["scripts/install-attack-tools.mjs"],
          testTimeout: 120_000,
          hookTimeout: 60_000,
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: "faults",
          include: ["test/faults/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 60_000,
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: "conformance",
          include: ["test/conformance/**/*.test.ts"],
          hookTimeout: 300_000,
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: "load",
          include: ["test/load/**/*.test.ts"],
          hookTimeout: 60_000,
          // For ten minutes: alone, behind all others, since clients that wait for the processor run into their own time-outs.
          sequence: { groupOrder: process.env["LOAD"] === "full" ? 1 : 0 },
        },
      },
    ],
  },
});
