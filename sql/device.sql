--
-- io_probe_device, io_probe_check. What the machine can't tell is NULL.
--
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_io_probe LOCATION '';
SET temp_tablespaces = regress_io_probe;
-- the objects: tablespaces first, then the WAL, then where temporary files go
SELECT object, count(DISTINCT spcname) > 0 AS has_tablespace, count(*) > 0 AS any
  FROM io_probe_device_full() WITH ORDINALITY GROUP BY object ORDER BY min(ordinality);
-- every tablespace is there, and no other
SELECT spcname FROM pg_tablespace EXCEPT SELECT spcname FROM io_probe_device_full() WHERE object = 'tablespace';
SELECT spcname FROM io_probe_device_full() WHERE object <> 'wal' EXCEPT SELECT spcname FROM pg_tablespace;
-- temp follows temp_tablespaces, else it is the database's own tablespace
SELECT DISTINCT spcname FROM io_probe_device_full() WHERE object = 'temp';
RESET temp_tablespaces;
SELECT DISTINCT d.spcname = t.spcname AS own FROM io_probe_device_full() d, pg_database
  JOIN pg_tablespace t ON t.oid = dattablespace WHERE object = 'temp' AND datname = current_database();
-- directories are absolute, and below their mount points
SELECT bool_and(starts_with(directory, '/')) AS absolute,
       bool_and(starts_with(directory, mount_point) IS NOT FALSE) AS mounted,
       bool_and(directory LIKE '%/pg\_tblspc/%') FILTER (WHERE spcname = 'regress_io_probe') AS tablespace
  FROM io_probe_device_full();
-- a device of each kind appears once
SELECT object, spcname, device FROM io_probe_device_full() GROUP BY 1, 2, 3 HAVING count(*) > 1;
-- figures fit each other
SELECT bool_and((scheduler = ANY (schedulers)) IS NOT FALSE) AS scheduler,
       bool_and((max_sectors_kb <= max_hw_sectors_kb) IS NOT FALSE) AS max_sectors,
       bool_and((physical_block_size % logical_block_size = 0) IS NOT FALSE) AS block_size,
       bool_and((logical_block_size % 512 = 0 AND fs_block_size > 0) IS NOT FALSE) AS sectors,
       bool_and((fs_free_bytes >= 0 AND size_bytes > 0) IS NOT FALSE) AS sizes,
       bool_and((write_cache IN ('write back', 'write through')) IS NOT FALSE) AS write_cache
  FROM io_probe_device_full();
-- ok means that a device is known; if not, a note says why
SELECT bool_and(status IN ('ok', 'unsupported')) AS known_status,
       bool_and((status = 'ok') = (device IS NOT NULL)) AS status,
       bool_and(device IS NOT NULL OR cardinality(notes) > 0) AS notes
  FROM io_probe_device_full();
DROP TABLESPACE regress_io_probe;

-- check: one row an item; what is not well has an advice
SELECT item FROM io_probe_check() GROUP BY item HAVING count(*) > 1;
SELECT item FROM io_probe_check() WHERE status NOT IN ('ok', 'unsupported') OR value IS NULL
  OR (status = 'ok') <> (what_to_do IS NULL);
-- each object has its device, each tablespace says what it thinks of O_DIRECT, and all but temp have a scratch file
SELECT count(*) FILTER (WHERE starts_with(item, 'device of ')) =
         (SELECT count(DISTINCT (object, spcname)) FROM io_probe_device_full()) AS devices,
       count(*) FILTER (WHERE starts_with(item, 'O_DIRECT')) >= (SELECT count(*) FROM pg_tablespace) AS o_direct,
       count(*) FILTER (WHERE item ~ '^scratch file on')
         = (SELECT count(*) + 1 FROM pg_tablespace) AS scratch
  FROM io_probe_check();
-- the figures of the clock are numbers with units
SELECT item FROM io_probe_check() WHERE item ~ '^clock' AND value ~ '^\d+(\.\d+)? ns' ORDER BY item;
