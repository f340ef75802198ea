-- Where the rows of indexes lie, and correlations that the planner uses in place of what ANALYZE found.

CREATE TABLE io_probe_corrections (
    schemaname    name NOT NULL,
    tablename     name NOT NULL,
    indexname     name NOT NULL,
    correlation   double precision NOT NULL,
    analyzed      real NOT NULL,
    relfilenode   oid NOT NULL,
    reltuples     real NOT NULL,
    major_version integer NOT NULL,
    io_method     name NOT NULL,
    set_at        timestamp with time zone NOT NULL DEFAULT pg_catalog.now(),
    PRIMARY KEY (schemaname, tablename, indexname)
) USING heap;
SELECT pg_catalog.pg_extension_config_dump('io_probe_corrections', '');
COMMENT ON TABLE io_probe_corrections IS 'Correlations of indexes. The planner uses them in place of those that ANALYZE found, in sessions that have loaded the library. io_probe_correct writes them; the owner of this table may DELETE rows of tables that are gone. At most 1000 rows of a table count';
COMMENT ON COLUMN io_probe_corrections.schemaname IS 'Schema of the table and of the index';
COMMENT ON COLUMN io_probe_corrections.tablename IS 'Name of the table';
COMMENT ON COLUMN io_probe_corrections.indexname IS 'Name of the index; not its oid, since REINDEX CONCURRENTLY changes that';
COMMENT ON COLUMN io_probe_corrections.correlation IS 'Correlation that the planner uses, from 0 to 1';
COMMENT ON COLUMN io_probe_corrections.analyzed IS 'Correlation that ANALYZE had found at set_at. If it later finds one that differs by over 0.1, the row no longer counts';
COMMENT ON COLUMN io_probe_corrections.relfilenode IS 'File of the table at set_at. If the table is rewritten, the row no longer counts';
COMMENT ON COLUMN io_probe_corrections.reltuples IS 'Rows of the table at set_at. If their number later differs by over 20 %, the row no longer counts';
COMMENT ON COLUMN io_probe_corrections.major_version IS 'Major version of the server at set_at. On another version the row no longer counts';
COMMENT ON COLUMN io_probe_corrections.io_method IS 'io_method at set_at, empty before PostgreSQL 18. With another io_method the row no longer counts';
COMMENT ON COLUMN io_probe_corrections.set_at IS 'When io_probe_correct was called';
