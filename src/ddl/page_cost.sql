-- What reading a block takes.

CREATE TYPE io_probe_page_cost_row AS (
    tier          text,
    pattern       text,
    density       double precision,
    depth         integer,
    us_per_block  double precision,
    ci_low_us     double precision,
    ci_high_us    double precision,
    samples       bigint,
    resident_pct  double precision,
    us_per_tuple  double precision,
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
COMMENT ON TYPE io_probe_page_cost_row IS 'Row of io_probe_page_cost: one way to read a block, or the work on a tuple';
COMMENT ON COLUMN io_probe_page_cost_row.tier IS 'Who serves the block: shared (shared buffers), os (OS cache) or device; cpu for the row of the tuple';
COMMENT ON COLUMN io_probe_page_cost_row.pattern IS 'sequential: as a sequential scan of this server reads. random: one block after the other in no order, as an index scan. sparse: ascending with gaps, as a bitmap heap scan of this server. tuple: the executor''s work on the tuples of a block';
COMMENT ON COLUMN io_probe_page_cost_row.density IS 'Sparse only: share of the blocks that are read';
COMMENT ON COLUMN io_probe_page_cost_row.depth IS 'Reads that may be in flight: 1 for random, effective_io_concurrency for sparse (0 is no prefetch); NULL where the server decides';
COMMENT ON COLUMN io_probe_page_cost_row.us_per_block IS 'Time per block read in microseconds, without the work on its tuples; in the row of the tuple, that work. NULL if it could not be measured';
COMMENT ON COLUMN io_probe_page_cost_row.ci_low_us IS 'Lower end of the 95 % confidence interval of us_per_block; it takes three turns for device, six for the others';
COMMENT ON COLUMN io_probe_page_cost_row.ci_high_us IS 'Upper end of that interval';
COMMENT ON COLUMN io_probe_page_cost_row.samples IS 'Blocks that were timed; tuples in the row of the tuple';
COMMENT ON COLUMN io_probe_page_cost_row.resident_pct IS 'Share of the samples, in percent, that the OS cache held before: 0 or nearly so for device; NULL for shared and cpu';
COMMENT ON COLUMN io_probe_page_cost_row.us_per_tuple IS 'Row of the tuple: microseconds per tuple of a count of all tuples, beside the page itself';
COMMENT ON COLUMN io_probe_page_cost_row.status IS 'ok; partial: ended early, or no time could be measured, see notes';
COMMENT ON COLUMN io_probe_page_cost_row.notes IS 'What limits the figures, a sentence each';
COMMENT ON COLUMN io_probe_page_cost_row.turns IS 'How many turns this way to read had (all of them take turns of some milliseconds). Slow ones that are left out of the time are counted, too; of device the first is warm-up if there are more than three. In the row of the tuple, pairs of counts';
COMMENT ON COLUMN io_probe_page_cost_row.seed IS 'Seed that chose the blocks';
COMMENT ON COLUMN io_probe_page_cost_row.device IS 'Devices behind the relation, see io_probe_device';
COMMENT ON COLUMN io_probe_page_cost_row.scheduler IS 'Their I/O scheduler';
COMMENT ON COLUMN io_probe_page_cost_row.read_ahead_kb IS 'Readahead window in kB in force for newly opened files';
COMMENT ON COLUMN io_probe_page_cost_row.relid IS 'Relation';
COMMENT ON COLUMN io_probe_page_cost_row.schemaname IS 'Its schema';
COMMENT ON COLUMN io_probe_page_cost_row.relname IS 'Its name';
COMMENT ON COLUMN io_probe_page_cost_row.spcname IS 'Its tablespace';
COMMENT ON COLUMN io_probe_page_cost_row.started_at IS 'When the call started';

CREATE FUNCTION io_probe_page_cost(
    rel           regclass,
    duration      interval           DEFAULT NULL,
    cold          boolean            DEFAULT false,
    densities     double precision[] DEFAULT '{0.03,0.1,0.2,0.35,0.5,0.72,1}',
    concurrencies integer[]          DEFAULT NULL,
    seed          bigint             DEFAULT NULL,
    options       jsonb              DEFAULT '{}'
)
RETURNS SETOF io_probe_page_cost_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 42
AS 'MODULE_PATHNAME', 'io_probe_page_cost_wrapper';
COMMENT ON FUNCTION io_probe_page_cost(regclass, interval, boolean, double precision[], integer[], bigint, jsonb) IS 'The times behind planner costs: what the server takes to read a block from shared buffers, the OS cache and the device, in order, at random, and ascending with gaps at several densities and effective_io_concurrency settings, all in turn; 14 s at most by default. Reads from the device what the OS cache does not hold, and drops it from there afterwards; only with cold, which needs EXECUTE on io_probe_evict, are pages evicted that were cached before. Options: max_bytes (for each of sequential, random and the depths of sparse; all together may read their sum), max_iops, max_mib_per_s, max_util_pct, max_p99_us, precision, wait';
REVOKE ALL ON FUNCTION io_probe_page_cost(regclass, interval, boolean, double precision[], integer[], bigint, jsonb) FROM PUBLIC;
