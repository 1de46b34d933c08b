//! The sum of a day, in a file that all processes of an agent directory share.
//!
//! Each change takes the lock of a file beside it, reads the sum, and replaces the file in one step. What a process reserved that has
//! died since is free again. The file is only made when something is counted.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use agentd_files::replace::Replacement;
use agentd_safe_open::{LinkPolicy, OpenRules};
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Account, Amounts, Limits, OutputFit, Quote, Refusal, holder::Holder};

/// Only the user may look into it.
const MODE: u32 = 0o600;

/// The form of the file.
const VERSION: u32 = 1;

/// A larger file is not ours.
const MAX_BYTES: u64 = 4 << 20;

/// Numbers the reservations of this process.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Why a day's sum cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum DayError {
    /// The file cannot be read, locked or written.
    #[error("the day's budget cannot be kept in {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Something else is in it.
    #[error(
        "the day's budget in {path} cannot be read: {error}. Move the file away; what was spent today is then forgotten"
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: String,
    },
    /// The step may not be taken.
    #[error("the day's budget is used up")]
    Refused(Refusal, Amounts),
}

/// The sum of a day.
#[derive(Debug, Clone)]
pub struct DayFile {
    path: PathBuf,
}

/// Something that is reserved in the day's sum. Settle it: what is forgotten stays reserved until the process ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayReservation {
    id: u64,
    /// The output that the step may have.
    pub output: OutputFit,
    /// What is reserved.
    pub amounts: Amounts,
    /// What is spent today without it.
    pub used: Amounts,
}

/// What is spent on a day, and reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayUse {
    /// What is spent.
    pub used: Amounts,
    /// What is reserved by processes that are alive.
    pub reserved: Amounts,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    version: u32,
    /// The day in local time, such as `2026-02-03`.
    #[serde(serialize_with = "write_date", deserialize_with = "read_date")]
    day: Date,
    used: Amounts,
    open: Vec<Open>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Open {
    id: u64,
    holder: Holder,
    amounts: Amounts,
}

fn write_date<S: Serializer>(date: &Date, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(date)
}

fn read_date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Date, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

impl Content {
    fn of(day: Date) -> Self {
        Self { version: VERSION, day, used: Amounts::default(), open: Vec::new() }
    }

    /// Begins a new day, and releases what the dead had reserved. A day that is over for a process in another time zone is not
    /// begun again. A day that lies further ahead is of a clock that was wrong: what was spent counts for today.
    fn bring_up_to(&mut self, today: Date) {
        if today > self.day {
            self.used = Amounts::default();
        }
        if today > self.day || self.day.since(today).is_ok_and(|ahead| ahead.get_days() > 1) {
            self.day = today;
        }
        self.open.retain(|open| open.holder.is_alive());
    }

    fn reserved(&self) -> Amounts {
        self.open.iter().fold(Amounts::default(), |sum, open| sum.plus(open.amounts))
    }
}

