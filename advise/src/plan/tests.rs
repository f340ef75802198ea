//! Plans that servers printed: `tests/fixtures/plans.md` has them, with tables and statements.

mod made_up;

use super::*;
use crate::hostile::plans::{BLOCKS, own};
use serde_json::json;

/// Names and texts of the plans.
pub(crate) fn fixtures() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_part = |part: &'static str| {
        let (heading, rest) = part.split_once("```json\n").expect("a plan");
        (heading.lines().next().expect("a name"), rest.trim_end().trim_end_matches("```"))
    };
    include_str!("../../tests/fixtures/plans.md").split("\n### ").skip(1).map(of_part)
}

fn text(name: &str) -> &'static str {
    fixtures().find(|(known, _)| *known == name).expect("a fixture").1
}

fn plan(name: &str) -> Vec<Node> {
    nodes(text(name)).expect("a plan")
}

/// Each node's name, what it scans, and its own blocks, hit or read.
fn blocks(name: &str) -> Vec<(String, String, u64)> {
    let blocks = |node: &Node| Some(node.shared_blks_hit? + node.shared_blks_read?);
    let named = |node: Node| {
        let blocks = blocks(&node).expect("BUFFERS");
        let target = node.relation.or(node.row.alias.map(String::from)).unwrap_or_default();
        (node.row.node_type.into_owned(), target, blocks)
    };
    plan(name).into_iter().map(named).collect()
}

#[track_caller]
fn assert_blocks(name: &str, expected: &[(&str, &str, u64)]) {
    let found = blocks(name);
    let found: Vec<_> =
        found.iter().map(|(node, target, blocks)| (&node[..], &target[..], *blocks)).collect();
    assert_eq!(found, expected);
}

// The tables' sizes in blocks: t1 364, t2 134, t3 3, ev 14, one 1, each partition of pt 11.

#[test]
fn a_cte_is_paid_by_each_reader_for_what_it_pulled() {
    assert_blocks(
        "15_cte_with_two_readers",
        &[
            ("Aggregate", "", 0),
            ("Bitmap Heap Scan", "t1", 24),
            ("Bitmap Index Scan", "t1", 2),
            ("Hash Join", "", 0),
            ("CTE Scan", "x", 0),
            ("Hash", "", 0),
            ("CTE Scan", "y", 0),
        ],
    );
}

#[test]
fn workers_of_an_unfinished_cte_are_paid_where_they_were_stopped() {
    // The reader saw 1 of the 3 blocks, the other 2 came in when the Limit shut the Gather down.
    let expected =
        [("Limit", "", 0), ("Gather", "", 0), ("Parallel Seq Scan", "t1", 3), ("CTE Scan", "x", 0)];
    assert_blocks("15_cte_not_read_to_its_end", &expected);
    let plan = plan("15_cte_not_read_to_its_end");
    assert!(plan[0].self_ms < Some(0.1), "the Gather's time was left with the Limit: {:?}", plan[0]);
}

#[test]
fn a_cte_that_spilled_leaves_its_files_with_its_readers() {
    let plan = plan("18_cte_spilled");
    let temp: Vec<_> = plan.iter().map(|node| (node.temp_blks_read, node.temp_blks_written)).collect();
    let none = (Some(0), Some(0));
    assert_eq!(
        temp,
        [none, none, none, (Some(0), Some(300)), none, (Some(301), Some(1)), none, (Some(301), Some(0))]
    );
    assert_eq!(blocks("18_cte_spilled")[1], ("Seq Scan".to_owned(), "t1".to_owned(), 364));
    assert_eq!(plan[3].shared_blks_read, Some(0));
}

#[test]
fn a_cte_scan_reads_the_innermost_cte_of_its_name_that_is_not_itself() {
    assert_blocks(
        "18_cte_of_the_same_name",
        &[
            ("Aggregate", "", 0),
            ("Seq Scan", "t3", 3),
            ("Nested Loop", "", 0),
            ("CTE Scan", "x", 0),
            ("Materialize", "", 0),
            ("Subquery Scan", "s", 0),
            ("CTE Scan", "x_1", 0),
            ("CTE Scan", "x_2", 0),
        ],
    );
}

#[test]
fn a_recursive_cte_is_paid_by_its_reader_and_not_by_its_work_table() {
    assert_blocks(
        "18_cte_recursive",
        &[
            ("CTE Scan", "r", 0),
            ("Seq Scan", "ev", 14),
            ("Recursive Union", "", 0),
            ("CTE Scan", "base", 0),
            ("Hash Join", "", 0),
            ("CTE Scan", "e", 0),
            ("Hash", "", 0),
            ("WorkTable Scan", "r_1", 0),
        ],
    );
}

#[test]
fn a_modifying_cte_keeps_what_it_did_after_the_statement() {
    // The top node saw 16 blocks; the rows that no node read were deleted after it had finished.
    let expected = [("Limit", "", 0), ("Delete", "ev", 4010), ("Seq Scan", "ev", 14), ("CTE Scan", "d", 0)];
    assert_blocks("15_delete_read_in_part", &expected);
}

