use super::*;
use crate::measure::page_times::times::Sparse;
use crate::plan;
use serde_json::{Value, json};

fn exactly(us: f64) -> Estimate {
    Estimate { us, interval: None }
}

/// Powers of two, so that each figure shows where it came from.
fn times() -> PageTimes {
    let sparse = [(0.1, 16, 128.0), (0.2, 16, 256.0), (0.1, 0, 512.0)];
    let sparse = sparse.map(|(density, concurrency, us)| Sparse { density, concurrency, time: exactly(us) });
    PageTimes {
        shared: Some(exactly(0.5)),
        os_sequential: Some(exactly(1.0)),
        os_random: Some(exactly(2.0)),
        device_sequential: Some(exactly(8.0)),
        device_random: Some(exactly(64.0)),
        sparse: sparse.into(),
        tuple: None,
    }
}

/// A node that found 2,000 blocks and read 10,000.
fn node(kind: &str, more: Value) -> Node {
    let mut fields = json!({"Node Type": kind, "Shared Hit Blocks": 2000, "Shared Read Blocks": 10_000, "Actual Loops": 1});
    for (key, value) in more.as_object().expect("fields") {
        fields[key] = value.clone();
    }
    plan::nodes(&json!({ "Plan": fields }).to_string()).expect("a plan").remove(0)
}

fn unasked() -> Option<PagePlace> {
    panic!("only bitmap scans need to know the place")
}

fn at(pages: u64, concurrency: u32) -> impl FnOnce() -> Option<PagePlace> {
    move || Some(PagePlace { pages: Some(pages), concurrency })
}

fn rounded(prediction: Prediction) -> (Option<i64>, Option<i64>) {
    let whole = |ms: Option<f64>| ms.map(|ms| ms.round() as i64);
    (whole(prediction.os_ms), whole(prediction.device_ms))
}

#[test]
fn blocks_take_the_time_of_their_access() {
    for kind in ["Seq Scan", "Sample Scan", "Tid Range Scan"] {
        let found = predict(&node(kind, json!({})), &times(), unasked);
        assert_eq!(found, Prediction { os_ms: Some(11.0), device_ms: Some(81.0) }, "{kind}");
    }
    for kind in ["Index Scan", "Index Only Scan", "Bitmap Index Scan", "Tid Scan"] {
        let found = predict(&node(kind, json!({})), &times(), unasked);
        assert_eq!(found, Prediction { os_ms: Some(21.0), device_ms: Some(641.0) }, "{kind}");
    }
}

#[test]
fn a_bitmap_scan_takes_the_time_of_its_density() {
    let of = |node: &Node, place| rounded(predict(node, &times(), move || place));
    let place = |pages, concurrency| Some(PagePlace { pages: Some(pages), concurrency });
    let scan = node("Bitmap Heap Scan", json!({}));
    assert_eq!(of(&scan, place(100_000, 16)), (Some(21), Some(1281)));
    assert_eq!(of(&scan, place(50_000, 16)), (Some(21), Some(2561)));
    assert_eq!(of(&scan, place(100_000, 0)), (Some(21), Some(5121)));
    // Between: 10,000 of 70,711.
    assert_eq!(of(&scan, place(70_711, 16)), (Some(21), Some(1811)));
    // The table has shrunk since, or is read again and again: at most every block.
    assert_eq!(of(&scan, place(5000, 16)), (Some(21), Some(2561)));
    // What is not known of the place.
    assert_eq!(of(&scan, None), (Some(21), None));
    assert_eq!(of(&scan, place(0, 16)), (Some(21), None));
    assert_eq!(of(&scan, Some(PagePlace { pages: None, concurrency: 16 })), (Some(21), None));
}

#[test]
fn each_loop_is_a_pass_but_processes_share_one() {
    let ten = json!({"Actual Loops": 10});
    let again = predict(&node("Bitmap Heap Scan", ten), &times(), at(10_000, 16));
    assert_eq!(rounded(again), (Some(21), Some(1281)));
    let workers = json!({"Actual Loops": 3, "Parallel Aware": true});
    let shared = predict(&node("Bitmap Heap Scan", workers), &times(), at(50_000, 16));
    assert_eq!(rounded(shared), (Some(21), Some(2561)));
}

#[test]
fn what_was_not_read_needs_no_time() {
    let hits = json!({"Shared Read Blocks": 0});
    let found = Some(1.0);
    let only_shared =
        PageTimes { shared: Some(exactly(0.5)), sparse: times().sparse, ..PageTimes::default() };
    for kind in ["Seq Scan", "Index Scan", "Bitmap Heap Scan"] {
        let prediction = predict(&node(kind, hits.clone()), &only_shared, unasked);
        assert_eq!(prediction, Prediction { os_ms: found, device_ms: found }, "{kind}");
    }
    let reads = node("Seq Scan", json!({"Shared Hit Blocks": 0}));
    let no_hits = PageTimes { shared: None, ..times() };
    assert_eq!(predict(&reads, &no_hits, unasked), Prediction { os_ms: Some(10.0), device_ms: Some(80.0) });
    assert_eq!(predict(&node("Seq Scan", json!({})), &no_hits, unasked), Prediction::default());
}

#[test]
fn one_tier_may_be_known_without_the_other() {
    let scan = node("Seq Scan", json!({}));
    let no_device = PageTimes { device_sequential: None, ..times() };
    let known = predict(&scan, &no_device, unasked);
    assert_eq!(known, Prediction { os_ms: Some(11.0), device_ms: None });
    let no_cache = PageTimes { os_sequential: None, ..times() };
    let known = predict(&scan, &no_cache, unasked);
    assert_eq!(known, Prediction { os_ms: None, device_ms: Some(81.0) });
    let no_curve = PageTimes { sparse: vec![], ..times() };
    let known = predict(&node("Bitmap Heap Scan", json!({})), &no_curve, at(1, 0));
    assert_eq!(known, Prediction { os_ms: Some(21.0), device_ms: None });
}

#[test]
fn nothing_is_said_of_what_is_not_known() {
    let none = Prediction::default();
    // Not executed, or without BUFFERS.
    let planned = plan::nodes(r#"{"Plan": {"Node Type": "Seq Scan"}}"#).expect("a plan").remove(0);
    assert_eq!(predict(&planned, &times(), unasked), none);
    // Reads nothing by itself, or blocks of an unknown order.
    for kind in ["Sort", "ModifyTable", "Function Scan", "CTE Scan"] {
        assert_eq!(predict(&node(kind, json!({})), &times(), unasked), none, "{kind}");
    }
    for key in ["Local Hit Blocks", "Local Read Blocks"] {
        let temporary = json!({"Shared Hit Blocks": 0, "Shared Read Blocks": 0, key: 5});
        assert_eq!(predict(&node("Seq Scan", temporary), &times(), unasked), none, "{key}");
    }
}
