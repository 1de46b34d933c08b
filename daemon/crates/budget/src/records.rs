//! The file of a day's sum: lines of one length, each changed in place under a lock on the file.
//!
//! The first line holds the day and what is spent, each other one what one process has reserved. No line crosses a page of the
//! kernel's cache, and all lines that a change touches are written by one call, the sum before the reservations: a process that is killed
//! leaves the change or none of it, or, in files of more than a page, at worst a step counted twice. Nothing is forced to the disk
//! but a new file: what was written survives every end of a process, and a loss of power can take the last seconds.

use std::{
    fs::{DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _},
    path::Path,
};

use agentd_safe_open::{LinkPolicy, OpenError, OpenProblem, OpenRules};
use jiff::civil::Date;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Amounts, holder::Holder};

/// The form of the file.
const VERSION: u32 = 2;

/// The length of a line, its end included. Lines of this length do not cross pages, and hold the longest numbers.
const LINE: usize = 512;

/// A larger file is not ours.
const MAX_BYTES: u64 = 4 << 20;

/// The first line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sum {
    version: u32,
    /// The day in local time, such as `2026-02-03`.
    #[serde(serialize_with = "write_date", deserialize_with = "read_date")]
    pub(crate) day: Date,
    /// What is spent.
    pub(crate) used: Amounts,
}

/// What a process has reserved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Share {
    pub(crate) holder: Holder,
    /// What its steps may take at most.
    pub(crate) reserved: Amounts,
    /// What they have taken by what it knows.
    pub(crate) begun: Amounts,
}

fn write_date<S: Serializer>(date: &Date, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(date)
}

fn read_date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Date, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

impl Sum {
    /// Nothing is spent.
    pub(crate) fn of(day: Date) -> Self {
        Self { version: VERSION, day, used: Amounts::default() }
    }

    /// Begins a new day. A day that is over for a process in another time zone is not begun again. A day that lies further ahead is
    /// of a clock that was wrong: what was spent counts for today.
    pub(crate) fn bring_up_to(&mut self, today: Date) {
        if today > self.day {
            self.used = Amounts::default();
        }
        if today > self.day || self.day.since(today).is_ok_and(|ahead| ahead.get_days() > 1) {
            self.day = today;
        }
    }
}

/// Why the file is of no use.
#[derive(Debug)]
pub(crate) enum RecordsError {
    /// The system's error.
    Io(io::Error),
    /// Something else is in it.
    Unreadable(String),
}

impl From<io::Error> for RecordsError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The content of the file. The lock lasts as long as it.
#[derive(Debug)]
pub(crate) struct Records {
    file: File,
    pub(crate) sum: Sum,
    /// `None` for a line that is free.
    pub(crate) shares: Vec<Option<Share>>,
    /// What is in the file: only what differs is written.
    stored: Option<Sum>,
    stored_shares: Vec<Option<Share>>,
}

impl Records {
    /// Waits for the lock, and reads; `None` where there is no file.
    pub(crate) fn look(path: &Path, today: Date) -> Result<Option<Self>, RecordsError> {
        match rules().open(path) {
            Ok(file) => {
                file.lock_shared()?;
                Self::read(file, today).map(Some)
            }
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(unreadable(error)),
        }
    }

    /// Waits for the lock, and reads. Makes the file and its folder where there are none.
    pub(crate) fn open(path: &Path, today: Date) -> Result<Self, RecordsError> {
        loop {
            let file = match rules().open_or_create(path) {
                Ok(file) => file,
                Err(error) if error.is_missing() => {
                    let folder = path.parent().unwrap_or(Path::new("."));
                    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
                    rules().open_or_create(path).map_err(unreadable)?
                }
                Err(error) => return Err(unreadable(error)),
            };
            file.lock()?;
            // Someone may have removed it since it was opened.
            if file.metadata()?.nlink() > 0 {
                return Self::read(file, today);
            }
        }
    }

    fn read(file: File, today: Date) -> Result<Self, RecordsError> {
        let length = file.metadata()?.len();
        let mut bytes = vec![0; usize::try_from(length.min(MAX_BYTES)).unwrap_or_default()];
        file.read_exact_at(&mut bytes, 0)?;
        let mut lines = bytes.chunks(LINE);
        let stored = lines.next().map(parse::<Sum>).transpose()?.flatten();
        // A process that made the file may have been killed before it wrote.
        if stored.is_none() && !bytes.is_empty() {
            return Err(RecordsError::Unreadable("it does not begin with a sum".to_owned()));
        }
        if let Some(Sum { version, .. }) = stored.as_ref().filter(|sum| sum.version != VERSION) {
            let text = format!("it has the form {version}, which this version does not know");
            return Err(RecordsError::Unreadable(text));
        }
        let shares = lines.map(parse::<Share>).collect::<Result<Vec<_>, _>>()?;
        let mut sum = stored.clone().unwrap_or_else(|| Sum::of(today));
        sum.bring_up_to(today);
        Ok(Self { file, sum, stored_shares: shares.clone(), shares, stored })
    }

