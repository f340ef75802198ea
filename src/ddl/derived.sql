-- Made from the types of all rows, once they exist: comments and views. Only types of this extension count: others may have put
-- types of such names into the schema before.
DO $derived$
DECLARE
    -- Runs of these probes are stored without a view, or not at all.
    without CONSTANT pg_catalog.text[] := '{correlation,device,explain,iostat,iostat_query,recommend,report}';
    probe  pg_catalog.text;
    type   pg_catalog.oid;
    view   pg_catalog.text;
    target pg_catalog.text;
    about  record;
BEGIN
    FOR probe, type IN
        SELECT pg_catalog.substring(t.typname::pg_catalog.text, '^io_probe_(.*)_full_row$'), t.oid
          FROM pg_catalog.pg_type AS t
          JOIN pg_catalog.pg_depend AS d ON d.objid OPERATOR(pg_catalog.=) t.oid
               AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_type'::pg_catalog.regclass AND d.deptype OPERATOR(pg_catalog.=) 'e'
               AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
          JOIN pg_catalog.pg_extension AS e ON e.oid OPERATOR(pg_catalog.=) d.refobjid AND e.extname OPERATOR(pg_catalog.=) 'pg_io_probe'
         WHERE t.typname OPERATOR(pg_catalog.~) '^io_probe_.*_full_row$'
         ORDER BY t.oid
    LOOP
        -- A column of the short row means what it means in the full row.
        FOR about IN
            SELECT narrow.attrelid::pg_catalog.regclass AS type, narrow.attname,
                   pg_catalog.col_description(everything.attrelid, everything.attnum) AS text
              FROM pg_catalog.pg_attribute AS narrow JOIN pg_catalog.pg_attribute AS everything
                   ON everything.attname OPERATOR(pg_catalog.=) narrow.attname
             WHERE narrow.attrelid OPERATOR(pg_catalog.=) pg_catalog.format('io_probe_%s_row', probe)::pg_catalog.regclass
                   AND everything.attrelid OPERATOR(pg_catalog.=)
                       (SELECT typrelid FROM pg_catalog.pg_type WHERE oid OPERATOR(pg_catalog.=) type)
        LOOP
            EXECUTE pg_catalog.format('COMMENT ON COLUMN %s.%I IS %L', about.type, about.attname, about.text);
        END LOOP;

        -- The rows of the runs that are stored, with their types. A view takes over the comments of the row type's attributes; relid
        -- is the run's oid, since the relation may be gone or in another cluster.
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
            -- Rows of other probes need not fit the type, and may be read before they are left out.
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
$derived$;