#[test]
fn a_gather_runs_the_init_plans_of_its_workers() {
    assert_blocks(
        "15_initplan_run_by_gather",
        &[
            ("Finalize Aggregate", "", 0),
            ("Finalize Aggregate", "", 0),
            ("Gather", "", 0),
            ("Partial Aggregate", "", 0),
            ("Parallel Seq Scan", "t2", 134),
            ("Gather", "", 0),
            ("Partial Aggregate", "", 0),
            ("Parallel Index Only Scan", "t1", 59),
        ],
    );
}

#[test]
fn an_append_runs_the_init_plan_that_prunes_it() {
    assert_blocks(
        "15_initplan_run_by_append",
        &[
            ("Aggregate", "", 0),
            ("Aggregate", "", 0),
            ("Seq Scan", "t2", 134),
            ("Append", "", 0),
            ("Seq Scan", "pt0", 0),
            ("Seq Scan", "pt1", 0),
            ("Seq Scan", "pt2", 0),
            ("Seq Scan", "pt3", 11),
            ("Seq Scan", "pt4", 0),
        ],
    );
}

#[test]
fn a_nested_loop_runs_the_init_plan_of_the_index_scan_that_it_restarts() {
    // The Sort's 3 are the system catalog's.
    assert_blocks(
        "15_initplan_run_by_nested_loop",
        &[
            ("Aggregate", "", 0),
            ("Aggregate", "", 0),
            ("Seq Scan", "t2", 134),
            ("Nested Loop", "", 0),
            ("Limit", "", 0),
            ("Sort", "", 3),
            ("Seq Scan", "t3", 3),
            ("Index Scan", "t1", 66),
        ],
    );
}

#[test]
fn an_init_plan_of_a_subplan_is_paid_inside_it() {
    assert_blocks(
        "15_initplan_in_subplan",
        &[
            ("Bitmap Heap Scan", "t1", 20),
            ("Bitmap Index Scan", "t1", 2),
            ("Aggregate", "", 0),
            ("Aggregate", "", 0),
            ("Seq Scan", "t3", 3),
            ("Index Scan", "t2", 50),
        ],
    );
}

#[test]
fn each_of_several_init_plans_finds_its_payer() {
    assert_blocks(
        "18_several_initplans",
        &[
            ("Aggregate", "", 0),
            ("Aggregate", "", 0),
            ("Seq Scan", "t2", 134),
            ("Aggregate", "", 0),
            ("Seq Scan", "one", 1),
            ("Aggregate", "", 0),
            ("Seq Scan", "t1", 364),
            ("Hash Join", "", 0),
            ("Append", "", 0),
            ("Seq Scan", "pt0", 0),
            ("Seq Scan", "pt1", 0),
            ("Seq Scan", "pt2", 0),
            ("Seq Scan", "pt3", 11),
            ("Seq Scan", "pt4", 11),
            ("Hash", "", 0),
            ("Seq Scan", "t3", 3),
        ],
    );
}

#[test]
fn a_statement_parameter_of_the_same_name_pays_nothing() {
    assert_blocks(
        "15_parameter_of_the_same_name",
        &[
            ("Aggregate", "", 0),
            ("Aggregate", "", 0),
            ("Aggregate", "", 0),
            ("Seq Scan", "one", 1),
            ("Seq Scan", "t2", 134),
            ("Nested Loop", "", 0),
            ("Index Only Scan", "t1", 3),
            ("Materialize", "", 0),
            ("Seq Scan", "t3", 3),
        ],
    );
}

#[test]
fn what_auto_explain_logs_is_one_object() {
    let expected =
        [("Aggregate", "", 0), ("Aggregate", "", 0), ("Seq Scan", "one", 1), ("Seq Scan", "t3", 3)];
    assert_blocks("15_auto_explain", &expected);
}

#[test]
fn a_bitmap_index_scan_names_the_table_that_it_works_for() {
    let plan = plan("18_quoted_names");
    let names = |node: &Node| {
        let names =
            [node.schema.as_deref(), node.relation.as_deref(), node.alias.as_deref(), node.index.as_deref()];
        names.map(|name| name.unwrap_or_default().to_owned())
    };
    assert_eq!(names(&plan[0]), [""; 4]);
    assert_eq!(names(&plan[1]), ["Weird Schema", "Weird Tbl", "Weird Tbl", ""]);
    assert_eq!(names(&plan[2]), ["Weird Schema", "Weird Tbl", "Weird Tbl", "Weird Idx"]);
    let access: Vec<_> = plan.iter().map(|node| node.access).collect();
    assert_eq!(access, [None, Some(NodeAccess::Bitmap), Some(NodeAccess::Random)]);

    let plan = self::plan("18_bitmap_or");
    assert_eq!(plan[2].node_type, "BitmapOr");
    assert_eq!(names(&plan[2]), [""; 4]);
    assert_eq!(names(&plan[4]), ["public", "t1", "t1", "t1_a"]);
}

