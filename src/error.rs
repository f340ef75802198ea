//! Errors as the SQL user sees them: one place that knows the SQLSTATEs.

use io_probe_core::plan::PlanError;
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

impl Error {
    fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), detail: None, hint: None }
    }

    /// An argument, option or setting that is wrong by itself.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::ERRCODE_INVALID_PARAMETER_VALUE, message)
    }

    /// A relation of a kind that has no storage.
    pub(crate) fn wrong_kind(message: impl Into<String>) -> Self {
        Self::new(Code::ERRCODE_WRONG_OBJECT_TYPE, message)
    }

    /// A relation that is gone.
    pub(crate) fn undefined_relation(message: impl Into<String>) -> Self {
        Self::new(Code::ERRCODE_UNDEFINED_TABLE, message)
    }

    /// Another object that does not exist.
    pub(crate) fn undefined_object(message: impl Into<String>) -> Self {
        Self::new(Code::ERRCODE_UNDEFINED_OBJECT, message)
    }

    /// A right that the caller lacks.
    pub(crate) fn denied(message: impl Into<String>) -> Self {
        Self::new(Code::ERRCODE_INSUFFICIENT_PRIVILEGE, message)
    }

    /// Something that this server or kernel can't do.
    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Code::ERRCODE_FEATURE_NOT_SUPPORTED, message)
    }

    /// Something that is not possible in the present state of the transaction.
    pub(crate) fn wrong_state(message: impl Into<String>) -> Self {
        Self::new(Code::ERRCODE_INVALID_TRANSACTION_STATE, message)
    }

    /// Something that this server can't do in its present state.
    pub(crate) fn unmet(message: impl Into<String>) -> Self {
        Self::new(Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
    }

    /// Something that writes, in a transaction that may not.
    pub(crate) fn read_only(message: impl Into<String>) -> Self {
        Self::new(Code::ERRCODE_READ_ONLY_SQL_TRANSACTION, message)
    }

    /// Not a refusal: something to know about a call that goes on.
    pub(crate) fn warning(message: impl Into<String>) -> Self {
        Self::new(Code::ERRCODE_WARNING, message)
    }

    /// Something that is taken by someone else.
    pub(crate) fn in_use(message: impl Into<String>) -> Self {
        Self::new(Code::ERRCODE_OBJECT_IN_USE, message)
    }

    /// Text that can't be converted to UTF-8.
    pub(crate) fn untranslatable(message: impl Into<String>) -> Self {
        Self::new(Code::ERRCODE_UNTRANSLATABLE_CHARACTER, message)
    }

    /// More than the extension is ready to hold in memory, or to run at once.
    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self::new(Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED, message)
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
}

impl From<io_probe_core::Error> for Error {
    fn from(error: io_probe_core::Error) -> Self {
        use io_probe_core::Error as Core;
        let full = matches!(error.errno(), Some(libc::ENOSPC | libc::EDQUOT));
        let code = match error {
            // The server says the same of a write that was cut short without a reason.
            Core::NoRoom { .. } | Core::ShortWrite { .. } => Code::ERRCODE_DISK_FULL,
            Core::Io { .. } | Core::Scratch { .. } if full => Code::ERRCODE_DISK_FULL,
            Core::NoMemory { .. } => Code::ERRCODE_OUT_OF_MEMORY,
            Core::MissingSegment { .. } => Code::ERRCODE_UNDEFINED_FILE,
            Core::Unsupported { .. } => Code::ERRCODE_FEATURE_NOT_SUPPORTED,
            Core::Io { .. } | Core::Scratch { .. } | Core::ShortRead { .. } | Core::System { .. } => {
                Code::ERRCODE_IO_ERROR
            }
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
            PlanError::TooLarge { what, found, most } => Self::too_large(error.to_string())
                .detail(format!("It has {found} {what}, of at most {most}.")),
            error => Self::invalid(error.to_string()),
        }
    }
}
