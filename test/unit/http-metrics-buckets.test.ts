import { Histogram, Registry } from "prom-client";
import { expect, it } from "vitest";

import { instruments } from "../../src/http/metrics/instruments.ts";

it.each([
  ["turn_duration_seconds", [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14_400]],
  ["permission_wait_seconds", [0.1, 1, 5, 15, 30, 60, 120, 300, 600, 1800]],
  ["http_request_duration_seconds", [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 2.5, 10, 30, 60, 300]],
])("the histogram %s has the bucket bounds %j", async (name, bounds) => {
  const registry = new Registry();
  for (const each of Object.values(instruments(registry))) if (each instanceof Histogram) each.observe(0);
  const families = await registry.getMetricsAsJSON();
  const family = families.find((each) => each.name === `claude_code_mcp_${name}`);
  const values = family?.values as { labels: { le?: number | string } }[];
  expect(values.flatMap(({ labels }) => (typeof labels.le === "number" ? [labels.le] : []))).toEqual(bounds);
});