#[test]
fn a_function_scan_has_no_schema() {
    let plan =
        json!([{"Plan": {"Node Type": "Function Scan", "Function Name": "f", "Schema": "s", "Alias": "a"}}]);
    let node = &nodes(&plan.to_string()).unwrap()[0];
    assert_eq!((&node.schema, &node.relation, node.alias.as_deref()), (&None, &None, Some("a")));
}

#[test]
fn times_are_multiplied_by_loops_and_rows_are_not() {
    let plan = plan("18_cte_of_the_same_name");
    let loops = &plan[4];
    assert_eq!(loops.node_type, "Materialize");
    assert_eq!(loops.loops, Some(500));
    assert_eq!(loops.total_ms, Some(7.5));
    assert_eq!(loops.self_ms, Some(7.387));
    assert_eq!((loops.plan_rows, loops.actual_rows), (Some(250.0), Some(250.0)));
    assert_eq!((plan[0].startup_cost, plan[0].total_cost), (Some(1912.38), Some(1912.38)));
}

#[test]
fn temporary_tables_are_counted_apart() {
    let plan = plan("18_temporary_table");
    let scan = &plan[2];
    assert_eq!((scan.schema.as_deref(), scan.relation.as_deref()), (Some("pg_temp"), Some("tmp")));
    assert_eq!((scan.shared_blks_hit, scan.shared_blks_read), (Some(0), Some(0)));
    assert_eq!((scan.local_blks_hit, scan.local_blks_read), (Some(384), Some(0)));
}

#[test]
fn a_node_that_never_ran_has_zeros() {
    let node = &plan("18_never_executed")[4];
    assert_eq!((node.loops, node.shared_blks_hit, node.shared_blks_read), (Some(0), Some(0), Some(0)));
    assert_eq!((node.self_ms, node.total_ms, node.actual_rows), (Some(0.0), Some(0.0), Some(0.0)));
}

#[test]
fn what_was_not_measured_is_absent() {
    for node in plan("18_costs_only") {
        assert!(node.total_cost.is_some() && node.plan_rows.is_some());
        assert_eq!((node.shared_blks_hit, node.local_blks_read, node.temp_blks_read), (None, None, None));
        assert_eq!((node.io_ms, node.self_ms, node.total_ms), (None, None, None));
        assert_eq!((node.actual_rows, node.loops), (None, None));
    }
}

#[test]
fn both_spellings_of_the_times_of_io_are_known() {
    let times = |fields: Value| {
        let mut fields = fields;
        fields["Node Type"] = json!("Seq Scan");
        let node = nodes(&json!({"Plan": fields}).to_string()).unwrap().remove(0);
        [node.io_ms, node.local_io_ms, node.temp_io_ms]
    };
    let up_to_16 = json!({
        "I/O Read Time": 1.5, "I/O Write Time": 7.0, "Temp I/O Read Time": 9.0, "Temp I/O Write Time": 0.5
    });
    assert_eq!(times(up_to_16), [Some(1.5), None, Some(9.5)]);
    let from_17 =
        json!({"Shared I/O Read Time": 1.5, "Local I/O Read Time": 0.25, "Temp I/O Write Time": 2.0});
    assert_eq!(times(from_17), [Some(1.75), Some(0.25), Some(2.0)]);
    assert_eq!(times(json!({"Shared Read Blocks": 1})), [None; 3]);
}

#[test]
fn the_time_of_a_spill_is_the_sort_s() {
    let plan = plan("18_parallel_sort");
    let of = |node: &Node| (node.node_type.to_string(), node.temp_io_ms, node.io_ms, node.local_io_ms);
    let expected = [
        ("Gather Merge".to_owned(), Some(0.0), Some(0.0), Some(0.0)),
        ("Sort".to_owned(), Some(10.37), Some(0.009), Some(0.0)),
        ("Parallel Seq Scan".to_owned(), Some(0.0), Some(38.574), Some(0.0)),
    ];
    assert_eq!(plan.iter().map(of).collect::<Vec<_>>(), expected);
}

/// Each node's time by the wall clock, its own part, and how many processes ran it.
fn walls(plan: &[Node]) -> Vec<(f64, f64, u64)> {
    plan.iter().map(|node| (node.total_ms.unwrap(), node.self_ms.unwrap(), node.processes.unwrap())).collect()
}

#[test]
fn below_a_gather_times_are_those_of_the_mean_process() {
    let expected = [(57.16, 31.336, 1), (25.824, 8.202, 3), (17.622, 17.622, 3)];
    assert_eq!(walls(&plan("18_parallel_sort")), expected);
}

