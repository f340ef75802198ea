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
COMMENT ON COLUMN io_probe_explain_full_row.node_id IS '1 for the top node, then in the order in which EXPLAIN prints them';
COMMENT ON COLUMN io_probe_explain_full_row.parent_id IS 'Node below which EXPLAIN prints this one; NULL for the top node';
COMMENT ON COLUMN io_probe_explain_full_row.level IS 'Depth below the top node, which is 0';
COMMENT ON COLUMN io_probe_explain_full_row.node_type IS 'Name as EXPLAIN prints it';
COMMENT ON COLUMN io_probe_explain_full_row.node IS 'node_type, indented by level';
COMMENT ON COLUMN io_probe_explain_full_row.relid IS 'Table that the node reads or modifies; joins with every probe. For a Bitmap Index Scan the table that it works for';
COMMENT ON COLUMN io_probe_explain_full_row.indexid IS 'Index that the node reads';
COMMENT ON COLUMN io_probe_explain_full_row.alias IS 'Name of the item in the query';
COMMENT ON COLUMN io_probe_explain_full_row.access IS 'How the node reaches its blocks: sequential, random or bitmap; NULL for a node that scans nothing';
COMMENT ON COLUMN io_probe_explain_full_row.shared_blks_hit IS 'Own blocks found in shared buffers; NULL unless executed';
COMMENT ON COLUMN io_probe_explain_full_row.shared_blks_read IS 'Own blocks read into shared buffers, from the OS cache or the device';
COMMENT ON COLUMN io_probe_explain_full_row.temp_blks_read IS 'Own blocks of temporary files read';
COMMENT ON COLUMN io_probe_explain_full_row.temp_blks_written IS 'Own blocks of temporary files written';
COMMENT ON COLUMN io_probe_explain_full_row.io_ms IS 'Own time in ms spent waiting for blocks of tables and indexes, of all processes together, so that it can be more than self_ms; without the time of temporary files, which is temp_io_ms. NULL without track_io_timing';
COMMENT ON COLUMN io_probe_explain_full_row.temp_io_ms IS 'Own time in ms spent reading and writing temporary files, of all processes together: what a sort, a hash or a CTE that spilled cost. NULL without track_io_timing';
COMMENT ON COLUMN io_probe_explain_full_row.self_ms IS 'Own part of total_ms, never negative. All nodes together have the total_ms of the top node';
COMMENT ON COLUMN io_probe_explain_full_row.total_ms IS 'Time in ms in the node and below it, by the wall clock: average per loop times loops, and where processes ran side by side the mean of them. No node has more than the node above';
COMMENT ON COLUMN io_probe_explain_full_row.processes IS 'How many processes ran this part of the plan side by side: below a Gather its workers and the leader, else 1. self_ms times processes is their time together';
COMMENT ON COLUMN io_probe_explain_full_row.plan_rows IS 'Rows per loop that the planner expected';
COMMENT ON COLUMN io_probe_explain_full_row.actual_rows IS 'Rows per loop that came out';
COMMENT ON COLUMN io_probe_explain_full_row.loops IS 'How often the node was started, over all processes';
COMMENT ON COLUMN io_probe_explain_full_row.startup_cost IS 'The planner''s cost up to the first row';
COMMENT ON COLUMN io_probe_explain_full_row.total_cost IS 'The planner''s cost up to the last row';
COMMENT ON COLUMN io_probe_explain_full_row.local_blks_hit IS 'Own blocks of temporary tables found in the session''s buffers';
COMMENT ON COLUMN io_probe_explain_full_row.local_blks_read IS 'Own blocks of temporary tables read into them';
COMMENT ON COLUMN io_probe_explain_full_row.local_io_ms IS 'Part of io_ms for blocks of temporary tables; NULL up to PostgreSQL 16, which does not tell it apart';
COMMENT ON COLUMN io_probe_explain_full_row.os_ms IS 'Time in ms that the node''s own shared blocks would take by measured times if all that it read came from the OS cache, one process at a time; NULL unless executed and the times are known';
COMMENT ON COLUMN io_probe_explain_full_row.device_ms IS 'The same if all that it read came from the device, in the order in which the node reaches its blocks. What was read took a time between the two, nearer to the one that served; io_ms is less where waiting overlaps with work (from PostgreSQL 18 on)';

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
COMMENT ON FUNCTION io_probe_explain(text, boolean, jsonb) IS 'Plan of one query as rows, a node each. With execute the query is run, in a read-only subtransaction, and each node shows its own blocks and times: the sums over all nodes are those of the statement. Option page_cost: rows of io_probe_page_cost to predict from, instead of those that this session measured last in the tablespace';

CREATE FUNCTION io_probe_explain_full(query text, execute boolean DEFAULT false, options jsonb DEFAULT '{}')
RETURNS SETOF io_probe_explain_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_explain_wrapper';
COMMENT ON FUNCTION io_probe_explain_full(text, boolean, jsonb) IS 'The rows of io_probe_explain with all columns';

CREATE FUNCTION io_probe_explain_json(plan json, options jsonb DEFAULT '{}')
RETURNS SETOF io_probe_explain_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_explain_json_wrapper';
COMMENT ON FUNCTION io_probe_explain_json(json, jsonb) IS 'The rows of io_probe_explain from an EXPLAIN (FORMAT JSON) that was taken elsewhere, such as in the log of auto_explain. Names are looked up in this database, and so are sizes and settings for predictions. Option page_cost: as there';

CREATE FUNCTION io_probe_explain_json_full(plan json, options jsonb DEFAULT '{}')
RETURNS SETOF io_probe_explain_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_explain_json_wrapper';
COMMENT ON FUNCTION io_probe_explain_json_full(json, jsonb) IS 'The rows of io_probe_explain_json with all columns';
