import type { JWTPayload, JWTVerifyOptions } from "jose";
import { LOCAL_PRINCIPAL, Principal, SCOPES, type Scope } from "../../domain/principal.ts";
import type { Authenticated, PrincipalSettings } from "./authenticated.ts";
import { issuerKeys, type KeySource } from "./issuer-keys.ts";

/** Access tokens of an OAuth authorization server (JWT, RFC 9068): verification, principal and scopes. */

export interface JwtSettings extends KeySource {
  readonly audience: () => string;
  readonly principals: ReadonlyMap<string, PrincipalSettings>;
}

/** `message` says what is wrong with the token and what to do. Contains no part of the token. */
export class TokenRefused extends Error {
  override readonly name = "TokenRefused";
}

/**
 * Asymmetric only: with a shared secret, every verifier could create tokens, and a public key could be passed off as the
 * secret.
 */
const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];

/** Maximum difference between two clocks, s. */
const TOLERANCE_S = 30;

/** Values of `typ` for access tokens. Logout tokens and proofs are signed with the same keys and must be refused. */
const TOKEN_TYPES = ["jwt", "at+jwt"];

export function looksLikeJwt(token: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(token);
}

/**
 * The verifier throws `TokenRefused`, or `KeysUnavailable` if the token cannot be checked at present. Loads jose with the first
 * token.
 */
export function createJwtVerifier(settings: JwtSettings): (token: string) => Promise<Authenticated> {
  const keys = issuerKeys(settings);
  return async (token) => {
    const { jwtVerify } = await import("jose");
    const audience = settings.audience();
    const { issuer } = settings;
    const options: JWTVerifyOptions = {
      issuer,
      audience,
      algorithms: ALGORITHMS,
      clockTolerance: TOLERANCE_S,
      requiredClaims: ["exp", "sub"],
    };
    try {
      const { payload, protectedHeader } = await jwtVerify(token, keys, options);
      return admit(payload, protectedHeader.typ, settings.principals);
    } catch (error) {
      throw await toRefusal(error, { issuer, audience });
    }
  };
}

function admit(
  payload: JWTPayload,
  kind: string | undefined,
  principals: ReadonlyMap<string, PrincipalSettings>,
): Authenticated {
  if (kind !== undefined && !TOKEN_TYPES.includes(kind.toLowerCase().replace(/^application\//, ""))) {
    throw new TokenRefused("This is not an access token: its type (typ) must be at+jwt or JWT.");
  }
  const subject = Principal.safeParse(payload.sub);
  if (!subject.success) throw new TokenRefused("The subject (sub) of the token must have 1 to 256 characters.");
  const principal = subject.data;
  if (principal === LOCAL_PRINCIPAL) {
    throw new TokenRefused(
      "The subject (sub) of the token is local, which is reserved for the operator of this server.",
    );
  }
  const given = claimedScopes(payload);
  const terms = principals.get(principal);
  const most = terms?.scopes ?? SCOPES;
  const scopes = most.filter((scope) => given.includes(scope));
  const expiresAt = ((payload.exp ?? 0) + TOLERANCE_S) * 1_000;
  return { caller: { principal, scopes, ...(terms?.attended && { attended: true }) }, kind: "oauth", expiresAt };
}

/** Reads `scope`, a string (RFC 9068), and `scp`, a string or an array (Entra ID, Okta). */
function claimedScopes({ scope, scp }: JWTPayload): Scope[] {
  const words = [scope, scp].flat().flatMap((each) => (typeof each === "string" ? each.split(" ") : []));
  return SCOPES.filter((each) => words.includes(each));
}

interface Expected {
  readonly issuer: string;
  readonly audience: string;
}

/** Turns faults of the token into `TokenRefused`. Returns other errors unchanged. */
async function toRefusal(error: unknown, { audience, issuer }: Expected): Promise<unknown> {
  const { errors } = await import("jose");
  if (!(error instanceof errors.JOSEError)) return error;
  return new TokenRefused(refusalText(error, { audience, issuer }), { cause: error });
}

function refusalText(error: { code: string; claim?: unknown }, { audience, issuer }: Expected): string {
  switch (error.code) {
    case "ERR_JWT_EXPIRED":
      return "The token has expired. Get a new one from the authorization server.";
    case "ERR_JWT_CLAIM_VALIDATION_FAILED":
      return claimRefusalText(error.claim, { audience, issuer });
    case "ERR_JOSE_ALG_NOT_ALLOWED":
      return `The token must be signed with one of ${ALGORITHMS.join(", ")}.`;
    case "ERR_JWKS_NO_MATCHING_KEY":
    case "ERR_JWKS_MULTIPLE_MATCHING_KEYS":
    case "ERR_JWS_SIGNATURE_VERIFICATION_FAILED":
      return `The token is not signed with a key of ${issuer}, or does not name it (kid). Get a new one there.`;
    default:
      return `The token is not a JWT that can be verified. Get a new one from ${issuer}.`;
  }
}

function claimRefusalText(claim: unknown, { audience, issuer }: Expected): string {
  switch (claim) {
    case "aud":
      return `The token is not for this server: its audience (aud) must be ${audience}.`;
    case "iss":
      return `The token is from another issuer: iss must be ${issuer}.`;
    case "nbf":
    case "iat":
      return "The token is not valid yet. Check both clocks.";
    case "exp":
      return "The token must say when it expires (exp).";
    case "sub":
      return "The token must name its subject (sub).";
    default:
      return `A claim of the token is not valid. Get a new one from ${issuer}.`;
  }
}
