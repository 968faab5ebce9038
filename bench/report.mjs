/** Formats the rows of the report as text and as JSON. */
import { cpus } from "node:os";

const COLUMNS = ["", "this", "compared with", "that", "ratio", "middle half", "bound", "met"];

function cells({ base, baseValue, bound, met, ratio, row, spread, unit, value }) {
  return [
    row,
    `${figure(value)} ${unit}`,
    base ?? "",
    baseValue === undefined ? "" : `${figure(baseValue)} ${unit}`,
    ratio === undefined ? "" : `${ratio.toFixed(2)}x`,
    spread ? `${spread[0].toFixed(2)} to ${spread[1].toFixed(2)}` : "",
    bound ?? "",
    met === undefined ? "" : met ? "yes" : "NO",
  ];
}

function figure(value) {
  if (value >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
  return value.toFixed(Math.abs(value) < 1 ? 2 : 1);
}

export function asTable(rows) {
  const lines = [COLUMNS, ...rows.map(cells)];
  const widths = COLUMNS.map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column]))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

export function asJson(rows) {
  const { arch, platform, version: node } = process;
  return JSON.stringify(
    { date: new Date().toISOString(), node, platform, arch, cores: cpus().length, rows },
    undefined,
    2,
  );
}