impl DayFile {
    /// The sum in `folder`, which is private to the user. Nothing is read or made yet.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self { path: folder.join("budget-day.json") }
    }

    /// Reserves for a step, under these limits. Blocks.
    ///
    /// # Errors
    /// [`DayError`]; nothing is reserved then.
    pub fn reserve(&self, limits: Limits, quote: &Quote) -> Result<DayReservation, DayError> {
        self.change(today(), |content| {
            let account = Account::with_reserved(limits, content.used, content.reserved());
            let output = account.fit(quote).map_err(|refusal| DayError::Refused(refusal, content.used))?;
            let id = NEXT.fetch_add(1, Ordering::Relaxed);
            let amounts = quote.with_output(output.tokens);
            content.open.push(Open { id, holder: Holder::current(), amounts });
            Ok(DayReservation { id, output, amounts, used: content.used })
        })
    }

    /// Puts what a step took in the place of its reservation; gives what is spent today. Blocks.
    ///
    /// # Errors
    /// [`DayError`]: the reservation stays until the process ends.
    pub fn settle(&self, reservation: &DayReservation, spent: Amounts) -> Result<Amounts, DayError> {
        self.change(today(), |content| {
            let holder = Holder::current();
            content.open.retain(|open| (open.id, open.holder) != (reservation.id, holder));
            content.used = content.used.plus(spent);
            Ok(content.used)
        })
    }

    /// What is spent today. Blocks.
    ///
    /// # Errors
    /// [`DayError`].
    pub fn look(&self) -> Result<DayUse, DayError> {
        let today = today();
        let mut content = self.read(today)?;
        content.bring_up_to(today);
        Ok(DayUse { used: content.used, reserved: content.reserved() })
    }

    fn change<T>(
        &self,
        today: Date,
        change: impl FnOnce(&mut Content) -> Result<T, DayError>,
    ) -> Result<T, DayError> {
        let lock = self.lock().map_err(|error| self.io(error))?;
        let mut content = self.read(today)?;
        content.bring_up_to(today);
        let done = change(&mut content)?;
        self.write(&content)?;
        drop(lock);
        Ok(done)
    }

    /// Waits for the lock, which lasts until the file is dropped. The lock file stays: removing it would let two writers in.
    fn lock(&self) -> io::Result<File> {
        let path = self.path.with_extension("lock");
        if let Some(folder) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(MODE);
        let file = options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()).open(path)?;
        file.lock()?;
        Ok(file)
    }

    fn read(&self, today: Date) -> Result<Content, DayError> {
        let unreadable = |error: String| DayError::Unreadable { path: self.path.clone(), error };
        let rules = OpenRules::new(LinkPolicy::Refused).max_bytes(MAX_BYTES);
        let Some(text) = rules.read(&self.path).map_err(|error| unreadable(error.to_string()))? else {
            return Ok(Content::of(today));
        };
        let content: Content =
            serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string()))?;
        if content.version != VERSION {
            return Err(unreadable(format!(
                "it has the form {}, which this version does not know",
                content.version
            )));
        }
        Ok(content)
    }

    fn write(&self, content: &Content) -> Result<(), DayError> {
        let bytes = serde_json::to_vec(content).map_err(|error| self.io(error.into()))?;
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let write = || -> io::Result<()> {
            let mut new = Replacement::create(folder, ".budget-day-", ".tmp", MODE)?;
            new.file_mut().write_all(&bytes)?;
            new.commit(&self.path).map(drop)
        };
        write().map_err(|error| self.io(error))
    }

    fn io(&self, error: io::Error) -> DayError {
        DayError::Io { path: self.path.clone(), error }
    }
}

