-- What is made of the types of all rows, when they are there.

-- A column of a row for people means what it means in the full row.
DO $comments$
DECLARE
    about record;
BEGIN
    FOR about IN
        SELECT narrow.attrelid::pg_catalog.regclass AS type, narrow.attname,
               pg_catalog.col_description(everything.attrelid, everything.attnum) AS text
          FROM pg_catalog.pg_class AS short
          JOIN pg_catalog.pg_class AS long ON long.relnamespace OPERATOR(pg_catalog.=) short.relnamespace
               AND long.relname OPERATOR(pg_catalog.=) pg_catalog.regexp_replace(short.relname, '_row$', '_full_row')
          JOIN pg_catalog.pg_attribute AS narrow ON narrow.attrelid OPERATOR(pg_catalog.=) short.oid
          JOIN pg_catalog.pg_attribute AS everything ON everything.attrelid OPERATOR(pg_catalog.=) long.oid
               AND everything.attname OPERATOR(pg_catalog.=) narrow.attname
         WHERE short.relname OPERATOR(pg_catalog.~) '^io_probe_.*_row$' AND short.relnamespace OPERATOR(pg_catalog.=)
               (SELECT typnamespace FROM pg_catalog.pg_type WHERE oid OPERATOR(pg_catalog.=) 'io_probe_seqscan_row'::pg_catalog.regtype)
    LOOP
        EXECUTE pg_catalog.format('COMMENT ON COLUMN %s.%I IS %L', about.type, about.attname, about.text);
    END LOOP;
END
$comments$;

-- The rows of each probe of which runs are kept, with their types. A view takes over the comments of the row type's
-- attributes; relid is the run's oid, since the relation may be gone or in another cluster.
DO $history$
DECLARE
    -- Of these a run is kept as it is, or none.
    without CONSTANT pg_catalog.text[] := '{correlation,device,explain,iostat,iostat_query,recommend,report}';
    probe  pg_catalog.text;
    type   pg_catalog.oid;
    view   pg_catalog.text;
    target pg_catalog.text;
    about  record;
BEGIN
    FOR probe, type IN
        SELECT pg_catalog.substring(typname::pg_catalog.text, '^io_probe_(.*)_full_row$'), oid
          FROM pg_catalog.pg_type
         WHERE typname OPERATOR(pg_catalog.~) '^io_probe_.*_full_row$' AND typnamespace OPERATOR(pg_catalog.=)
               (SELECT typnamespace FROM pg_catalog.pg_type WHERE oid OPERATOR(pg_catalog.=) 'io_probe_seqscan_row'::pg_catalog.regtype)
         ORDER BY oid
    LOOP
        CONTINUE WHEN probe OPERATOR(pg_catalog.=) ANY (without);
        view := pg_catalog.format('io_probe_%s_history', probe);
        SELECT pg_catalog.string_agg(pg_catalog.format(
                   CASE WHEN attname OPERATOR(pg_catalog.=) 'relid' THEN 'run.%1$I' ELSE 'line.%1$I' END, attname), ', ' ORDER BY attnum)
          INTO STRICT target
          FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_type ON typrelid OPERATOR(pg_catalog.=) attrelid
         WHERE pg_type.oid OPERATOR(pg_catalog.=) type AND attnum OPERATOR(pg_catalog.>) 0 AND NOT attisdropped;
        EXECUTE pg_catalog.format(
            'CREATE VIEW %1$I AS SELECT run.id AS run_id, run.started_at AS run_started_at, run.label, %2$s '
            'FROM io_probe_runs AS run JOIN io_probe_results AS result ON result.run_id OPERATOR(pg_catalog.=) run.id, '
            -- Rows of other probes need not fit, and may be read before they are left out.
            'LATERAL pg_catalog.jsonb_populate_record(NULL::%3$s, CASE WHEN run.probe OPERATOR(pg_catalog.=) %4$L '
            'THEN result.result OPERATOR(pg_catalog.-) ''relid''::pg_catalog.text END) AS line '
            'WHERE run.probe OPERATOR(pg_catalog.=) %4$L',
            view, target, type::pg_catalog.regtype, probe);
        FOR about IN
            SELECT attname, pg_catalog.col_description(attrelid, attnum) AS text
              FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_type ON typrelid OPERATOR(pg_catalog.=) attrelid
             WHERE pg_type.oid OPERATOR(pg_catalog.=) type AND attnum OPERATOR(pg_catalog.>) 0 AND NOT attisdropped
            UNION ALL VALUES ('run_id', 'Run in io_probe_runs'), ('run_started_at', 'When the probe was called'),
                             ('label', 'What the caller called the run')
        LOOP
            EXECUTE pg_catalog.format('COMMENT ON COLUMN %I.%I IS %L', view, about.attname, about.text);
        END LOOP;
        EXECUTE pg_catalog.format('COMMENT ON VIEW %I IS %L', view,
            pg_catalog.format('What io_probe_%s_full returned in the runs that are stored', probe));
        EXECUTE pg_catalog.format('GRANT SELECT ON %I TO pg_monitor', view);
    END LOOP;
END
$history$;
