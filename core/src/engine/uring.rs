//! Reads through io_uring.
//!
//! One ring, used by one thread (`SINGLE_ISSUER`), whose completions wait until it enters the kernel
//! (`COOP_TASKRUN`): no signal, no extra interrupt. Kernels that lack these flags get a plain ring.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::sync::Arc;

use io_uring::{IoUring, opcode, squeue, types};

use super::buffers::Buffers;
use super::{Completion, Engine};
use crate::run::shutdown::{ShutDown, register};
use crate::{Error, Result};

/// A ring with a buffer a slot.
pub struct Uring {
    inner: Rc<Inner>,
}

struct Inner {
    ring: RefCell<IoUring>,
    /// The kernel writes into them for as long as requests are in flight.
    buffers: ManuallyDrop<Buffers>,
    in_flight: Cell<usize>,
    /// With more than so many in flight the kernel's own threads read.
    in_foreground: usize,
    /// The file of each busy slot, open for as long as the kernel may read it.
    files: RefCell<Vec<Option<Arc<File>>>>,
}

impl Uring {
    /// `depth` slots of `request` bytes.
    pub fn new(depth: usize, request: usize) -> Result<Self> {
        Self::with_background(depth, request, usize::MAX)
    }

    /// What is submitted while more than `in_foreground` reads are in flight is left to the kernel's own
    /// threads, which copy what is cached.
    pub fn with_background(depth: usize, request: usize, in_foreground: usize) -> Result<Self> {
        let inner = Rc::new(Inner {
            ring: RefCell::new(build(depth as u32).map_err(refused)?),
            buffers: ManuallyDrop::new(Buffers::new(depth, request)?),
            in_flight: Cell::new(0),
            in_foreground,
            files: RefCell::new(vec![None; depth]),
        });
        register(&(Rc::clone(&inner) as Rc<dyn ShutDown>));
        Ok(Self { inner })
    }
}

/// A ring of so many entries.
pub(crate) fn build(entries: u32) -> io::Result<IoUring> {
    if cfg!(miri) {
        return Err(io::Error::from_raw_os_error(libc::ENOSYS));
    }
    match IoUring::builder().setup_single_issuer().setup_coop_taskrun().build(entries) {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => IoUring::new(entries),
        other => other,
    }
}

/// The error of a refusal.
pub(crate) fn refused(e: io::Error) -> Error {
    Error::Unsupported { what: "io_uring", why: UringRefusal::of(&e).to_string() }
}

/// Why this kernel lets this process have no ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UringRefusal {
    /// It has no io_uring.
    Kernel,
    /// kernel.io_uring_disabled, or a seccomp profile.
    Permission,
    /// RLIMIT_MEMLOCK, on kernels before 5.12.
    Memory,
    /// Another error.
    Other(String),
}

impl UringRefusal {
    fn of(e: &io::Error) -> Self {
        match e.raw_os_error() {
            Some(libc::ENOSYS) => Self::Kernel,
            Some(libc::EPERM | libc::EACCES) => Self::Permission,
            Some(libc::ENOMEM) => Self::Memory,
            _ => Self::Other(e.to_string()),
        }
    }
}

impl fmt::Display for UringRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "this kernel has no io_uring",
            Self::Permission => {
                "not permitted (kernel.io_uring_disabled, or the container's seccomp profile)"
            }
            Self::Memory => "not enough lockable memory (RLIMIT_MEMLOCK)",
            Self::Other(error) => error,
        })
    }
}

/// Why this process may have no ring, if so.
pub fn refusal() -> Option<UringRefusal> {
    build(1).err().map(|e| UringRefusal::of(&e))
}

/// Why a thread may not have a ring of so many entries, for which it waits until a certain time, if so.
pub fn waits_refusal(entries: u32) -> Option<UringRefusal> {
    match build(entries) {
        Ok(ring) => (!ring.params().is_feature_ext_arg()).then_some(UringRefusal::Kernel),
        Err(e) => Some(UringRefusal::of(&e)),
    }
}

impl Inner {
    fn reap(&self) -> Option<Completion> {
        let entry = self.ring.borrow_mut().completion().next()?;
        let slot = entry.user_data() as usize;
        self.files.borrow_mut()[slot] = None;
        self.in_flight.set(self.in_flight.get() - 1);
        let result = usize::try_from(entry.result()).map_err(|_| -entry.result());
        Some(Completion { slot, result })
    }

    /// Hands over what was pushed and waits for a completion; false when a signal came first.
    fn enter(&self) -> Result<bool> {
        match self.ring.borrow().submit_and_wait(1) {
            Ok(_) => Ok(true),
            Err(e) => match e.raw_os_error() {
                Some(libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(false),
                _ => Err(Error::System { action: "wait for io_uring", source: e }),
            },
        }
    }
}

impl Engine for Uring {
    fn submit_at(&mut self, slot: usize, at: usize, file: &Arc<File>, offset: u64, len: usize) {
        let inner = &self.inner;
        let mut files = inner.files.borrow_mut();
        assert!(files[slot].is_none(), "I/O slot {slot} is busy");
        let buffer = inner.buffers.slot_at(slot, at, len);
        let entry = opcode::Read::new(types::Fd(file.as_raw_fd()), buffer, len as u32)
            .offset(offset)
            .build()
            .user_data(slot as u64);
        let in_background = inner.in_flight.get() > inner.in_foreground;
        let entry = if in_background { entry.flags(squeue::Flags::ASYNC) } else { entry };
        // SAFETY: the buffer and the file stay until the completion of this slot is reaped, and the
        // slot is marked busy until then.
        let pushed = unsafe { inner.ring.borrow_mut().submission().push(&entry) };
        pushed.expect("the ring has an entry for each slot");
        files[slot] = Some(Arc::clone(file));
        inner.in_flight.set(inner.in_flight.get() + 1);
        // Submitted at once, and not with the next ones: the device waits for each that is held back, which
        // costs a tenth of the rate at a depth of 8 and more. What the kernel doesn't take now, `enter` hands
        // over.
        let _ = inner.ring.borrow().submit();
    }

    fn wait(&mut self, idle: &mut dyn FnMut()) -> Result<Completion> {
        assert!(self.inner.in_flight.get() > 0, "nothing is in flight");
        loop {
            if let Some(completion) = self.inner.reap() {
                return Ok(completion);
            }
            if !self.inner.enter()? {
                idle();
            }
        }
    }

    fn bytes(&self, slot: usize, at: usize, len: usize) -> &[u8] {
        assert!(self.inner.files.borrow()[slot].is_none(), "I/O slot {slot} is busy");
        // SAFETY: the kernel has no request in this slot, and gets none while the engine is borrowed.
        unsafe { self.inner.buffers.bytes(slot, at, len) }
    }
}

impl ShutDown for Inner {
    fn shut_down(&self) {
        while self.in_flight.get() > 0 {
            // An error other than an interruption means that the ring is unusable.
            if self.reap().is_none() && self.enter().is_err() {
                break;
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shut_down();
        if self.in_flight.get() == 0 {
            // SAFETY: dropped here only, and nothing uses them afterwards. With requests still in flight
            // in an unusable ring they are leaked: the kernel may write into them yet.
            unsafe { ManuallyDrop::drop(&mut self.buffers) };
        }
    }
}
