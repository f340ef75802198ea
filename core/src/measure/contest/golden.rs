//! When contenders have their turns, under each limit.

use std::time::Duration;

use super::{TurnResult, contest};
use crate::golden::{Golden, Trace};
use crate::run::budget::{Budget, Limits, Stop};

const MS: u64 = 1_000_000;
const MIB: u64 = 1 << 20;

fn of_ms(ms: u64) -> Limits {
    Limits { duration: Duration::from_millis(ms), ..Limits::none() }
}

/// How many nanoseconds the turn of a number takes, and what it gives.
type Gives = fn(u64) -> (u64, TurnResult);

fn even(_: u64) -> (u64, TurnResult) {
    (MS, TurnResult::Took(5.0))
}

/// The fourth is late.
fn late(nth: u64) -> (u64, TurnResult) {
    (if nth == 3 { 40 * MS } else { MS }, TurnResult::Took(5.0))
}

#[test]
fn contenders_take_turns_as_they_did() {
    let mut golden = Golden::new(
        "contest",
        "Three contenders, a turn of 1 MiB takes a millisecond; places are the contenders, amounts the \
         turn's bytes.
         Not covered: what a turn does, whose own requests no limit makes wait; ratios and their intervals.",
    );
    let six = Limits { max_bytes: 6 * MIB, ..of_ms(1000) };
    let cases: [(&str, Limits, Gives, Option<u64>); 15] = [
        ("no limit", Limits::none(), even, None),
        ("bytes", Limits { max_bytes: 8 * MIB, ..of_ms(1000) }, even, None),
        ("max_iops 100", Limits { max_iops: Some(100), ..six }, even, None),
        ("max_mib_s 200, one late", Limits { max_mib_s: Some(200), ..of_ms(100) }, late, None),
        ("max_util 0.1", Limits { max_util: Some(0.1), ..six }, even, None),
        (
            "max_util 0.5 and max_mib_s 200",
            Limits { max_util: Some(0.5), max_mib_s: Some(200), ..six },
            late,
            None,
        ),
        ("a deadline", of_ms(4), even, None),
        ("a deadline in a pause", Limits { max_iops: Some(20), ..of_ms(95) }, even, None),
        ("a deadline of the statement", of_ms(100), even, None),
        ("precision", Limits { precision: Some(0.01), ..of_ms(1000) }, even, None),
        ("turns that are not fit", of_ms(1000), |_| (MS, TurnResult::Unfit), None),
        (
            "nothing more to measure on",
            of_ms(1000),
            |nth| (MS, if nth < 4 { TurnResult::Took(5.0) } else { TurnResult::Exhausted }),
            None,
        ),
        (
            "a turn that is stopped",
            of_ms(1000),
            |nth| {
                (
                    MS,
                    if nth < 4 {
                        TurnResult::Took(5.0)
                    } else {
                        TurnResult::Stopped(Stop::Slow(crate::run::budget::BoundSource::Call))
                    },
                )
            },
            None,
        ),
        ("a caller's stop", of_ms(1000), even, Some(3 * MS)),
        ("a caller's stop in a pause", Limits { max_iops: Some(10), ..of_ms(1000) }, even, Some(125 * MS)),
    ];
    for (name, limits, gives, stops_at) in cases {
        let statement =
            if name == "a deadline of the statement" { Duration::from_millis(4) } else { Duration::MAX };
        let (trace, mut turns) = (Trace::default(), 0);
        let mut caller = trace.caller(stops_at);
        let mut turn = |contender: usize, _: &mut Budget<'_>| -> Result<TurnResult, ()> {
            trace.happens("turn", contender as u64, MIB);
            let (takes, given) = gives(turns);
            turns += 1;
            trace.clock().advance(takes);
            Ok(given)
        };
        let found = contest(
            3,
            1,
            MIB,
            &limits,
            &mut Budget::of_statement(statement, &trace, &mut || caller.should_stop()),
            &mut turn,
        )
        .expect("no error");
        trace.says(&format!("{} rounds, paused: {}", found.rounds.len(), found.paused));
        caller.ends(found.stop);
        golden.add(name, &trace);
    }
    golden.check();
}
