//! Errors as the SQL user sees them: one place that knows the SQLSTATEs.

use std::fmt::Display;

use io_probe_advise::plan::PlanError;
use pgrx::PgSqlErrorCode as Code;

/// A refusal or a failure, ready to be raised.
#[derive(Debug)]
pub(crate) struct Error {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) detail: Option<String>,
    pub(crate) hint: Option<String>,
}

/// Shorthand of this crate.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// A constructor for each kind of error: its name and its SQLSTATE.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $code:ident;)+) => {
        $(
            $(#[$doc])*
            pub(crate) fn $kind(message: impl Into<String>) -> Self {
                Self::new(Code::$code, message)
            }
        )+
    };
}

impl Error {
    fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), detail: None, hint: None }
    }

    kinds! {
        /// An argument, option or setting that is wrong by itself.
        invalid = ERRCODE_INVALID_PARAMETER_VALUE;
        /// A relation of a kind that has no storage.
        wrong_kind = ERRCODE_WRONG_OBJECT_TYPE;
        /// A relation that is gone.
        undefined_relation = ERRCODE_UNDEFINED_TABLE;
        /// Another object that does not exist.
        undefined_object = ERRCODE_UNDEFINED_OBJECT;
        /// A right that the caller lacks.
        denied = ERRCODE_INSUFFICIENT_PRIVILEGE;
        /// Something that this server or kernel can't do.
        unsupported = ERRCODE_FEATURE_NOT_SUPPORTED;
        /// Something that is not possible in the present state of the transaction.
        wrong_state = ERRCODE_INVALID_TRANSACTION_STATE;
        /// Something that this server can't do in its present state.
        unmet = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
        /// Something that writes, in a transaction that may not.
        read_only = ERRCODE_READ_ONLY_SQL_TRANSACTION;
        /// Not a refusal: something to know about a call that goes on.
        warning = ERRCODE_WARNING;
        /// Something that is taken by someone else.
        in_use = ERRCODE_OBJECT_IN_USE;
        /// Text that can't be converted to UTF-8.
        untranslatable = ERRCODE_UNTRANSLATABLE_CHARACTER;
        /// Memory that the system does not give.
        no_memory = ERRCODE_OUT_OF_MEMORY;
        /// More than the extension is ready to hold in memory.
        too_large = ERRCODE_PROGRAM_LIMIT_EXCEEDED;
    }

    /// Something that has more of these units than the extension is ready for.
    pub(crate) fn larger(what: impl Display, found: usize, units: &str, most: usize) -> Self {
        Self::too_large(format!("{what} is too large"))
            .detail(format!("It has {found} {units}, but at most {most} are allowed."))
    }

    /// Adds a DETAIL.
    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds a HINT.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The text of a row about what was refused, in a call that goes on with the rest.
    pub(crate) fn as_note(&self) -> String {
        let detail = self.detail.as_deref().unwrap_or_default().trim_end_matches('.');
        format!("not measured: {} ({detail})", self.message)
    }
}

/// What a call of the core gives; or the ERROR.
pub(crate) fn or_raise<T>(result: io_probe_core::Result<T>) -> T {
    result.unwrap_or_else(|error| Error::from(error).raise())
}

impl From<io_probe_core::Error> for Error {
    fn from(error: io_probe_core::Error) -> Self {
        use io_probe_core::Error as Core;
        let full = matches!(error.errno(), Some(libc::ENOSPC | libc::EDQUOT));
        let code = match error {
            Core::NoRoom { .. } => Code::ERRCODE_DISK_FULL,
            Core::Io { .. } if full => Code::ERRCODE_DISK_FULL,
            Core::NoMemory { .. } => Code::ERRCODE_OUT_OF_MEMORY,
            Core::System { .. } if error.errno() == Some(libc::ENOMEM) => Code::ERRCODE_OUT_OF_MEMORY,
            Core::MissingSegment { .. } => Code::ERRCODE_UNDEFINED_FILE,
            Core::Unsupported { .. } => Code::ERRCODE_FEATURE_NOT_SUPPORTED,
            Core::Io { .. } | Core::ShortRead { .. } | Core::System { .. } => Code::ERRCODE_IO_ERROR,
        };
        let detail = match &error {
            Core::NoRoom { free, wanted, reserve, .. } => Some(format!(
                "{free} bytes are free. The file takes {wanted}, and {reserve} must stay free \
                 (pg_io_probe.scratch_reserve)."
            )),
            error => error.errno().map(|errno| format!("errno is {errno}.")),
        };
        Self { detail, ..Self::new(code, error.to_string()) }
    }
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::NoMemory(error) => error.into(),
            PlanError::TooLarge { what, found, most } => Self::larger("the plan", found, what, most),
            error => Self::invalid(error.to_string()),
        }
    }
}
