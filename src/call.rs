//! One call of a probe, from its rights to its last row.
//!
//! Each begins in the same order:
//!
//! 1. The further rights that it needs, and those on what it measures. Rights come first, so that a session
//!    without them neither waits nor blocks.
//! 2. The probe lock. Its holder waits for no other lock: with LOCK TABLE one session would keep all others
//!    from probing. A waiter holds no relation lock, so DDL is not blocked.
//! 3. The relation, which looks at the rights again, and how busy its device is.
//! 4. The charge of its time to the statement, and its progress.
//!
//! All of that ends when the call is dropped. After an ERROR the transaction's end releases locks and
//! progress, and the charge ends by unwinding.

pub(crate) mod admission;
pub(crate) mod arguments;
pub(crate) mod named;
pub(crate) mod options;
pub(crate) mod probe;
mod probed_place;
pub(crate) mod probed_relation;
mod statement_budget;

use std::cell::Cell;
use std::time::Duration;

use io_probe_core::machine::account::Account;
use io_probe_core::machine::observer::IoDelta;
use io_probe_core::run::budget::{Budget, End, Stop};
use io_probe_core::run::clock::Monotonic;
use pgrx::pg_sys;

pub(crate) use self::arguments::{ReadPath, figure};
pub(crate) use self::named::NamedEnum;
pub(crate) use self::options::Options;
pub(crate) use self::probe::Probe;
pub(crate) use self::probed_place::ProbedPlace;
pub(crate) use self::probed_relation::ProbedRelation;
pub(crate) use self::statement_budget::in_time;
use crate::error::{Error, Result};
use crate::pg::backend::interrupts::{self, Interrupts};
use crate::pg::backend::lock::{ProbeLock, refuse_in_parallel};
use crate::pg::backend::progress::Progress;
use crate::pg::backend::server;
use crate::pg::storage::relation::{Held, Relation, check_may_read};

pub(crate) struct Begin {
    pub(crate) probe: Probe,
    /// It empties caches, which takes a right of its own.
    pub(crate) evicts: bool,
    /// It writes a scratch file, which takes a right of its own.
    pub(crate) writes: bool,
    /// It waits for a probe that runs.
    pub(crate) waits: bool,
}

pub(crate) struct Call {
    /// What others see of it.
    pub(crate) progress: Progress,
    /// Why the attempts that are left do not begin any more, if so.
    ended: Cell<Option<Stop>>,
    _charge: statement_budget::Charge,
    _lock: Option<ProbeLock>,
}

impl Begin {
    /// A call of this probe that evicts nothing, writes nothing, and does not wait for another one.
    pub(crate) fn of(probe: Probe) -> Self {
        Self { probe, evicts: false, writes: false, waits: false }
    }

    /// Begins on a relation whose device is not busier than the cap on that allows.
    pub(crate) fn on_relation(self, rel: pg_sys::Oid) -> Result<(Call, ProbedRelation)> {
        self.check_rights()?;
        let (lock, relation) = self.alone(rel)?;
        relation.check_admitted()?;
        Ok((self.start(Some(lock), Some(rel))?, relation))
    }

    /// Begins for a relation that is not read itself: what is, is admitted by itself.
    pub(crate) fn beside_relation(self, rel: pg_sys::Oid) -> Result<(Call, ProbedRelation)> {
        self.check_rights()?;
        let (lock, relation) = self.alone(rel)?;
        Ok((self.start(Some(lock), Some(rel))?, relation))
    }

    /// Begins on relations that are opened and admitted one by one; the one that the call names is open.
    pub(crate) fn on_relations(self, rel: Option<pg_sys::Oid>) -> Result<(Call, Option<ProbedRelation>)> {
        self.check_rights()?;
        let (lock, relation) = match rel {
            Some(rel) => self.alone(rel).map(|(lock, relation)| (lock, Some(relation)))?,
            None => (self.lock()?, None),
        };
        Ok((self.start(Some(lock), rel)?, relation))
    }

