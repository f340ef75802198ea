//! An ERROR that passes through this library whole.
//!
//! An ERROR of the server's stays where the server keeps it, with all that belongs to it, while pgrx unwinds
//! what is Rust. pgrx also copies it into Rust, where nothing reads that; its texts may be as long as a user
//! likes, and there may be no memory. So the linker gives pgrx [`pg_io_probe_shown_error`] in place of the
//! server's function (`build.rs`), which copies nothing but the SQLSTATE.
//!
//! Once an ERROR is caught, the server's place is emptied: so a copy is taken first, which may be raised
//! again.
//!
//! An ERROR of ours is Rust's until pgrx reports it, as UTF-8. In a database that has another encoding we
//! report it instead.

use std::ffi::{CStr, CString, c_char, c_int};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe};
use std::ptr;

use io_probe_core::run::memory;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::pg_sys::panic::{CaughtError, ErrorReport, ErrorReportWithLevel};
use pgrx::{PgLogLevel, PgSqlErrorCode, PgTryBuilder, pg_sys};

use crate::error::{Error, or_raise};
use crate::pg::backend::encoding::{c_string, own_encoding, start_of};

/// Answers a call: what `work` gives, or the ERROR by which it ends or which it gives.
pub(crate) fn answer<T>(work: impl FnOnce() -> Result<T, Error>) -> T {
    match own_encoding() {
        None => done(work),
        // A handler that raises leaves alone what the server keeps.
        Some(_) => PgTryBuilder::new(AssertUnwindSafe(|| done(work))).catch_others(|e| encoded(e)).execute(),
    }
}

fn done<T>(work: impl FnOnce() -> Result<T, Error>) -> T {
    or_raise(memory::begin());
    work().unwrap_or_else(|error| error.raise())
}

unsafe extern "C-unwind" {
    /// The server's own, by the name that the linker gives it.
    fn __real_CopyErrorData() -> *mut pg_sys::ErrorData;
    /// `utils/elog.h`: the SQLSTATE of what is being reported.
    fn geterrcode() -> c_int;
}

/// What pgrx is given for a copy. The server, and what speaks with it, has one thread.
static mut SHOWN: MaybeUninit<pg_sys::ErrorData> = MaybeUninit::zeroed();

/// An ERROR that has no texts, in place of a copy.
#[unsafe(no_mangle)]
extern "C-unwind" fn pg_io_probe_shown_error() -> *mut pg_sys::ErrorData {
    let shown = (&raw mut SHOWN).cast::<pg_sys::ErrorData>();
    // SAFETY: of an ErrorData, zeros are what is not known. There is an ERROR, or nobody would copy it.
    unsafe { ((*shown).elevel, (*shown).sqlerrcode) = (PgLogLevel::ERROR as c_int, geterrcode()) };
    shown
}

/// Frees nothing: what pgrx was given is not in the server's memory.
#[unsafe(no_mangle)]
extern "C-unwind" fn pg_io_probe_free_nothing(_shown: *mut pg_sys::ErrorData) {}

/// Takes no backtrace where an ERROR of the server's passes through Rust: each frame of the server's between
/// two of ours would have one, which takes seconds. To be called once, when the library is loaded.
pub(crate) fn leave_errors_of_the_server_alone() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.payload().is::<CaughtError>() {
            hook(panic);
        }
    }));
}

/// Raises what was caught, with its texts in the encoding of the database.
fn encoded(error: CaughtError) -> ! {
    let (CaughtError::ErrorReport(report) | CaughtError::RustPanic { ereport: report, .. }) = &error else {
        error.rethrow()
    };
    let detail = report.detail_with_backtrace();
    let texts = [Some(report.message()), detail.as_deref(), report.hint()];
    throw(PgLogLevel::ERROR, report.sql_error_code(), texts, Some(report));
    unreachable!("an ERROR does not return")
}

impl Error {
    /// Raises it as an ERROR, which unwinds to the server.
    pub(crate) fn raise(self) -> ! {
        let report = ErrorReport::new(self.code, self.message, "pg_io_probe");
        let report = self.detail.into_iter().fold(report, ErrorReport::set_detail);
        let report = self.hint.into_iter().fold(report, ErrorReport::set_hint);
        report.report(PgLogLevel::ERROR);
        unreachable!("an ERROR does not return")
    }

    pub(crate) fn warn(self) {
        let Self { code, message, detail, hint } = self;
        throw(PgLogLevel::WARNING, code, [Some(&message), detail.as_deref(), hint.as_deref()], None);
    }
}