#[test]
fn a_gather_that_runs_again_has_as_many_processes_each_time() {
    let expected = [
        (147122.748, 19.5, 1),
        (147103.248, 269.836, 1),
        (23.412, 7.409, 1),
        (16.003, 0.711, 3),
        (5.292, 5.292, 3),
        (10.0, 10.0, 3),
        (146810.0, 146680.0, 1),
        (130.0, 130.0, 3),
    ];
    assert_eq!(walls(&plan("18_parallel_join")), expected);
}

#[test]
fn workers_that_went_on_beside_the_leader_are_given_no_more_than_their_gather() {
    let scan = timed("Seq Scan", 40.0, 3, json!({}));
    let sort = timed("Sort", 50.0, 3, json!({"Plans": [scan]}));
    let gather = timed("Gather", 10.0, 1, json!({"Plans": [sort]}));
    let top = timed("Aggregate", 70.0, 1, json!({"Plans": [gather]}));
    let plan = nodes(&json!({"Plan": top}).to_string()).unwrap();
    assert_eq!(walls(&plan), [(70.0, 60.0, 1), (10.0, 0.0, 1), (10.0, 2.0, 3), (8.0, 8.0, 3)]);
}

#[test]
fn averages_that_were_rounded_upwards_are_no_more_than_the_node_above() {
    let inner = timed("Index Scan", 0.001, 1_000_000, json!({}));
    let outer = timed("Seq Scan", 200.0, 1, json!({}));
    let top = timed("Nested Loop", 600.0, 1, json!({"Plans": [outer, inner]}));
    assert_eq!(self_ms(top), [0.0, 100.0, 500.0]);
}

#[test]
fn an_init_plan_of_a_gather_is_the_leaders_and_one_further_down_is_each_process_s() {
    let sum = |ms: f64, loops| timed("Result", ms, loops, json!({"Parent Relationship": "InitPlan"}));
    let scan = timed("Seq Scan", 9.0, 3, json!({"Plans": [sum(4.0, 3)]}));
    let top = timed("Gather", 30.0, 1, json!({"Plans": [sum(15.0, 1), scan]}));
    let plan = nodes(&json!({"Plan": top}).to_string()).unwrap();
    assert_eq!(walls(&plan), [(30.0, 6.0, 1), (15.0, 15.0, 1), (9.0, 5.0, 3), (4.0, 4.0, 3)]);
}

#[test]
fn node_types_are_those_of_the_text_format() {
    let cases = [
        (json!({"Node Type": "Seq Scan", "Parallel Aware": true}), "Parallel Seq Scan"),
        (
            json!({"Node Type": "Foreign Scan", "Operation": "Select", "Async Capable": true}),
            "Async Foreign Scan",
        ),
        (json!({"Node Type": "Foreign Scan", "Operation": "Update"}), "Foreign Update"),
        (json!({"Node Type": "ModifyTable", "Operation": "Merge"}), "Merge"),
        (json!({"Node Type": "Custom Scan", "Custom Plan Provider": "X"}), "Custom Scan (X)"),
        (json!({"Node Type": "Aggregate", "Strategy": "Hashed", "Partial Mode": "Simple"}), "HashAggregate"),
        (
            json!({"Node Type": "Aggregate", "Strategy": "Sorted", "Partial Mode": "Finalize"}),
            "Finalize GroupAggregate",
        ),
        (json!({"Node Type": "Aggregate", "Strategy": "Mixed"}), "MixedAggregate"),
        (
            json!({"Node Type": "Aggregate", "Strategy": "Plain", "Partial Mode": "Partial"}),
            "Partial Aggregate",
        ),
        (
            json!({"Node Type": "SetOp", "Strategy": "Hashed", "Command": "Except All"}),
            "HashSetOp Except All",
        ),
        (json!({"Node Type": "SetOp", "Strategy": "Sorted", "Command": "Intersect"}), "SetOp Intersect"),
        (json!({"Node Type": "Nested Loop", "Join Type": "Inner"}), "Nested Loop"),
        (json!({"Node Type": "Nested Loop", "Join Type": "Left"}), "Nested Loop Left Join"),
        (
            json!({"Node Type": "Hash Join", "Join Type": "Right Anti", "Parallel Aware": true}),
            "Parallel Hash Right Anti Join",
        ),
        (json!({"Node Type": "Merge Join", "Join Type": "Inner"}), "Merge Join"),
        (json!({"Node Type": "Index Only Scan", "Scan Direction": "Backward"}), "Index Only Scan Backward"),
        (json!({"Node Type": "Index Scan", "Scan Direction": "Forward"}), "Index Scan"),
        (json!({"Node Type": "From Next Year"}), "From Next Year"),
    ];
    for (fields, expected) in cases {
        assert_eq!(nodes(&json!({"Plan": fields}).to_string()).unwrap()[0].node_type, expected);
    }
}

