//! What the words in a plan's JSON mean: the name of a node as the text format prints it, how a node
//! reads, which subplan it is, and which subplans its expressions need.

use std::collections::BTreeSet;

use super::{JsonNode, MOST_REFERENCES, NodeAccess};
use serde_json::{Map, Value};

/// The node's name as EXPLAIN's text format prints it, which the JSON splits over several fields.
pub(super) fn node_type(item: &JsonNode) -> String {
    let kind = item.kind();
    let strategy = item.text("Strategy");
    let operation = item.text("Operation").filter(|&operation| operation != "Select");
    let name = match kind {
        "Aggregate" => {
            let name = match strategy {
                Some("Sorted") => "GroupAggregate",
                Some("Hashed") => "HashAggregate",
                Some("Mixed") => "MixedAggregate",
                _ => kind,
            };
            match item.text("Partial Mode") {
                Some(mode @ ("Partial" | "Finalize")) => format!("{mode} {name}"),
                _ => name.to_owned(),
            }
        }
        "SetOp" => {
            let name = if strategy == Some("Hashed") { "HashSetOp" } else { kind };
            item.text("Command").map_or(name.to_owned(), |command| format!("{name} {command}"))
        }
        "Nested Loop" | "Hash Join" | "Merge Join" => match item.text("Join Type") {
            Some(join) if join != "Inner" => format!("{} {join} Join", kind.trim_end_matches(" Join")),
            _ => kind.to_owned(),
        },
        "Index Scan" | "Index Only Scan" if item.text("Scan Direction") == Some("Backward") => {
            format!("{kind} Backward")
        }
        "ModifyTable" => operation.unwrap_or(kind).to_owned(),
        "Foreign Scan" => operation.map_or(kind.to_owned(), |operation| format!("Foreign {operation}")),
        "Custom Scan" => item
            .text("Custom Plan Provider")
            .map_or(kind.to_owned(), |provider| format!("{kind} ({provider})")),
        _ => kind.to_owned(),
    };
    let parallel = if item.flag("Parallel Aware") { "Parallel " } else { "" };
    let asynchronous = if item.flag("Async Capable") { "Async " } else { "" };
    format!("{parallel}{asynchronous}{name}")
}

/// How a node of this kind (its "Node Type") reads its own blocks.
pub(super) fn access(kind: &str) -> Option<NodeAccess> {
    match kind {
        "Seq Scan" | "Sample Scan" | "Tid Range Scan" => Some(NodeAccess::Sequential),
        "Index Scan" | "Index Only Scan" | "Bitmap Index Scan" | "Tid Scan" => Some(NodeAccess::Random),
        "Bitmap Heap Scan" => Some(NodeAccess::Bitmap),
        _ => None,
    }
}

/// Whether a node of this kind reads blocks of relations itself. The others do so only when an
/// expression of theirs does, in an InitPlan or a function.
pub(super) fn reads_relations(kind: &str) -> bool {
    access(kind).is_some()
        || matches!(
            kind,
            "ModifyTable"
                | "LockRows"
                | "Foreign Scan"
                | "Custom Scan"
                | "Function Scan"
                | "Table Function Scan"
        )
}

/// Whether a node of this kind has others run what is below it, too.
pub(super) fn gathers(kind: &str) -> bool {
    matches!(kind, "Gather" | "Gather Merge")
}

/// Names of a detached subplan in other nodes, from its "Subplan Name": `CTE x` and `InitPlan 1` (from 17) as
/// they are, `$0` and `$1` of `InitPlan 1 (returns $0,$1)` (up to 16). Not all beyond [`MOST_REFERENCES`].
pub(super) fn provided(subplan: &str) -> Vec<String> {
    match subplan.split_once(" (returns ") {
        Some((name, parameters)) if name.starts_with("InitPlan ") => {
            let names = parameters.trim_end_matches(')').split(',');
            names.take(MOST_REFERENCES + 1).map(str::to_owned).collect()
        }
        _ => vec![subplan.to_owned()],
    }
}

