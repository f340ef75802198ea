--
-- io_probe_report: figures and facts as lines, shown as text and as a page, now and from a stored run
--
SET client_min_messages = warning;
SET pg_io_probe.scratch_reserve = 0;
CREATE TABLE "Reported & <b>""told""</b>" (id int, filler text) WITH (autovacuum_enabled = off);
INSERT INTO "Reported & <b>""told""</b>" SELECT i, repeat('x', 900) FROM generate_series(1, 20000) i;
VACUUM FULL "Reported & <b>""told""</b>";
CHECKPOINT;
\set rel '"Reported & <b>""told""</b>"'

-- of the largest table, without a right to evict or to write; what is promised is judged
CREATE FUNCTION written() RETURNS bigint LANGUAGE sql AS $$ SELECT substring(pg_read_file('/proc/self/io'), '\nwrite_bytes: (\d+)')::bigint $$;
SELECT written() AS before \gset
CREATE TABLE line AS SELECT 'plain' AS run, * FROM io_probe_report_full(duration => '2 s',
  promised => '{"mib_s": 0.001, "iops": 1e12, "p99_us": 1e9, "write_iops": 1, "write_mib_s": 1, "commit_us": 1, "commit_p99_us": 1}') WITH ORDINALITY;
-- nothing is written without writes => true, nor told
SELECT written() - :before < 32 << 20 AS nothing;
SELECT section FROM line WHERE section ~ 'write|commit|load';
SELECT DISTINCT section FROM line WHERE section IN ('server', 'device', 'trust', 'missing') ORDER BY 1;
SELECT finding FROM line WHERE item = 'relation';
SELECT item FROM line WHERE section = 'missing' AND finding = 'needs writes';
-- a figure has a unit, and lies in its interval
SELECT * FROM line WHERE value IS NOT NULL AND (unit IS NULL OR value NOT BETWEEN coalesce(low, value) AND coalesce(high, value));
-- with all rights
SELECT written() AS before \gset
INSERT INTO line SELECT 'all', * FROM io_probe_report_full(:'rel', duration => '6 s', cold => true, writes => true,
  promised => '{"write_iops": 1e12, "write_mib_s": 0.001, "commit_us": 1e9, "commit_p99_us": 1e9}', options => '{"max_bytes": "64MB"}') WITH ORDINALITY;
SELECT written() - :before > 64 << 20 AS scratch;
SELECT section, item, finding FROM line WHERE run = 'all' AND section = 'missing' AND finding ~ '^needs';
SELECT section, count(*), count(DISTINCT (item, write_pct)) AS different FROM line WHERE run = 'all' AND section ~ 'write|load' GROUP BY 1 ORDER BY 1;
-- a percentile is none of a lower one; only loads have a share of writes
SELECT l.* FROM line AS l JOIN line AS h USING (run, item) WHERE l.section ~ '_p50$' AND h.section = replace(l.section, '50', '99')
  AND l.write_pct IS NOT DISTINCT FROM h.write_pct AND l.value > h.value;
SELECT section, item FROM line WHERE (write_pct IS NOT NULL) <> (section ~ 'load_p') OR mark = 'not carried' AND section !~ 'load_p';
-- a promise is kept or not, if there is a figure to judge it by; short figures leave it open, and poor ones do not break it
CREATE VIEW open AS SELECT run, section, item FROM line AS l WHERE
  EXISTS (SELECT FROM line AS t WHERE t.run = l.run AND t.section = 'trust' AND t.item = 'poor'
            AND t.finding ~ CASE WHEN l.section = 'scan' THEN 'scans' WHEN l.section ~ 'write' THEN 'writes' WHEN l.section ~ 'commit' THEN 'commits' ELSE 'reads' END
            AND (l.section IN ('depth', 'write') OR t.finding ~ 'slowed down'))
  OR EXISTS (SELECT FROM line AS d WHERE (d.run, d.section, d.item) = (l.run, l.section, l.item)
               -- what a cache may have held is no promise kept; two other doubts may hide that
               AND (d.doubt ~ 'short' OR l.section IN ('depth', 'write') AND (d.doubt ~ 'others|limited' OR l.kept IS NULL AND d.doubt ~ ', ') OR l.section NOT IN ('depth', 'write') AND l.kept IS NULL AND d.doubt ~ 'small|, '));
SELECT run, section, item, kept, value, low, high FROM line WHERE value IS NOT NULL AND promised IS NOT NULL
  AND kept IS DISTINCT FROM CASE WHEN (run, section, item) IN (TABLE open) THEN NULL ELSE section NOT IN ('depth', 'write') END ORDER BY 1, 2;
