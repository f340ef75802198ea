//! Segment files that stay open, for readers that come back to them.

use std::cell::{Cell, Ref, RefCell};
use std::sync::Arc;

use crate::files::open_file::{Access, OpenFile};
use crate::{Error, Result};

/// Files that are kept open, in both ways of reading together. A relation of 1 TB has 1,024, and a server
/// process may have no more descriptors than that in all.
pub(crate) const MOST_OPEN: usize = 48;

/// Open segments; where they get too many, the one that was unused the longest is closed.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    buffered: RefCell<Vec<Slot>>,
    direct: RefCell<Vec<Slot>>,
    /// Counts the uses of all.
    uses: Cell<u64>,
}

/// One open segment.
#[derive(Debug)]
struct Slot {
    segment: u32,
    last_use: Cell<u64>,
    open: Arc<OpenFile>,
}

impl Descriptors {
    /// Is the segment open?
    #[cfg(test)]
    pub(super) fn is_open(&self, segment: u32, access: Access) -> bool {
        self.slots(access).borrow().iter().any(|slot| slot.segment == segment)
    }

    /// A segment, opened by `open` if it is not open, and whether it was opened.
    #[inline]
    pub(super) fn get(
        &self,
        segment: u32,
        access: Access,
        open: impl Fn() -> Result<OpenFile>,
    ) -> Result<(Ref<'_, Arc<OpenFile>>, bool)> {
        let slots = self.slots(access).borrow();
        let (slots, index, is_new) = match slots.iter().position(|slot| slot.segment == segment) {
            Some(index) => (slots, index, false),
            None => {
                drop(slots);
                self.add(segment, access, open)?;
                let slots = self.slots(access).borrow();
                let last = slots.len() - 1;
                (slots, last, true)
            }
        };
        self.uses.set(self.uses.get() + 1);
        slots[index].last_use.set(self.uses.get());
        Ok((Ref::map(slots, |slots| &slots[index].open), is_new))
    }

    #[inline]
    fn slots(&self, access: Access) -> &RefCell<Vec<Slot>> {
        match access {
            Access::Buffered => &self.buffered,
            Access::Direct => &self.direct,
        }
    }

    /// Opens a segment and puts it last.
    #[cold]
    fn add(&self, segment: u32, access: Access, open: impl Fn() -> Result<OpenFile>) -> Result<()> {
        if self.count() >= MOST_OPEN {
            self.close_oldest();
        }
        let open = loop {
            match open() {
                // The server keeps as many files open as it may; it closes some of its own when it lacks one.
                Err(e) if is_out_of_files(&e) && self.count() > 0 => self.close_oldest(),
                opened => break Arc::new(opened?),
            }
        };
        self.slots(access).borrow_mut().push(Slot { segment, last_use: Cell::new(0), open });
        Ok(())
    }

    fn count(&self) -> usize {
        self.buffered.borrow().len() + self.direct.borrow().len()
    }

    fn close_oldest(&self) {
        let (mut buffered, mut direct) = (self.buffered.borrow_mut(), self.direct.borrow_mut());
        match (oldest(&buffered), oldest(&direct)) {
            (Some((index, used)), other) if other.is_none_or(|(_, other)| used < other) => {
                buffered.swap_remove(index);
            }
            (_, Some((index, _))) => {
                direct.swap_remove(index);
            }
            _ => {}
        }
    }
}

/// The one that was unused the longest, and its last use.
fn oldest(slots: &[Slot]) -> Option<(usize, u64)> {
    let uses = slots.iter().map(|slot| slot.last_use.get()).enumerate();
    uses.min_by_key(|(_, used)| *used)
}

/// Does the process, or the system, have as many open files as it may?
fn is_out_of_files(error: &Error) -> bool {
    matches!(error.errno(), Some(libc::EMFILE | libc::ENFILE))
}
