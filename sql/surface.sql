-- The conventions of docs/interface.md: short rows for people beside full ones, one name a quantity, one order of arguments.
CREATE TEMP VIEW probe AS
  SELECT short.oid AS short, complete.oid AS complete, short.proname AS name
    FROM pg_depend JOIN pg_extension e ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid
    JOIN pg_proc AS short ON classid = 'pg_proc'::regclass AND objid = short.oid
    JOIN pg_proc AS complete ON complete.proname = short.proname || '_full' AND complete.pronamespace = short.pronamespace
   WHERE extname = 'pg_io_probe' AND deptype = 'e';
CREATE TEMP VIEW columns AS
  SELECT p.oid AS function, p.proname AS name, attname, atttypid::regtype AS type, attnum FROM pg_proc AS p
    JOIN pg_type t ON t.oid = p.prorettype JOIN pg_attribute ON attrelid = t.typrelid AND attnum > 0 AND NOT attisdropped
   WHERE p.oid IN (SELECT short FROM probe UNION SELECT complete FROM probe);
SELECT name FROM probe ORDER BY 1;
-- both measure in the same way, and the same roles may call them
SELECT p.name FROM probe AS p JOIN pg_proc AS a ON a.oid = short JOIN pg_proc AS b ON b.oid = complete
 WHERE (a.prosrc, a.probin, a.proargtypes::oid[], a.proargnames, pg_get_expr(a.proargdefaults, 0), a.provolatile, a.proparallel, a.prorows,
        a.proowner, a.prosecdef, replace(a.proacl::text, a.proname, ''))
       IS DISTINCT FROM
       (b.prosrc, b.probin, b.proargtypes::oid[], b.proargnames, pg_get_expr(b.proargdefaults, 0), b.provolatile, b.proparallel, b.prorows,
        b.proowner, b.prosecdef, replace(b.proacl::text, b.proname, ''));
-- at most ten columns, each of which the full row has as well, in the same type
SELECT name FROM columns WHERE function IN (SELECT short FROM probe) GROUP BY 1 HAVING count(*) > 10;
SELECT s.name, s.attname FROM probe JOIN columns AS s ON s.function = short
 WHERE NOT EXISTS (SELECT FROM columns AS c WHERE c.function = complete AND (c.attname, c.type) = (s.attname, s.type));
-- they end with what speaks against the figures
SELECT name, attname FROM columns AS c WHERE function IN (SELECT short FROM probe)
   AND attnum = (SELECT max(attnum) FROM columns WHERE function = c.function) AND attname <> 'doubt' ORDER BY 1;
-- a name has one type
SELECT attname, array_agg(DISTINCT type) AS types FROM columns GROUP BY 1 HAVING count(DISTINCT type) > 1 ORDER BY 1;
-- times, rates and shares say their unit
SELECT DISTINCT attname FROM columns WHERE type = 'double precision'::regtype
   AND attname !~ '(_us|_ms|_pct|_s|_kb|_per_block|_per_op|_cost|_rows|iops)$' ORDER BY 1;
-- arguments come in one order
WITH rank AS (
  SELECT name, n FROM unnest('{rel,query,plan,spcname,paths,path,mode,windows_kb,depths,densities,concurrencies,sections,settings,execute,every,count,
    duration,cold,writes,depth,cache,unit,chunk_kb,write_kb,fork,seed,options}'::text[]) WITH ORDINALITY AS r(name, n)
), argument AS (
  SELECT p.name AS function, a.name, a.n, rank.n AS rank FROM probe AS p JOIN pg_proc ON oid = short,
         unnest(proargnames) WITH ORDINALITY AS a(name, n) LEFT JOIN rank ON rank.name = a.name
)
SELECT function, name FROM argument AS a WHERE rank IS NULL
    OR EXISTS (SELECT FROM argument AS b WHERE b.function = a.function AND b.n < a.n AND b.rank > a.rank);

-- what speaks against figures, the worst first, at most two
CREATE TABLE doubted WITH (autovacuum_enabled = off) AS SELECT g FROM generate_series(1, 20000) AS g;
CHECKPOINT;
SELECT path, doubt ~ '^paced' AS paced, mib_s IS NULL AS no_rate FROM io_probe_seqscan('doubted', '{os}', options => '{"max_iops": 300}');
SELECT path, doubt ~ 'paced' AS paced FROM io_probe_random('doubted', '{os}', options => '{"max_iops": 300, "max_bytes": "800kB"}');
SELECT path, doubt ~ '^partial' AS partial FROM io_probe_random('doubted', '{os}', options => '{"max_p99": "1us", "max_bytes": "800kB"}');
SELECT path, bool_or(doubt ~ 'warmed') AS warmed FROM io_probe_seqscan('doubted', '{server,os}') GROUP BY 1 ORDER BY 1;
-- an amount has the units of a setting
SELECT path, blks, notes FROM io_probe_random_full('doubted', '{server}', options => '{"max_bytes": "64kB"}') WHERE blks <> 8;
SELECT path FROM io_probe_seqscan('doubted', options => '{"max_bytes": "1 parsec"}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('doubted', options => '{"max_p99": "5 MB"}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('doubted', options => '{"max_p99": 0}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('doubted', options => '{"max_p99": "-1ms"}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('doubted', options => '{"max_bytes": true}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('doubted', options => '{"max_bytes": "NaN"}'); \echo :SQLSTATE
DROP TABLE doubted;
