//! The two control files as text: the model in words, and what the device has done.

use std::time::Duration;

use crate::schedule::Schedule;

/// Lines of a name and a number. Those that count do so since the device was there.
pub fn counts<R>(schedule: &Schedule<R>, now: Duration) -> String {
    let counts = schedule.counts();
    let mut lines = vec![
        ("reads", counts.reads),
        ("writes", counts.writes),
        ("flushes", counts.flushes),
        ("read_bytes", counts.read_bytes),
        ("written_bytes", counts.written_bytes),
        ("failed", counts.failed),
        ("in_flight", schedule.in_flight() as u64),
        ("late_us", counts.late.as_micros() as u64),
    ];
    lines.extend(schedule.credits(now).map(|credits| ("credits", credits as u64)));
    lines.iter().map(|(name, number)| format!("{name} {number}\n")).collect()
}

/// What a read gets of a text: all of it at the beginning, and then its end. The next read would find another
/// text.
pub fn read(text: &str, offset: u64, length: u32) -> &[u8] {
    let length = if offset == 0 { text.len().min(length as usize) } else { 0 };
    &text.as_bytes()[..length]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;

    fn text(model: &str) -> String {
        counts(&Schedule::<()>::new(Model::new(model, 1 << 30).unwrap()), Duration::from_secs(1))
    }

    #[test]
    fn credits_are_told_where_there_are_some() {
        assert!(text("burst credits=100").ends_with("late_us 0\ncredits 100\n"));
        assert!(text("gp3").ends_with("late_us 0\n"));
    }

    #[test]
    fn the_first_read_gets_the_text_and_the_second_its_end() {
        assert_eq!(read("model", 0, 100), b"model");
        assert_eq!(read("model", 0, 2), b"mo");
        assert_eq!(read("model", 5, 100), b"");
    }
}