/// The calendar day where this process is: `TZ`, else the system's time zone.
fn today() -> Date {
    Timestamp::now().to_zoned(TimeZone::system()).date()
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt as _, thread};

    use agentd_protocol::budget::BudgetQuantity;

    use super::*;

    fn cost(cost: u64) -> Amounts {
        Amounts { cost, ..Amounts::default() }
    }

    fn limit(cost: u64) -> Limits {
        Limits { cost: Some(cost), ..Limits::default() }
    }

    fn open(file: &DayFile) -> Vec<Open> {
        file.read(today()).unwrap().open
    }

    #[test]
    fn a_day_is_kept_in_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = DayFile::in_folder(&folder.path().join("new"));
        assert_eq!(file.look().unwrap().used, Amounts::default());
        assert!(!folder.path().join("new").exists());
        let reserved = file.reserve(limit(100), &Quote::of(cost(80))).unwrap();
        let Err(DayError::Refused(refusal, _)) = file.reserve(limit(100), &Quote::of(cost(30))) else {
            panic!()
        };
        assert_eq!(refusal, Refusal { what: BudgetQuantity::CostUsd, is_reserved: true });
        assert_eq!(file.settle(&reserved, cost(50)).unwrap(), cost(50));
        let again = DayFile::in_folder(&folder.path().join("new"));
        assert_eq!(again.look().unwrap(), DayUse { used: cost(50), reserved: Amounts::default() });
        for name in ["budget-day.json", "budget-day.lock"] {
            let mode = folder.path().join("new").join(name).metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn what_the_dead_had_reserved_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let file = DayFile::in_folder(folder.path());
        file.reserve(limit(100), &Quote::of(cost(10))).unwrap();
        let mut content = file.read(today()).unwrap();
        content.open.push(Open { id: 1, holder: Holder::dead(), amounts: cost(90) });
        file.write(&content).unwrap();
        assert_eq!(file.look().unwrap().reserved, cost(10));
        file.reserve(limit(100), &Quote::of(cost(90))).unwrap();
        assert_eq!(open(&file).len(), 2);
    }

    #[test]
    fn a_new_day_begins_at_nothing_and_keeps_what_is_reserved() {
        let folder = tempfile::tempdir().unwrap();
        let file = DayFile::in_folder(folder.path());
        let reserved = file.reserve(limit(100), &Quote::of(cost(80))).unwrap();
        file.settle(&reserved, cost(80)).unwrap();
        let reserved = file.reserve(limit(100), &Quote::of(cost(20))).unwrap();
        let mut content = file.read(today()).unwrap();
        content.bring_up_to(content.day.yesterday().unwrap());
        assert_eq!(content.used, cost(80), "a process in another time zone");
        content.bring_up_to(Date::MAX);
        assert_eq!((content.used, content.reserved()), (Amounts::default(), reserved.amounts));
    }

    #[test]
    fn a_day_far_ahead_is_brought_back_with_what_was_spent() {
        let mut content = Content { used: cost(80), ..Content::of(Date::MAX) };
        content.bring_up_to(Date::constant(2026, 2, 3));
        assert_eq!((content.used, content.day), (cost(80), Date::constant(2026, 2, 3)));
        content.bring_up_to(Date::constant(2026, 2, 4));
        assert_eq!(content.used, Amounts::default());
    }

    #[test]
    fn what_is_no_sum_is_refused_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = DayFile::in_folder(folder.path());
        for text in [
            "",
            "{}",
            r#"{"version":1,"day":"soon","used":{},"open":[]}"#,
            r#"{"version":2,"day":"2026-01-01","used":{},"open":[]}"#,
        ] {
            std::fs::write(folder.path().join("budget-day.json"), text).unwrap();
            let error = file.reserve(limit(1), &Quote::default()).unwrap_err();
            assert!(error.to_string().contains("budget-day.json"), "{error}");
        }
    }

    /// Many sums of the same file at once, each step settled with less than was reserved or given up.
    #[test]
    fn side_by_side_no_limit_is_exceeded() {
        let folder = tempfile::tempdir().unwrap();
        let (most, threads) = (1000, 8);
        let spend = |thread: u64| {
            let file = DayFile::in_folder(folder.path());
            let mut spent = 0;
            for step in 0..60 {
                let wanted = 5 + (thread * 7 + step * 11) % 40;
                match file.reserve(limit(most), &Quote::of(cost(wanted))) {
                    Ok(reserved) => {
                        let DayUse { used, reserved: held } = file.look().unwrap();
                        assert!(used.cost + held.cost <= most);
                        let took = if step % 5 == 0 { 0 } else { wanted - step % 3 };
                        file.settle(&reserved, cost(took)).unwrap();
                        spent += took;
                    }
                    Err(DayError::Refused(..)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            spent
        };
        let spent: u64 = thread::scope(|scope| {
            let all: Vec<_> = (0..threads)
                .map(|thread| {
                    scope.spawn({
                        let spend = &spend;
                        move || spend(thread)
                    })
                })
                .collect();
            all.into_iter().map(|one| one.join().unwrap()).sum()
        });
        let day = DayFile::in_folder(folder.path()).look().unwrap();
        assert_eq!(day, DayUse { used: cost(spent), reserved: Amounts::default() });
        assert!(spent <= most && spent > most - 45, "{spent}");
    }
}
