/** Each returns a path, and installs the program if it is missing. */
export function postgresFolder(): string;
export function pgbouncer(): string;
export function haproxy(): string;
