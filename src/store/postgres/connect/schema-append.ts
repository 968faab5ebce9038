import { CONFLICT } from "./database-faults.ts";
import { LIST_LAG_MS } from "./schema-leases.ts";

/**
 * Functions for writes of sessions, so that a write takes one round trip and one transaction. Every function may be repeated with
 * the same arguments: `p_token` tells that the first attempt was stored.
 */
export const APPEND_FUNCTIONS = `
  CREATE FUNCTION create_session(
    p_version integer, p_token text, p_id text, p_principal text, p_key text, p_cwd text, p_state text, p_status text,
    p_at_work integer, p_at bigint, p_bytes bigint, p_place text, p_spec text, p_policy text, p_sought_cwd text,
    OUT id text, OUT created boolean) LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM require_version(p_version);
    INSERT INTO sessions(id, principal, idempotency_key, cwd, state, status, at_work, last_event, rev, epoch, created_at,
        updated_at, listed_at, last_write, bytes, place)
      VALUES(p_id, p_principal, p_key, p_cwd, p_state, p_status, p_at_work, 0, 1, 0, p_at, p_at, p_at, p_token, p_bytes,
        p_place)
      ON CONFLICT DO NOTHING;
    id := p_id;
    created := FOUND;
    IF created THEN
      INSERT INTO descriptions(session_id, spec, policy, sought_cwd) VALUES(p_id, p_spec, p_policy, p_sought_cwd);
      RETURN;
    END IF;
    SELECT s.id, s.last_write = p_token INTO id, created FROM sessions s WHERE s.id = p_id;
    IF NOT FOUND THEN
      SELECT s.id, false INTO id, created FROM sessions s
        WHERE s.principal = p_principal AND md5(s.idempotency_key) = md5(p_key);
    END IF;
  END $$;

  CREATE FUNCTION change_ledger(p_keys text[], p_revs bigint[], p_values text[], p_at bigint) RETURNS void
    LANGUAGE plpgsql AS $$
  DECLARE
    i integer;
    known bigint;
  BEGIN
    -- By key, so that two changes of the same entries wait for each other and never both.
    FOR i IN SELECT n FROM generate_subscripts(p_keys, 1) n ORDER BY p_keys[n] COLLATE "C" LOOP
      SELECT rev INTO known FROM ledger WHERE key = p_keys[i] FOR UPDATE;
      IF NOT FOUND AND p_revs[i] = 0 AND p_values[i] IS NOT NULL THEN
        INSERT INTO ledger(key, value, rev, at) VALUES(p_keys[i], p_values[i], 1, p_at) ON CONFLICT DO NOTHING;
        IF FOUND THEN CONTINUE; END IF;
        known := -1;
      END IF;
      IF coalesce(known, 0) <> p_revs[i] THEN
        RAISE EXCEPTION '%', p_keys[i] USING ERRCODE = '${CONFLICT}';
      END IF;
      IF p_values[i] IS NOT NULL THEN
        UPDATE ledger SET value = p_values[i], rev = rev + 1, at = p_at WHERE key = p_keys[i];
      END IF;
    END LOOP;
  END $$;

  -- Appends to several sessions of an owner. Returns an outcome for each: stored, gone, fenced, conflict, or the last event.
  -- e_change: number of the change to which an event belongs; l_change: the one with changes of the ledger; f_, d_: as for
  -- add_to_feed.
  CREATE FUNCTION append_changes(
    p_version integer, p_owner text, p_token text[], p_id text[], p_epoch bigint[], p_at bigint[],
    p_before bigint[], p_last bigint[], p_state text[], p_status text[], p_at_work integer[], p_bytes bigint[],
    p_waits integer[], p_transcript text[], p_prompt text[], e_change integer[], e_id bigint[], e_type text[], e_event text[],
    l_change integer, l_keys text[], l_revs bigint[], l_values text[], f_change integer[], f_name text[], f_event bigint[],
    d_change integer[], d_target text[], d_message text[], d_event bigint[], d_name text[], d_node text[], d_until bigint[])
    RETURNS text[] LANGUAGE plpgsql AS $$
  DECLARE
    outcomes text[] := '{}';
    stored integer[] := '{}';
    outcome text;
  BEGIN
    PERFORM require_version(p_version);
    FOR i IN 1 .. cardinality(p_id) LOOP
      outcome := NULL;
      IF i = l_change THEN
        PERFORM 1 FROM sessions WHERE id = p_id[i] AND owner = p_owner AND epoch = p_epoch[i]
          AND last_event = p_before[i] AND last_write <> p_token[i] FOR UPDATE;
        IF FOUND THEN
          BEGIN
            PERFORM change_ledger(l_keys, l_revs, l_values, p_at[i]);
          EXCEPTION WHEN SQLSTATE '${CONFLICT}' THEN
            outcome := 'conflict';
          END;
        END IF;
      END IF;
      IF outcome IS NULL THEN
        UPDATE sessions SET state = p_state[i], status = p_status[i], at_work = p_at_work[i], waits = p_waits[i],
            last_event = p_last[i],
            updated_at = p_at[i], rev = rev + 1, last_write = p_token[i], bytes = bytes + p_bytes[i],
            listed_at = CASE WHEN status = p_status[i] AND at_work = p_at_work[i] AND p_at[i] >= listed_at
              AND p_at[i] < listed_at + ${String(LIST_LAG_MS)} THEN listed_at ELSE p_at[i] END
          WHERE id = p_id[i] AND owner = p_owner AND epoch = p_epoch[i] AND last_event = p_before[i]
            AND last_write <> p_token[i];
        IF FOUND THEN
          outcome := 'stored';
          stored := stored || i;
          IF p_transcript[i] IS NOT NULL THEN
            INSERT INTO given_transcripts(id, session_id) VALUES(p_transcript[i], p_id[i]) ON CONFLICT DO NOTHING;
          END IF;
          IF p_prompt[i] IS NOT NULL THEN
            UPDATE descriptions SET sought_prompt = p_prompt[i] WHERE session_id = p_id[i] AND sought_prompt IS NULL;
          END IF;
        ELSE
          SELECT CASE WHEN owner IS DISTINCT FROM p_owner OR epoch <> p_epoch[i] THEN 'fenced'
              WHEN last_write = p_token[i] THEN 'stored' ELSE last_event::text END
            INTO outcome FROM sessions WHERE id = p_id[i];
        END IF;
      END IF;
      outcomes := outcomes || coalesce(outcome, 'gone');
    END LOOP;
    INSERT INTO events(session_id, id, at, type, event)
      SELECT p_id[e.change], e.id, p_at[e.change], e.type, e.event
      FROM unnest(e_change, e_id, e_type, e_event) AS e(change, id, type, event) WHERE e.change = ANY(stored);
    IF (f_change || d_change) && stored THEN
      PERFORM add_to_feed(stored, p_id, p_at, f_change, f_name, f_event,
        d_change, d_target, d_message, d_event, d_name, d_node, d_until);
    END IF;
    RETURN outcomes;
  END $$;
`;
