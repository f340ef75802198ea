//! An ERROR that passes through this library whole.
//!
//! What pgrx carries of one of the server's on the way is the message, DETAIL, HINT, and the SQLSTATE if it is one of the
//! server's own: not one that a user has made up, nor where it happened (CONTEXT, QUERY, position) and to what (table,
//! constraint). So a copy is taken when it is raised, by a callback among those that add its context; and what is missing is put
//! back by another one when it is raised again.
//!
//! And it carries texts as UTF-8, which may not be what the database has. That callback puts them back, too, and for an ERROR of
//! ours as the encoding of the database has them.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::AssertUnwindSafe;
use std::ptr;

use pgrx::pg_sys::panic::{CaughtError, ErrorReport, ErrorReportWithLevel};
use pgrx::{PgLogLevel, PgTryBuilder, pg_guard, pg_sys};

use super::encoding::{c_string, is_utf8, start_of};
use super::reserve::with_reserve;
use crate::error::Error;

unsafe extern "C-unwind" {
    // `utils/elog.h`: they add to the ERROR that is being raised, and raise none.
    fn errcode(sqlerrcode: c_int) -> c_int;
    fn errmsg(format: *const c_char, ...) -> c_int;
    fn errdetail(format: *const c_char, ...) -> c_int;
    fn errhint(format: *const c_char, ...) -> c_int;
    fn errcontext_msg(format: *const c_char, ...) -> c_int;
    fn errposition(cursorpos: c_int) -> c_int;
    fn internalerrposition(cursorpos: c_int) -> c_int;
    fn internalerrquery(query: *const c_char) -> c_int;
    fn err_generic_string(field: c_int, text: *const c_char) -> c_int;
}

/// Answers a call: what `work` gives, or the ERROR by which it ends or which it gives.
pub(crate) fn answer<T>(work: impl FnOnce() -> Result<T, Error>) -> T {
    let work = || work().unwrap_or_else(|error| error.raise());
    with_reserve(|| {
        if is_utf8() {
            return work();
        }
        let (result, raised) = watch(work);
        result.unwrap_or_else(|error| {
            raised.or_texts_of(&error).complete_next();
            error.rethrow()
        })
    })
}

/// Reports what is no ERROR.
pub(crate) fn warn(report: ErrorReport) {
    // SAFETY: reads and writes a variable of this backend. The callback of what is reported here is taken off again.
    unsafe {
        let before = pg_sys::error_context_stack;
        Raised::texts(report.message(), report.detail(), report.hint()).complete_next();
        report.report(PgLogLevel::WARNING);
        pg_sys::error_context_stack = before;
    }
}

/// Does `work`; returns its result, or the ERROR by which it ended as pgrx has it, and what is missing there.
pub(super) fn watch<T>(work: impl FnOnce() -> T) -> (Result<T, Box<CaughtError>>, Raised) {
    let lookout = Lookout::begin();
    let result = PgTryBuilder::new(AssertUnwindSafe(|| Ok(work())))
        .catch_rust_panic(|error| Err(Box::new(error)))
        .catch_others(|error| Err(Box::new(error)))
        .execute();
    let raised = lookout.end(result.as_ref().err().map(Box::as_ref));
    (result, raised)
}

/// Looks out for ERRORs until it is ended.
struct Lookout(*mut Post);

/// What the callback finds.
struct Post {
    callback: pg_sys::ErrorContextCallback,
    /// The last ERROR that was raised, caught or not. Belongs to the transaction.
    raised: Cell<*mut pg_sys::ErrorData>,
}

impl Lookout {
    /// Begins. Must be ended in the same function, whatever happens in between.
    fn begin() -> Self {
        // SAFETY: reads and writes a variable of this backend; the callback and its argument live until the end, where
        // they are taken off the stack first.
        unsafe {
            let callback = pg_sys::ErrorContextCallback {
                previous: pg_sys::error_context_stack,
                callback: Some(take_copy),
                arg: ptr::null_mut(),
            };
            let post = Box::into_raw(Box::new(Post { callback, raised: Cell::new(ptr::null_mut()) }));
            (*post).callback.arg = post.cast();
            pg_sys::error_context_stack = &raw mut (*post).callback;
            Self(post)
        }
    }

    /// Ends. Returns the ERROR of the server by which the work ended, unless that is not the last one that was raised: who
    /// raises one again, as PL/pgSQL's RAISE does after it may have caught others, asks no callback.
    fn end(self, ended_by: Option<&CaughtError>) -> Raised {
        // SAFETY: made in `begin`, and given back once, since it consumes.
        let post = unsafe { Box::from_raw(self.0) };
        // SAFETY: the callback is on the top of the stack: who put others on it has taken them off, or has left by an
        // ERROR, whose catcher did.
        unsafe { pg_sys::error_context_stack = post.callback.previous };
        let raised = Raised(post.raised.get());
        match ended_by {
            Some(CaughtError::PostgresError(report)) if raised.is(report) => raised,
            _ => {
                raised.forget();
                Raised(ptr::null_mut())
            }
        }
    }
}

/// An ERROR that was raised, if there was one.
pub(super) struct Raised(*mut pg_sys::ErrorData);

