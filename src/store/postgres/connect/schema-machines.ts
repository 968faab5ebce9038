/**
 * Tables and functions for stores of several machines: offers of sessions, keys, and copies of conversations, which are kept in
 * parts as they were written. `write_transcript` replaces everything from an offset on.
 */
export const MACHINE_TABLES = `
  -- Names of nodes that begin no turns, until the operator ends the drain. A restarted node has the name of the former.
  CREATE TABLE drains(name text COLLATE "C" PRIMARY KEY);

  CREATE TABLE keys(purpose text COLLATE "C" PRIMARY KEY, key bytea NOT NULL);

  CREATE TABLE transcript_parts(
    session_id text COLLATE "C" NOT NULL, path text COLLATE "C" NOT NULL, start bigint NOT NULL, data bytea NOT NULL,
    PRIMARY KEY(session_id, path, start));
  CREATE TABLE transcript_manifests(session_id text COLLATE "C" PRIMARY KEY, manifest text NOT NULL);

  CREATE FUNCTION write_transcript(
    p_session text, p_owner text, p_epoch bigint, p_path text, p_offset bigint, p_data bytea) RETURNS text
    LANGUAGE plpgsql AS $$
  DECLARE
    stored_end bigint;
  BEGIN
    PERFORM 1 FROM sessions WHERE id = p_session AND owner = p_owner AND epoch = p_epoch FOR UPDATE;
    IF NOT FOUND THEN RETURN 'fenced'; END IF;
    SELECT coalesce(max(start + octet_length(data)), 0) INTO stored_end FROM transcript_parts
      WHERE session_id = p_session AND path = p_path;
    IF stored_end < p_offset THEN RETURN format('%s: only %s bytes', p_path, stored_end); END IF;
    DELETE FROM transcript_parts WHERE session_id = p_session AND path = p_path AND start >= p_offset;
    UPDATE transcript_parts SET data = substring(data FROM 1 FOR (p_offset - start)::integer)
      WHERE session_id = p_session AND path = p_path AND start + octet_length(data) > p_offset;
    INSERT INTO transcript_parts VALUES(p_session, p_path, p_offset, p_data);
    UPDATE sessions SET bytes = bytes + octet_length(p_data) - (stored_end - p_offset) WHERE id = p_session;
    RETURN 'stored';
  END $$;

  CREATE FUNCTION seal_transcript(
    p_session text, p_owner text, p_epoch bigint, p_manifest text, p_paths text[], p_sizes bigint[]) RETURNS text
    LANGUAGE plpgsql AS $$
  DECLARE
    missing text;
    freed bigint;
  BEGIN
    PERFORM 1 FROM sessions WHERE id = p_session AND owner = p_owner AND epoch = p_epoch FOR UPDATE;
    IF NOT FOUND THEN RETURN 'fenced'; END IF;
    SELECT file.path INTO missing FROM unnest(p_paths, p_sizes) AS file(path, size)
      WHERE file.size > (SELECT coalesce(max(start + octet_length(data)), 0) FROM transcript_parts part
        WHERE part.session_id = p_session AND part.path = file.path) LIMIT 1;
    IF FOUND THEN RETURN format('%s: only a part', missing); END IF;
    WITH gone AS (DELETE FROM transcript_parts WHERE session_id = p_session AND path <> ALL(p_paths)
      RETURNING octet_length(data) AS size)
      SELECT coalesce(sum(size), 0) INTO freed FROM gone;
    INSERT INTO transcript_manifests VALUES(p_session, p_manifest)
      ON CONFLICT(session_id) DO UPDATE SET manifest = excluded.manifest;
    IF freed > 0 THEN UPDATE sessions SET bytes = bytes - freed WHERE id = p_session; END IF;
    RETURN 'stored';
  END $$;
`;
