//! Serves a device as the file `disk` of a FUSE file system, with the control files `model` and `counts`
//! beside it.
//!
//! All of them are opened for direct I/O, so each request of a loop device on `disk` comes here, and none is
//! answered from a cache. The data is in the process's memory, and gone with it.

use std::ffi::OsStr;
use std::fmt::Display;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyWrite, Request as Caller, TimeOrNow, WriteFlags,
};

use crate::control;
use crate::model::{Invalid, Model};
use crate::request::{Kind, Request};
use crate::schedule::{Answer, Schedule};

/// Threads that take requests, and as many that answer them.
const THREADS: usize = 2;
/// The largest write, and the largest read.
const MOST_BYTES: u32 = 1 << 20;
/// Requests that the kernel has in flight at a time.
const IN_FLIGHT: u16 = 1024;
/// How long the kernel remembers names and sizes: they never change.
const TTL: Duration = Duration::from_secs(3600);

enum Reply {
    Read(ReplyData),
    Write(ReplyWrite),
    Flush(ReplyEmpty),
}

impl Reply {
    fn fail(self, errno: Errno) {
        match self {
            Self::Read(reply) => reply.error(errno),
            Self::Write(reply) => reply.error(errno),
            Self::Flush(reply) => reply.error(errno),
        }
    }
}

struct State {
    words: String,
    schedule: Schedule<Reply>,
}

struct Device {
    /// The kernel gives it pages where it is written.
    data: RwLock<Vec<u8>>,
    size: u64,
    /// Since then its times count.
    begin: Instant,
    state: Mutex<State>,
    /// There is a new first deadline.
    earlier: Condvar,
}