impl Raised {
    /// Of a report of which nothing is missing but that its texts are in UTF-8.
    fn texts(message: &str, detail: Option<&str>, hint: Option<&str>) -> Self {
        let texts = [Some(message), detail, hint];
        if is_utf8() || texts.into_iter().flatten().all(str::is_ascii) {
            return Self(ptr::null_mut());
        }
        // SAFETY: memory of the transaction, as that of copies: zeros, which are no fields, and C strings.
        unsafe {
            let copy = |text: Option<&str>| {
                text.map_or(ptr::null_mut(), |text| {
                    pg_sys::MemoryContextStrdup(pg_sys::TopTransactionContext, c_string(text).as_ptr())
                })
            };
            let [message, detail, hint] = texts.map(copy);
            let size = size_of::<pg_sys::ErrorData>();
            let error = pg_sys::MemoryContextAllocZero(pg_sys::TopTransactionContext, size)
                .cast::<pg_sys::ErrorData>();
            ((*error).message, (*error).detail, (*error).hint) = (message, detail, hint);
            Self(error)
        }
    }

    /// Itself; or, if there is no copy, what pgrx has, in the encoding of the database.
    fn or_texts_of(self, error: &CaughtError) -> Self {
        if !self.0.is_null() {
            return self;
        }
        let (CaughtError::PostgresError(report)
        | CaughtError::ErrorReport(report)
        | CaughtError::RustPanic { ereport: report, .. }) = error;
        Self::texts(report.message(), report.detail(), report.hint())
    }

    /// Is this what pgrx has made of it?
    fn is(&self, report: &ErrorReportWithLevel) -> bool {
        // SAFETY: NULL or a copy of ours, whose message is NULL or a C string.
        unsafe {
            self.0.as_ref().is_some_and(|error| {
                let message =
                    (!error.message.is_null()).then(|| CStr::from_ptr(error.message).to_string_lossy());
                message.is_some_and(|message| message == report.message())
                    && u32::try_from(error.lineno) == Ok(report.line_number())
            })
        }
    }

    /// Its SQLSTATE as the server packs it, also one that a user has made up.
    pub(super) fn code(&self) -> Option<i32> {
        // SAFETY: NULL or a copy of ours.
        unsafe { self.0.as_ref() }.map(|error| error.sqlerrcode)
    }

    /// Its message, or as much of it as [`start_of`] gives.
    pub(super) fn message(&self) -> Option<String> {
        // SAFETY: NULL or a copy of ours, whose message is NULL or a C string.
        unsafe {
            self.0.as_ref().filter(|error| !error.message.is_null()).map(|error| start_of(error.message))
        }
    }

    /// The ERROR is about to be raised again: sees to it that nothing of it is missing.
    pub(super) fn complete_next(self) {
        if self.0.is_null() {
            return;
        }
        // SAFETY: memory of the transaction, which is still there when its ERROR is raised; whoever catches that has the
        // stack of callbacks put back.
        unsafe {
            let size = size_of::<pg_sys::ErrorContextCallback>();
            let callback = pg_sys::MemoryContextAlloc(pg_sys::TopTransactionContext, size)
                .cast::<pg_sys::ErrorContextCallback>();
            callback.write(pg_sys::ErrorContextCallback {
                previous: pg_sys::error_context_stack,
                callback: Some(put_back),
                arg: self.0.cast(),
            });
            pg_sys::error_context_stack = callback;
        }
    }

    /// It is of no use any more.
    pub(super) fn forget(self) {
        if !self.0.is_null() {
            // SAFETY: a copy of ours.
            unsafe { pg_sys::FreeErrorData(self.0) };
        }
    }
}

/// Called for whatever is reported, once the callbacks above have added their context. In a critical section, where the server
/// completes a read that has failed, say, no memory may be asked for; an ERROR there would end the server.
#[pg_guard]
unsafe extern "C-unwind" fn take_copy(post: *mut c_void) {
    // SAFETY: the argument is that of `begin`. A copy may be taken in any memory context but that of errors.
    unsafe {
        if pg_sys::CritSectionCount > 0 {
            return;
        }
        let post = &*post.cast::<Post>();
        let before = pg_sys::MemoryContextSwitchTo(pg_sys::TopTransactionContext);
        let copy = pg_sys::CopyErrorData();
        pg_sys::MemoryContextSwitchTo(before);
        let old = if (*copy).elevel == PgLogLevel::ERROR as c_int { post.raised.replace(copy) } else { copy };
        if !old.is_null() {
            pg_sys::FreeErrorData(old);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn put_back(error: *mut c_void) {
    const FORMAT: &CStr = c"%s";
    // SAFETY: the copy belongs to the transaction. The functions copy what they are given.
    unsafe {
        let error = &*error.cast::<pg_sys::ErrorData>();
        if error.sqlerrcode != 0 {
            errcode(error.sqlerrcode);
        }
        if !error.message.is_null() {
            errmsg(FORMAT.as_ptr(), error.message);
        }
        if !error.detail.is_null() {
            errdetail(FORMAT.as_ptr(), error.detail);
        }
        if !error.hint.is_null() {
            errhint(FORMAT.as_ptr(), error.hint);
        }
        if !error.context.is_null() {
            errcontext_msg(FORMAT.as_ptr(), error.context);
        }
        if error.cursorpos > 0 {
            errposition(error.cursorpos);
        }
        if error.internalpos > 0 {
            internalerrposition(error.internalpos);
        }
        if !error.internalquery.is_null() {
            internalerrquery(error.internalquery);
        }
        // By their letters in the protocol.
        let objects = [
            (b's', error.schema_name),
            (b't', error.table_name),
            (b'c', error.column_name),
            (b'd', error.datatype_name),
            (b'n', error.constraint_name),
        ];
        for (letter, name) in objects.into_iter().filter(|(_, name)| !name.is_null()) {
            err_generic_string(letter.into(), name);
        }
    }
}
