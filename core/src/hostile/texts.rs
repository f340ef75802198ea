//! One file of the kernel, read twice.

use std::path::Path;

use crate::machine::cgroup::hostile as cgroup;
use crate::machine::cpu::CpuTimes;
use crate::machine::device::hostile as device;
use crate::machine::device::{Activity, Counters, DeviceNumber, Requests, Traffic};
use crate::machine::pressure::Pressure;

/// Time between the two readings, ms.
const ELAPSED_MS: f64 = 1000.0;

/// Reads both texts as each of the files that hold one line, or lines, of facts.
pub fn texts(data: &[u8]) {
    let middle = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let (earlier, later) = (&data[..middle], data.get(middle + 1..).unwrap_or(data));
    device::mounts(later, &String::from_utf8_lossy(earlier));
    let (earlier, later) = (String::from_utf8_lossy(earlier), String::from_utf8_lossy(later));
    counters(&earlier, &later);
    cpu(&earlier, &later);
    pressure(&earlier, &later);
    account(&later);
    number(&later);
    device::schedulers(&later);
    cgroup::lines(&later, later.split_ascii_whitespace().next().and_then(|word| word.parse().ok()));
}

fn counters(earlier: &str, later: &str) {
    let (Some(earlier), Some(later)) = (Counters::parse(earlier), Counters::parse(later)) else { return };
    for counters in [&earlier, &later] {
        assert_eq!(Counters::parse(&print_counters(counters)).as_ref(), Some(counters));
        let none = counters.since(counters, ELAPSED_MS).expect("nothing went backwards");
        assert_eq!((none.reads.requests, none.writes.bytes, none.util_pct), (0, 0, Some(0.0)));
    }
    let Some(activity) = later.since(&earlier, ELAPSED_MS) else { return };
    assert_eq!(activity.reads.requests + earlier.reads.completed, later.reads.completed);
    assert_eq!(activity.writes.merges + earlier.writes.merged, later.writes.merged);
    assert_eq!(activity.flushes.is_some(), later.flushes.is_some() && earlier.flushes.is_some());
    sound(&activity);
    assert_eq!(Activity::sum([activity]), Some(activity));
    let both = Activity::sum([activity, activity]).expect("two devices");
    assert_eq!(both.reads.requests, activity.reads.requests.saturating_mul(2));
    assert_eq!(both.util_pct, activity.util_pct);
    sound(&both);
    let twice = activity.then(activity);
    assert_eq!((twice.reads, twice.elapsed_ms), (both.reads, 2.0 * ELAPSED_MS));
    sound(&twice);
    sound(&activity.spread_over(3.0 * ELAPSED_MS));
    let stopped = later.since(&earlier, 0.0).expect("the same counts");
    assert_eq!((stopped.util_pct, stopped.aqu_sz, stopped.per_second(1)), (None, None, None));
}

/// No figure is negative, infinite or NaN.
fn sound(activity: &Activity) {
    let of = |traffic: &Traffic| [traffic.await_ms(), traffic.request_kb()];
    let traffic = [Some(activity.reads), Some(activity.writes), activity.discards, activity.flushes];
    let figures = traffic.iter().flatten().flat_map(of);
    let figures = figures.chain([activity.aqu_sz, activity.busy_pct(), activity.per_second(u64::MAX)]);
    assert!(figures.flatten().all(|figure| figure.is_finite() && figure >= 0.0), "{activity:?}");
    assert!(activity.busy_pct() <= activity.util_pct);
}

fn print_counters(counters: &Counters) -> String {
    let all = |r: &Requests| format!("{} {} {} {} ", r.completed, r.merged, r.sectors, r.ticks_ms);
    let mut text = all(&counters.reads) + &all(&counters.writes);
    text += &format!("{} {} {}", counters.in_flight, counters.io_ticks_ms, counters.weighted_ticks_ms);
    if let Some(discards) = &counters.discards {
        text = format!("{text}\t{}", all(discards));
    }
    if let Some(flushes) = &counters.flushes {
        text = format!("{text} {} {}\n", flushes.completed, flushes.ticks_ms);
    }
    text
}

fn cpu(earlier: &str, later: &str) {
    let (Some(earlier), Some(later)) = (CpuTimes::parse(earlier), CpuTimes::parse(later)) else { return };
    let printed = format!("cpu  {} 0 0\nintr 1", later.0.map(|ticks| ticks.to_string()).join(" "));
    assert_eq!(CpuTimes::parse(&printed), Some(later));
    assert_eq!(later.since(&later), None);
    if let Some(s) = later.since(&earlier) {
        let shares = [s.user_pct, s.system_pct, s.iowait_pct, s.idle_pct, s.steal_pct];
        assert!(shares.iter().all(|share| (0.0..=100.0 + 1e-9).contains(share)), "{s:?}");
        assert!((shares.iter().sum::<f64>() - 100.0).abs() < 1e-9, "{s:?}");
    }
}

fn pressure(earlier: &str, later: &str) {
    let (Some(earlier), Some(later)) = (Pressure::parse(earlier), Pressure::parse(later)) else { return };
    let mut printed = format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={}\n", later.some_us);
    if let Some(full) = later.full_us {
        printed += &format!("full avg10=0.00 avg60=0.00 avg300=0.00 total={full}\n");
    }
    assert_eq!(Pressure::parse(&printed), Some(later));
    assert_eq!(later.since(&earlier, 0), None);
    let shares = later.since(&earlier, 1_000_000_000);
    assert_eq!(shares.is_some(), later.some_us >= earlier.some_us);
    if let Some(shares) = shares {
        let all = [Some(shares.some_pct), shares.full_pct];
        assert!(all.into_iter().flatten().all(|share| (0.0..=100.0).contains(&share)), "{shares:?}");
    }
}

fn account(text: &str) {
    for name in ["read_bytes:", "write_bytes:"] {
        if let Some(bytes) = crate::machine::process_io::number(text, name) {
            let printed = format!("rchar: 1\nread_bytes: {bytes}\nwrite_bytes: {bytes}\n");
            assert_eq!(crate::machine::process_io::number(&printed, name), Some(bytes));
        }
    }
}

fn number(text: &str) {
    if let Ok(number) = text.parse::<DeviceNumber>() {
        assert_eq!(number.to_string().parse(), Ok(number));
    }
    // A name may come from a user.
    let elsewhere = crate::machine::device::Roots {
        sys: "/nowhere".into(),
        proc: "/nowhere".into(),
        dev: Path::new("/nowhere").into(),
    };
    assert_eq!(crate::machine::device::BlockDevice::find(text, &elsewhere), None);
}
