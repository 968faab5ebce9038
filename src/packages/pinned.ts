/** Packages that npm installs on demand, with the versions and integrity values of package-lock.json. A test compares them. */

interface Locked {
  readonly name: string;
  readonly version: string;
  readonly integrity: string;
}

export interface Pinned extends Locked {
  /** All direct and indirect dependencies. */
  readonly dependencies?: readonly Locked[];
  /** Installed size, used to report the progress of an installation. */
  readonly bytes: number;
  /** File that is loaded or started, relative to the package. */
  readonly entry: string;
}

export const SDK = "@anthropic-ai/claude-agent-sdk";
export const SDK_VERSION = "0.3.332";

/** The Agent SDK without its binaries. It imports none of its peer dependencies. */
export const SDK_PACKAGE: Pinned = {
  name: SDK,
  version: SDK_VERSION,
  integrity: "sha512-N0ejnrTLMNJYXkvhdmLEy8QSfjym2ljJCkUBCrLKesYNGgqooi8zHDHawNsi+An6zav/ImPnpi27sbRsRjfcOw==",
  bytes: 5_300_000,
  entry: "sdk.mjs",
};

/**
 * SQLite for versions of Node without `node:sqlite`. Uses only the compiled files in the package, because install scripts do
 * not run.
 */
export const DRIVER_PACKAGE: Pinned = {
  name: "@photostructure/sqlite",
  version: "1.2.1",
  integrity: "sha512-DfWwnfp9t4kCorSWsL0/d9pNvAC6n7kYWs239r325WeRllRg9FlTtVgdzz/P8HG1RM5VwCwn6FPp1a42q2gAMQ==",
  bytes: 30_000_000,
  entry: "dist/index.cjs",
  dependencies: [
    {
      name: "node-addon-api",
      version: "8.9.2",
      integrity: "sha512-VijLXbi3UACN69I0JVXJsX4tjACjNoQDgv2gTF6sx2wWEi8tkSg2eX8p5gSIFi8z2+DL3oHmY6OyKce38SDolg==",
    },
    {
      name: "node-gyp-build",
      version: "4.8.4",
      integrity: "sha512-LA4ZjwlnUblHVgq0oBF3Jl/6h/Nvs5fzBLwdEF4nuxnFdsfajde4WfxtJr3CaiH+F6ewcIB/q4jQ4UzPyid+CQ==",
    },
  ],
};

/** Client of PostgreSQL. */
export const POSTGRES_PACKAGE: Pinned = {
  name: "pg",
  version: "8.23.1",
  integrity: "sha512-aL96AHANtWjPLDOLqnhx+ngp9+UK7ETEU8VJrDCGvsSSi/mGLcWYsS6Herg7lmaBJe4uwrfqsa7gTEFaSizDoQ==",
  bytes: 500_000,
  entry: "lib/index.js",
  dependencies: [
    {
      name: "pg-connection-string",
      version: "2.14.1",
      integrity: "sha512-qR3kGNPBLpCNtz0evbKA0Y/MRFXwSSdT+pTJvYp/bXTcReZbvX1kzF0IyTc1QnxqF7AZbOeBhNL8R5mYQZV/MA==",
    },
    {
      name: "pg-pool",
      version: "3.14.0",
      integrity: "sha512-gKtPkFdQPU3DksooVLi9LsjZxrsBUZIpa+7aVx+LV5pNh0KzP4Zleud2po+ConrxbuXGBJ6Hfer6hdgpIBpBaw==",
    },
    {
      name: "pg-protocol",
      version: "1.16.1",
      integrity: "sha512-p9VOFMiHB/ZbJATetbg+99PxssTVSQRnyuPSQ67mN1+1KBOjZaZ83ZQzltnxPhJwSsC3nwVjJ10DVJlerbFzLg==",
    },
    {
      name: "pg-types",
      version: "2.2.0",
      integrity: "sha512-qTAAlrEsl8s4OiEQY69wDvcMIdQN6wdz5ojQiOy6YRMuynxenON0O5oCpJI6lshc6scgAY8qvJ2On/p+CXY0GA==",
    },
    {
      name: "pgpass",
      version: "1.0.5",
      integrity: "sha512-FdW9r/jQZhSeohs1Z3sI1yxFQNFvMcnmfuj4WBMUTxOrAyLMaTcE1aAMBiTlbMNaXvBCQuVi0R7hd8udDSP7ug==",
    },
    {
      name: "pg-int8",
      version: "1.0.1",
      integrity: "sha512-WCtabS6t3c8SkpDBUlb1kjOs7l66xsGdKpIPZsg4wR+B3+u9UAum2odSsF9tnvxg80h4ZxLWMy4pRjOsFIqQpw==",
    },
    {
      name: "postgres-array",
      version: "2.0.0",
      integrity: "sha512-VpZrUqU5A69eQyW2c5CA1jtLecCsN2U/bD6VilrFDWq5+5UIEVO7nazS3TEcHf1zuPYO/sqGvUvW62g86RXZuA==",
    },
    {
      name: "postgres-bytea",
      version: "1.0.1",
      integrity: "sha512-5+5HqXnsZPE65IJZSMkZtURARZelel2oXUEO8rH83VS/hxH5vv1uHquPg5wZs8yMAfdv971IU+kcPUczi7NVBQ==",
    },
    {
      name: "postgres-date",
      version: "1.0.7",
      integrity: "sha512-suDmjLVQg78nMK2UZ454hAG+OAW+HQPZ6n++TNDUX+L0+uUlLywnoxJKDou51Zm+zTCjrCl0Nq6J9C5hP9vK/Q==",
    },
    {
      name: "postgres-interval",
      version: "1.2.0",
      integrity: "sha512-9ZhXKM/rw350N1ovuWHbGxnGh/SNJ4cnxHiM0rxE4VN41wsg8P8zWn9hv/buK00RP4WvlOyr/RBDiptyxVbkZQ==",
    },
    {
      name: "split2",
      version: "4.2.0",
      integrity: "sha512-UcjcJOWknrNkF6PLX83qcHM6KHgVKNkV62Y8a5uYDVv9ydGQVwAHMKqHdJje1VTWpljG0WYpCDhrCdAOYH4TWg==",
    },
    {
      name: "xtend",
      version: "4.0.2",
      integrity: "sha512-LKYU1iAXJXUgAXn9URjiu+MWhyUXHsvfp7mcuYm9dSUKK0/CjtrUwFAxD82/mCWbtLsGjFIad0wIsod4zrTAEQ==",
    },
  ],
};