impl Device {
    fn new(size: u64) -> io::Result<Self> {
        let words = "off".to_owned();
        let model = Model::new(&words, size).map_err(io::Error::other)?;
        let data = RwLock::new(vec![0; usize::try_from(size).map_err(io::Error::other)?]);
        let state = Mutex::new(State { words, schedule: Schedule::new(model) });
        Ok(Self { data, size, begin: Instant::now(), state, earlier: Condvar::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time.
    fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Takes a request that came at a time. What is due is answered at once.
    fn submit(&self, came: Duration, request: Request, reply: Reply) {
        let mut state = self.state();
        let before = state.schedule.next_deadline().unwrap_or(Duration::MAX);
        state.schedule.submit(came, request, reply);
        let answer = state.schedule.take_due(self.now());
        let is_earlier = state.schedule.next_deadline().is_some_and(|next| next < before);
        drop(state);
        if is_earlier {
            self.earlier.notify_one();
        }
        if let Some(answer) = answer {
            self.answer(answer);
        }
    }

    /// Answers what is due, for ever.
    fn answer_in_time(&self) {
        let mut state = self.state();
        loop {
            let now = self.now();
            if let Some(answer) = state.schedule.take_due(now) {
                drop(state);
                self.answer(answer);
                state = self.state();
                continue;
            }
            state = match state.schedule.next_deadline() {
                Some(at) => self.earlier.wait_timeout(state, at - now).map(|(state, _)| state).ok(),
                None => self.earlier.wait(state).ok(),
            }
            .unwrap_or_else(|| self.state());
        }
    }

    fn answer(&self, answer: Answer<Reply>) {
        let Answer { request, reply, fails } = answer;
        match reply {
            reply if fails => reply.fail(Errno::EIO),
            Reply::Read(reply) => {
                let data = self.data.read().unwrap_or_else(PoisonError::into_inner);
                reply.data(&data[range(request)]);
            }
            Reply::Write(reply) => reply.written(request.length as u32),
            Reply::Flush(reply) => reply.ok(),
        }
    }

    fn write(&self, request: Request, from: &[u8]) {
        let mut data = self.data.write().unwrap_or_else(PoisonError::into_inner);
        data[range(request)].copy_from_slice(from);
    }

    fn set_model(&self, words: &str) -> Result<(), Invalid> {
        let model = Model::new(words, self.size)?;
        let mut state = self.state();
        state.schedule.set_model(self.now(), model);
        state.words = words.to_owned();
        self.earlier.notify_all();
        Ok(())
    }

    fn counts(&self) -> String {
        let state = self.state();
        control::counts(&state.schedule, self.now())
    }
}

/// Where the bytes of a request are.
fn range(request: Request) -> Range<usize> {
    request.offset as usize..request.end() as usize
}

/// What the file system holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    Root,
    Disk,
    Model,
    Counts,
}

impl Node {
    const ALL: [Self; 4] = [Self::Root, Self::Disk, Self::Model, Self::Counts];

    fn of(number: INodeNo) -> Option<Self> {
        Self::ALL.into_iter().find(|node| node.number() == number)
    }

    fn named(name: &OsStr) -> Option<Self> {
        match name.to_str()? {
            "disk" => Some(Self::Disk),
            "model" => Some(Self::Model),
            "counts" => Some(Self::Counts),
            _ => None,
        }
    }

    fn number(self) -> INodeNo {
        match self {
            Self::Root => INodeNo::ROOT,
            Self::Disk => INodeNo(2),
            Self::Model => INodeNo(3),
            Self::Counts => INodeNo(4),
        }
    }

    fn permissions(self) -> u16 {
        match self {
            Self::Root => 0o755,
            Self::Disk | Self::Model => 0o644,
            Self::Counts => 0o444,
        }
    }
}

struct Files(Arc<Device>);

impl Files {
    fn attributes(&self, node: Node) -> FileAttr {
        let size = if node == Node::Disk { self.0.size } else { 0 };
        FileAttr {
            ino: node.number(),
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if node == Node::Root { FileType::Directory } else { FileType::RegularFile },
            perm: node.permissions(),
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    fn reply_attributes(&self, number: INodeNo, reply: ReplyAttr) {
        match Node::of(number) {
            Some(node) => reply.attr(&TTL, &self.attributes(node)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn read_disk(&self, offset: u64, length: u32, reply: ReplyData) {
        let came = self.0.now();
        let offset = offset.min(self.0.size);
        let length = u64::from(length).min(self.0.size - offset);
        self.0.submit(came, Request { kind: Kind::Read, offset, length }, Reply::Read(reply));
    }

    /// What is written is there at once, and the answer comes when the model has it.
    fn write_disk(&self, offset: u64, data: &[u8], reply: ReplyWrite) {
        let came = self.0.now();
        let request = Request { kind: Kind::Write, offset, length: data.len() as u64 };
        if request.end() > self.0.size {
            return reply.error(Errno::ENOSPC);
        }
        self.0.write(request, data);
        self.0.submit(came, request, Reply::Write(reply));
    }

    fn write_model(&self, data: &[u8], reply: ReplyWrite) {
        let Ok(words) = str::from_utf8(data) else { return reply.error(Errno::EINVAL) };
        match self.0.set_model(words.trim()) {
            Ok(()) => reply.written(data.len() as u32),
            Err(why) => {
                eprintln!("{why}");
                reply.error(Errno::EINVAL);
            }
        }
    }
}

/// fuser names the nearest limit that it would take.
fn refused(nearest: impl Display) -> io::Error {
    io::Error::other(format!("{nearest} is the nearest that fuser takes"))
}

impl Filesystem for Files {
    fn init(&mut self, _: &Caller, config: &mut KernelConfig) -> io::Result<()> {
        // Without them it would be another device: one request at a time, in small pieces.
        config
            .add_capabilities(InitFlags::FUSE_ASYNC_DIO | InitFlags::FUSE_MAX_PAGES)
            .map_err(|missing| io::Error::other(format!("the kernel lacks {missing:?}")))?;
        config.set_max_write(MOST_BYTES).map_err(refused)?;
        config.set_max_background(IN_FLIGHT).map_err(refused)?;
        config.set_congestion_threshold(IN_FLIGHT).map_err(refused)?;
        Ok(())
    }

    fn lookup(&self, _: &Caller, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match Node::named(name).filter(|_| parent == INodeNo::ROOT) {
            Some(node) => reply.entry(&TTL, &self.attributes(node), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Caller, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.reply_attributes(number, reply);
    }

    /// Nothing changes; but a shell truncates the file that it redirects to.
    fn setattr(
        &self,
        _: &Caller,
        number: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        _size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        self.reply_attributes(number, reply);
    }

    fn open(&self, _: &Caller, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _: &Caller,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match Node::of(number) {
            Some(Node::Disk) => self.read_disk(offset, length, reply),
            Some(Node::Model) => {
                let words = format!("{}\n", self.0.state().words);
                reply.data(control::read(&words, offset, length));
            }
            Some(Node::Counts) => reply.data(control::read(&self.0.counts(), offset, length)),
            Some(Node::Root) | None => reply.error(Errno::ENOENT),
        }
    }

    fn write(
        &self,
        _: &Caller,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match Node::of(number) {
            Some(Node::Disk) => self.write_disk(offset, data, reply),
            Some(Node::Model) => self.write_model(data, reply),
            Some(Node::Root | Node::Counts) | None => reply.error(Errno::EACCES),
        }
    }

    fn flush(&self, _: &Caller, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Caller, number: INodeNo, _: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        match Node::of(number) {
            Some(Node::Disk) => {
                let request = Request { kind: Kind::Flush, offset: 0, length: 0 };
                self.0.submit(self.0.now(), request, Reply::Flush(reply));
            }
            _ => reply.ok(),
        }
    }
}

/// Serves a device of `size` bytes below a directory, until that is unmounted.
///
/// # Errors
/// When there is no FUSE, or the directory can't be mounted on.
pub fn serve(directory: &Path, size: u64) -> io::Result<()> {
    // A wake-up may be this much late, in nanoseconds: 50,000 would be the default.
    nix::sys::prctl::set_timerslack(1)?;
    let device = Arc::new(Device::new(size)?);
    for _ in 0..THREADS {
        let device = Arc::clone(&device);
        thread::Builder::new().name("answers".to_owned()).spawn(move || device.answer_in_time())?;
    }
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("io_probe_device".to_owned())];
    config.n_threads = Some(THREADS);
    fuser::mount(Files(device), directory, &config)
}