SELECT run, kept, doubt FROM line WHERE section = 'long_write' AND kept OR section = 'write' AND doubt ~ 'small' AND kept;
-- the depth that was judged is told, and once what a short run can't see
SELECT run, section, item FROM line AS l WHERE value IS NOT NULL AND promised IS NOT NULL AND section IN ('depth', 'p99', 'write', 'long_write')
  AND NOT EXISTS (SELECT FROM line AS v WHERE v.run = l.run AND v.item = 'promise' AND v.finding ~ (
    CASE l.section WHEN 'depth' THEN 'Random reads' WHEN 'write' THEN 'Random writes' WHEN 'long_write' THEN 'Long writes' ELSE 'percentile of reads' END
    || ' with ' || l.item || ' in flight: '));
SELECT run, count(*) FROM line GROUP BY 1 HAVING count(*) FILTER (WHERE finding ~ '^A run of \d+ s can''t see burst credits')
  <> bool_or(coalesce(kept, false) AND section IN ('scan', 'depth', 'write', 'long_write'))::int;
-- how long loads were, and what they wrote
SELECT run, finding FROM line WHERE item = 'bend' AND finding !~ ' tried for \d+\.\d\d s, and wrote \d+ MiB at most\.$';
SELECT run, section, count(*) FROM line WHERE promised IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2;
DROP VIEW open;
-- of each part that has figures it is told how far they can be trusted; where a row knows of others, that is not far
SELECT run, part FROM (VALUES ('plain'), ('all')) AS r(run),
    (VALUES ('scan', 'scans'), ('depth', 'reads'), ('write', 'writes'), ('commit', 'commits'), ('load_p50', 'mixed load')) AS p(section, part)
  WHERE EXISTS (SELECT FROM line AS l WHERE (l.run, l.section) = (r.run, p.section) AND value IS NOT NULL)
    <> EXISTS (SELECT FROM line AS t WHERE t.run = r.run AND t.section = 'trust' AND t.finding ~ part)
  OR EXISTS (SELECT FROM line AS l WHERE (l.run, l.section) = (r.run, p.section) AND doubt ~ 'others')
    AND EXISTS (SELECT FROM line AS t WHERE t.run = r.run AND t.section = 'trust' AND t.item = 'good' AND t.finding ~ part);
SELECT section, item, promised FROM line WHERE kept IS NOT NULL AND promised IS NULL;
SELECT count(*) > 0 AS advice FROM line WHERE run = 'all' AND section IN ('advice', 'missing');
SELECT section, item, statement FROM line WHERE section <> 'advice' AND statement IS NOT NULL
  OR section = 'advice' AND (statement IS NOT NULL) <> (finding ~ ' -> ' OR item = 'reload');
-- what is to be reloaded is told once
SELECT run FROM line GROUP BY run HAVING count(*) FILTER (WHERE item = 'reload') <> max((coalesce(statement, '') ~ '^ALTER SYSTEM')::int);
-- a verdict points at advice that is given, or at what would give some
SELECT run, finding FROM line AS l WHERE section = 'verdict' AND (run = 'all' AND finding ~ 'cold => true measures' OR finding ~ 'look at the advice'
  AND NOT EXISTS (SELECT FROM line AS a WHERE a.run = l.run AND a.statement IS NOT NULL AND a.item ~ '^read_ahead_kb'));
-- lines stand in the order of their sections
SELECT run FROM (SELECT run, section, ordinality, lag(section) OVER w AS before, count(*) FILTER (WHERE ordinality > 0) OVER w
                   FROM line WINDOW w AS (PARTITION BY run ORDER BY ordinality)) AS l
  WHERE section IS DISTINCT FROM before GROUP BY run, section HAVING count(*) > 1;

