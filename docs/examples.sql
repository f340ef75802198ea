-- Makes what the examples of README.md and docs/*.md query: two tables, of 0.9 and 1.4 GB with their indexes, and a function.
--
--     psql -X -d DATABASE -f docs/examples.sql
--
-- as a superuser, on a server with the extension installed. Then paste the examples of a document, in their order.
-- tools/examples.sh does both, on a server of its own, and writes the output into the documents. Use a database of its own: the examples
-- delete all stored runs. DROP DATABASE removes it all.

\set ON_ERROR_STOP on
\set QUIET on
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pg_io_probe;
-- Breaks long texts into lines.
CREATE FUNCTION wrap(text, integer DEFAULT 90) RETURNS text LANGUAGE sql
  RETURN rtrim(regexp_replace($1, '(.{1,' || $2 || '})( |$)', E'\\1\n', 'g'), E'\n');
CREATE TABLE tbl AS SELECT id, md5(id::text) AS info FROM generate_series(1, 10000000) AS id;
CREATE INDEX tbl_id ON tbl (id);
VACUUM (FREEZE, ANALYZE) tbl;
CREATE TABLE orders (id bigint, customer_id int, placed_at timestamptz, total numeric(10,2), note text);
INSERT INTO orders
SELECT i, hashint4(i) & 524287, timestamptz '2025-01-01' + i * interval '3 s', (i % 100000) / 100.0, md5(i::text)
  FROM generate_series(1, 10000000) AS i;
CREATE INDEX orders_id ON orders (id);
CREATE INDEX orders_customer_id ON orders (customer_id);
CREATE INDEX orders_placed_at ON orders (placed_at);
VACUUM (FREEZE, ANALYZE) orders;
CHECKPOINT;
-- So that the device has written all of it.
SELECT FROM pg_sleep(15) \g /dev/null