/// The names, as [`provided`] makes them, of the detached subplans that a node uses; not all if there are
/// more than [`MOST_REFERENCES`].
pub(super) fn needed(fields: &Map<String, Value>) -> Vec<String> {
    let text = |key| fields.get(key).and_then(Value::as_str);
    let mut names = BTreeSet::new();
    for (key, value) in fields {
        match (key.as_str(), value) {
            // Names are no expressions, and SQL for another server has that server's parameters.
            ("CTE Name" | "Subplan Name" | "Alias" | "Relation Name" | "Index Name" | "Remote SQL", _) => {}
            (_, Value::String(expression)) => references(expression, &mut names),
            (_, Value::Array(list)) => {
                list.iter()
                    .filter_map(Value::as_str)
                    .for_each(|expression| references(expression, &mut names));
            }
            _ => {}
        }
    }
    let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    if let (Some("CTE Scan"), Some(cte)) = (text("Node Type"), text("CTE Name")) {
        names.push(format!("CTE {cte}"));
    }
    names
}

/// Finds `$0` and `(InitPlan 1)` in an expression, outside quotes.
fn references<'a>(expression: &'a str, names: &mut BTreeSet<&'a str>) {
    let mut rest = expression;
    while let Some(at) = rest.find(['\'', '"', '$', '(']).filter(|_| names.len() <= MOST_REFERENCES) {
        let (mark, after) = rest[at..].split_at(1);
        rest = match mark {
            // A doubled quote inside ends one literal and begins the next, which is as good.
            "'" | "\"" => after.split_once(mark).map_or("", |(_, behind)| behind),
            "$" => {
                let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                if digits > 0 {
                    names.insert(&rest[at..=at + digits]);
                }
                &after[digits..]
            }
            _ => {
                // Not as far as a parenthesis that another one closes: of many in a row each would be as long
                // as the rest.
                if after.starts_with("InitPlan ")
                    && let Some(end) = after.find(['(', ')'])
                    && after[end..].starts_with(')')
                {
                    names.insert(&after[..end]);
                }
                after
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn subplans_go_by_the_names_that_expressions_use() {
        assert_eq!(provided("InitPlan 2 (returns $3,$4)"), ["$3", "$4"]);
        assert_eq!(provided("InitPlan 2"), ["InitPlan 2"]);
        assert_eq!(provided("CTE x (returns $1)"), ["CTE x (returns $1)"]);
    }

    #[test]
    fn a_node_needs_what_its_expressions_name() {
        let needed = |fields: Value| needed(fields.as_object().unwrap());
        let fields =
            json!({"Node Type": "CTE Scan", "CTE Name": "x", "Filter": "($1 > 0)", "Output": ["a", "$0"]});
        assert_eq!(needed(fields), ["$0", "$1", "CTE x"]);
        assert_eq!(needed(json!({"Node Type": "WorkTable Scan", "CTE Name": "$1", "Alias": "$1"})), [""; 0]);
        let fields = json!({
            "Subplan Name": "InitPlan 1 (returns $0)", "Remote SQL": "SELECT $1", "Plans": [{"Filter": "$2"}]
        });
        assert_eq!(needed(fields), [""; 0]);
    }

    #[test]
    fn references_are_found_outside_quotes_only() {
        let found = |expression| {
            let mut names = BTreeSet::new();
            references(expression, &mut names);
            Vec::from_iter(names)
        };
        assert_eq!(found("((t.b)::numeric > $10)"), ["$10"]);
        assert_eq!(found("(ROW(a, b) < ROW($0, ($1)))"), ["$0", "$1"]);
        assert_eq!(found("(a > ((InitPlan 12).col1 / 3))"), ["InitPlan 12"]);
        assert_eq!(found("(a = 'it''s $1'::text) AND (\"$2\" = $3)"), ["$3"]);
        assert_eq!(found("(a = '(InitPlan 1).col1') OR (hashed SubPlan 2)"), [""; 0]);
        assert_eq!(found("$ $x 'open $1"), [""; 0]);
        assert_eq!(found("é$1é(InitPlan "), ["$1"]);
        assert_eq!(found("(InitPlan 1 (InitPlan 2)"), ["InitPlan 2"]);
    }
}
