-- How long it takes to read a block.

CREATE TYPE io_probe_page_cost_full_row AS (
    tier          text,
    pattern       text,
    density       double precision,
    depth         integer,
    block_us      double precision,
    err_pct       double precision,
    ci_low        double precision,
    ci_high       double precision,
    blks          bigint,
    os_pct        double precision,
    tuple_us      double precision,
    doubt         text,
    status        text,
    notes         text[],
    turns         bigint,
    seed          bigint,
    device        text,
    scheduler     text,
    read_ahead_kb bigint,
    relid         regclass,
    schemaname    text,
    relname       text,
    spcname       text,
    started_at    timestamptz
);
COMMENT ON TYPE io_probe_page_cost_full_row IS 'Row of io_probe_page_cost_full: one way to read a block, or the work on a tuple';
COMMENT ON COLUMN io_probe_page_cost_full_row.tier IS 'What serves the block: shared (shared buffers), os (OS page cache) or device; cpu for pattern tuple';
COMMENT ON COLUMN io_probe_page_cost_full_row.pattern IS 'sequential: as a sequential scan of this server reads. random: one block after the other in no order, as an index scan. sparse: ascending with gaps, as a bitmap heap scan of this server. tuple: the executor''s work on the tuples of a block';
COMMENT ON COLUMN io_probe_page_cost_full_row.density IS 'Pattern sparse: share of the blocks that are read, over 0 and at most 1; else NULL';
COMMENT ON COLUMN io_probe_page_cost_full_row.depth IS 'Reads that may be in flight: 1 for random, effective_io_concurrency for sparse (0: each block when it is needed, as an index scan in order); NULL if the server decides';
COMMENT ON COLUMN io_probe_page_cost_full_row.block_us IS 'Time per block read in microseconds, without the work on its tuples; for pattern tuple, the work on the tuples of a block. NULL if it could not be measured';
COMMENT ON COLUMN io_probe_page_cost_full_row.err_pct IS 'Half the width of the 95 % confidence interval of block_us, in percent of block_us; NULL without an interval';
COMMENT ON COLUMN io_probe_page_cost_full_row.ci_low IS 'Lower end of the 95 % confidence interval of block_us; NULL with fewer than three turns for tier device, or six for the others';
COMMENT ON COLUMN io_probe_page_cost_full_row.ci_high IS 'Upper end of the 95 % confidence interval of block_us; NULL without an interval';
COMMENT ON COLUMN io_probe_page_cost_full_row.blks IS 'Blocks that were timed; for pattern tuple, tuples';
COMMENT ON COLUMN io_probe_page_cost_full_row.os_pct IS 'Percent of the blocks that the OS page cache held before: 0 or nearly 0 for tier device; NULL for shared and cpu';
COMMENT ON COLUMN io_probe_page_cost_full_row.tuple_us IS 'Pattern tuple: microseconds per tuple in a count of all tuples, without the time of the page itself; else NULL';
COMMENT ON COLUMN io_probe_page_cost_full_row.doubt IS 'What speaks against this row''s figures: at most two codes of docs/interface.md, the worst first; NULL: nothing';
COMMENT ON COLUMN io_probe_page_cost_full_row.status IS 'ok; partial: the measurement ended early, or no time could be measured (see notes)';
COMMENT ON COLUMN io_probe_page_cost_full_row.notes IS 'What limits the figures, one sentence per element';
COMMENT ON COLUMN io_probe_page_cost_full_row.turns IS 'Number of turns of this row; all rows take turns of some milliseconds. Slow turns that block_us leaves out count too. Tier device: the first turn is warm-up if there are more than three. Pattern tuple: pairs of counts';
COMMENT ON COLUMN io_probe_page_cost_full_row.seed IS 'Seed that chose the blocks';
COMMENT ON COLUMN io_probe_page_cost_full_row.device IS 'Devices behind the relation, see io_probe_device; NULL if unknown';
COMMENT ON COLUMN io_probe_page_cost_full_row.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_page_cost_full_row.read_ahead_kb IS 'Readahead window in kB that newly opened files get; NULL if unknown';
COMMENT ON COLUMN io_probe_page_cost_full_row.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_page_cost_full_row.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_page_cost_full_row.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_page_cost_full_row.spcname IS 'Tablespace of the relation';
COMMENT ON COLUMN io_probe_page_cost_full_row.started_at IS 'When the call started';

CREATE TYPE io_probe_page_cost_row AS (
    tier     text,
    pattern  text,
    density  double precision,
    depth    integer,
    block_us double precision,
    err_pct  double precision,
    tuple_us double precision,
    blks     bigint,
    relid    regclass,
    doubt    text
);
COMMENT ON TYPE io_probe_page_cost_row IS 'Row of io_probe_page_cost: one way to read a block, or the work on a tuple';

CREATE FUNCTION io_probe_page_cost(
    rel           regclass,
    densities     double precision[] DEFAULT '{0.03,0.1,0.2,0.35,0.5,0.72,1}',
    concurrencies integer[]          DEFAULT NULL,
    duration      text               DEFAULT NULL,
    cold          boolean            DEFAULT false,
    seed          bigint             DEFAULT NULL,
    options       jsonb              DEFAULT '{}'
)
RETURNS SETOF io_probe_page_cost_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 42
AS 'MODULE_PATHNAME', 'io_probe_page_cost_wrapper';
COMMENT ON FUNCTION io_probe_page_cost(regclass, double precision[], integer[], text, boolean, bigint, jsonb) IS 'Times what planner costs stand for: reading a block from shared buffers, the OS page cache and the device, in order, at random, and ascending with gaps at several densities and effective_io_concurrency settings, which all take turns. Takes 14 s at most by default, up to twice that if a time is not known to within a tenth by then. Reads from the device what the OS page cache does not hold, and drops it from there afterwards. Only with cold => true, which needs EXECUTE on io_probe_evict, are pages evicted that were cached before. Needs EXECUTE, and SELECT or MAINTAIN on the relation. Options: max_bytes (for each of sequential, random and the depths of sparse; all together may read their sum), max_iops, max_mib_s, max_util_pct, max_p99, precision, wait';
REVOKE ALL ON FUNCTION io_probe_page_cost(regclass, double precision[], integer[], text, boolean, bigint, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_page_cost_full(
    rel           regclass,
    densities     double precision[] DEFAULT '{0.03,0.1,0.2,0.35,0.5,0.72,1}',
    concurrencies integer[]          DEFAULT NULL,
    duration      text               DEFAULT NULL,
    cold          boolean            DEFAULT false,
    seed          bigint             DEFAULT NULL,
    options       jsonb              DEFAULT '{}'
)
RETURNS SETOF io_probe_page_cost_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 42
AS 'MODULE_PATHNAME', 'io_probe_page_cost_wrapper';
COMMENT ON FUNCTION io_probe_page_cost_full(regclass, double precision[], integer[], text, boolean, bigint, jsonb) IS 'The rows of io_probe_page_cost with all columns';
REVOKE ALL ON FUNCTION io_probe_page_cost_full(regclass, double precision[], integer[], text, boolean, bigint, jsonb) FROM PUBLIC;
