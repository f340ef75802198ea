//! One operation of a case: its writes, and what makes them durable.

use super::calls::{Calls, SyncCall, sync, write};
use super::case::{Case, FlushMethod, Section};
use crate::Result;
use crate::measure::content::Content;

/// A case whose file is open.
pub(super) struct Operation<'a, C: Calls> {
    calls: &'a C,
    case: &'a Case,
    content: &'a Content,
    /// None where every operation opens it anew.
    file: Option<C::File>,
}

impl<'a, C: Calls> Operation<'a, C> {
    /// Opens the file as the case wants it.
    ///
    /// # Errors
    /// As [`open`].
    pub(super) fn open(calls: &'a C, case: &'a Case, content: &'a Content) -> Result<Self> {
        let reopens = matches!(case.method, FlushMethod::WriteFsyncClose | FlushMethod::WriteCloseFsync);
        let file = if reopens { None } else { Some(open(calls, case)?) };
        Ok(Self { calls, case, content, file })
    }

    /// Does operation number `index`.
    #[inline]
    pub(super) fn perform(&self, index: u64) -> Result<()> {
        let Some(file) = &self.file else { return self.reopening(index) };
        self.write(file, index)?;
        self.case.method.sync_call().map_or(Ok(()), |call| sync(self.calls, file, call))
    }

    /// An operation of `other_fd`. Both open and close twice, as in pg_test_fsync.
    fn reopening(&self, index: u64) -> Result<()> {
        let calls = self.calls;
        let file = calls.open(0)?;
        self.write(&file, index)?;
        if self.case.method == FlushMethod::WriteFsyncClose {
            sync(calls, &file, SyncCall::Fsync)?;
            drop(file);
            return calls.open(0).map(drop);
        }
        drop(file);
        let file = calls.open(0)?;
        sync(calls, &file, SyncCall::Fsync)
    }

    /// Leaves nothing behind for others to sync.
    pub(super) fn settle(&self) -> Result<()> {
        match &self.file {
            Some(file) if !self.case.is_durable() => sync(self.calls, file, SyncCall::Fsync),
            _ => Ok(()),
        }
    }

    #[inline]
    fn write(&self, file: &C::File, index: u64) -> Result<()> {
        let Case { section, writes, write_bytes, .. } = *self.case;
        let (length, step) = (write_bytes as usize, u64::from(write_bytes));
        if section == Section::WalSegment {
            let places = self.calls.scratch().size() / step;
            return write(self.calls, file, self.content.at(index * step, length), index % places * step);
        }
        for place in 0..u64::from(writes) {
            write(self.calls, file, self.content.at(0, length), place * step)?;
        }
        Ok(())
    }
}

/// A descriptor with the case's flags, which takes requests of its size.
///
/// # Errors
/// [`Error::Unsupported`](crate::Error::Unsupported) if O_DIRECT, or O_DIRECT of this size, is refused.
pub(super) fn open<C: Calls>(calls: &C, case: &Case) -> Result<C::File> {
    let file = calls.open(case.flags())?;
    if case.direct {
        calls.check_direct(&file, case.write_bytes)?;
    }
    Ok(file)
}
