-- Daily roll-ups of pruned charges, and the views for people. Days are UTC, counted from 1970-01-01.
-- A charge is either in charges or in the three roll-ups, never in both and never in neither.

CREATE TRIGGER charges_are_append_only BEFORE UPDATE ON charges
    BEGIN SELECT RAISE(ABORT, 'charges are append-only'); END;

CREATE TABLE usage_daily (
    day       INTEGER NOT NULL,
    key_id    TEXT NOT NULL,
    model     TEXT NOT NULL,                 -- the one that served
    cached    INTEGER NOT NULL,
    status    INTEGER NOT NULL,
    requests  INTEGER NOT NULL,
    tokens    INTEGER NOT NULL,
    busy_us   INTEGER NOT NULL,
    nouls     INTEGER NOT NULL,
    choices   INTEGER NOT NULL,
    scores    INTEGER NOT NULL,
    escalated INTEGER NOT NULL,
    nanos     INTEGER NOT NULL,              -- of the requests that have a price
    unpriced  INTEGER NOT NULL,              -- requests that have none
    PRIMARY KEY (day, key_id, model, cached, status)
) STRICT, WITHOUT ROWID;

CREATE TABLE steps_daily (
    day       INTEGER NOT NULL,
    key_id    TEXT NOT NULL,
    model     TEXT NOT NULL,
    engine    TEXT NOT NULL,
    requests  INTEGER NOT NULL,              -- steps of this engine
    tokens    INTEGER NOT NULL,
    busy_us   INTEGER NOT NULL,
    nanos     INTEGER NOT NULL,
    unpriced  INTEGER NOT NULL,
    PRIMARY KEY (day, key_id, model, engine)
) STRICT, WITHOUT ROWID;

CREATE TABLE reasons_daily (
    day       INTEGER NOT NULL,
    key_id    TEXT NOT NULL,
    model     TEXT NOT NULL,
    reason    TEXT NOT NULL,
    questions INTEGER NOT NULL,
    PRIMARY KEY (day, key_id, model, reason)
) STRICT, WITHOUT ROWID;

-- What is summed, one row per charge, step and reason: reports and pruning read nothing else.
CREATE VIEW charge_facts AS
    SELECT charge_id, at_s, CAST(at_s / 86400 AS INTEGER) AS day, key_id, model_served AS model,
           cached, status, 1 AS requests, tokens, busy_us, nouls, choices, scores, escalated,
           COALESCE(nanos, 0) AS nanos, nanos IS NULL AS unpriced
    FROM charges;

CREATE VIEW step_facts AS
    SELECT charge_id, at_s, CAST(at_s / 86400 AS INTEGER) AS day, key_id, model_served AS model,
           json_extract(step.value, '$[0]') AS engine, 1 AS requests,
           json_extract(step.value, '$[1]') AS tokens, json_extract(step.value, '$[2]') AS busy_us,
           COALESCE(json_extract(step.value, '$[3]'), 0) AS nanos,
           json_extract(step.value, '$[3]') IS NULL AS unpriced
    FROM charges, json_each(charges.steps) AS step;

CREATE VIEW reason_facts AS
    SELECT charge_id, at_s, CAST(at_s / 86400 AS INTEGER) AS day, key_id, model_served AS model,
           reason.key AS reason, reason.value AS questions
    FROM charges, json_each(charges.reasons) AS reason;

-- For people: names instead of ids, dates instead of numbers, no digests. See docs/accounting.md.
CREATE VIEW v_charges AS
    SELECT charge_id, strftime('%Y-%m-%dT%H:%M:%fZ', at_s, 'unixepoch') AS at,
           COALESCE(keys.name, charges.key_id) AS "key", request_id, model_asked, model_served,
           (SELECT group_concat(json_extract(value, '$[0]'), ' ') FROM json_each(steps)) AS engines,
           tokens, busy_us / 1e6 AS seconds, nouls, choices, scores, escalated, cached, status,
           nanos / 1e9 AS usd, nanos, price_version
    FROM charges LEFT JOIN keys USING (key_id);

CREATE VIEW v_usage_daily AS
    SELECT date(day * 86400, 'unixepoch') AS day, COALESCE(keys.name, facts.key_id) AS "key",
           model, cached, status, SUM(requests) AS requests, SUM(tokens) AS tokens,
           SUM(busy_us) / 1e6 AS seconds, SUM(nouls) AS nouls, SUM(choices) AS choices,
           SUM(scores) AS scores, SUM(escalated) AS escalated, SUM(nanos) / 1e9 AS usd,
           SUM(nanos) AS nanos, SUM(unpriced) AS unpriced
    FROM (
        SELECT day, key_id, model, cached, status, requests, tokens, busy_us, nouls, choices,
               scores, escalated, nanos, unpriced
        FROM charge_facts
        UNION ALL
        SELECT * FROM usage_daily
    ) AS facts LEFT JOIN keys USING (key_id)
    GROUP BY facts.day, facts.key_id, model, cached, status;

CREATE VIEW v_escalations AS
    SELECT date(day * 86400, 'unixepoch') AS day, COALESCE(keys.name, facts.key_id) AS "key",
           model, reason, SUM(questions) AS questions
    FROM (
        SELECT day, key_id, model, reason, questions FROM reason_facts
        UNION ALL
        SELECT * FROM reasons_daily
    ) AS facts LEFT JOIN keys USING (key_id)
    GROUP BY facts.day, facts.key_id, model, reason;