/// A node that hit `hits` blocks, itself or below.
fn node(kind: &str, hits: u64, mut fields: Value, children: Vec<Value>) -> Value {
    fields["Node Type"] = json!(kind);
    fields["Shared Hit Blocks"] = json!(hits);
    fields["Plans"] = json!(children);
    fields
}

fn subplan(name: &str, kind: &str, hits: u64, fields: Value, children: Vec<Value>) -> Value {
    let mut plan = node(kind, hits, fields, children);
    plan["Parent Relationship"] = json!("InitPlan");
    plan["Subplan Name"] = json!(name);
    plan
}

fn own_hits(top: Value) -> Vec<u64> {
    let json = json!([{"Plan": top}]).to_string();
    check(&json);
    nodes(&json).unwrap().iter().map(|node| node.shared_blks_hit.unwrap()).collect()
}

fn names_init_plan(number: u32) -> Value {
    json!({"Filter": format!("(a = (InitPlan {number}).col1)")})
}

#[test]
fn a_gather_pays_though_a_scan_below_it_has_blocks_enough() {
    let scan = node("Seq Scan", 100, names_init_plan(1), vec![]);
    let gather = node("Gather", 110, json!({}), vec![scan]);
    let init_plan = subplan("InitPlan 1", "Seq Scan", 10, json!({}), vec![]);
    assert_eq!(own_hits(node("Limit", 110, json!({}), vec![init_plan, gather])), [0, 10, 0, 100]);
}

#[test]
fn of_two_that_name_an_init_plan_the_lower_one_pays() {
    let index = node("Bitmap Index Scan", 13, names_init_plan(1), vec![]);
    let heap = node("Bitmap Heap Scan", 213, names_init_plan(1), vec![index]);
    let init_plan = subplan("InitPlan 1", "Seq Scan", 10, json!({}), vec![]);
    assert_eq!(own_hits(node("Limit", 213, json!({}), vec![init_plan, heap])), [0, 10, 200, 3]);
}

#[test]
fn a_gather_does_not_pay_for_what_ran_inside_another_subplan() {
    let inner = subplan("InitPlan 1", "Seq Scan", 10, json!({}), vec![]);
    let outer = subplan("InitPlan 2", "Seq Scan", 60, names_init_plan(1), vec![]);
    let scan = node("Seq Scan", 100, names_init_plan(2), vec![]);
    assert_eq!(own_hits(node("Gather", 160, json!({}), vec![inner, outer, scan])), [0, 10, 50, 100]);
}

fn temp(mut node: Value, blocks: u64) -> Value {
    node["Temp Written Blocks"] = json!(blocks);
    node
}

#[test]
fn of_two_init_plans_of_one_node_the_one_with_less_choice_is_settled_first() {
    // The Gather ran the first, the Limit the second.
    let first = temp(subplan("InitPlan 1", "Seq Scan", 17, json!({}), vec![]), 1);
    let second = temp(subplan("InitPlan 2", "Seq Scan", 263, json!({}), vec![]), 1);
    let filter = json!({"Filter": "((InitPlan 1).col1 = (InitPlan 2).col1)"});
    let sort =
        temp(node("Sort", 263, json!({}), vec![second, temp(node("Limit", 263, filter, vec![]), 1)]), 4);
    let gather = temp(node("Gather", 280, json!({}), vec![first, sort]), 5);
    let own = nodes(&json!({"Plan": gather}).to_string()).unwrap();
    assert_eq!(own.iter().map(|node| node.temp_blks_written.unwrap()).collect::<Vec<_>>(), [0, 1, 3, 1, 0]);
}

#[test]
fn temporary_files_of_an_init_plan_are_not_taken_from_a_sort() {
    let init_plan = temp(subplan("InitPlan 1", "Sort", 0, json!({}), vec![]), 4);
    let scan = temp(node("Seq Scan", 1, names_init_plan(1), vec![]), 4);
    let sort = temp(node("Sort", 1, json!({}), vec![init_plan, scan]), 9);
    let own: Vec<_> = nodes(&json!({"Plan": sort}).to_string()).unwrap();
    assert_eq!(own.iter().map(|node| node.temp_blks_written.unwrap()).collect::<Vec<_>>(), [5, 4, 0]);
}

fn cte_scan(hits: u64, mut fields: Value, children: Vec<Value>) -> Value {
    fields["CTE Name"] = json!("x");
    node("CTE Scan", hits, fields, children)
}

#[test]
fn a_reader_that_may_have_run_an_init_plan_pays_for_the_cte_last() {
    let cte = subplan("CTE x", "Seq Scan", 120, json!({}), vec![]);
    let init_plan = subplan("InitPlan 1", "Seq Scan", 134, json!({}), vec![]);
    let readers =
        vec![cte, init_plan, cte_scan(154, names_init_plan(1), vec![]), cte_scan(100, json!({}), vec![])];
    assert_eq!(own_hits(node("Append", 254, json!({}), readers)), [0, 120, 134, 0, 0]);
}

