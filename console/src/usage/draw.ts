import {
  BarController,
  BarElement,
  CategoryScale,
  Chart,
  type ChartConfiguration,
  type ChartOptions,
  LinearScale,
  Tooltip,
  type TooltipItem,
} from "chart.js";
import type { Figure } from "./figure.ts";
import { type Palette, paletteOf } from "./palette.ts";

/** Draws figures with the bar chart of Chart.js. Imported on demand by `Picture`. */

Chart.register(BarController, BarElement, CategoryScale, LinearScale, Tooltip);

/** Maximum characters of a name beside the axis. */
const MAX_NAME = 22;

/** Draws the figure. The returned function destroys the chart. */
export function draw(canvas: HTMLCanvasElement, figure: Figure): () => void {
  const palette = paletteOf(canvas);
  const config: ChartConfiguration<"bar", number[], string> = {
    type: "bar",
    data: {
      labels: [...figure.labels],
      datasets: figure.series.map(({ fill, name, values }) => ({
        label: name,
        data: [...values],
        backgroundColor: palette.fills.get(fill) ?? palette.text,
        hoverBackgroundColor: palette.fills.get(fill) ?? palette.text,
        maxBarThickness: figure.lying === true ? 22 : 36,
        borderRadius: 1,
        categoryPercentage: 0.85,
        barPercentage: 0.95,
      })),
    },
    options: optionsOf(figure, palette),
  };
  const chart = new Chart(canvas, config);
  return () => chart.destroy();
}

function optionsOf(figure: Figure, palette: Palette): ChartOptions<"bar"> {
  const names = namesAxis(figure, palette);
  const amounts = amountsAxis(figure, palette);
  return {
    responsive: true,
    maintainAspectRatio: false,
    // Off, because visible charts are redrawn after each reload.
    animation: false,
    indexAxis: figure.lying === true ? "y" : "x",
    interaction: { mode: "index", axis: figure.lying === true ? "y" : "x", intersect: false },
    scales: figure.lying === true ? { x: amounts, y: names } : { x: names, y: amounts },
    plugins: { tooltip: tooltip(figure, palette) },
  };
}

type Axis = NonNullable<NonNullable<ChartOptions<"bar">["scales"]>[string]>;

function namesAxis({ labels, lying = false }: Figure, { font, line, soft }: Palette): Axis {
  return {
    stacked: true,
    grid: { display: false },
    border: { color: line },
    ticks: {
      color: soft,
      font: { family: font, size: 12 },
      maxRotation: 0,
      autoSkip: !lying,
      autoSkipPadding: 12,
      callback: (_, n) => cutName(labels[n] ?? ""),
    },
  };
}

function amountsAxis({ series, stepOf, tick, labels }: Figure, { font, line, soft }: Palette): Axis {
  const sums = labels.map((_, n) => series.reduce((sum, { values }) => sum + (values[n] ?? 0), 0));
  const step = stepOf?.(Math.max(0, ...sums)) ?? 0;
  return {
    stacked: true,
    beginAtZero: true,
    grid: { color: line },
    border: { display: false },
    ticks: {
      color: soft,
      font: { family: font, size: 12 },
      maxRotation: 0,
      maxTicksLimit: 6,
      ...(step > 0 && { stepSize: step }),
      callback: (value) => tick(Number(value)),
    },
  };
}

function tooltip(figure: Figure, { font, line, raised, soft, text }: Palette) {
  const isOfMany = figure.series.length > 1;
  return {
    backgroundColor: raised,
    borderColor: line,
    borderWidth: 1,
    titleColor: text,
    bodyColor: text,
    footerColor: soft,
    titleFont: { family: font },
    bodyFont: { family: font },
    footerFont: { family: font },
    padding: 10,
    boxPadding: 4,
    // Hides zero values in the tooltip.
    filter: ({ raw }: TooltipItem<"bar">) => Number(raw) > 0,
    callbacks: {
      label: ({ dataset, raw }: TooltipItem<"bar">) => `${dataset.label ?? ""}: ${figure.words(Number(raw))}`,
      footer: (items: readonly TooltipItem<"bar">[]) => {
        if (!isOfMany || items.length < 2) return "";
        return `Total: ${figure.words(items.reduce((sum, { raw }) => sum + Number(raw), 0))}`;
      },
    },
  };
}

function cutName(name: string): string {
  return name.length <= MAX_NAME ? name : `${name.slice(0, MAX_NAME - 1)}…`;
}
