import { NEWER } from "./database-faults.ts";

/** Time for which lists may lag behind `updated_at`, ms. */
export const LIST_LAG_MS = 60_000;
/** Time after which a dead node without sessions is forgotten, ms. */
const FORGET_MS = 24 * 60 * 60 * 1000;

/**
 * Functions for leases. `renew_lease`: if no node has renewed its lease for half a lease, the database was away for all of them
 * (a failover, a clock that was set). Leases that were valid then are given a whole lease again, so that nothing is taken from a
 * node that had no chance to renew. Returns the time left of the former lease, null without one. `claim_session` renews first for the same reason. Each statement of a function sees what
 * was committed before the statement, so that a claim that has waited for a row finds its new owner.
 */
export const LEASE_FUNCTIONS = `
  CREATE FUNCTION require_version(p_version integer) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    IF (SELECT value::integer FROM meta WHERE key = 'readable_by') > p_version THEN
      RAISE EXCEPTION 'readable by later versions only' USING ERRCODE = '${NEWER}';
    END IF;
  END $$;

  -- True for a place by labels, if a node has them. Each of p_nodes is the labels of a node.
  CREATE FUNCTION has_labels(p_place text, p_nodes text[]) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN p_place LIKE '{"labels":%' THEN
      EXISTS (SELECT 1 FROM unnest(p_nodes) AS labels WHERE (p_place::jsonb -> 'labels') <@ labels::jsonb)
      ELSE false END
  $$;

  CREATE FUNCTION renew_lease(
    p_version integer, p_id text, p_ttl bigint, p_host text, p_pid bigint, p_started text, p_urls text, p_facts text,
    p_name text) RETURNS bigint LANGUAGE plpgsql AS $$
  DECLARE
    t bigint := now_ms();
    heard bigint;
    left_ms bigint;
  BEGIN
    PERFORM require_version(p_version);
    SELECT max(renewed_at) INTO heard FROM nodes;
    IF abs(t - heard) > p_ttl / 2 THEN
      PERFORM pg_advisory_xact_lock(hashtextextended('claude-agents-mcp leases ' || current_schema(), 0));
      SELECT max(renewed_at) INTO heard FROM nodes;
      IF abs(t - heard) > p_ttl / 2 THEN
        UPDATE nodes SET renewed_at = least(renewed_at, t),
            expires_at = CASE WHEN expires_at > heard THEN t + ttl_ms ELSE least(expires_at, t) END
          WHERE id <> p_id;
      END IF;
    END IF;
    SELECT expires_at - t INTO left_ms FROM nodes WHERE id = p_id;
    INSERT INTO nodes(id, host, pid, started_at, ttl_ms, renewed_at, expires_at, urls, facts, name)
      VALUES(p_id, p_host, p_pid, p_started, p_ttl, t, t + p_ttl, p_urls, p_facts, p_name)
      ON CONFLICT(id) DO UPDATE SET host = excluded.host, pid = excluded.pid, started_at = excluded.started_at,
        ttl_ms = excluded.ttl_ms, renewed_at = excluded.renewed_at, expires_at = excluded.expires_at,
        urls = excluded.urls, facts = excluded.facts, name = excluded.name;
    DELETE FROM nodes WHERE expires_at < t - ${String(FORGET_MS)}
      AND NOT EXISTS (SELECT 1 FROM sessions WHERE owner = nodes.id);
    RETURN left_ms;
  END $$;

  -- Gives a session to a node. Without an epoch in the answer, the session has another owner: p_dead names an owner whose process
  -- is known to have exited while its lease ran until p_dead_until. Binds a session placed by labels to p_here, the place of a
  -- node with p_labels.
  CREATE FUNCTION claim_session(
    p_version integer, p_session text, p_node text, p_dead text, p_dead_until bigint,
    p_here text, p_labels text, OUT epoch bigint, OUT took_over boolean, OUT owner text) LANGUAGE plpgsql AS $$
  DECLARE
    me nodes%ROWTYPE;
    runs_until bigint;
  BEGIN
    PERFORM require_version(p_version);
    SELECT * INTO me FROM nodes WHERE id = p_node;
    IF NOT FOUND OR me.expires_at <= now_ms() THEN RETURN; END IF;
    -- Several nodes claim an offered session at once: the first takes it, and the others do not wait.
    IF (SELECT s.offered FROM sessions s WHERE s.id = p_session) THEN
      SELECT s.owner INTO owner FROM sessions s WHERE s.id = p_session FOR UPDATE SKIP LOCKED;
    ELSE
      SELECT s.owner INTO owner FROM sessions s WHERE s.id = p_session FOR UPDATE;
    END IF;
    IF NOT FOUND THEN RETURN; END IF;
    took_over := owner IS NOT NULL AND owner <> p_node;
    IF took_over THEN
      PERFORM renew_lease(p_version, p_node, me.ttl_ms, me.host, me.pid, me.started_at, me.urls, me.facts, me.name);
      SELECT n.expires_at INTO runs_until FROM nodes n WHERE n.id = owner;
      IF runs_until > now_ms() AND (p_dead IS NULL OR owner <> p_dead OR runs_until <> p_dead_until) THEN RETURN; END IF;
    END IF;
    UPDATE sessions s SET owner = p_node, epoch = s.epoch + 1, rev = s.rev + 1, offered = false,
        place = CASE WHEN has_labels(s.place, ARRAY[p_labels]) THEN p_here ELSE s.place END
      WHERE s.id = p_session RETURNING s.epoch INTO epoch;
  END $$;
`;