#[test]
fn a_reader_that_names_an_init_plan_need_not_have_run_it() {
    let init_plan = subplan("InitPlan 1", "Seq Scan", 30, json!({}), vec![]);
    let cte = subplan("CTE x", "Seq Scan", 120, json!({}), vec![]);
    let scan = node("Seq Scan", 70, names_init_plan(1), vec![]);
    let first = cte_scan(120, names_init_plan(1), vec![]);
    let readers = vec![init_plan, cte, scan, first, cte_scan(0, json!({}), vec![])];
    assert_eq!(own_hits(node("Append", 190, json!({}), readers)), [0, 30, 120, 40, 0, 0]);
}

#[test]
fn an_init_plan_that_several_ran_is_paid_by_each() {
    let init_plan = subplan("InitPlan 1", "Seq Scan", 60, json!({}), vec![]);
    let scan = |hits| node("Seq Scan", hits, names_init_plan(1), vec![]);
    let append = node("Append", 110, json!({}), vec![scan(30), scan(50), scan(30)]);
    assert_eq!(own_hits(node("Limit", 110, json!({}), vec![init_plan, append])), [0, 60, 0, 0, 20, 30]);
}

#[test]
fn of_two_readers_that_read_by_themselves_the_larger_pays() {
    let cte = subplan("CTE x", "Seq Scan", 100, json!({}), vec![]);
    let readers = vec![cte, cte_scan(30, json!({}), vec![]), cte_scan(130, json!({}), vec![])];
    assert_eq!(own_hits(node("Append", 160, json!({}), readers)), [0, 100, 30, 30]);
}

#[test]
fn what_has_one_payer_is_settled_before_what_has_several() {
    // Both readers ran an InitPlan; only of the second is it certain which.
    let cte = subplan("CTE x", "Seq Scan", 248, json!({}), vec![]);
    let inner = subplan("InitPlan 2", "Seq Scan", 234, json!({}), vec![]);
    let outer = subplan("InitPlan 1", "Seq Scan", 60, json!({}), vec![]);
    let first = cte_scan(142, names_init_plan(1), vec![]);
    let second = cte_scan(400, names_init_plan(2), vec![inner]);
    assert_eq!(
        own_hits(node("Append", 542, json!({}), vec![cte, outer, first, second])),
        [0, 248, 60, 0, 0, 234]
    );
}

#[test]
fn an_init_plan_that_only_the_limit_can_have_run_is_not_robbed() {
    let hidden = subplan("InitPlan 2", "Seq Scan", 60, json!({}), vec![]);
    let named = subplan("InitPlan 1", "Seq Scan", 10, json!({}), vec![]);
    let scan = node("Seq Scan", 100, names_init_plan(1), vec![]);
    assert_eq!(own_hits(node("Limit", 160, json!({}), vec![named, hidden, scan])), [0, 10, 60, 90]);
}

#[test]
fn an_init_plan_of_a_join_is_settled_before_one_of_a_scan_below_it() {
    let of_scan = subplan("InitPlan 1", "Seq Scan", 10, json!({}), vec![]);
    let of_join = subplan("InitPlan 2", "Seq Scan", 60, json!({}), vec![]);
    let scan = node("Seq Scan", 100, names_init_plan(1), vec![]);
    let join = node("Nested Loop", 160, names_init_plan(2), vec![scan]);
    assert_eq!(own_hits(node("Limit", 160, json!({}), vec![of_scan, of_join, join])), [0, 10, 60, 0, 90]);
}

#[test]
fn each_kind_of_scan_has_its_access() {
    let access = |kind: &str| nodes(&json!({"Plan": {"Node Type": kind}}).to_string()).unwrap()[0].access;
    for kind in ["Seq Scan", "Sample Scan", "Tid Range Scan"] {
        assert_eq!(access(kind), Some(NodeAccess::Sequential), "{kind}");
    }
    for kind in ["Index Scan", "Index Only Scan", "Bitmap Index Scan", "Tid Scan"] {
        assert_eq!(access(kind), Some(NodeAccess::Random), "{kind}");
    }
    assert_eq!(access("Bitmap Heap Scan"), Some(NodeAccess::Bitmap));
    for kind in ["CTE Scan", "Foreign Scan", "ModifyTable", "Sort", "BitmapOr"] {
        assert_eq!(access(kind), None, "{kind}");
    }
}

/// Own times of a plan that was taken without BUFFERS, ms.
fn self_ms(top: Value) -> Vec<f64> {
    let nodes = nodes(&json!([{"Plan": top}]).to_string()).unwrap();
    nodes.iter().map(|node| node.self_ms.unwrap()).collect()
}

fn timed(kind: &str, ms: f64, loops: u64, mut fields: Value) -> Value {
    fields["Node Type"] = json!(kind);
    fields["Actual Total Time"] = json!(ms);
    fields["Actual Loops"] = json!(loops);
    fields
}