    /// Begins beside the WAL or in a tablespace; `find` checks the right to write there, also after a wait.
    pub(crate) fn on_place<T>(self, find: impl Fn() -> Result<T>) -> Result<(Call, T)> {
        self.check_rights()?;
        find()?;
        let lock = self.lock()?;
        let place = find()?;
        Ok((self.start(Some(lock), None)?, place))
    }

    /// Begins what measures nothing that a probe would disturb, and so takes no probe lock.
    pub(crate) fn beside_probes(self) -> Result<Call> {
        refuse_in_parallel()?;
        self.start(None, None)
    }

    /// Begins on a relation, whose lock it waits for, without the probe lock.
    pub(crate) fn on_relation_beside_probes(self, rel: pg_sys::Oid) -> Result<(Call, Relation)> {
        refuse_in_parallel()?;
        let relation = Relation::open_to_read(rel, self.probe.function())?;
        Ok((self.start(None, Some(rel))?, relation))
    }

    fn check_rights(&self) -> Result<()> {
        if self.evicts {
            check_right("evict caches", Probe::Evict, self.probe.evicting())?;
        }
        if self.writes {
            check_right("write a scratch file", Probe::Sync, self.probe.writing())?;
        }
        Ok(())
    }

    fn alone(&self, rel: pg_sys::Oid) -> Result<(ProbeLock, ProbedRelation)> {
        check_may_read(rel)?;
        loop {
            let lock = match ProbeLock::acquire_if_free()? {
                Some(lock) => lock,
                None => {
                    self.check_readable(rel)?;
                    self.lock()?
                }
            };
            if let Some(_held) = Held::take(rel) {
                return Ok((lock, ProbedRelation::open(rel, self.probe)?));
            }
            drop(lock);
            interrupts::check();
            let _held = Held::wait_for(rel);
            // The relation's lock is kept meanwhile. On 15, if others wait for a lock that this session
            // holds, a request that does not wait is always refused, while one that would wait is granted at
            // once.
            if let Some(lock) = ProbeLock::acquire_if_free()? {
                return Ok((lock, ProbedRelation::open(rel, self.probe)?));
            }
        }
    }

    fn lock(&self) -> Result<ProbeLock> {
        ProbeLock::acquire(self.waits, Probe::name_of)
    }

    /// Refuses, before it waits for another probe, what it could not read after it.
    fn check_readable(&self, rel: pg_sys::Oid) -> Result<()> {
        Held::take(rel).map_or(Ok(()), |_held| ProbedRelation::open(rel, self.probe).map(drop))
    }

    fn start(&self, lock: Option<ProbeLock>, rel: Option<pg_sys::Oid>) -> Result<Call> {
        let charge = statement_budget::start()?;
        interrupts::shut_down_at_exit();
        let progress = Progress::start(self.probe as i64, self.probe.waits_for(), rel, time_left());
        Ok(Call { progress, ended: Cell::new(None), _charge: charge, _lock: lock })
    }
}

/// Refuses what calls several probes, or waits, while another probe runs.
pub(crate) fn check_no_probe_runs(waits: bool) -> Result<()> {
    ProbeLock::acquire(waits, Probe::name_of).map(drop)
}

impl Call {
    /// Why nothing more may begin, and what runs must end, if so.
    pub(crate) fn ended(&self) -> Option<Stop> {
        self.ended.get().or_else(statement_budget::exhausted)
    }

    pub(crate) fn time_left(&self) -> Duration {
        time_left()
    }

    /// What work without a budget asks: is the statement's time used up, or is there an interrupt?
    pub(crate) fn should_stop(&self, interrupts: &Interrupts) -> Option<Stop> {
        self.ended().or_else(|| interrupts.check())
    }