-- stored, and shown: 80 columns of text
SELECT io_probe_record('report', :'rel', '{"duration": "1 s"}') AS stored \gset
CREATE TABLE shown AS SELECT * FROM io_probe_report(run => :stored) WITH ORDINALITY;
SELECT report FROM shown WHERE length(report) > 80 AND report !~ '^ {9}\S|^pg_io_probe|\."Reported';
SELECT substring(report, '^[A-Z]+') AS paragraph FROM shown WHERE report ~ '^(DEVICE|TRUST|CHANGED|MISSING|NEXT)' GROUP BY 1 ORDER BY 1;
SELECT count(*) AS named FROM shown WHERE report LIKE '%public."Reported & <b>""told""</b>"%';
SELECT substring(report, '\S+$') AS last FROM shown WHERE report ~ ' measured ';
-- of what was promised, the depth that was judged is shown
SELECT io_probe_record('report', :'rel', '{"duration": "1 s", "promised": {"iops": 1e12}}') AS promised \gset
SELECT substring(report, '\S+$') AS last FROM io_probe_report(run => :promised) WHERE report ~ ' measured ';
SELECT count(*) FROM io_probe_report(run => :promised) WHERE report ~ '^random reads, \d+ in flight .* 1,000,000,000,000'
  EXCEPT SELECT count(*) FROM io_probe_results WHERE run_id = :promised AND result->>'section' = 'depth' AND result->>'promised' IS NOT NULL;
-- the rate of a limit says nothing of a promise
SELECT DISTINCT section, item = 'promise' AS judged, kept FROM io_probe_report_full(:'rel', duration => '2 s', writes => true,
    promised => '{"iops": 1e12, "write_iops": 1e12}', options => '{"max_iops": 2000}')
  WHERE section IN ('depth', 'write') AND promised IS NOT NULL OR section = 'verdict' AND item IN ('promise', 'writes', 'mixed load', 'bend') ORDER BY 1;
-- the same each time
SELECT report FROM io_probe_report(run => :stored) EXCEPT SELECT report FROM shown;
-- a page, in which names are names
CREATE TABLE page AS SELECT string_agg(report, E'\n') AS html FROM io_probe_report(run => :stored, format => 'html');
SELECT html ~ '^<!DOCTYPE html>' AS begins, html ~ '</html>\s*$' AS ends, html ~ '<b>' AS tag,
       html LIKE '%public.&#34;Reported &#38; &#60;b&#62;&#34;&#34;told&#34;&#34;&#60;/b&#62;&#34;%' AS escaped, html ~ '<script|https?:' AS fetches FROM page;
-- whoever imports a report may have it say anything, but a page stays a page
SELECT io_probe_import(jsonb_set(io_probe_measure('report', :'rel', '{"duration": "1 ms"}'), '{rows}', jsonb_agg(
         '{"unit": "1/s", "low": null, "high": null, "promised": null, "kept": null, "statement": null}'
         || jsonb_build_object('section', 'depth', 'item', '<script>' || n, 'value', value, 'unit', E'<i>\nbest', 'doubt', E'<i>\nbest')))) AS said
  FROM unnest('{1,5e-324,1e308,-1}'::float8[]) WITH ORDINALITY AS v(value, n) \gset
SELECT count(*) AS lines, bool_or(report ~ '<(script|i)>') AS tag FROM io_probe_report(run => :said, format => 'html');
SELECT count(*) AS lines, max(length(report)) AS longest FROM io_probe_report(run => :said);
SELECT io_probe_import(jsonb_set(io_probe_measure('report', :'rel', '{"duration": "1 ms"}'), '{rows}', '[{"section": "none"}]')) AS none \gset
\set VERBOSITY sqlstate
SELECT report FROM io_probe_report(run => :none);
\set VERBOSITY default
-- beside earlier reports with the same arguments: too few to call, then enough, of which the last one has a slower scan
CREATE TABLE base AS SELECT io_probe_measure('report', :'rel', '{"duration": "2 ms"}') AS report;
CREATE FUNCTION stored_report(scan float8, flush float8, method text) RETURNS bigint LANGUAGE sql AS $$
  SELECT io_probe_import(jsonb_set(report || jsonb_build_object('started_at', clock_timestamp()), '{rows}', jsonb_build_array(
      line || jsonb_build_object('section', 'scan', 'item', 'server', 'value', scan, 'unit', 'MiB/s', 'low', scan * 0.99, 'high', scan * 1.01),
      line || '{"section": "depth", "item": "1", "value": 100, "unit": "1/s"}', line || '{"section": "write", "item": "16", "value": 50, "unit": "1/s"}',
      line || '{"section": "p99", "item": "1", "value": 200, "unit": "us"}', line || '{"section": "p99", "item": "8", "value": 3, "unit": "us"}',
      line || jsonb_build_object('section', 'commit', 'item', method, 'value', flush, 'unit', 'us', 'mark', 'in use', 'doubt', CASE WHEN flush < 145 THEN 'noisy' END),
      line || '{"section": "commit", "item": "other", "value": 1, "unit": "us"}',
      line || jsonb_build_object('section', 'commit_p99', 'item', method, 'value', 900, 'unit', 'us', 'mark', 'in use'),
      line || jsonb_build_object('section', 'readahead', 'item', round(scan)::text, 'value', scan, 'unit', 'MiB/s', 'mark', 'in use'))), 'told')
  FROM base, (SELECT '{"value": null, "unit": null, "low": null, "high": null, "promised": null, "kept": null, "finding": null,
                       "statement": null}'::jsonb) AS l(line) $$;
