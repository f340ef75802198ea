"""Arguments from plain to hostile, for functions as the catalog has them, and statements that call them.

What a value is made of follows from its type, and for a text from the argument's name: an argument for which there is
nothing here is an AssertionError, so that values for it are added.
"""

import json
import random
import re

from lib import Failure

ROLES = {"fuzz_super": 45, "fuzz_granted": 35, "fuzz_monitor": 12, "fuzz_nobody": 8}

# Relations of each kind, those that are not there, and texts that are no relation.
RELATIONS = """
    plain empty many_columns plain_id plain_hash brin gist gin unlogged logged_sequence parted parted_1 parted_id
    parted_1_id seen copied elsewhere composite_type locked secret secret_id guarded invalid_index own_temp pg_class
    pg_database pg_proc pg_class_oid_index pg_authid pg_largeobject pg_stat_activity pg_settings
    information_schema.tables io_probe_runs io_probe_latest pg_catalog.pg_toast_1255
""".split()
ODD_NAMES = [
    'we"ird', "new\nline", "Ünïcödé ✓", "semi; DROP TABLE plain; --", "quo'te", " ", "a" * 63, "%s %n {}", "$1",
    "back\\slash",
]
NO_RELATIONS = [
    "", "nothing", "-", "0", "4294967295", "-1", "4294967296", "a.b.c.d", '"', "''", "pg_toast.nothing", "x" * 300,
    "\t", "public.", "1e3", "::1",
]

TEXTS = [
    "", " ", "direct", "DIRECT", "os", "é", "\u202e", "x" * 20000, "'", '"', "\\", "$$", "%s%n", "\n", "a\nb", "NULL",
    "-1", "{}", "../../etc/passwd", "/dev/sda", "'; DROP TABLE plain; --", "\U0001f4be", "\x01\x7f",
]
# Arguments of type text that are times.
TIMES = {"duration", "every", "keep", "p99"}
INTEGERS = [0, 1, -1, 2, 3, 7, 8, 9, 10, 100, 1000, 32767, 65536, 2**31 - 1, -(2**31)]
BIGINTS = [*INTEGERS, 2**31, 2**63 - 1, -(2**63), 2**53 + 1]
INTERVALS = [
    "0", "-1 ms", "1 us", "100 ms", "101 ms", "-178000000 years", "178000000 years", "1 mon -30 days", "infinity",
    "-infinity", "1 day -24 hours", "00:00:00.0000005", "x", "", "1e300 s", "P1Y", "2147483647 days 2562047788 hours",
    "1", "1.5", "+3", " 1 ", "1e3", "@ 1", "1 é", "1:00", "1 2", "1 ago",
]
FLOATS = ["0", "1", "-1", "0.5", "1e-300", "1e308", "NaN", "Infinity", "-Infinity", "1.0000001", "-0"]

