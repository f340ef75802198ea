-- A plan as rows. PUBLIC may execute these: they can do nothing that EXPLAIN can't.

CREATE TYPE io_probe_explain_full_row AS (
    node_id           integer,
    parent_id         integer,
    level             integer,
    node_type         text,
    node              text,
    relid             regclass,
    indexid           regclass,
    alias             text,
    access            text,
    shared_blks_hit   bigint,
    shared_blks_read  bigint,
    temp_blks_read    bigint,
    temp_blks_written bigint,
    io_ms             double precision,
    temp_io_ms        double precision,
    self_ms           double precision,
    total_ms          double precision,
    processes         bigint,
    plan_rows         double precision,
    actual_rows       double precision,
    loops             bigint,
    startup_cost      double precision,
    total_cost        double precision,
    local_blks_hit    bigint,
    local_blks_read   bigint,
    local_io_ms       double precision,
    os_ms             double precision,
    device_ms         double precision
);
COMMENT ON TYPE io_probe_explain_full_row IS 'Row of io_probe_explain_full: one plan node';
COMMENT ON COLUMN io_probe_explain_full_row.node_id IS 'Number of the node: 1 for the top node, then in the order in which EXPLAIN prints them';
COMMENT ON COLUMN io_probe_explain_full_row.parent_id IS 'Node below which EXPLAIN prints this one; NULL for the top node';
COMMENT ON COLUMN io_probe_explain_full_row.level IS 'Levels below the top node, which has 0';
COMMENT ON COLUMN io_probe_explain_full_row.node_type IS 'Name of the node as EXPLAIN prints it';
COMMENT ON COLUMN io_probe_explain_full_row.node IS 'node_type, indented by level';
COMMENT ON COLUMN io_probe_explain_full_row.relid IS 'Table that the node reads or modifies, for a Bitmap Index Scan the table that it works for; joins with every probe. NULL without a table';
COMMENT ON COLUMN io_probe_explain_full_row.indexid IS 'Index that the node reads; NULL without an index';
COMMENT ON COLUMN io_probe_explain_full_row.alias IS 'Name in the query of what the node scans';
COMMENT ON COLUMN io_probe_explain_full_row.access IS 'How the node reaches its blocks: sequential, random or bitmap; NULL for a node that scans nothing';
COMMENT ON COLUMN io_probe_explain_full_row.shared_blks_hit IS 'Blocks that the node itself found in shared buffers; NULL unless executed';
COMMENT ON COLUMN io_probe_explain_full_row.shared_blks_read IS 'Blocks that the node itself read into shared buffers, from the OS page cache or the device; NULL unless executed';
COMMENT ON COLUMN io_probe_explain_full_row.temp_blks_read IS 'Blocks of temporary files that the node itself read; NULL unless executed';
COMMENT ON COLUMN io_probe_explain_full_row.temp_blks_written IS 'Blocks of temporary files that the node itself wrote; NULL unless executed';
COMMENT ON COLUMN io_probe_explain_full_row.io_ms IS 'Time in ms that the node itself waited for blocks of tables and indexes, summed over all processes, so it can be more than self_ms; temporary files are in temp_io_ms. NULL without track_io_timing';
COMMENT ON COLUMN io_probe_explain_full_row.temp_io_ms IS 'Time in ms that the node itself spent reading and writing temporary files, summed over all processes: the cost of a sort, a hash or a CTE that spilled. NULL without track_io_timing';
COMMENT ON COLUMN io_probe_explain_full_row.self_ms IS 'Part of total_ms that the node itself took, never negative. The sum over all nodes is the total_ms of the top node';
COMMENT ON COLUMN io_probe_explain_full_row.total_ms IS 'Wall-clock time in ms in the node and below it: average per loop times loops; if processes ran it in parallel, the mean over them. No node has more than the node above it';
COMMENT ON COLUMN io_probe_explain_full_row.processes IS 'How many processes ran this part of the plan in parallel: below a Gather its workers and the leader, else 1. self_ms times processes is their time together';
COMMENT ON COLUMN io_probe_explain_full_row.plan_rows IS 'Rows per loop that the planner expected';
COMMENT ON COLUMN io_probe_explain_full_row.actual_rows IS 'Rows per loop that the node returned; NULL unless executed';
COMMENT ON COLUMN io_probe_explain_full_row.loops IS 'How often the node was started, summed over all processes; NULL unless executed';
COMMENT ON COLUMN io_probe_explain_full_row.startup_cost IS 'The planner''s cost up to the first row';
COMMENT ON COLUMN io_probe_explain_full_row.total_cost IS 'The planner''s cost up to the last row';
COMMENT ON COLUMN io_probe_explain_full_row.local_blks_hit IS 'Blocks of temporary tables that the node itself found in the session''s own buffers; NULL unless executed';
COMMENT ON COLUMN io_probe_explain_full_row.local_blks_read IS 'Blocks of temporary tables that the node itself read into the session''s own buffers; NULL unless executed';
COMMENT ON COLUMN io_probe_explain_full_row.local_io_ms IS 'Part of io_ms for blocks of temporary tables; NULL up to PostgreSQL 16, which does not tell it apart';
COMMENT ON COLUMN io_probe_explain_full_row.os_ms IS 'Predicted time in ms of the node''s own shared blocks if all of shared_blks_read came from the OS page cache, from measured times, one process at a time; NULL unless executed and the times are known';
COMMENT ON COLUMN io_probe_explain_full_row.device_ms IS 'Predicted time in ms of the node''s own shared blocks if all of shared_blks_read came from the device, in the order in which the node reaches them; NULL unless executed and the times are known. The real time lies between os_ms and device_ms, nearer to what served; io_ms is less if waiting overlaps with work (from PostgreSQL 18 on)';

