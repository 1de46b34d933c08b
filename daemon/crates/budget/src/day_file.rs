//! The sum of a day, in a file that all processes of an agent directory share.
//!
//! What a process had reserved that has died since is free again, but for what its steps had taken by then. The file is only made when
//! something is counted.

use std::{
    io,
    path::{Path, PathBuf},
};

use jiff::{Timestamp, civil::Date, tz::TimeZone};

use crate::{
    Account, Amounts, Holder, Limits, OutputFit, Quote, Refusal,
    records::{Records, RecordsError},
};

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
    Refused {
        /// Why.
        refusal: Refusal,
        /// What is spent today.
        used: Amounts,
        /// Other processes that have something reserved.
        others: Vec<Holder>,
    },
}

/// The sum of a day.
#[derive(Debug, Clone)]
pub struct DayFile {
    path: PathBuf,
}

/// Something that is reserved in the day's sum. Settle it: what is forgotten stays reserved until the process ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayReservation {
    /// The output that the step may have.
    pub output: OutputFit,
    /// What is reserved.
    pub amounts: Amounts,
    /// What is spent today without it.
    pub used: Amounts,
    /// What counts of it if the process is killed.
    begun: Amounts,
}

/// What is spent on a day, and reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayUse {
    /// What is spent.
    pub used: Amounts,
    /// What is reserved by processes that are alive.
    pub reserved: Amounts,
}

impl DayFile {
    /// The sum in `folder`, which is private to the user. Nothing is read or made yet.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self { path: folder.join("budget-day.jsonl") }
    }

    /// The file, which may not be there.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reserves for a step, under these limits. If the process is killed before it is settled, the step's sure part counts, without
    /// an answer or a tool call. Blocks.
    ///
    /// # Errors
    /// [`DayError`]; nothing is reserved then.
    pub fn reserve(&self, limits: Limits, quote: &Quote) -> Result<DayReservation, DayError> {
        self.change(|records| {
            let output = self.fit(records, limits, quote)?;
            let amounts = quote.with_output(output.tokens);
            let begun = Amounts { turns: 0, tool_calls: 0, ..quote.sure };
            records.change_own(|share| {
                share.reserved = share.reserved.plus(amounts);
                share.begun = share.begun.plus(begun);
            });
            Ok(DayReservation { output, amounts, used: records.sum.used, begun })
        })
    }

    /// Spends under these limits what is not reserved before; gives what is spent today. Blocks.
    ///
    /// # Errors
    /// [`DayError`]; nothing is spent then.
    pub fn spend(&self, limits: Limits, amounts: Amounts) -> Result<Amounts, DayError> {
        self.change(|records| {
            self.fit(records, limits, &Quote::of(amounts))?;
            records.sum.used = records.sum.used.plus(amounts);
            Ok(records.sum.used)
        })
    }

    /// Notes what a step has taken so far: that much counts if the process is killed. Blocks.
    ///
    /// # Errors
    /// [`DayError`].
    pub fn note(&self, reservation: &mut DayReservation, begun: Amounts) -> Result<(), DayError> {
        let before = std::mem::replace(&mut reservation.begun, begun);
        self.change(|records| {
            records.change_own(|share| share.begun = share.begun.minus(before).plus(begun));
            Ok(())
        })
    }

    /// Puts what a step took in the place of its reservation; gives what is spent today. Blocks.
    ///
    /// # Errors
    /// [`DayError`]: the reservation stays until the process ends.
    pub fn settle(&self, reservation: &DayReservation, spent: Amounts) -> Result<Amounts, DayError> {
        self.change(|records| {
            records.change_own(|share| {
                share.reserved = share.reserved.minus(reservation.amounts);
                share.begun = share.begun.minus(reservation.begun);
            });
            records.sum.used = records.sum.used.plus(spent);
            Ok(records.sum.used)
        })
    }

    /// What is spent today. Blocks.
    ///
    /// # Errors
    /// [`DayError`].
    pub fn look(&self) -> Result<DayUse, DayError> {
        let records = Records::look(&self.path, today()).map_err(|error| self.broken(error))?;
        let nothing = DayUse { used: Amounts::default(), reserved: Amounts::default() };
        Ok(records.map_or(nothing, |mut records| {
            records.release_dead();
            DayUse { used: records.sum.used, reserved: records.reserved() }
        }))
    }

    /// How much output a step may have. Others are only looked at where it would get all without what they have reserved.
    fn fit(&self, records: &mut Records, limits: Limits, quote: &Quote) -> Result<OutputFit, DayError> {
        let fit = |records: &Records| {
            Account::with_reserved(limits, records.sum.used, records.reserved()).fit(quote)
        };
        match fit(records) {
            Ok(fit) if fit.lowered_by.is_none() => return Ok(fit),
            _ => records.release_dead(),
        }
        fit(records).map_err(|refusal| DayError::Refused {
            refusal,
            used: records.sum.used,
            others: records.others(),
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut Records) -> Result<T, DayError>) -> Result<T, DayError> {
        let mut records = Records::open(&self.path, today()).map_err(|error| self.broken(error))?;
        let done = change(&mut records)?;
        records.write(&self.path).map_err(|error| self.broken(error.into()))?;
        Ok(done)
    }

    fn broken(&self, error: RecordsError) -> DayError {
        let path = self.path.clone();
        match error {
            RecordsError::Io(error) => DayError::Io { path, error },
            RecordsError::Unreadable(error) => DayError::Unreadable { path, error },
        }
    }
}

/// The calendar day where this process is: `TZ`, else the system's time zone.
fn today() -> Date {
    Timestamp::now().to_zoned(TimeZone::system()).date()
}

#[cfg(test)]
mod tests;
