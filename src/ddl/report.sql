-- io_probe_report: all that there is to know of the storage, in one call and in words.

CREATE TYPE io_probe_report_full_row AS (
    section   text,
    item      text,
    value     double precision,
    unit      text,
    low       double precision,
    high      double precision,
    promised  double precision,
    kept      boolean,
    finding   text,
    statement text
);
COMMENT ON TYPE io_probe_report_full_row IS 'Row of io_probe_report_full: one line, a figure or a fact';
COMMENT ON COLUMN io_probe_report_full_row.section IS 'What the line is about: server, device, trust, scan, depth, p50, p99, commit, readahead, verdict, advice, missing';
COMMENT ON COLUMN io_probe_report_full_row.item IS 'Which part of the section: for scan the path; for depth, p50 and p99 the requests in flight; for commit the method; for readahead the window in kB';
COMMENT ON COLUMN io_probe_report_full_row.value IS 'Figure that was measured; NULL for a fact';
COMMENT ON COLUMN io_probe_report_full_row.unit IS 'Unit of value';
COMMENT ON COLUMN io_probe_report_full_row.low IS 'Lower end of the 95 % confidence interval of value; NULL without one';
COMMENT ON COLUMN io_probe_report_full_row.high IS 'Upper end of the 95 % confidence interval of value; NULL without one';
COMMENT ON COLUMN io_probe_report_full_row.promised IS 'What argument promised gives for this figure; NULL without a promise';
COMMENT ON COLUMN io_probe_report_full_row.kept IS 'Is the promise kept, within 5 percent? NULL without a promise, if the interval is too wide to say, or for the rate of a limit';
COMMENT ON COLUMN io_probe_report_full_row.finding IS 'The fact, in words; of a figure best or in use, if it is, and what speaks against it, with commas between';
COMMENT ON COLUMN io_probe_report_full_row.statement IS 'Section advice: statement that follows the advice; else NULL';

CREATE FUNCTION io_probe_report_full(
    rel      regclass DEFAULT NULL,
    duration text     DEFAULT NULL,
    cold     boolean  DEFAULT false,
    writes   boolean  DEFAULT false,
    promised jsonb    DEFAULT NULL,
    options  jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_report_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 50
AS 'MODULE_PATHNAME', 'io_probe_report_full_wrapper';
COMMENT ON FUNCTION io_probe_report_full(regclass, text, boolean, boolean, jsonb, jsonb) IS 'The lines of io_probe_report as rows, to be joined and stored';
REVOKE ALL ON FUNCTION io_probe_report_full(regclass, text, boolean, boolean, jsonb, jsonb) FROM PUBLIC;

CREATE TYPE io_probe_report_row AS (
    report text
);
COMMENT ON TYPE io_probe_report_row IS 'Row of io_probe_report: one line of the text or of the page';
COMMENT ON COLUMN io_probe_report_row.report IS 'The line';

CREATE FUNCTION io_probe_report(
    rel      regclass DEFAULT NULL,
    duration text     DEFAULT NULL,
    cold     boolean  DEFAULT false,
    writes   boolean  DEFAULT false,
    promised jsonb    DEFAULT NULL,
    format   text     DEFAULT 'text',
    run      bigint   DEFAULT NULL,
    options  jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_report_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 50
AS 'MODULE_PATHNAME', 'io_probe_report_wrapper';
COMMENT ON FUNCTION io_probe_report(regclass, text, boolean, boolean, jsonb, text, bigint, jsonb) IS 'Reports on the storage in one call, in half a minute unless duration says otherwise: devices, scans, random reads, flushes, readahead and settings, with verdicts in words. Measures the relation, or the largest table. promised is what was paid for: {"mib_s": 2000, "iops": 100000, "p99_us": 500}. format is text (80 columns) or html (one page, with pictures). run shows a report that io_probe_record(''report'') has stored, and measures nothing. cold => true lets it evict what it reads; writes => true lets it write a scratch file beside the WAL; each adds rows. What the caller may not call (the _full functions) it leaves out, and names. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision (not of reads at several depths), wait';
REVOKE ALL ON FUNCTION io_probe_report(regclass, text, boolean, boolean, jsonb, text, bigint, jsonb) FROM PUBLIC;