/// Reports a message, a DETAIL and a HINT in the encoding of the database. `raised` knows where they were
/// raised.
fn throw(
    level: PgLogLevel,
    code: PgSqlErrorCode,
    texts: [Option<&str>; 3],
    raised: Option<&ErrorReportWithLevel>,
) {
    let [message, detail, hint] = texts.map(|text| text.map(c_string));
    let text =
        |text: &Option<CString>| text.as_ref().map_or(ptr::null_mut(), |text| text.as_ptr().cast_mut());
    // SAFETY: of an ErrorData, zeros are what is not known. The texts outlive the call, which copies them;
    // not so the names of a file and of a function, which are kept as long as the server keeps the report.
    unsafe {
        let mut error = std::mem::zeroed::<pg_sys::ErrorData>();
        (error.elevel, error.sqlerrcode) = (level as c_int, code as c_int);
        (error.message, error.detail, error.hint) = (text(&message), text(&detail), text(&hint));
        if let Some(raised) = raised {
            error.filename = kept(raised.file());
            error.lineno = raised.line_number() as c_int;
            error.funcname = raised.function_name().map_or(ptr::null_mut(), kept).cast_const();
        }
        pg_sys::ThrowErrorData(&mut error);
    }
}

/// A copy of a name, which goes with all that the server keeps of ERRORs.
fn kept(name: &str) -> *mut c_char {
    // SAFETY: a C string, which is copied; the context always exists.
    unsafe { pg_sys::MemoryContextStrdup(pg_sys::ErrorContext, c_string(name).as_ptr()) }
}

/// Does `work`, and catches what it ends by. Raises nothing itself: a subtransaction must come to its end.
pub(in crate::pg) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Caught> {
    with_handler(|| Ok(work()), |error| Err(Caught::of(error)))
}

/// Does `work`, and what it ends by an ERROR with `handler`, in the memory context of the caller.
fn with_handler<T>(
    work: impl FnOnce() -> T,
    handler: impl Fn(CaughtError) -> T + UnwindSafe + RefUnwindSafe,
) -> T {
    // SAFETY: reads a variable of this backend.
    let context = unsafe { pg_sys::CurrentMemoryContext };
    let in_context = move |error| {
        // SAFETY: the context of the caller, which still exists.
        unsafe { pg_sys::MemoryContextSwitchTo(context) };
        handler(error)
    };
    PgTryBuilder::new(AssertUnwindSafe(work)).catch_others(in_context).execute()
}

/// Does `work`, which runs this statement of ours. The CONTEXT of an ERROR does not show that statement, but
/// what is inside of it and around it.
pub(in crate::pg) fn unshown<T>(statement: &[u8], work: impl FnOnce() -> T) -> T {
    with_changed_error(work, |copy| copy.hide(statement))
}

/// Does `work`, which parses this query of the user's. The place that an ERROR points at is one in it, and
/// not in the statement that called us.
pub(in crate::pg) fn pointing_into<T>(query: &CStr, work: impl FnOnce() -> T) -> T {
    with_changed_error(work, |copy| copy.point_into(query))
}

/// Does `work`. An ERROR of the server's that has one of these SQLSTATEs, and no HINT, gets the one beside
/// it.
pub(in crate::pg) fn hinting<T>(hints: &[(PgSqlErrorCode, &CStr)], work: impl FnOnce() -> T) -> T {
    with_changed_error(work, |copy| hints.iter().for_each(|(code, hint)| copy.add_hint(*code, hint)))
}

/// Does `work`, and has an ERROR of the server's changed.
fn with_changed_error<T>(work: impl FnOnce() -> T, change: impl FnOnce(&Copied)) -> T {
    catch(work).unwrap_or_else(|caught| {
        if let Caught::OfServer(copy) = &caught {
            change(copy);
        }
        caught.rethrow()
    })
}

/// What ended some work.
pub(in crate::pg) enum Caught {
    /// An ERROR that the server has raised, or passed on.
    OfServer(Copied),
    /// An ERROR of this library alone, or a panic of it.
    Own(Box<CaughtError>),
    /// An ERROR of the server's of which there was no memory for a copy.
    NoMemory,
}

impl Caught {
    /// What has just been caught: the server still keeps an ERROR of its own.
    fn of(error: CaughtError) -> Self {
        match error {
            CaughtError::PostgresError(_) => Copied::take().map_or(Self::NoMemory, Self::OfServer),
            error => Self::Own(Box::new(error)),
        }
    }

    /// Its SQLSTATE as the server packs it, also one that a user has made up.
    pub(in crate::pg) fn code(&self) -> i32 {
        match self {
            // SAFETY: a copy, which is there.
            Self::OfServer(copy) => unsafe { (*copy.error).sqlerrcode },
            Self::Own(error) => report_of(error).sql_error_code() as i32,
            Self::NoMemory => PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as i32,
        }
    }

    /// Its message, or as much of it as [`start_of`] gives.
    pub(in crate::pg) fn message(&self) -> String {
        match self {
            // SAFETY: a copy, whose message is NULL or a C string.
            Self::OfServer(copy) => unsafe {
                let message = (*copy.error).message;
                if message.is_null() { String::new() } else { start_of(message) }
            },
            Self::Own(error) => report_of(error).message().to_owned(),
            Self::NoMemory => String::new(),
        }
    }

