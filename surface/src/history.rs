//! Runs that are kept, and the rows of their probes.

use crate::function::{FILES, Function, KEEP, QUERY, Returns, STORED, optional, required};

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "measure",
        arguments: &[
            required("probe", "text"),
            optional("rel", "regclass", "NULL"),
            optional("args", "jsonb", "'{}'"),
        ],
        returns: Returns::Value("jsonb"),
        comment: "\
            Runs a probe (seqscan: io_probe_seqscan, and so on) with the caller's rights. Returns rows and \
            circumstances as one value, for io_probe_import here or on another server. args are the probe's \
            arguments by name. If storage or the server makes the probe fail, status is failed. If another \
            probe is running, or the device is too busy, status is skipped. Both raise a WARNING. Stores \
            nothing, so it works on a standby. Needs EXECUTE on the probe's _full function, and the rights \
            that the probe needs",
        example: r#"'ping', 'public.probed', '{"count": 1, "mode": "write", "every": "0"}'"#,
        errors: &[FILES, QUERY, STORED],
        ..KEEP
    },
    Function {
        name: "import",
        arguments: &[required("result", "jsonb"), optional("label", "text", "NULL")],
        returns: Returns::Value("bigint"),
        comment: "\
            Stores a result of io_probe_measure, from here or from another server, with an optional label. \
            Returns the number of the run. Needs EXECUTE",
        example: "public.measured(), 'imported'",
        errors: &[STORED],
        ..KEEP
    },
    Function {
        name: "record",
        arguments: &[
            required("probe", "text"),
            optional("rel", "regclass", "NULL"),
            optional("args", "jsonb", "'{}'"),
            optional("label", "text", "NULL"),
        ],
        returns: Returns::Value("bigint"),
        comment: "\
            Runs a probe as io_probe_measure does, and stores the result with an optional label. Returns the \
            number of the run. Needs EXECUTE on the probe's _full function, and the rights that the probe \
            needs",
        example: r#"'seqscan', 'public.probed', '{"cold": true, "duration": "9 ms"}', 'recorded'"#,
        errors: &[FILES, QUERY, STORED],
        ..KEEP
    },
    Function {
        name: "prune",
        arguments: &[required("keep", "text"), optional("force", "boolean", "false")],
        returns: Returns::Value("bigint"),
        comment: "\
            Deletes the stored runs that are older than argument keep, such as '90 days', and returns how \
            many it deleted. A keep under a day needs force => true. Needs EXECUTE",
        example: "'1 year'",
        errors: &[&["22008", "25006"]],
        ..KEEP
    },
];
