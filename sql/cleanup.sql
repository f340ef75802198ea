--
-- All that the tests made is gone: it would be there for the next run, or for other databases
--
DROP EXTENSION pg_io_probe;
SELECT relname, relkind FROM pg_class WHERE relnamespace = 'public'::regnamespace;
SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace;
SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname NOT IN ('public', 'information_schema');
SELECT rolname FROM pg_roles WHERE rolname LIKE 'regress\_io\_probe%';
SELECT spcname FROM pg_tablespace WHERE spcname LIKE 'regress\_io\_probe%';
SELECT parname FROM pg_parameter_acl WHERE parname LIKE 'pg\_io\_probe%';