    /// Its HINT, if it is one of ours and has any.
    pub(in crate::pg) fn hint(&self) -> Option<String> {
        match self {
            Self::Own(error) => report_of(error).hint().map(str::to_owned),
            Self::OfServer(_) | Self::NoMemory => None,
        }
    }

    /// Is its SQLSTATE of the same class as one of these?
    pub(in crate::pg) fn is_of_class(&self, classes: &[PgSqlErrorCode]) -> bool {
        /// The part of a packed SQLSTATE that is its class.
        const CLASS: i32 = 0xfff;
        classes.iter().any(|class| (*class as i32) & CLASS == self.code() & CLASS)
    }

    pub(in crate::pg) fn rethrow(self) -> ! {
        match self {
            Self::OfServer(copy) => copy.rethrow(),
            Self::Own(error) => error.rethrow(),
            Self::NoMemory => Error::no_memory("out of memory").raise(),
        }
    }
}

fn report_of(error: &CaughtError) -> &ErrorReportWithLevel {
    let (CaughtError::PostgresError(report)
    | CaughtError::ErrorReport(report)
    | CaughtError::RustPanic { ereport: report, .. }) = error;
    report
}

/// A copy of an ERROR, in a memory context of its own.
pub(in crate::pg) struct Copied {
    error: *mut pg_sys::ErrorData,
    context: pg_sys::MemoryContext,
}

impl Copied {
    /// Copies the ERROR that the server keeps, for code that has caught it. None without memory for that.
    fn take() -> Option<Self> {
        // SAFETY: there is such an ERROR, and the present memory context is not that of ERRORs.
        let copy = || unsafe {
            let context = pg_sys::AllocSetContextCreateInternal(
                pg_sys::CurrentMemoryContext,
                c"pg_io_probe ERROR".as_ptr(),
                pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
                pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
                pg_sys::ALLOCSET_SMALL_MAXSIZE as usize,
            );
            let before = pg_sys::MemoryContextSwitchTo(context);
            let error = pg_guard_ffi_boundary(|| __real_CopyErrorData());
            pg_sys::MemoryContextSwitchTo(before);
            Some(Self { error, context })
        };
        with_handler(copy, |_| None)
    }

    /// Takes the lines that show this statement out of its CONTEXT.
    fn hide(&self, statement: &[u8]) {
        // SAFETY: a copy of ours, whose context is NULL or a C string; what follows the lines moves to their
        // place.
        unsafe {
            let start = (*self.error).context;
            if start.is_null() {
                return;
            }
            let text = CStr::from_ptr(start).to_bytes();
            let Some(lines) = lines_with(statement, text) else { return };
            // What follows, with its NUL.
            ptr::copy(start.add(lines.end), start.add(lines.start), text.len() + 1 - lines.end);
            if *start == 0 {
                (*self.error).context = ptr::null_mut();
            }
        }
    }

    /// Makes its position one in this query.
    fn point_into(&self, query: &CStr) {
        // SAFETY: a copy of ours, to whose memory context the query is copied.
        unsafe {
            let error = &mut *self.error;
            if error.cursorpos > 0 {
                error.internalpos = std::mem::take(&mut error.cursorpos);
                error.internalquery = pg_sys::MemoryContextStrdup(self.context, query.as_ptr());
            }
        }
    }

    /// Gives it this HINT if it has this SQLSTATE, and none.
    fn add_hint(&self, code: PgSqlErrorCode, hint: &CStr) {
        // SAFETY: a copy of ours, to whose memory context the HINT is copied.
        unsafe {
            let error = &mut *self.error;
            if error.sqlerrcode == code as c_int && error.hint.is_null() {
                error.hint = pg_sys::MemoryContextStrdup(self.context, hint.as_ptr());
            }
        }
    }

    /// Raises it again. What the server does not copy once more has to last as long as this ERROR is in use,
    /// and then goes with all that the server keeps of ERRORs.
    fn rethrow(self) -> ! {
        let Self { error, context } = *ManuallyDrop::new(self);
        // SAFETY: both are ours, and given away here.
        unsafe {
            pg_sys::MemoryContextSetParent(context, pg_sys::ErrorContext);
            pg_sys::ReThrowError(error);
        }
        #[allow(unreachable_code)] // for some servers pgrx knows that it is
        {
            unreachable!("an ERROR does not return")
        }
    }
}

/// Where in `text` the lines are on which `part` is first found, with the line break that parts them from the
/// others.
fn lines_with(part: &[u8], text: &[u8]) -> Option<Range<usize>> {
    let found = text.windows(part.len().max(1)).position(|window| window == part)?;
    let start = text[..found].iter().rposition(|byte| *byte == b'\n');
    match text[found + part.len()..].iter().position(|byte| *byte == b'\n') {
        Some(rest) => Some(start.map_or(0, |start| start + 1)..found + part.len() + rest + 1),
        None => Some(start.unwrap_or(0)..text.len()),
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: made in `take`. (While aborting, the memory context above frees it.)
            unsafe { pg_sys::MemoryContextDelete(self.context) };
        }
    }
}