fn timed_init_plan(ms: f64) -> Value {
    timed("Result", ms, 1, json!({"Parent Relationship": "InitPlan", "Subplan Name": "InitPlan 1"}))
}

#[test]
fn without_blocks_an_init_plan_is_paid_by_who_names_it_and_had_the_time() {
    let filter = json!({"Filter": "(a = (InitPlan 1).col1)"});
    let scans = [timed("Seq Scan", 2.0, 1, filter.clone()), timed("Seq Scan", 20.0, 1, filter)];
    let append = timed("Append", 40.0, 1, json!({"Plans": scans}));
    let top = timed("Limit", 41.0, 1, json!({"Plans": [timed_init_plan(15.0), append]}));
    assert_eq!(self_ms(top), [1.0, 15.0, 18.0, 2.0, 5.0]);
}

#[test]
fn without_blocks_an_init_plan_is_paid_by_the_gather_above_who_names_it() {
    let scan = timed("Seq Scan", 20.0, 3, json!({"Filter": "(a = (InitPlan 1).col1)"}));
    let gather = timed("Gather", 36.0, 1, json!({"Plans": [scan]}));
    let top = timed("Aggregate", 40.0, 1, json!({"Plans": [timed_init_plan(15.0), gather]}));
    assert_eq!(self_ms(top), [4.0, 15.0, 1.0, 20.0]);
}

#[test]
fn an_init_plan_that_nobody_names_is_paid_where_it_is_attached_or_below() {
    let limit = |ms, sort| timed("Limit", ms, 1, json!({"Plans": [timed_init_plan(15.0), sort]}));
    let sort = |ms| timed("Sort", ms, 1, json!({"Plans": [timed("Seq Scan", ms - 1.0, 1, json!({}))]}));
    assert_eq!(self_ms(limit(30.0, sort(10.0))), [5.0, 15.0, 1.0, 9.0]);
    assert_eq!(self_ms(limit(30.0, sort(29.0))), [1.0, 15.0, 1.0, 13.0]);
}

#[test]
fn what_the_top_node_does_not_hold_is_taken_where_it_came_from() {
    let node = |hits: u64, children: Value| {
        json!({
            "Node Type": "Seq Scan", "Shared Hit Blocks": hits, "Plans": children
        })
    };
    let inflated = node(1, json!([node(8, json!([]))]));
    let plan = json!({"Plan": node(5, json!([node(4, json!([])), inflated]))});
    let own: Vec<_> = nodes(&plan.to_string()).unwrap().iter().map(|node| node.shared_blks_hit).collect();
    assert_eq!(own, [Some(0), Some(4), Some(0), Some(1)]);
}

/// What must hold for any plan.
fn check(json: &str) {
    let document: Value = serde_json::from_str(json).unwrap();
    let top = document.get(0).unwrap_or(&document)["Plan"].clone();
    let plan = nodes(json).unwrap();
    for (position, node) in plan.iter().enumerate() {
        assert_eq!(node.node_id, Some(position as u32 + 1));
        match node.parent_id {
            None => assert_eq!((position, node.level), (0, 0)),
            Some(parent) => {
                assert!(Some(parent) < node.node_id);
                assert_eq!(plan[parent as usize - 1].level + 1, node.level);
            }
        }
        assert!(node.self_ms.is_none_or(|own| own >= 0.0 && Some(own) <= node.total_ms));
        assert!(node.io_ms.is_none_or(|own| own >= 0.0));
    }
    if let Some(whole) = plan[0].total_ms {
        let sum = plan.iter().filter_map(|node| node.self_ms).sum::<f64>();
        assert!((sum - whole).abs() <= whole * 1e-9 + 0.0005, "{sum} ms of {whole}");
    }
    for (at, key) in BLOCKS.into_iter().enumerate() {
        let sum = plan.iter().map(|node| own(node)[at]).sum::<Option<u64>>();
        assert_eq!(sum, top.get(key).and_then(Value::as_u64), "{key}");
    }
}

#[test]
fn every_fixture_adds_up() {
    let mut count = 0;
    for (name, text) in fixtures() {
        count += 1;
        if name != "15_delete_read_in_part" {
            check(text);
        }
    }
    assert_eq!(count, 20);
}

#[test]
fn only_one_plan_is_taken() {
    let message = |json: &str| nodes(json).unwrap_err().to_string();
    let plan = r#"{"Plan": {"Node Type": "Result"}}"#;
    assert_eq!(nodes(&format!("[{plan}]")).unwrap().len(), 1);
    assert_eq!(message(&format!("[{plan},{plan}]")), "could not choose among several plans: the JSON has 2");
    for none in ["[]", "{}", "1", "[\"Utility Statement\"]", r#"{"Planning": {}}"#] {
        assert_eq!(message(none), "could not find a plan in the JSON", "{none}");
    }
    assert!(
        message("Seq Scan on t").starts_with("could not read the plan as JSON: expected value at line 1")
    );
}