CREATE TYPE io_probe_explain_row AS (
    node_id          integer,
    node             text,
    relid            regclass,
    shared_blks_read bigint,
    self_ms          double precision,
    io_ms            double precision,
    temp_io_ms       double precision,
    os_ms            double precision,
    device_ms        double precision
);
COMMENT ON TYPE io_probe_explain_row IS 'Row of io_probe_explain: one plan node';

CREATE FUNCTION io_probe_explain(query text, execute boolean DEFAULT false, options jsonb DEFAULT '{}')
RETURNS SETOF io_probe_explain_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_explain_wrapper';
COMMENT ON FUNCTION io_probe_explain(text, boolean, jsonb) IS 'Plan of one query as rows, one per node. With execute => true the query is run, in a read-only subtransaction, and each row has the blocks and times of the node itself; the sums over all nodes are those of the statement. Everyone may call it. Option page_cost: rows of io_probe_page_cost to predict from, instead of those that this session measured last in the tablespace';

CREATE FUNCTION io_probe_explain_full(query text, execute boolean DEFAULT false, options jsonb DEFAULT '{}')
RETURNS SETOF io_probe_explain_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_explain_wrapper';
COMMENT ON FUNCTION io_probe_explain_full(text, boolean, jsonb) IS 'The rows of io_probe_explain with all columns';

CREATE FUNCTION io_probe_explain_json(plan json, options jsonb DEFAULT '{}')
RETURNS SETOF io_probe_explain_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_explain_json_wrapper';
COMMENT ON FUNCTION io_probe_explain_json(json, jsonb) IS 'The rows of io_probe_explain from an EXPLAIN (FORMAT JSON) that was taken elsewhere, such as in the log of auto_explain. Names are looked up in this database, and so are sizes and settings for predictions. Everyone may call it. Option page_cost: as for io_probe_explain';

CREATE FUNCTION io_probe_explain_json_full(plan json, options jsonb DEFAULT '{}')
RETURNS SETOF io_probe_explain_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_explain_json_wrapper';
COMMENT ON FUNCTION io_probe_explain_json_full(json, jsonb) IS 'The rows of io_probe_explain_json with all columns';
