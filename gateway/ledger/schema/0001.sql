-- Keys, budgets, charges. Times are Unix seconds (UTC); money is in nanos, 1e-9 of the currency.
-- In limits NULL means "not set"; 0 means "nothing".

CREATE TABLE keys (
    key_id                TEXT PRIMARY KEY,  -- public; stands in charges, never secret
    name                  TEXT NOT NULL UNIQUE,
    created_s             REAL NOT NULL,
    expires_s             REAL,
    revoked_s             REAL,
    scopes                TEXT NOT NULL,     -- JSON array of decide, usage, admin
    models                TEXT,              -- JSON array of model names or aliases; NULL = all
    confidence            TEXT NOT NULL,     -- which formula its answers carry
    rpm                   INTEGER CHECK (rpm >= 0),
    tpm                   INTEGER CHECK (tpm >= 0),
    tokens_per_day        INTEGER CHECK (tokens_per_day >= 0),
    tokens_per_month      INTEGER CHECK (tokens_per_month >= 0),
    escalations_per_day   INTEGER CHECK (escalations_per_day >= 0),
    escalations_per_month INTEGER CHECK (escalations_per_month >= 0),
    nanos_per_day         INTEGER CHECK (nanos_per_day >= 0),
    nanos_per_month       INTEGER CHECK (nanos_per_month >= 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE secrets (
    prefix    TEXT PRIMARY KEY,              -- the public part of the bearer key
    key_id    TEXT NOT NULL REFERENCES keys (key_id),
    digest    BLOB NOT NULL CHECK (length(digest) = 32),  -- SHA-256 of the whole bearer key
    created_s REAL NOT NULL,
    expires_s REAL                           -- set by a rotation
) STRICT, WITHOUT ROWID;

-- Changes with every change to a key, in the same transaction: gateways reload when it moves.
CREATE TABLE key_generation (
    only       INTEGER PRIMARY KEY CHECK (only = 1),
    generation INTEGER NOT NULL
) STRICT;
INSERT INTO key_generation VALUES (1, 0);
CREATE TRIGGER keys_inserted AFTER INSERT ON keys
    BEGIN UPDATE key_generation SET generation = generation + 1; END;
CREATE TRIGGER keys_updated AFTER UPDATE ON keys
    BEGIN UPDATE key_generation SET generation = generation + 1; END;
CREATE TRIGGER secrets_inserted AFTER INSERT ON secrets
    BEGIN UPDATE key_generation SET generation = generation + 1; END;
CREATE TRIGGER secrets_updated AFTER UPDATE ON secrets
    BEGIN UPDATE key_generation SET generation = generation + 1; END;

-- Upper bounds of work in progress. A lease that has expired counts for nothing.
CREATE TABLE leases (
    lease_id    INTEGER PRIMARY KEY,         -- random, never used twice
    key_id      TEXT NOT NULL,
    expires_s   REAL NOT NULL,
    tokens      INTEGER NOT NULL,
    escalations INTEGER NOT NULL,
    nanos       INTEGER NOT NULL
) STRICT;
CREATE INDEX leases_of_key ON leases (key_id, expires_s, tokens, escalations, nanos);

-- What each key has spent, per day of the ledger's calendar: budgets are read from here.
CREATE TABLE balances (
    key_id      TEXT NOT NULL,
    day_s       INTEGER NOT NULL,            -- when the day began
    tokens      INTEGER NOT NULL,
    escalations INTEGER NOT NULL,
    nanos       INTEGER NOT NULL,
    PRIMARY KEY (key_id, day_s)
) STRICT, WITHOUT ROWID;

-- Append-only: one row per request that cost anything or was answered.
CREATE TABLE charges (
    charge_id     INTEGER PRIMARY KEY,
    at_s          REAL NOT NULL,             -- when the work was admitted
    key_id        TEXT NOT NULL,             -- of keys, or 'config/NAME', or 'anonymous'
    request_id    TEXT NOT NULL,
    model_asked   TEXT,                      -- NULL = the request named none
    model_served  TEXT NOT NULL,
    steps         TEXT NOT NULL,             -- JSON array of [engine, tokens, busy_us, nanos or null]
    tokens        INTEGER NOT NULL CHECK (tokens >= 0),  -- the sum over steps
    busy_us       INTEGER NOT NULL CHECK (busy_us >= 0),  -- the sum over steps; microseconds
    nouls         INTEGER NOT NULL,          -- questions asked, by kind
    choices       INTEGER NOT NULL,
    scores        INTEGER NOT NULL,
    escalated     INTEGER NOT NULL CHECK (escalated >= 0),  -- questions that went up
    reasons       TEXT,                      -- JSON object reason -> questions; NULL = none
    cached        INTEGER NOT NULL CHECK (cached IN (0, 1)),
    status        INTEGER NOT NULL,          -- as answered; 499 = the caller left
    nanos         INTEGER CHECK (nanos >= 0),  -- NULL = unpriced
    price_version TEXT                       -- NULL = unpriced
) STRICT;
CREATE INDEX charges_by_time ON charges (at_s);

-- Answers to requests with an Idempotency-Key: digests and numbers, no text.
CREATE TABLE replays (
    key_id      TEXT NOT NULL,
    idempotency BLOB NOT NULL CHECK (length(idempotency) = 32),  -- SHA-256 of the header
    body        BLOB NOT NULL CHECK (length(body) = 32),         -- SHA-256 of the decoded body
    owner       INTEGER NOT NULL,            -- who may finish or give up a pending one
    expires_s   REAL NOT NULL,
    answer      BLOB,                        -- NULL = still being worked on
    PRIMARY KEY (key_id, idempotency)
) STRICT, WITHOUT ROWID;
CREATE INDEX replays_by_expiry ON replays (expires_s);
