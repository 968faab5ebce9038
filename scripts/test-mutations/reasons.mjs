// Reasons why an undetected fault is acceptable: its change is unobservable. `around` occurs in the line of
// the fault.
const REASONS = [
  {
    file: "src/tools/elicitation/eliciting-wait.ts",
    around: "(state.lastTurnEventId ?? 0) >= from",
    reason:
      "detected by test/unit/tools-check.test.ts, tried by hand: no test near the file reaches it, and the map is older",
  },
  {
    file: "src/store/sqlite/connect/open-file.ts",
    around: "throw new StoreError(",
    reason: "the compiler refuses another word, and no test machine has a network mount",
  },
  {
    file: "src/claude/supervise/leftover-processes.ts",
    around: "performance.now() < deadline",
    reason:
      "the function would only take longer, up to GONE_WITHIN_MS, or a reading of the clock would have to equal the deadline",
  },
  {
    file: "src/claude/supervise/reaper-process.ts",
    around: "performance.now() < deadline",
    reason: "a reading of the clock would have to equal the deadline",
  },
  {
    file: "src/claude/supervise/tagged-processes.ts",
    around: "performance.now() > deadline",
    reason: "a reading of the clock would have to equal the deadline",
  },
  {
    file: "src/tools/blocking/outcome.ts",
    around: "includeResult: false",
    reason: "a request is open only in a running turn, which has no result yet",
  },
  {
    file: "src/tools/chat/talk.ts",
    around: 'outcome === "done" || message === undefined',
    reason: "the end of a turn that is done has no message",
  },
  {
    file: "src/claude/supervise/tree.ts",
    around: "at < pids.length",
    reason: "one more batch would be empty",
  },
  {
    file: "src/store/sqlite/writer.ts",
    around: "wait <= 0",
    reason: "two readings of a clock in fractions of a millisecond would have to be equal, and the wait would be 0 ms",
  },
  {
    file: "src/http/metrics/metrics.ts",
    around: "now - last.at >= ms",
    reason: "the difference of two readings of a clock in fractions of a millisecond would have to be a whole number",
  },
];

export function reasonFor({ file, line }, read) {
  const text = read(file).split("\n")[line - 1];
  return REASONS.find((each) => each.file === file && text.includes(each.around))?.reason;
}