#[test]
fn a_broken_field_is_named_with_its_node() {
    let message = |fields: Value| nodes(&json!({"Plan": fields}).to_string()).unwrap_err().to_string();
    let child = |child: Value| message(json!({"Node Type": "Limit", "Plans": [child]}));
    assert_eq!(message(json!(1)), "could not read \"Plan\" of plan node 1");
    assert_eq!(message(json!({})), "could not read \"Node Type\" of plan node 1");
    assert_eq!(message(json!({"Plans": 1})), "could not read \"Plans\" of plan node 1");
    assert_eq!(child(json!(1)), "could not read \"Plan\" of plan node 2");
    for broken in [json!("1"), json!(-1), json!(0.5), json!(u64::MAX), json!(null)] {
        let fields = json!({"Node Type": "Seq Scan", "Shared Hit Blocks": broken});
        assert_eq!(child(fields), "could not read \"Shared Hit Blocks\" of plan node 2");
    }
    let fields = json!({"Node Type": "Seq Scan", "Actual Rows": "many"});
    assert_eq!(child(fields), "could not read \"Actual Rows\" of plan node 2");
}

fn nested(levels: usize) -> String {
    let open = r#"{"Node Type": "Limit", "Shared Hit Blocks": 7, "Plans": ["#.repeat(levels - 1);
    let bottom = r#"{"Node Type": "Seq Scan", "Output": ["a"], "Shared Hit Blocks": 7}"#;
    format!("[{{\"Plan\": {open}{bottom}{}}}]", "]}".repeat(levels - 1))
}

#[test]
fn a_plan_that_is_too_deep_is_an_error() {
    let plan = nodes(&nested(62)).unwrap();
    assert_eq!(plan.last().map(|node| (node.level, node.shared_blks_hit)), Some((61, Some(7))));
    check(&nested(62));
    for levels in [64, 100_000] {
        assert!(matches!(nodes(&nested(levels)), Err(PlanError::TooDeep)), "{levels}");
    }
}

#[test]
fn the_largest_figures_do_not_overflow() {
    let most = i64::MAX;
    let node = |children: Value| {
        json!({
            "Node Type": "Seq Scan", "Plans": children, "Shared Hit Blocks": most, "Actual Loops": most,
            "Actual Total Time": 1e300, "Shared I/O Read Time": 1e300, "Local I/O Read Time": 1e300,
        })
    };
    let plan = json!({"Plan": node(json!([node(json!([])), node(json!([]))]))}).to_string();
    check(&plan);
    let sum: u64 = nodes(&plan).unwrap().iter().filter_map(|node| node.shared_blks_hit).sum();
    assert_eq!(sum, most as u64);
}

/// Is a plan refused as too large, and for what?
#[track_caller]
fn assert_too_large(json: &str, expected: &str) {
    match nodes(json) {
        Err(PlanError::TooLarge { what, .. }) => assert_eq!(what, expected),
        other => panic!("{:?}", other.map(|nodes| nodes.len())),
    }
}

#[test]
fn what_takes_too_much_memory_is_refused() {
    let around = |rest: &str| format!(r#"{{"Plan": {{"Node Type": "Result", {rest}}}}}"#);
    assert_too_large(&" ".repeat(MOST_BYTES + 1), "bytes");
    assert_too_large(
        &around(&format!(r#""Output": [{}0]"#, r#"{"":0},"#.repeat(1 << 20))),
        "bytes in memory",
    );
    let below = |count| around(&format!(r#""Plans": [{}{{}}]"#, r#"{"Node Type":"x"},"#.repeat(count)));
    assert_too_large(&below(MOST_NODES), "nodes");
    assert!(matches!(nodes(&below(1)), Err(PlanError::Field { node_id: 3, .. })));
    let parameters: String = (0..=MOST_REFERENCES).map(|number| format!("${number}")).collect();
    assert_too_large(&around(&format!(r#""Filter": "{parameters}""#)), "references to subplans");
    // Each of the parentheses might else be followed to the end of the text.
    let opened = around(&format!(r#""Filter": "{})""#, "(InitPlan ".repeat(1 << 20)));
    assert_eq!(nodes(&opened).expect("a plan").len(), 1);
}

#[test]
fn names_are_short() {
    let plan = |length| {
        let scan = r#"{"Node Type": "Bitmap Index Scan"}"#;
        let alias = "x".repeat(length);
        nodes(&format!(
            r#"{{"Plan": {{"Node Type": "Bitmap Heap Scan", "Alias": "{alias}", "Plans": [{scan}]}}}}"#
        ))
    };
    assert_eq!(
        plan(MOST_OF_NAME).expect("a plan")[1].alias.as_ref().map(|alias| alias.len()),
        Some(MOST_OF_NAME)
    );
    assert!(matches!(plan(MOST_OF_NAME + 1), Err(PlanError::Field { node_id: 1, key: "Alias" })));
}