    /// Measures within the time that the statement has left. The budget keeps it, so that between requests
    /// there are only interrupts to look for.
    pub(crate) fn with_budget<T>(
        &self,
        interrupts: &Interrupts,
        measure: impl FnOnce(&mut Budget<'_>) -> T,
    ) -> T {
        let (left, stop) = statement_budget::remaining();
        measure(&mut Budget::of_statement(left, &Monotonic, &mut || interrupts.check()).ending_by(stop))
    }

    /// Takes note of why something ended. After a device that was too slow, nothing else of the statement
    /// begins.
    pub(crate) fn note_stop(&self, stop: Option<Stop>) {
        statement_budget::note(stop);
    }

    /// Measures a relation within the time that the statement has left, and what that cost the devices.
    pub(crate) fn observed<T>(
        &self,
        relation: &ProbedRelation,
        account: Account,
        measure: impl FnOnce(&mut Budget<'_>) -> io_probe_core::Result<T>,
    ) -> Outcome<(T, IoDelta)> {
        let observer = relation.observer(account);
        let mut before = observer.look();
        let measured = {
            let mut should_stop = before.following(|| relation.interrupts.check());
            let (left, stop) = statement_budget::remaining();
            measure(&mut Budget::of_statement(left, &Monotonic, &mut should_stop).ending_by(stop))?
        };
        let cost = observer.since(&before);
        // What the kernel still reads ahead must not be taken for others' reads by what comes next.
        observer.settle();
        Ok((measured, cost))
    }

    /// Measures, unless the call is over. `stop` tells what ended it early, if so.
    pub(crate) fn attempt<T>(
        &self,
        measure: impl FnOnce() -> Outcome<T>,
        stop: impl Fn(&T) -> Option<Stop>,
    ) -> Outcome<T> {
        let measured = self.ended().map_or_else(measure, |stop| Err(Failure::NotBegun(stop)));
        self.note_stop(stop_of(&measured, stop));
        measured
    }

    /// Attempts one of several paths. A stop that is for all ([`Stop::is_for_all`]) ends the rest, too.
    pub(crate) fn attempt_path<T>(
        &self,
        measure: impl FnOnce() -> Outcome<T>,
        stop: impl Fn(&T) -> Option<Stop>,
    ) -> Outcome<T> {
        let measured = self.attempt(measure, &stop);
        self.ended.set(stop_of(&measured, stop).filter(|stop| stop.is_for_all()));
        measured
    }
}

fn stop_of<T>(measured: &Outcome<T>, of: impl Fn(&T) -> Option<Stop>) -> Option<Stop> {
    match measured {
        Ok(measured) => of(measured),
        Err(Failure::NotBegun(stop)) => Some(*stop),
        Err(_) => None,
    }
}

/// Ends an attempt if there is a reason to.
pub(crate) fn stop_if(stop: Option<Stop>) -> Outcome<()> {
    stop.map_or(Ok(()), |stop| Err(Failure::NotBegun(stop)))
}

/// The time that the statement leaves its probes.
pub(crate) fn time_left() -> Duration {
    statement_budget::remaining().0
}

/// Why nothing was measured.
pub(crate) enum Failure {
    /// The file system can't do it, for this reason.
    Unsupported(String),
    /// It came too late, or something ended it before its first request.
    NotBegun(Stop),
    Error(Error),
}

pub(crate) type Outcome<T> = std::result::Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

impl From<End> for Failure {
    fn from(end: End) -> Self {
        match end {
            End::Stopped(stop) => Failure::NotBegun(stop),
            End::Failed(error) => error.into(),
        }
    }
}

impl From<io_probe_core::Error> for Failure {
    fn from(error: io_probe_core::Error) -> Self {
        match error {
            io_probe_core::Error::Unsupported { .. } => Failure::Unsupported(error.to_string()),
            error => Failure::Error(error.into()),
        }
    }
}

/// Checks the right to do this, which is that to execute the function of `right`. `needs` names what needs
/// it, as the beginning of a sentence.
fn check_right(what: &str, right: Probe, needs: &str) -> Result<()> {
    let function = right.function();
    if server::may_execute(function) {
        return Ok(());
    }
    Err(Error::denied(format!("permission denied to {what}"))
        .detail(format!("{needs} EXECUTE on {function}.")))
}
