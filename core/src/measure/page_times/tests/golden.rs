//! When ways to read have their turns, under each limit.

use super::*;
use crate::golden::{Golden, Trace};
use crate::run::budget::{BoundSource, Limits};
use crate::run::stopwatch::Stopwatch;

const MS: u64 = 1_000_000;

/// The made-up server, whose turns leave a trace.
struct Traced<'a> {
    server: MadeUp<'a>,
    trace: Trace,
    /// Number of the turn that ends the run.
    slow: Option<usize>,
}

impl BlockReader<Order<'_>> for Traced<'_> {
    fn read(&mut self, order: &mut Order<'_>, watch: &mut Stopwatch<'_>) -> Result<()> {
        let way = match order.way {
            Way::Scan => "in order".to_owned(),
            Way::Single => "at random".to_owned(),
            Way::Bitmap(concurrency) => format!("with gaps at {concurrency}"),
        };
        self.trace.happens(&way, order.blocks[0], order.blocks.len() as u64);
        self.server.read(order, watch)?;
        self.trace.happens("read", order.blocks[0], watch.blocks());
        if self.slow == Some(self.server.asked.len()) {
            watch.end(Stop::Slow(BoundSource::Call));
        }
        Ok(())
    }
}

#[test]
fn ways_take_turns_as_they_did() {
    let mut golden = Golden::new(
        "costs",
        "Turns past the page cache, in order, at random and with gaps; places are the first blocks of what \
         is asked for,
         amounts blocks. A block takes 6 us in order, 70 at random.
         Not covered: turns in the page cache, which depend on what the kernel keeps; what the server does \
         with latencies.",
    );
    let relation = cold_relation();
    let of_ms = |ms| Limits { duration: Duration::from_millis(ms), ..Limits::none() };
    let bytes = Limits { max_bytes: 5 * MIB, ..of_ms(1000) };
    let cases: [(&str, Limits, Option<u64>, Option<usize>); 13] = [
        ("a deadline", of_ms(110), None, None),
        ("a deadline of the statement", of_ms(200), None, None),
        ("bytes", bytes, None, None),
        ("max_iops 20000", Limits { max_iops: Some(20_000), ..of_ms(150) }, None, None),
        ("max_mib_s 100", Limits { max_mib_s: Some(100), ..of_ms(220) }, None, None),
        ("max_mib_s 400, the second turn late", Limits { max_mib_s: Some(400), ..of_ms(150) }, None, None),
        ("max_util 0.2", Limits { max_util: Some(0.2), ..of_ms(200) }, None, None),
        (
            "max_util 0.5 and max_mib_s 200",
            Limits { max_util: Some(0.5), max_mib_s: Some(200), ..of_ms(150) },
            None,
            None,
        ),
        (
            "bytes, and the last rest",
            Limits { max_util: Some(0.2), max_bytes: 2 * MIB, ..of_ms(1000) },
            None,
            None,
        ),
        ("a server that says it is too slow", of_ms(1000), None, Some(4)),
        ("a caller's stop", of_ms(1000), Some(31 * MS), None),
        ("a caller's stop in a pause", Limits { max_mib_s: Some(20), ..of_ms(2000) }, Some(355 * MS), None),
        ("long turns", of_ms(10_000), Some(110 * MS), None),
    ];
    for (name, limits, stops_at, slow) in cases {
        let statement =
            if name == "a deadline of the statement" { Duration::from_millis(40) } else { Duration::MAX };
        let trace = Trace::default();
        let settle = || trace.says("settle");
        let run = PageTimesRun { limits, through_cache: false, settle: &settle, ..run(&relation.source) };
        let mut server = server(&run, trace.clock());
        server.fetches = false;
        if name.ends_with("late") {
            let mut turns = 0;
            server.noise = Box::new(move |_| {
                turns += 1;
                if turns == 2 { 40.0 } else { 0.0 }
            });
        }
        let mut traced = Traced { server, trace: trace.clone(), slow };
        let mut caller = trace.caller(stops_at);
        let found = measure(
            &run,
            &mut traced,
            &mut Budget::of_statement(statement, &trace, &mut || caller.should_stop()),
            &mut |_| (),
        )
        .expect("measured");
        trace.says(&format!("paused: {}", found.paused));
        caller.ends(found.stop);
        golden.add(name, &trace);
    }
    golden.check();
}