    /// What is reserved by all.
    pub(crate) fn reserved(&self) -> Amounts {
        self.shares.iter().flatten().fold(Amounts::default(), |sum, share| sum.plus(share.reserved))
    }

    /// The other processes that have something reserved.
    pub(crate) fn others(&self) -> Vec<Holder> {
        let holders = self.shares.iter().flatten().map(|share| share.holder);
        holders.filter(|holder| *holder != Holder::current()).collect()
    }

    /// Counts what the dead had begun, and frees the rest of what they had reserved.
    pub(crate) fn release_dead(&mut self) {
        for line in &mut self.shares {
            if let Some(share) = line.take_if(|share| !share.holder.is_alive()) {
                self.sum.used = self.sum.used.plus(share.begun);
            }
        }
    }

    /// Changes the share of this process.
    pub(crate) fn change_own(&mut self, change: impl FnOnce(&mut Share)) {
        let holder = Holder::current();
        let own = |line: &Option<Share>| line.is_some_and(|share| share.holder == holder);
        let place = self.shares.iter().position(own);
        let place = place.or_else(|| self.shares.iter().position(Option::is_none)).unwrap_or_else(|| {
            self.release_dead();
            self.shares.iter().position(Option::is_none).unwrap_or_else(|| {
                self.shares.push(None);
                self.shares.len() - 1
            })
        });
        let line = &mut self.shares[place];
        let nothing = Share { holder, reserved: Amounts::default(), begun: Amounts::default() };
        let mut share = line.unwrap_or(nothing);
        change(&mut share);
        *line = Some(share).filter(|share| *share != nothing);
    }

    /// Writes what was changed.
    pub(crate) fn write(self, path: &Path) -> io::Result<()> {
        let is_new = self.stored.is_none();
        let is_changed = |line: &usize| match line.checked_sub(1) {
            None => self.stored.as_ref() != Some(&self.sum),
            Some(at) => self.stored_shares.get(at) != Some(&self.shares[at]),
        };
        let mut changed = (0..=self.shares.len()).filter(is_changed);
        let Some(first) = changed.next() else { return Ok(()) };
        let last = changed.next_back().unwrap_or(first);
        let mut bytes = Vec::with_capacity((last + 1 - first) * LINE);
        for line in first..=last {
            let begin = bytes.len();
            match line.checked_sub(1) {
                None => serde_json::to_writer(&mut bytes, &self.sum)?,
                Some(at) => {
                    if let Some(share) = &self.shares[at] {
                        serde_json::to_writer(&mut bytes, share)?;
                    }
                }
            }
            bytes.resize(begin + LINE - 1, b' ');
            bytes.push(b'\n');
        }
        self.file.write_all_at(&bytes, (first * LINE) as u64)?;
        if is_new {
            self.file.sync_all()?;
            File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()?;
        }
        Ok(())
    }
}

fn rules() -> OpenRules<'static> {
    OpenRules::new(LinkPolicy::Refused).max_bytes(MAX_BYTES)
}

fn unreadable(error: OpenError) -> RecordsError {
    match error.into_problem() {
        OpenProblem::System(error) => RecordsError::Io(error),
        problem => RecordsError::Unreadable(problem.to_string()),
    }
}

/// A line; `None` where nothing is in it. A loss of power may leave zeros.
fn parse<'de, T: Deserialize<'de>>(line: &'de [u8]) -> Result<Option<T>, RecordsError> {
    if line.iter().all(|byte| matches!(byte, b' ' | b'\n' | 0)) {
        return Ok(None);
    }
    serde_json::from_slice(line).map(Some).map_err(|error| RecordsError::Unreadable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_numbers_fit_into_a_line() {
        let most = Amounts {
            cost: u64::MAX,
            tokens: u64::MAX,
            turns: u64::MAX,
            tool_calls: u64::MAX,
            millis: u64::MAX,
        };
        let holder: Holder =
            serde_json::from_str(r#"{"pid":-2147483648,"start":18446744073709551615}"#).unwrap();
        let share = serde_json::to_string(&Share { holder, reserved: most, begun: most }).unwrap();
        let sum = serde_json::to_string(&Sum { used: most, ..Sum::of(Date::MIN) }).unwrap();
        assert!(share.len() < LINE && sum.len() < LINE && 4096 % LINE == 0, "{} {}", share.len(), sum.len());
    }

    #[test]
    fn a_day_far_ahead_is_brought_back_with_what_was_spent() {
        let used = Amounts { cost: 80, ..Amounts::default() };
        let mut sum = Sum { used, ..Sum::of(Date::MAX) };
        sum.bring_up_to(Date::constant(2026, 2, 3));
        assert_eq!((sum.used, sum.day), (used, Date::constant(2026, 2, 3)));
        sum.bring_up_to(Date::constant(2026, 2, 2));
        assert_eq!((sum.used, sum.day), (used, Date::constant(2026, 2, 3)), "a process in another time zone");
        sum.bring_up_to(Date::constant(2026, 2, 4));
        assert_eq!(sum.used, Amounts::default());
    }
}
