import { defineConfig } from "vitest/config";

import { amount } from "./test/kit/runner/amount.ts";
import { LongestFirst } from "./test/kit/runner/longest-first.ts";

export default defineConfig({
  test: {
    reporters: ["default", "./test/kit/runner/closing-line.ts"],
    pool: "forks",
    globalSetup: ["./test/kit/runner/no-daemon-left.ts"],
    // Three workers for two cores, because some tests only wait.
    maxWorkers: 3,
    // Concurrent tests of a file: each runs a Claude Code and git, whose time limits are those of users.
    maxConcurrency: 3,
    sequence: { sequencer: LongestFirst },
    // Far above every expected wait, so that a slow machine causes no failure.
    expect: { poll: { timeout: 15_000 } },
    hookTimeout: 60_000,
    // Shares modules among all files of a worker: no test changes a module, and each file has a `World` of its own.
    isolate: false,
    projects: [
      {
        extends: true,
        test: { name: "unit", include: ["test/unit/**/*.test.ts"], testTimeout: amount(20_000, 400_000) },
      },
      {
        extends: true,
        test: {
          name: "server",
          include: ["test/{server,acceptance}/**/*.test.ts"],
          testTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: "browser",
          include: ["test/{browser,page}/**/*.test.ts"],
          globalSetup: ["scripts/start-chromium.mjs"],
          testTimeout: 120_000,
        },
      },
      {
        extends: true,
        test: { name: "claude", include: ["test/claude/**/*.test.ts"], testTimeout: 60_000 },
      },
      {
        extends: true,
        // Needs other servers (a database, sshd). Run by `npm run test:all` only.
        test: {
          name: "machines",
          include: ["test/machines/**/*.test.ts"],
          globalSetup: ["scripts/install-openssh.mjs", "scripts/start-postgres.mjs"],
          testTimeout: 120_000,
        },
      },
      {
        extends: true,
        // Full tables and long waits, run by `npm run test:all` only. Acceptance runs with Claude Code, without a daemon.
        test: {
          name: "slow",
          include: ["test/{acceptance,attacks,conformance,faults,load,matrices}/**/*.test.ts"],
          env: { ACCEPTANCE: "real" },
          globalSetup: ["scripts/install-attack-tools.mjs"],
          testTimeout: 120_000,
        },
      },
    ],
  },
});
