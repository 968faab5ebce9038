import { DELIVERY_MS } from "../../feed-cursor.ts";

/** Condition that a subscription `u` wants items of the session `s`. */
const WANTED = `u.principal = s.principal AND coalesce(u.session_id, s.id) = s.id AND coalesce(u.cwd, s.cwd) = s.cwd`;
/** Items that a new subscription wants, in `subscribe`. */
const REPLAYED = `FROM subscriptions u JOIN feed f ON f.principal = u.principal AND f.name = u.name
  JOIN sessions s ON s.id = f.session_id AND ${WANTED} WHERE u.id = p_id AND f.seq > read_from`;

/**
 * Tables and functions of the feed and the outbox. A transaction that adds to them, or that creates a subscription, holds
 * `lock_feed` until commit, taken after all locks of rows and before numbers are drawn from the sequences. So items are committed
 * in the order of their numbers, a reader that sees a number has seen all below, and a new subscription misses no item. Whoever
 * holds the lock waits for rows of `deliveries` only, whose other writers never wait for the lock. Reasons in docs/decisions.md.
 */
export const FEED_TABLES = `
  -- Events of all logs that wake callers. Written with the event, forgotten after a week.
  INSERT INTO meta VALUES('feed', left(md5(gen_random_uuid()::text), 12)), ('feed_floor', '0');
  CREATE TABLE feed(
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, principal text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL, event_id bigint NOT NULL, at bigint NOT NULL);
  CREATE INDEX feed_names ON feed(principal, name, seq);

  -- Webhooks that callers have named, and the messages on their way to these and to the operator's.
  CREATE TABLE subscriptions(
    id text COLLATE "C" PRIMARY KEY, principal text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
    session_id text COLLATE "C", cwd text COLLATE "C", url text NOT NULL, secret text NOT NULL, former text,
    former_until bigint, expires_at bigint NOT NULL, delivered_at bigint, failed_since bigint, fault text);
  CREATE INDEX subscriptions_names ON subscriptions(principal, name);
  CREATE TABLE deliveries(
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, target text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL, session_id text COLLATE "C" NOT NULL, event_id bigint NOT NULL,
    name text COLLATE "C" NOT NULL, seq bigint, node text COLLATE "C", attempts integer NOT NULL DEFAULT 0,
    due_at bigint NOT NULL DEFAULT 0, until bigint NOT NULL, UNIQUE(target, message_id));
  CREATE INDEX deliveries_due ON deliveries(due_at);
  CREATE INDEX deliveries_waiting ON deliveries(target, seq);

  CREATE FUNCTION lock_feed() RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('claude-agents-mcp feed ' || current_schema(), 0))
  $$;

  -- Adds feed entries (f) with a delivery for each subscription that wants them, and deliveries (d), of those changes of an
  -- append that are stored. A changed delivery gets the highest n, so that its node is woken.
  CREATE FUNCTION add_to_feed(
    p_stored integer[], p_id text[], p_at bigint[], f_change integer[], f_name text[], f_event bigint[], d_change integer[],
    d_target text[], d_message text[], d_event bigint[], d_name text[], d_node text[], d_until bigint[]) RETURNS void
    LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM lock_feed();
    WITH added AS (
      INSERT INTO feed(principal, name, session_id, event_id, at)
        SELECT s.principal, f.name, s.id, f.event, p_at[f.change]
        FROM unnest(f_change, f_name, f_event) WITH ORDINALITY AS f(change, name, event, place)
        JOIN sessions s ON s.id = p_id[f.change] WHERE f.change = ANY(p_stored) ORDER BY f.place
        RETURNING *)
      INSERT INTO deliveries(target, message_id, session_id, event_id, name, seq, until)
        SELECT u.id, a.session_id || '_' || a.event_id, a.session_id, a.event_id, a.name, a.seq,
          now_ms() + ${String(DELIVERY_MS)}
        FROM added a JOIN sessions s ON s.id = a.session_id JOIN subscriptions u ON u.name = a.name AND ${WANTED}
        WHERE u.expires_at > (SELECT now_ms()) ORDER BY a.seq
        ON CONFLICT DO NOTHING;
    INSERT INTO deliveries(target, message_id, session_id, event_id, name, node, until)
      SELECT d.target, d.message, p_id[d.change], d.event, d.name, d.node, coalesce(d.until, now_ms() + ${String(DELIVERY_MS)})
      FROM unnest(d_change, d_target, d_message, d_event, d_name, d_node, d_until) WITH ORDINALITY
        AS d(change, target, message, event, name, node, until, place)
      WHERE d.change = ANY(p_stored) ORDER BY d.place
      ON CONFLICT(target, message_id) DO UPDATE SET node = excluded.node, until = excluded.until, n = DEFAULT,
          -- Due for a new node: the former is dead.
          due_at = CASE WHEN deliveries.node IS NOT DISTINCT FROM excluded.node THEN deliveries.due_at ELSE excluded.due_at END
        WHERE (deliveries.node, deliveries.until) IS DISTINCT FROM (excluded.node, excluded.until);
  END $$;

  -- Ends of the feed, and the number after which to read on from a cursor; without one, from the present end.
  CREATE FUNCTION feed_ends(
    p_feed text, p_seq bigint, OUT feed_id text, OUT floor bigint, OUT head bigint, OUT start bigint) LANGUAGE sql STABLE AS $$
    SELECT e.*, CASE WHEN p_feed IS NULL THEN e.head
        WHEN p_feed = e.feed_id AND p_seq BETWEEN e.floor AND e.head THEN p_seq ELSE e.floor END
      FROM (SELECT i.value AS feed_id, f.value::bigint AS floor, coalesce((SELECT max(seq) FROM feed), f.value::bigint) AS head
        FROM meta i, meta f WHERE i.key = 'feed' AND f.key = 'feed_floor') e
  $$;

  -- Creates a subscription, with deliveries of items after a cursor, or renews one. Returns the limit that is reached, and
  -- whether items after the cursor are gone or too old.
  CREATE FUNCTION subscribe(
    p_version integer, p_id text, p_principal text, p_name text, p_session text, p_cwd text, p_url text, p_secret text,
    p_ttl bigint, p_grace bigint, p_total integer, p_own integer, p_feed text, p_seq bigint, p_since bigint,
    OUT reached text, OUT truncated boolean) LANGUAGE plpgsql AS $$
  DECLARE
    t bigint;
    total integer;
    own integer;
    read_from bigint;
  BEGIN
    PERFORM require_version(p_version);
    PERFORM lock_feed();
    t := now_ms();
    UPDATE subscriptions SET expires_at = t + p_ttl,
        former = CASE WHEN secret = p_secret THEN former ELSE secret END,
        former_until = CASE WHEN secret = p_secret THEN former_until ELSE t + p_grace END, secret = p_secret
      WHERE id = p_id AND expires_at > t;
    truncated := false;
    IF FOUND THEN RETURN; END IF;
    DELETE FROM deliveries WHERE target = p_id;
    DELETE FROM subscriptions WHERE id = p_id;
    SELECT count(*), count(*) FILTER (WHERE principal = p_principal) INTO total, own FROM subscriptions WHERE expires_at > t;
    reached := CASE WHEN own >= p_own THEN 'perPrincipal' WHEN total >= p_total THEN 'total' END;
    IF reached IS NOT NULL THEN RETURN; END IF;
    INSERT INTO subscriptions(id, principal, name, session_id, cwd, url, secret, expires_at)
      VALUES(p_id, p_principal, p_name, p_session, p_cwd, p_url, p_secret, t + p_ttl);
    IF p_feed IS NULL THEN RETURN; END IF;
    SELECT start, feed_id <> p_feed OR start <> p_seq INTO read_from, truncated FROM feed_ends(p_feed, p_seq);
    INSERT INTO deliveries(target, message_id, session_id, event_id, name, seq, until)
      SELECT u.id, f.session_id || '_' || f.event_id, f.session_id, f.event_id, f.name, f.seq, t + ${String(DELIVERY_MS)}
      ${REPLAYED} AND f.at >= p_since ORDER BY f.seq;
    truncated := truncated OR EXISTS (SELECT 1 ${REPLAYED} AND f.at < p_since);
  END $$;

  -- Records an attempt. p_fault: null after a success; p_after: time until the next attempt, null for none.
  CREATE FUNCTION settle_delivery(p_target text, p_message text, p_fault text, p_after bigint) RETURNS text
    LANGUAGE plpgsql AS $$
  DECLARE
    t bigint := now_ms();
    outcome text := 'retry';
  BEGIN
    UPDATE deliveries SET due_at = t + p_after WHERE target = p_target AND message_id = p_message AND until > t + p_after;
    IF NOT FOUND THEN
      DELETE FROM deliveries WHERE target = p_target AND message_id = p_message;
      outcome := CASE WHEN NOT FOUND THEN 'missing' WHEN p_fault IS NULL THEN 'delivered' ELSE 'abandoned' END;
    END IF;
    UPDATE subscriptions SET delivered_at = CASE WHEN p_fault IS NULL THEN t ELSE delivered_at END,
        failed_since = CASE WHEN p_fault IS NOT NULL THEN coalesce(failed_since, t) END, fault = p_fault
      WHERE id = p_target;
    RETURN outcome;
  END $$;
`;