CREATE FUNCTION changed(run bigint) RETURNS SETOF text LANGUAGE sql AS $$
  SELECT report FROM (SELECT report, ordinality, max(ordinality) FILTER (WHERE report ~ '^[A-Z]+ ') OVER (ORDER BY ordinality) AS begun
                        FROM io_probe_report(run => run) WITH ORDINALITY) AS l
    JOIN LATERAL (SELECT 1 FROM io_probe_report(run => run) WITH ORDINALITY AS t(title, place) WHERE place = begun AND title ~ '^CHANGED') AS c
      ON report <> '' ORDER BY ordinality $$;
SELECT changed(stored_report(900, 150, 'fsync'));
SELECT changed(stored_report(600, 100, 'fsync'));
SELECT count(stored_report(900 + n, 150 - n, 'fsync')) FROM generate_series(1, 12) AS n;
SELECT stored_report(300, 150, 'fdatasync') AS slow \gset
SELECT changed(:slow);
SELECT item, metric, unit, verdict, before IS NOT NULL AS before FROM io_probe_changes_full() WHERE run_id = :slow;
SELECT item, verdict FROM io_probe_compare((SELECT max(id) FROM io_probe_runs WHERE id < :slow), :slow) WHERE verdict IS NOT NULL;
SELECT html LIKE '%<h2>Changed</h2>%' AS listed, html LIKE '%Grey: as in earlier reports%' AS grey, html ~ '#808080' AS band
  FROM (SELECT string_agg(report, E'\n') FROM io_probe_report(run => :slow, format => 'html')) AS page(html);
DELETE FROM io_probe_runs WHERE label = 'told';
-- what reads take beside writes is a map, from the median on where there is no 99th percentile; what a load was not carried at is told
CREATE FUNCTION stored_map(percentile text) RETURNS bigint LANGUAGE sql AS $$
  SELECT io_probe_import(jsonb_set(report, '{rows}', jsonb_agg(
           '{"unit": "us", "low": null, "high": null, "promised": null, "kept": null, "finding": null, "statement": null}'
           || jsonb_build_object('section', percentile, 'item', reads, 'value', value, 'write_pct', writes, 'mark', mark))), 'told')
  FROM base, (VALUES ('50', 0, 900, NULL), ('50', 80, 3400, NULL), ('<i>', 0, NULL, NULL), ('<i>', 80, 12000, 'not carried')) AS l(reads, writes, value, mark)
  GROUP BY report $$;
SELECT stored_map('load_p99') AS map \gset
SELECT report FROM io_probe_report(run => :map) WHERE report ~ 'reads|writes';
SELECT count(*) FILTER (WHERE report ~ '<rect .*stroke="#000000"') AS squares, count(*) FILTER (WHERE report ~ '<rect .*fill="#808080"') AS shades,
       count(DISTINCT substring(report, 'opacity="[\d.]+"')) FILTER (WHERE report ~ '<rect .*fill="#808080"') AS different, bool_or(report ~ '<i>') AS tag,
       count(*) FILTER (WHERE report ~ '^(writes 80 %|reads &lt;i&gt; %|3,400|&gt; 12,000)$') AS texts FROM io_probe_report(run => :map, format => 'html');
SELECT report FROM io_probe_report(run => stored_map('load_p50')) WHERE report ~ 'Median of';
DELETE FROM io_probe_runs WHERE label = 'told';
-- one that is too large is refused
SELECT io_probe_import(jsonb_set(report, '{rows}', (SELECT jsonb_agg('{"section": "device"}'::jsonb) FROM generate_series(1, 5001)))) AS long
  FROM base \gset
\set VERBOSITY sqlstate
SELECT report FROM io_probe_report(run => :long);
\set VERBOSITY default
DELETE FROM io_probe_runs WHERE id = :long;
-- a call measures and shows, and says how to keep it
SELECT count(*) > 10 AS lines, string_agg(report, E'\n') FILTER (WHERE report ~ '(^NEXT|io_probe_record|^ +(args|label) =>)') AS next
  FROM io_probe_report(:'rel', '500 ms', promised => '{"iops": 5}');
