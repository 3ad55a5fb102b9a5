-- What has no price is not free: a day of which nothing has one has no cost at all.

DROP VIEW v_usage_daily;

CREATE VIEW v_usage_daily AS
    SELECT date(day * 86400, 'unixepoch') AS day, COALESCE(keys.name, facts.key_id) AS "key",
           model, cached, status, SUM(requests) AS requests, SUM(tokens) AS tokens,
           SUM(busy_us) / 1e6 AS seconds, SUM(nouls) AS nouls, SUM(choices) AS choices,
           SUM(scores) AS scores, SUM(escalated) AS escalated,
           CASE WHEN SUM(unpriced) < SUM(requests) THEN SUM(nanos) / 1e9 END AS usd,
           CASE WHEN SUM(unpriced) < SUM(requests) THEN SUM(nanos) END AS nanos,
           SUM(unpriced) AS unpriced
    FROM (
        SELECT day, key_id, model, cached, status, requests, tokens, busy_us, nouls, choices,
               scores, escalated, nanos, unpriced
        FROM charge_facts
        UNION ALL
        SELECT * FROM usage_daily
    ) AS facts LEFT JOIN keys USING (key_id)
    GROUP BY facts.day, facts.key_id, model, cached, status;