/** Integrity and size in bytes of the package with Claude Code, by target. */
const BINARIES: Readonly<Record<string, readonly [integrity: string, bytes: number]>> = {
  "darwin-arm64": [
    "sha512-EFqYJyg1zpgQM3NxfOsOLCi2ktm8uYwgSR1DP9D6Z/InlQ0KSBbWAXL/s11itvLTAj6Pn15VeFtNJS7Ehw4xpg==",
    383_795_280,
  ],
  "darwin-x64": [
    "sha512-vHanIaflUZ5OGgkefYjLjUBfQfiduETCqFlnpvh3DjelEdpphDkBvVmYnPLgH1Lx/eAQBLbIwR8z0qry30u8Dw==",
    397_278_064,
  ],
  "linux-arm64": [
    "sha512-sFApHjuWc+1+1cPoEvC9OpSKv+1LxWQJisjgGK2zIVXE+tBGYSodbsVvhLfLHFKc3pWEnqm90QqUqEQ+v+5vWA==",
    385_475_840,
  ],
  "linux-arm64-musl": [
    "sha512-dlt1/pFZ4PNTsmSa/cS3m/DD4D17c5S7LEtlD0I8Ue4jbTIdYaNZOIUOYulhy9iD4Eoa47rWfP9L8MkmCrCMUg==",
    373_170_864,
  ],
  "linux-x64": [
    "sha512-jcy9+qHfZp8chlyAzugVCDSVoMv3lNIrDxuWo8ukM2SkZWJn0pr4K8sXhJIKbUIvbGrZhZeY5E68zPHNfpv6Sw==",
    402_325_736,
  ],
  "linux-x64-musl": [
    "sha512-weDfrdbgQVDuIKjk4kMoQA2x+/FPCpWno/5a9tDKeYg+jbqjIhlpvfvniteEjViL7GVf/U3SfTrjHljylsvSSg==",
    386_855_640,
  ],
  "win32-arm64": [
    "sha512-FWzNarl2AiOzNlF6FQZRFMN1t75elEdDsgVfrB+yIlMZeoMZG9OhFv38oWfgcVbZe4Hv+sR0VEQ5aYRtFDh0AQ==",
    389_167_264,
  ],
  "win32-x64": [
    "sha512-UgAe9yBXZJU3km8SY2/jRetE16HpPtWhEcfmQscS4PQFwqGvKHbpUjIZ6J917gAKA8jpJ2PRtDNpDHvCcgrOqg==",
    403_083_424,
  ],
};

/** Targets for which the Agent SDK has a Claude Code. */
export const TARGETS: readonly string[] = Object.keys(BINARIES);

/** Returns the package with Claude Code for `target`, `undefined` if there is none. */
export function binaryPackage(target: string): Pinned | undefined {
  const [integrity, bytes] = BINARIES[target] ?? [];
  if (integrity === undefined || bytes === undefined) return undefined;
  const entry = target.startsWith("win32") ? "claude.exe" : "claude";
  return { name: `${SDK}-${target}`, version: SDK_VERSION, integrity, bytes, entry };
}