# Good values of each text argument or option. The functions themselves are asked for the names of options.
GOOD_TEXTS = {
    "paths": ["direct", "server", "os"],
    "path": ["direct", "os"],
    "mode": ["read", "write", "pingpong"],
    "spcname": ["pg_default", "pg_global", "fuzz_space", 'we"ird space', "nowhere"],
    "sections": ["one_write", "two_writes", "open_sync_size", "other_fd", "no_sync", "all"],
    "like": ["now", "17"],
    "writing": ["data", "sequential", "wal"],
    "patterns": ["random", "sequential"],
    "settings": [
        "random_page_cost", "effective_io_concurrency", "wal_sync_method",
        "read_ahead_kb", "io_method", "io_workers", "io_combine_limit", "scheduler",
        "checkpoint_flush_after", "backend_flush_after", "bgwriter_flush_after", "checkpoint_completion_target",
        "autovacuum_vacuum_cost_limit",
    ],
    "device": ["vda", "sda", "loop0", "dm-0", "nvme0n1", "../vda", "."],
    "label": ["before", "after", "fuzz"],
    "label_a": ["before", "fuzz"],
    "label_b": ["after", "fuzz"],
    "format": ["text", "html"],
    "engine": ["auto", "io_uring", "threads"],
}
# What a function takes under a name that others have for other values.
GOOD_OF_FUNCTION = {("io_probe_write", "patterns"): ["checkpoint", "backend", "copy"]}
GOOD_INTEGERS = {"chunk_kb": [8, 64, 256], "write_kb": [8, 16], "windows_kb": [0, 8, 64, 256]}
GOOD_TIMES = {"every": ["0", "1 ms", "10 ms", "10 ms"], "keep": ["1 year"], "p99": ["100 us", "2 ms"]}
GOOD_OPTIONS = {
    "max_bytes": [8192, 65536, 1 << 20],
    "precision": [0.1, 0.5],
    "wait": [False, None],
    "direct": [True, False],
    "start_blk": [0, 1, 7],
    "max_iops": [10000, 100000],
    "max_mib_s": [10, 1000],
    "max_util_pct": [50, 99.5, 100],
    "max_p99": [0.001, "1ms", 1000],
    "page_cost": [[], None],
}
PROMISES = ["mib_s", "iops", "p99_us", "write_mib_s", "write_iops", "commit_us", "commit_p99_us"]
QUERIES = [
    "SELECT 1", "SELECT count(*) FROM plain", "TABLE plain", "VALUES (1), (2)", "SELECT * FROM plain WHERE id = 3",
    "WITH a AS MATERIALIZED (TABLE plain) SELECT * FROM a, a AS b",
    "SELECT * FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid", "SELECT * FROM parted",
    "SELECT * FROM secret", "SELECT * FROM guarded", "SELECT * FROM seen", 'SELECT * FROM "we""ird"', "SELECT 1/0",
    "SELECT", "", ";", "SELECT 1; SELECT 2", "-- nothing", "/*", "SELECT $1", "SELECT 'x", "DROP TABLE plain",
    "INSERT INTO plain VALUES (1)", "DELETE FROM plain", "UPDATE plain SET id = 0", "TRUNCATE plain",
    "SELECT * INTO copy FROM plain", "WITH d AS (DELETE FROM plain RETURNING 1) TABLE d",
    "SELECT nextval('logged_sequence')", "SELECT * FROM plain FOR UPDATE", "COPY plain TO PROGRAM 'true'", "BEGIN",
    "COMMIT", "SELECT pg_sleep(0.001)", "EXPLAIN SELECT 1", "LISTEN x", "SET ROLE postgres",
    "SELECT set_config('pg_io_probe.max_duration', '1 h', false)", "SELECT set_config('search_path', 'pg_temp', false)",
    "SELECT set_config('role', 'postgres', false)", "SELECT * FROM io_probe_explain_full('SELECT 1', true)",
    "SELECT * FROM io_probe_ping_full('plain', count => 1)", "SELECT * FROM io_probe_iostat_full('10 ms')",
    "DO $$BEGIN END$$", "SELECT lo_create(0)", "DECLARE c CURSOR FOR SELECT 1",
    "MERGE INTO plain USING empty ON true WHEN MATCHED THEN DELETE",
    "SELECT (SELECT oid FROM pg_class LIMIT 1) FROM generate_series(1, 10)", "CALL nothing()", "SELECT nothing()",
    "SELECT nothing", "SELECT pg_advisory_xact_lock(1)", "SELECT " + "(" * 500 + "1" + ")" * 500,
    "SELECT 1 " + "UNION ALL SELECT 1 " * 200,
]
PLANS = [
    [
        {
            "Plan": {
                "Node Type": "Seq Scan", "Relation Name": "plain", "Schema": "public", "Alias": "p", "Plan Rows": 8,
                "Startup Cost": 0, "Total Cost": 1.5, "Actual Loops": 1, "Actual Total Time": 0.01,
                "Shared Hit Blocks": 3, "Shared Read Blocks": 5,
            }
        }
    ],
    {
        "Plan": {
            "Node Type": "Hash Join",
            "Join Type": "Left",
            "Plans": [
                {"Node Type": "CTE Scan", "CTE Name": "x"},
                {
                    "Node Type": "Hash",
                    "Plans": [
                        {
                            "Node Type": "Bitmap Heap Scan", "Relation Name": 'we"ird', "Schema": "public",
                            "Plans": [{"Node Type": "Bitmap Index Scan", "Index Name": "plain_id"}],
                        }
                    ],
                },
                {"Node Type": "Seq Scan", "Parent Relationship": "InitPlan", "Subplan Name": "CTE x"},
            ],
        }
    },
]


