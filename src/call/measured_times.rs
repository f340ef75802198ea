//! The times of blocks that this session measured last, by tablespace: what `io_probe_explain` predicts from.
//!
//! They stay for as long as the session, whatever becomes of the transaction that measured them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use io_probe_core::measure::page_times::PageTimes;

use crate::pg::storage::tablespace::Tablespace;

thread_local! {
    static TIMES: RefCell<HashMap<Tablespace, Rc<PageTimes>>> = RefCell::default();
}

/// Keeps the times of a relation for all of its tablespace. What they lack stays as it was known before.
pub(crate) fn remember(tablespace: Tablespace, times: PageTimes) {
    TIMES.with_borrow_mut(|all| {
        let times = match all.get(&tablespace) {
            Some(earlier) => times.or(earlier),
            None => times,
        };
        all.insert(tablespace, Rc::new(times));
    });
}

/// The times measured last in a tablespace.
pub(crate) fn recall(tablespace: Tablespace) -> Option<Rc<PageTimes>> {
    TIMES.with_borrow(|all| all.get(&tablespace).cloned())
}
