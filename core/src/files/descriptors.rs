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
    slots: RefCell<Vec<Slot>>,
    /// Counts the uses of all.
    uses: Cell<u64>,
}

/// One open segment.
#[derive(Debug)]
struct Slot {
    segment: u32,
    access: Access,
    last_use: Cell<u64>,
    open: Arc<OpenFile>,
}

impl Slot {
    #[inline]
    fn is_of(&self, segment: u32, access: Access) -> bool {
        self.segment == segment && self.access == access
    }
}

impl Descriptors {
    /// Is the segment open?
    #[cfg(test)]
    pub(super) fn is_open(&self, segment: u32, access: Access) -> bool {
        self.slots.borrow().iter().any(|slot| slot.is_of(segment, access))
    }

    /// A segment, opened by `open` if it is not open, and whether it was opened.
    #[inline]
    pub(super) fn get(
        &self,
        segment: u32,
        access: Access,
        open: impl Fn() -> Result<OpenFile>,
    ) -> Result<(Ref<'_, Arc<OpenFile>>, bool)> {
        let slots = self.slots.borrow();
        let (slots, index, is_new) = match slots.iter().position(|slot| slot.is_of(segment, access)) {
            Some(index) => (slots, index, false),
            None => {
                drop(slots);
                self.add(segment, access, open)?;
                let slots = self.slots.borrow();
                let last = slots.len() - 1;
                (slots, last, true)
            }
        };
        self.uses.set(self.uses.get() + 1);
        slots[index].last_use.set(self.uses.get());
        Ok((Ref::map(slots, |slots| &slots[index].open), is_new))
    }

    /// Opens a segment and puts it last.
    #[cold]
    fn add(&self, segment: u32, access: Access, open: impl Fn() -> Result<OpenFile>) -> Result<()> {
        let mut slots = self.slots.borrow_mut();
        if slots.len() >= MOST_OPEN {
            close_oldest(&mut slots);
        }
        let open = loop {
            match open() {
                // The server keeps as many files open as it may; it closes some of its own when it lacks one.
                Err(e) if is_out_of_files(&e) && !slots.is_empty() => close_oldest(&mut slots),
                opened => break Arc::new(opened?),
            }
        };
        slots.push(Slot { segment, access, last_use: Cell::new(0), open });
        Ok(())
    }
}

/// Closes the one that was unused the longest.
fn close_oldest(slots: &mut Vec<Slot>) {
    if let Some((oldest, _)) = slots.iter().enumerate().min_by_key(|(_, slot)| slot.last_use.get()) {
        slots.swap_remove(oldest);
    }
}

/// Does the process, or the system, have as many open files as it may?
fn is_out_of_files(error: &Error) -> bool {
    matches!(error.errno(), Some(libc::EMFILE | libc::ENFILE))
}