-- a stored one with writes has the map; without two requests in flight there is none
SELECT io_probe_record('report', :'rel', '{"duration": "8 s", "writes": true}') AS stored \gset writing_
SELECT max(length(report)) FILTER (WHERE report !~ '^ {9}\S|^pg_io_probe|\."Reported') <= 80 AS fits,
       count(*) FILTER (WHERE report ~ '^random writes, \d+ in flight ') AS depths, count(*) FILTER (WHERE report ~ '^ +reads \d+ %') AS loads
  FROM io_probe_report(run => :writing_stored);
SELECT count(*) FILTER (WHERE report ~ '^writes \d+ %$') AS columns FROM io_probe_report(run => :writing_stored, format => 'html');
SET pg_io_probe.max_depth = 1;
SELECT item, finding FROM io_probe_report_full(:'rel', '500 ms', writes => true) WHERE section = 'missing' AND item ~ 'mixed load';
RESET pg_io_probe.max_depth;

-- what can't be shown or promised
SELECT report FROM io_probe_report(run => -1); \echo :SQLSTATE
SELECT io_probe_record('ping', :'rel', '{"count": 1}') AS other \gset
\set VERBOSITY sqlstate
SELECT report FROM io_probe_report(run => :other);
\set VERBOSITY default
SELECT report FROM io_probe_report(format => 'pdf'); \echo :SQLSTATE
SELECT item FROM io_probe_report_full(promised => '{"iops": 0}'); \echo :SQLSTATE
SELECT item FROM io_probe_report_full(promised => '{"IOPS": 1}'); \echo :SQLSTATE
SELECT item FROM io_probe_report_full(promised => '[]'); \echo :SQLSTATE
SELECT item FROM io_probe_report_full(duration => '1 day'); \echo :SQLSTATE
SELECT item FROM io_probe_report_full(options => '{"max_byte": 1}'); \echo :SQLSTATE

-- under a statement_timeout there is less time for each part, and no part is lost
SET statement_timeout = '8 s';
SELECT count(*) FILTER (WHERE section = 'scan') AS scans, count(*) FILTER (WHERE section = 'commit') AS commits,
       count(*) FILTER (WHERE item = 'time' AND finding LIKE 'statement_timeout left %') AS told
  FROM io_probe_report_full(:'rel', writes => true);
RESET statement_timeout;

-- who may call nothing else reads why, and who may not write
CREATE ROLE regress_io_probe_reader;
GRANT EXECUTE ON FUNCTION io_probe_report_full TO regress_io_probe_reader;
SET ROLE regress_io_probe_reader;
SELECT item, finding FROM io_probe_report_full() WHERE section = 'missing' ORDER BY 1;
RESET ROLE;
GRANT EXECUTE ON FUNCTION io_probe_write_full, io_probe_mix_full TO regress_io_probe_reader;
GRANT SELECT ON :rel TO regress_io_probe_reader;
SET ROLE regress_io_probe_reader;
SELECT item, finding FROM io_probe_report_full(:'rel', writes => true) WHERE section = 'missing' ORDER BY 2, 1;
RESET ROLE;
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_io_probe LOCATION '';
CREATE TABLE elsewhere TABLESPACE regress_io_probe AS SELECT 1 AS id;
GRANT SELECT ON elsewhere TO regress_io_probe_reader;
GRANT EXECUTE ON FUNCTION io_probe_sync TO regress_io_probe_reader;
SET ROLE regress_io_probe_reader;
SELECT item, finding FROM io_probe_report_full('elsewhere', '1 s', writes => true) WHERE finding ~ 'tablespace';
-- options are looked at first: each probe takes them
SELECT item FROM io_probe_report_full(options => '{"start_blk": 0}'); \echo :SQLSTATE
SELECT report FROM io_probe_report(); \echo :SQLSTATE
RESET ROLE;
REVOKE EXECUTE ON FUNCTION io_probe_report_full, io_probe_write_full, io_probe_mix_full, io_probe_sync FROM regress_io_probe_reader;
REVOKE SELECT ON :rel FROM regress_io_probe_reader;
DROP TABLE elsewhere;
DROP TABLESPACE regress_io_probe;
DROP ROLE regress_io_probe_reader;
DELETE FROM io_probe_runs WHERE id IN (:stored, :writing_stored, :promised, :other, :said, :none);
DROP FUNCTION changed, stored_report, stored_map, written;
DROP TABLE base, line, shown, page, "Reported & <b>""told""</b>";