def quoted(name):
    """A name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def literal(text, type_name):
    """A value of a type; None is NULL. There are no C-style escapes: a backslash stands for itself."""
    return "NULL" if text is None else "'" + text.replace("'", "''") + f"'::{type_name}"


class Function:
    """A function of the extension, as the catalog has it."""

    def __init__(self, row):
        self.name, self.returns_set = row["name"], row["returns_set"]
        self.arguments = list(zip(row["names"] or [], row["types"] or []))
        self.required = len(self.arguments) - row["defaults"]
        self.options = []

    def __str__(self):
        return f"{self.name}({', '.join(type_name for _, type_name in self.arguments)})"


class Fuzzer:
    """Makes statements, each from its number."""

    def __init__(self, session, functions, oids, results, seed):
        self.functions, self.oids, self.results, self.seed = functions, oids, results, seed
        for function in functions:
            function.options = self._known_options(session, function)
        self.probes = [
            function for function in functions if function.name.removeprefix("io_probe_") in self._known_probes(session)
        ]

    @staticmethod
    def _known_probes(session):
        """The probes that can be measured and stored, by name."""
        try:
            session.run("SELECT io_probe_measure('?')")
        except Failure as refused:
            return re.findall(r'"(\w+)"', str(refused).partition("HINT:")[2])
        return []

    @staticmethod
    def _known_options(session, function):
        """The names of a function's options, from the HINT that lists them."""
        if not function.arguments or function.arguments[-1] != ("options", "jsonb"):
            return []
        # Options are checked before the other arguments.
        needed = {"regclass": "'plain'", "text": "'SELECT 1'", "json": "'[]'"}
        values = [needed[type_name] for _, type_name in function.arguments[: function.required]]
        unknown = """options => '{"?": 1}'"""
        try:
            session.run(f"SELECT {function.name}({', '.join([*values, unknown])})")
        except Failure as refused:
            hint = re.search(r"^HINT:  Valid options are (.*)\.$", str(refused), re.MULTILINE)
            return re.findall(r'"(\w+)"', hint.group(1)) if hint else []
        return []

    def statement(self, number):
        """The role, the function, and the text of a call."""
        self.random = random.Random(f"{self.seed}/{number}")
        role = self.random.choices(list(ROLES), ROLES.values())[0]
        function = self.random.choice(self.functions)
        call = f"{function.name}({', '.join(self._arguments(function))})"
        shape = self.random.random()
        if shape < 0.7:
            source = f"{call} AS r"
        elif shape < 0.8:
            # In FROM the server would call it once, as it depends on no other row, and scan again what it kept.
            source = f"(SELECT {call} AS r FROM generate_series(1, 3)) AS called"
        else:
            source = None
        if source:
            text = f"SELECT count(*), sum(length(r::text)) FROM {source}"
        elif shape < 0.85:
            text = f"SELECT {call} AS r LIMIT 1"
        elif shape < 0.9:
            block = f"BEGIN PERFORM {call}; EXCEPTION WHEN OTHERS THEN IF SQLSTATE LIKE 'XX%' THEN RAISE; END IF; END"
            tag = "$" + "q" * 30 + "$"
            text = f"DO {tag} BEGIN FOR i IN 1..2 LOOP {block}; END LOOP; END {tag}"
        elif shape < 0.93:
            text = f"BEGIN READ ONLY;\nSELECT {call};\nROLLBACK"
        elif shape < 0.96:
            text = (
                f"BEGIN ISOLATION LEVEL SERIALIZABLE;\nSAVEPOINT s;\nSELECT {call};\nROLLBACK TO s;\nSELECT {call};\nCOMMIT"
            )
        else:
            text = f"SET statement_timeout = {self.random.randint(1, 15)};\nSELECT {call} AS r;\nRESET statement_timeout"
        return role, function, text

    def _arguments(self, function):
        """The arguments by name. Many calls have none that is hostile, and most of the others one."""
        count = len(function.arguments)
        hostile = set()
        if count and self.random.random() < 0.5:
            hostile = set(self.random.sample(range(count), self.random.choice([1, 1, 1, min(2, count), count])))
        # If an argument names a probe, the other arguments are for that probe.
        self.probe = self.random.choice(self.probes)
        needs = [name for name, _ in function.arguments[: function.required]]
        if "probe" in needs:
            needs += ["args", *(name for name, _ in self.probe.arguments[: self.probe.required])]
        given = []
        for at, (name, type_name) in enumerate(function.arguments):
            if "probe" in needs and name == "rel" and name not in needs and at not in hostile:
                continue
            if name not in needs and at not in hostile and self.random.random() < 0.5:
                continue
            value = self._hostile(name, type_name) if at in hostile else self._good(function, name, type_name)
            given.append(f"{name} => {value}")
        return given

    # --- values that make sense ---

    def _good(self, function, name, type_name):
        pick = self.random.choice
        if name == "index":
            return literal(pick(["plain_id", "plain_id", *RELATIONS[:9]]), "regclass")
        if type_name == "regclass":
            return literal(pick(RELATIONS[:9] + ['"we""ird"', "toast"]), "regclass").replace(
                "'toast'", f"'{self.oids['toast']}'"
            )
        if name in TIMES:
            return literal(pick(GOOD_TIMES.get(name, ["1 ms", "1 ms", "2 ms"])), type_name)
        if type_name == "boolean":
            return pick(["true", "false"])
        if type_name == "integer":
            return str(pick(GOOD_INTEGERS.get(name, range(1, 9))))
        if type_name == "bigint":
            return str(pick([1, 2, 3, *self.results["runs"]]))
        if type_name == "integer[]":
            return literal(
                "{" + ",".join(str(pick(GOOD_INTEGERS.get(name, [1, 2, 4, 8, 64]))) for _ in range(pick([1, 2, 3]))) + "}",
                type_name,
            )
        if type_name == "double precision":
            return literal(pick(["0", "0.5", "1"]), type_name)
        if type_name == "double precision[]":
            return literal("{" + ",".join(pick(["0.5", "1", "0.01"]) for _ in range(2)) + "}", type_name)
        if type_name == "text[]":
            values = GOOD_OF_FUNCTION.get((function.name.removesuffix("_full"), name)) or GOOD_TEXTS.get(name)
            if not values:
                self.fail(name, type_name)
            return literal("{" + ",".join(self.random.sample(values, self.random.randint(1, 2))) + "}", type_name)
        if type_name == "text":
            if name == "device":
                return literal(pick(self.results["devices"]), "text")
            if name == "like":
                # Mostly nobody uses the device here, and then there is no load to be like.
                return pick(["NULL", "NULL", "NULL", "'now'", *(f"'{run}'" for run in self.results["runs"][-2:])])
            if name == "query":
                return literal(pick(QUERIES[:12]), "text")
            if name == "probe":
                return literal(self.probe.name.removeprefix("io_probe_"), "text")
            return literal(pick(GOOD_TEXTS.get(name) or self.fail(name, type_name)), "text")
        if type_name == "json":
            return literal(json.dumps(pick(PLANS)), "json")
        if type_name == "jsonb":
            return literal(json.dumps(self._object(function, name)), "jsonb")
        return self.fail(name, type_name)

    @staticmethod
    def fail(name, type_name):
        raise AssertionError(f"no values for an argument {name} {type_name}: add some to {__file__}")

    def _object(self, function, name):
        """The options of a function, the arguments of a probe, or a result."""
        pick = self.random.choice
        if name == "result":
            return pick(self.results["measured"])
        if name == "args":
            chosen = [
                pair
                for at, pair in enumerate(self.probe.arguments)
                if pair[0] != "rel" and (at < self.probe.required or self.random.random() < 0.5)
            ]
            return {key: self._json_of(self.probe, key, type_name) for key, type_name in chosen}
        if name == "promised":
            kept = self.random.sample(PROMISES, self.random.randint(1, len(PROMISES)))
            return {key: pick([0.001, 1, 500, 1e6, 1e300]) for key in kept}
        if name != "options":
            return self.fail(name, "jsonb")
        names = [key for key in function.options if self.random.random() < 0.25]
        return {key: self._option(key) for key in names}

    def _option(self, key):
        return self.random.choice(GOOD_OPTIONS.get(key) or GOOD_TEXTS.get(key) or [1, 2, 8, 16, None])

    def _json_of(self, function, name, type_name):
        """A good value as JSON has it."""
        if type_name == "jsonb":
            return self._object(function, name) if name in ("options", "promised") else {}
        value = self._good(function, name, type_name)
        text = re.sub(r"^'|'::[^']*$", "", value).replace("''", "'")
        if type_name.endswith("[]"):
            items = text.strip("{}").split(",")
            return items if type_name == "text[]" else [float(item) if "." in item else int(item) for item in items]
        return {"true": True, "false": False}.get(
            text, int(text) if text.isdigit() and type_name in ("integer", "bigint") else text
        )

    # --- values that don't ---

    def _hostile(self, name, type_name):
        pick = self.random.choice
        if self.random.random() < 0.1:
            return "NULL"
        if type_name == "regclass":
            found = pick(
                [
                    pick(RELATIONS),
                    pick(RELATIONS),
                    pick(RELATIONS),
                    quoted(pick(ODD_NAMES)),
                    pick(NO_RELATIONS),
                    str(pick(list(self.oids.values()))),
                    pick(TEXTS),
                ]
            )
            return literal(found, "regclass")
        if name in TIMES:
            return literal(pick(INTERVALS), type_name)
        if type_name == "boolean":
            return pick(["'yes'", "'maybe'", "''", "'1'"]) + "::boolean"
        if type_name in ("integer", "bigint"):
            return f"({pick(INTEGERS if type_name == 'integer' else BIGINTS)})"
        if type_name == "double precision":
            return literal(pick(FLOATS), type_name)
        if type_name in ("integer[]", "double precision[]", "text[]"):
            return self._hostile_array(name, type_name)
        if type_name == "text":
            if name == "query" and self.random.random() < 0.8:
                return literal(pick(QUERIES), "text")
            return literal(pick([pick(TEXTS), pick(ODD_NAMES), pick(self._words(name))]), "text")
        if type_name in ("json", "jsonb"):
            return self._hostile_json(name, type_name)
        return self.fail(name, type_name)

    def _words(self, name):
        """Words of other arguments, and of this one, slightly wrong."""
        own = GOOD_TEXTS.get(name, ["x"])
        others = self.random.choice(list(GOOD_TEXTS.values()))
        return [*own, *others, *(word.upper() for word in own), *(word + " " for word in own)]

    def _hostile_array(self, name, type_name):
        pick = self.random.choice
        items = {
            "integer[]": lambda: str(pick(INTEGERS)),
            "double precision[]": lambda: pick(FLOATS),
            "text[]": lambda: json.dumps(pick([pick(TEXTS[:8]), pick(self._words(name))]), ensure_ascii=False).replace(
                "\\n", "\n"
            ),
        }[type_name]
        kind = self.random.random()
        if kind < 0.1:
            return literal("{}", type_name)
        if kind < 0.2:
            return literal("{NULL}", type_name)
        if kind < 0.3:
            return literal("{{" + items() + "},{" + items() + "}}", type_name)
        if kind < 0.4:
            return literal("[5:6]={" + items() + "," + items() + "}", type_name)
        if kind < 0.5:
            return f"array_fill({literal(items().strip(chr(34)), type_name[:-2])}, '{{{pick([1000, 100000])}}}')"
        if kind < 0.55:
            return literal(pick(["{", "}", "x", "", "{1,", "{{1},{2,3}}"]), type_name)
        return literal(
            "{" + ",".join(pick([items(), items(), "NULL"]) for _ in range(self.random.randint(1, 6))) + "}", type_name
        )

    def _value(self, depth=3):
        """Any JSON value."""
        pick = self.random.choice
        kind = self.random.random()
        if depth and kind < 0.15:
            return [self._value(depth - 1) for _ in range(self.random.randint(0, 4))]
        if depth and kind < 0.3:
            return {
                pick(["", "a", "max_bytes", "é", "\n", "relid", "Plan", "x" * 200]): self._value(depth - 1)
                for _ in range(3)
            }
        if kind < 0.6:
            return pick([*BIGINTS, 2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**30, 0.1, -0.0, 1e300, 1e-300, 1.5])
        return pick([None, True, False, *TEXTS, "2026-01-01", "not a date", "infinity", "NaN", "99999-99-99"])

    def _mutated(self, value):
        """The value with something of it replaced, left out, or added."""
        pick = self.random.choice
        if isinstance(value, dict) and value and self.random.random() < 0.9:
            changed, key = dict(value), pick(list(value))
            what = self.random.random()
            if what < 0.1:
                del changed[key]
            elif what < 0.2:
                changed[pick(list(value))] = changed[key]
            elif what < 0.25:
                changed[pick(TEXTS)] = self._value()
            else:
                changed[key] = self._mutated(changed[key])
            return changed
        if isinstance(value, list) and value and self.random.random() < 0.9:
            changed, at = list(value), self.random.randrange(len(value))
            what = self.random.random()
            if what < 0.1:
                del changed[at]
            elif what < 0.2:
                changed = changed * pick([2, 3, 20])
            else:
                changed[at] = self._mutated(changed[at])
            return changed
        return self._value()

    def _hostile_json(self, name, type_name):
        pick = self.random.choice
        kind = self.random.random()
        if kind < 0.15:
            # As the server takes it, or not: depth, numbers, escapes, keys that come twice, what is no JSON.
            text = pick(
                [
                    "[" * 500 + "]" * 500, '{"a":' * 200 + "1" + "}" * 200, '{"max_bytes": 1e400}',
                    '{"max_bytes": 8192, "max_bytes": -1}', '{"\\u0000": 1}', '{"a": "\\ud800"}',
                    '{"\\ud83d\\udcbe": 1}', "{", "", "nul", "[1,]", "1e999999", '"x"', "null",
                    '{"Plan": {"Node Type": "Result", "Node Type": "Append", "Plans": [{}]}}',
                    '{"a": ' + "9" * 5000 + "}",
                    json.dumps({"x" * 100 + str(i): i for i in range(2000)}),
                    "[" * 20000 + "]" * 20000,
                ]
            )
            return literal(text, type_name)
        if kind < 0.3:
            return literal(json.dumps(self._value(5)), type_name)
        if name == "plan" or type_name == "json":
            base = pick(PLANS)
        elif name == "result":
            base = pick(self.results["measured"])
        else:
            function = pick(self.functions)
            base = self._object(function, name)
            if not base:
                base = {pick(function.options or ["x"]): 1}
        for _ in range(pick([1, 1, 2, 4])):
            base = self._mutated(base)
        return literal(json.dumps(base, ensure_ascii=pick([True, False])), type_name)
