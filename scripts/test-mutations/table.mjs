// The results of the mutation check, for the terminal and for test/mutations.md.
import { OPERATORS } from "./operators.mjs";
import { reasonFor } from "./reasons.mjs";

/** Minimum share of drawn faults that are detected. All faults of by-hand.mjs must be. */
const SHARE = 55 / 60;

export function summaryOf(judged) {
  const [byHand, drawn] = [judged.filter((each) => !isDrawn(each)), judged.filter(isDrawn)];
  const isGood = foundOf(byHand) === byHand.length && foundOf(drawn) >= SHARE * drawn.length;
  const survivors = judged.filter(({ verdict }) => verdict !== "found");
  const lines = [
    ...OPERATORS.map((name) => [name, judged.filter(({ operator }) => operator === name)]),
    ["drawn", drawn],
    ["by hand", byHand],
  ].map(([name, faults]) => `${name.padEnd(22)} ${foundOf(faults)} of ${faults.length} found`);
  const left = survivors.map(
    ({ becomes, file, line, verdict, was }) => `${verdict}: ${file}:${line} ${was} -> ${becomes}`,
  );
  return { isGood, text: [...lines, ...left].join("\n") };
}

export function tableOf(judged, { count, read, seed }) {
  const drawn = judged.filter(isDrawn);
  const rows = judged.map(({ becomes, by, file, line, operator, verdict = "not tried", was, ...fault }) => {
    const result = by ? `${by.file.replace(/^test\//, "")}: ${by.name}` : (reasonFor({ file, line }, read) ?? "");
    return `| ${[operator, `${file}:${line}`, code(was), code(becomes), verdict, cell(result), fault.seconds ?? ""].join(" | ")} |`;
  });
  return `# Faults that the tests were tried with

Written by \`npm run test:mutations -- --seed ${seed} --count ${count} --write\`: how, and what it is for, stands in
[docs/testing.md](../docs/testing.md). Of ${drawn.length} faults that were drawn ${foundOf(drawn)} are found.

| operator | place | was | becomes | | found by, or the reason why not | s |
| --- | --- | --- | --- | --- | --- | --- |
${rows.join("\n")}
`;
}

function isDrawn({ operator }) {
  return OPERATORS.includes(operator);
}

function foundOf(faults) {
  return faults.filter(({ verdict }) => verdict === "found").length;
}

function cell(text) {
  return text.replaceAll("|", "\\|").replaceAll(/\s+/g, " ");
}

function code(text) {
  if (text === "") return "(nothing)";
  const short = text.length > 80 ? `${text.slice(0, 77)}...` : text;
  return `\`\` ${cell(short)} \`\``;
}
