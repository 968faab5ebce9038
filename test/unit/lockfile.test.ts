import { readFileSync } from "node:fs";

import { expect, it } from "vitest";
import { z } from "zod";

const Lock = z.object({
  packages: z.record(z.string(), z.object({ optionalDependencies: z.record(z.string(), z.string()).optional() })),
});

/** npm leaves platform packages missing in its registry out of the lock file, and `npm ci` then fails. */
it("the lock file names every platform's optional package", () => {
  const { packages } = Lock.parse(JSON.parse(readFileSync("package-lock.json", "utf8")));
  const missing = Object.entries(packages).flatMap(([where, entry]) =>
    Object.keys(entry.optionalDependencies ?? {})
      .filter((name) => {
        const parts = where.split("/node_modules/");
        return !parts
          .map((_, i) => [...parts.slice(0, parts.length - i), name].join("/node_modules/"))
          .concat(`node_modules/${name}`)
          .some((path) => path in packages);
      })
      .map((name) => `${where} -> ${name}`),
  );
  expect(missing).toEqual([]);
});
