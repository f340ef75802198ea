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
CREATE TABLE line AS SELECT 'plain' AS run, * FROM io_probe_report_full(duration => '2 s',
  promised => '{"mib_s": 0.001, "iops": 1e12, "p99_us": 1e9}') WITH ORDINALITY;
SELECT DISTINCT section FROM line WHERE section IN ('server', 'device', 'trust', 'missing') ORDER BY 1;
SELECT finding FROM line WHERE item = 'relation';
SELECT item FROM line WHERE section = 'missing' AND finding = 'needs writes';
-- a figure has a unit, and lies in its interval
SELECT * FROM line WHERE value IS NOT NULL AND (unit IS NULL OR value NOT BETWEEN coalesce(low, value) AND coalesce(high, value));
-- a promise is kept or not, if there is a figure to judge it by; figures that are poor or short leave it open
CREATE VIEW open AS SELECT section, item FROM line AS l WHERE
  EXISTS (SELECT FROM line AS t WHERE t.section = 'trust' AND t.item = 'poor' AND t.finding ~ CASE l.section WHEN 'scan' THEN 'scans' ELSE 'reads' END)
  OR EXISTS (SELECT FROM line AS d WHERE (d.section, d.item) = (CASE l.section WHEN 'p99' THEN 'depth' ELSE l.section END, l.item) AND d.doubt ~ 'short');
SELECT section, item, kept, value, low, high FROM line WHERE value IS NOT NULL AND promised IS NOT NULL
  AND kept IS DISTINCT FROM CASE WHEN (section, item) IN (TABLE open) THEN NULL ELSE section <> 'depth' END ORDER BY 1;
DROP VIEW open;
-- of each part that has figures it is told how far they can be trusted; where a row knows of others, that is not far
SELECT part FROM (VALUES ('scan', 'scans'), ('depth', 'reads'), ('commit', 'commits')) AS p(section, part)
  WHERE EXISTS (SELECT FROM line AS l WHERE l.section = p.section AND value IS NOT NULL)
    <> EXISTS (SELECT FROM line AS t WHERE t.section = 'trust' AND t.finding ~ part)
  OR EXISTS (SELECT FROM line AS l WHERE l.section = p.section AND doubt ~ 'others')
    AND EXISTS (SELECT FROM line AS t WHERE t.section = 'trust' AND t.item = 'good' AND t.finding ~ part);
SELECT section, item, promised FROM line WHERE kept IS NOT NULL AND promised IS NULL;
-- with all rights
INSERT INTO line SELECT 'all', * FROM io_probe_report_full(:'rel', duration => '4 s', cold => true, writes => true,
  options => '{"max_bytes": "64MB"}') WITH ORDINALITY;
SELECT section, item, finding FROM line WHERE run = 'all' AND section = 'missing' AND finding ~ '^needs';
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
SELECT section, kept FROM io_probe_report_full(:'rel', duration => '1 s', promised => '{"iops": 1e12}', options => '{"max_iops": 2000}')
  WHERE section = 'depth' AND promised IS NOT NULL OR section = 'verdict' AND item = 'promise';
-- the same each time
SELECT report FROM io_probe_report(run => :stored) EXCEPT SELECT report FROM shown;
-- a page, in which names are names
CREATE TABLE page AS SELECT string_agg(report, E'\n') AS html FROM io_probe_report(run => :stored, format => 'html');
SELECT html ~ '^<!DOCTYPE html>' AS begins, html ~ '</html>\s*$' AS ends, html ~ '<b>' AS tag,
       html LIKE '%public.&#34;Reported &#38; &#60;b&#62;&#34;&#34;told&#34;&#34;&#60;/b&#62;&#34;%' AS escaped, html ~ '<script|https?:' AS fetches FROM page;
-- whoever imports a report may have it say anything, but a page stays a page
SELECT io_probe_import(jsonb_set(io_probe_measure('report', :'rel', '{"duration": "1 ms"}'), '{rows}', jsonb_agg(
         '{"unit": "1/s", "low": null, "high": null, "promised": null, "kept": null, "statement": null}'
         || jsonb_build_object('section', 'depth', 'item', '<script>' || n, 'value', value, 'doubt', E'<i>\nbest')))) AS said
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
      line || '{"section": "depth", "item": "1", "value": 100, "unit": "1/s"}',
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
-- one that is too large is refused
SELECT io_probe_import(jsonb_set(report, '{rows}', (SELECT jsonb_agg('{"section": "device"}'::jsonb) FROM generate_series(1, 5001)))) AS long
  FROM base \gset
\set VERBOSITY sqlstate
SELECT report FROM io_probe_report(run => :long);
\set VERBOSITY default
DELETE FROM io_probe_runs WHERE id = :long;
-- a call measures and shows, and says how to keep it
SELECT count(*) > 10 AS lines, max(report) FILTER (WHERE report ~ '^NEXT') AS next FROM io_probe_report(:'rel', '500 ms');

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

-- who may call nothing else reads why
CREATE ROLE regress_io_probe_reader;
GRANT EXECUTE ON FUNCTION io_probe_report_full TO regress_io_probe_reader;
SET ROLE regress_io_probe_reader;
SELECT item, finding FROM io_probe_report_full() WHERE section = 'missing' ORDER BY 1;
-- options are looked at first: each probe takes them
SELECT item FROM io_probe_report_full(options => '{"start_blk": 0}'); \echo :SQLSTATE
SELECT report FROM io_probe_report(); \echo :SQLSTATE
RESET ROLE;
REVOKE EXECUTE ON FUNCTION io_probe_report_full FROM regress_io_probe_reader;
DROP ROLE regress_io_probe_reader;
DELETE FROM io_probe_runs WHERE id IN (:stored, :promised, :other, :said, :none);
DROP FUNCTION changed, stored_report;
DROP TABLE base, line, shown, page, "Reported & <b>""told""</b>";
