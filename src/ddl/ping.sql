-- One request now and then.

CREATE TYPE io_probe_ping_full_row AS (
    request       bigint,
    op            text,
    warmup        boolean,
    lat_us        double precision,
    served_by     text,
    path          text,
    doubt         text,
    status        text,
    notes         text[],
    blkno         bigint,
    seed          bigint,
    device        text,
    scheduler     text,
    read_ahead_kb bigint,
    relid         regclass,
    schemaname    text,
    relname       text,
    spcname       text,
    started_at    timestamp with time zone
);
COMMENT ON TYPE io_probe_ping_full_row IS 'Row of io_probe_ping_full: one request';
COMMENT ON COLUMN io_probe_ping_full_row.request IS 'Number of the request, from 1';
COMMENT ON COLUMN io_probe_ping_full_row.op IS 'read: a block of the relation; write: a block of a scratch file in the relation''s tablespace';
COMMENT ON COLUMN io_probe_ping_full_row.warmup IS 'Is this the first read or the first write? Leave it out of means';
COMMENT ON COLUMN io_probe_ping_full_row.lat_us IS 'Time of the system call in microseconds; no sync follows a write. NULL if the row is void';
COMMENT ON COLUMN io_probe_ping_full_row.served_by IS 'Read: os if the block was in the OS page cache right before, else device. NULL for a write, if the kernel does not tell, or if the row is void';
COMMENT ON COLUMN io_probe_ping_full_row.path IS 'direct: O_DIRECT; os: through the OS page cache';
COMMENT ON COLUMN io_probe_ping_full_row.doubt IS 'What speaks against this row''s figures: at most two codes of docs/interface.md, the worst first; NULL: nothing';
COMMENT ON COLUMN io_probe_ping_full_row.status IS 'ok; partial: something from outside ended the row early; unsupported: not possible here; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_ping_full_row.notes IS 'What to know about the call, one sentence per element; only in the last row';
COMMENT ON COLUMN io_probe_ping_full_row.blkno IS 'Number of the block of the relation that was read; NULL for a write';
COMMENT ON COLUMN io_probe_ping_full_row.seed IS 'Seed of the random order; option seed repeats it';
COMMENT ON COLUMN io_probe_ping_full_row.device IS 'Devices behind the relation, see io_probe_device; NULL if unknown';
COMMENT ON COLUMN io_probe_ping_full_row.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_ping_full_row.read_ahead_kb IS 'Readahead window in kB that newly opened files get; NULL if unknown';
COMMENT ON COLUMN io_probe_ping_full_row.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_ping_full_row.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_ping_full_row.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_ping_full_row.spcname IS 'Tablespace of the relation';
COMMENT ON COLUMN io_probe_ping_full_row.started_at IS 'When the call started';

CREATE TYPE io_probe_ping_row AS (
    request   bigint,
    op        text,
    path      text,
    lat_us    double precision,
    served_by text,
    blkno     bigint,
    relid     regclass,
    doubt     text
);
COMMENT ON TYPE io_probe_ping_row IS 'Row of io_probe_ping: one request';

CREATE FUNCTION io_probe_ping(
    rel     regclass,
    path    text     DEFAULT 'direct',
    mode    text     DEFAULT 'read',
    every   text     DEFAULT '100 ms',
    count   integer  DEFAULT 10,
    options jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_ping_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_ping_wrapper';
COMMENT ON FUNCTION io_probe_ping(regclass, text, text, text, integer, jsonb) IS 'Sends count single requests, one at a time at intervals of every, and times each. mode: read (random blocks of the relation), write (random blocks of a nameless scratch file in its tablespace) or pingpong (a write, a read, and so on). path: direct or os. Needs EXECUTE, and SELECT or MAINTAIN on the relation; modes that write need EXECUTE on io_probe_sync too, and CREATE on its tablespace if that is not the database''s own. Options: max_p99, seed, wait';
REVOKE ALL ON FUNCTION io_probe_ping(regclass, text, text, text, integer, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_ping_full(
    rel     regclass,
    path    text     DEFAULT 'direct',
    mode    text     DEFAULT 'read',
    every   text     DEFAULT '100 ms',
    count   integer  DEFAULT 10,
    options jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_ping_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_ping_wrapper';
COMMENT ON FUNCTION io_probe_ping_full(regclass, text, text, text, integer, jsonb) IS 'The rows of io_probe_ping with all columns';
REVOKE ALL ON FUNCTION io_probe_ping_full(regclass, text, text, text, integer, jsonb) FROM PUBLIC;
