-- Texts of requests and answers: empty unless `ledger.store_text` is on. A text goes with its charge.

CREATE TABLE texts (
    charge_id INTEGER PRIMARY KEY,
    asked     TEXT NOT NULL,                 -- JSON of state and questions
    answered  TEXT,                          -- JSON of the answers; NULL = there was none
    cut       INTEGER NOT NULL CHECK (cut IN (0, 1))  -- 1 = too long: ends in the middle
) STRICT;

CREATE TRIGGER texts_go_with_their_charges AFTER DELETE ON charges
    BEGIN DELETE FROM texts WHERE charge_id = OLD.charge_id; END;

-- For people. Not among the v_ views, which may be shown to whoever may see the bill.
CREATE VIEW kept_texts AS
    SELECT charge_id, strftime('%Y-%m-%dT%H:%M:%fZ', at_s, 'unixepoch') AS at,
           COALESCE(keys.name, charges.key_id) AS "key", request_id, model_served AS model, status,
           asked, answered, cut
    FROM texts JOIN charges USING (charge_id) LEFT JOIN keys USING (key_id);
