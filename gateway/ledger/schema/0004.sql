-- What cascades decided, question by question: numbers and digests, no text. See docs/watching.md.
-- Probabilities and likelihoods are whole millionths.

CREATE TABLE decisions (
    decision_id INTEGER PRIMARY KEY,         -- rises with time
    at_s        REAL NOT NULL,
    key_id      TEXT NOT NULL,
    request_id  TEXT NOT NULL,
    question    BLOB NOT NULL CHECK (length(question) = 8),  -- digest of request id, question id
    model       TEXT NOT NULL,
    fingerprint TEXT NOT NULL CHECK (length(fingerprint) = 16),
    kind        TEXT NOT NULL CHECK (kind IN ('noul', 'choice', 'score')),
    labels      INTEGER NOT NULL CHECK (labels > 0),
    tier        INTEGER NOT NULL CHECK (tier > 0),  -- of the engine that answered, 1 = cheapest
    engine      TEXT NOT NULL,
    reason      TEXT NOT NULL,
    looks       TEXT NOT NULL,               -- JSON array of [engine, tokens, likelihood, [p, …]]
    sampling    REAL NOT NULL CHECK (sampling BETWEEN 0 AND 1),  -- chance of a second opinion
    drawn       INTEGER NOT NULL CHECK (drawn IN (0, 1)),  -- whether the lot fell on it
    shadow      TEXT,                        -- the second opinion, a look; NULL = there is none
    truth       INTEGER CHECK (truth >= 0 AND truth < labels),  -- place of the true label, if told
    truth_s     REAL                         -- when it was told
) STRICT;
CREATE INDEX decisions_by_time ON decisions (at_s);
CREATE INDEX decisions_of_request ON decisions (key_id, request_id);

-- By what the labels of a question can be known again when their truth is told.
CREATE TABLE questions (
    fingerprint TEXT PRIMARY KEY,
    labels      BLOB NOT NULL,               -- eight bytes of a digest for each label
    seen_s      REAL NOT NULL                -- last time, to the day
) STRICT, WITHOUT ROWID;

-- Which weights, tokenizers and encodings answered when.
CREATE TABLE engines_seen (
    engine  TEXT NOT NULL,
    digest  TEXT NOT NULL,
    first_s REAL NOT NULL,
    last_s  REAL NOT NULL,
    PRIMARY KEY (engine, digest)
) STRICT, WITHOUT ROWID;

-- How the sequential test of each promise stands; see policies/sequential.py.
CREATE TABLE evidence (
    engine   TEXT NOT NULL,
    what     TEXT NOT NULL,                  -- a cell, or a fingerprint
    digest   TEXT NOT NULL,                  -- of the engine that is tested
    promised REAL NOT NULL,
    since_s  REAL NOT NULL,
    seen     INTEGER NOT NULL,
    wrong    INTEGER NOT NULL,
    played   TEXT NOT NULL,                  -- JSON array
    PRIMARY KEY (engine, what)
) STRICT, WITHOUT ROWID;

-- An alarm holds until a person clears it.
CREATE TABLE alarms (
    alarm_id  INTEGER PRIMARY KEY,
    at_s      REAL NOT NULL,
    kind      TEXT NOT NULL,                 -- disagreement, model_changed, drift
    engine    TEXT NOT NULL,
    what      TEXT NOT NULL,                 -- a cell, a fingerprint, or a measure
    message   TEXT NOT NULL,
    cleared_s REAL
) STRICT;
CREATE UNIQUE INDEX alarms_that_hold ON alarms (kind, engine, what) WHERE cleared_s IS NULL;

CREATE VIEW v_decisions AS
    SELECT decision_id, strftime('%Y-%m-%dT%H:%M:%fZ', at_s, 'unixepoch') AS at,
           COALESCE(keys.name, decisions.key_id) AS "key", request_id, model, fingerprint, kind,
           labels, tier, engine, reason,
           json_extract(looks, '$[0][0]') AS first_engine,
           json_extract(looks, '$[0][2]') / 1e6 AS first_likelihood,
           json_extract(looks, '$[#-1][2]') / 1e6 AS likelihood,
           sampling, drawn, shadow IS NOT NULL AS shadowed, truth
    FROM decisions LEFT JOIN keys USING (key_id);

CREATE VIEW v_alarms AS
    SELECT alarm_id, strftime('%Y-%m-%dT%H:%M:%fZ', at_s, 'unixepoch') AS at, kind, engine, what,
           message, cleared_s IS NULL AS holds
    FROM alarms;
