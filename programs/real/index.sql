-- sqlite3 building indexes in memory: `sqlite3 :memory: < index.sql`. Deterministic: no random(), no clock.
-- It prints the number of rows, a sum and the number of distinct names.
PRAGMA temp_store = MEMORY;
CREATE TABLE item (id INTEGER PRIMARY KEY, grp INTEGER NOT NULL, name TEXT NOT NULL, amount REAL NOT NULL);

WITH RECURSIVE series(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < 300000)
INSERT INTO item
SELECT n, (n * 7919) % 1000, printf('item-%06d', (n * 104729) % 300007), (n * 31337 % 100000) / 100.0
FROM series;

CREATE INDEX item_by_name ON item (name);
CREATE INDEX item_by_group ON item (grp, amount);
CREATE INDEX item_by_amount ON item (amount DESC, name);

SELECT count(*), sum(grp) FROM item WHERE grp BETWEEN 100 AND 899;
SELECT count(DISTINCT name) FROM item;
SELECT grp, count(*) FROM item GROUP BY grp ORDER BY count(*) DESC, grp LIMIT 3;
