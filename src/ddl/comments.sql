-- A column of a row for people means what it means in the full row.

DO $comments$
DECLARE
    probe pg_catalog.text;
    about record;
BEGIN
    FOREACH probe IN ARRAY '{device,seqscan,random,random_series,depth,ping,sync,iostat,iostat_query,readahead,page_cost,recommend,correlation,explain}'::pg_catalog.text[] LOOP
        FOR about IN
            SELECT narrow.attrelid::pg_catalog.regclass AS type, narrow.attname,
                   pg_catalog.col_description(everything.attrelid, everything.attnum) AS text
              FROM pg_catalog.pg_attribute AS narrow JOIN pg_catalog.pg_attribute AS everything
                   ON everything.attname OPERATOR(pg_catalog.=) narrow.attname
             WHERE narrow.attrelid OPERATOR(pg_catalog.=) pg_catalog.format('io_probe_%s_row', probe)::pg_catalog.regclass
                   AND everything.attrelid OPERATOR(pg_catalog.=) pg_catalog.format('io_probe_%s_full_row', probe)::pg_catalog.regclass
        LOOP
            EXECUTE pg_catalog.format('COMMENT ON COLUMN %s.%I IS %L', about.type, about.attname, about.text);
        END LOOP;
    END LOOP;
END
$comments$;
