//! What a process uses, as the system counts it.

use std::{fs, time::Duration};

/// What a process uses at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Memory that it has in RAM, shared pages included, in bytes.
    pub resident: u64,
    /// The most that `resident` ever was, in bytes.
    pub peak: u64,
    /// Memory that it has in RAM, with each shared page divided by those who share it, in bytes.
    pub proportional: u64,
    /// Memory that it alone has in RAM, in bytes: what its end would free.
    pub private: u64,
    /// Time on a processor so far, in the program and in the system for it, of all threads.
    pub cpu: Duration,
}

/// What the process with that id uses. It must be alive, and ours to look at.
#[must_use]
pub fn of(id: u32) -> Usage {
    let read = |name: &str| {
        let path = format!("/proc/{id}/{name}");
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let (status, rollup) = (read("status"), read("smaps_rollup"));
    Usage {
        resident: kib(&status, "VmRSS:"),
        peak: kib(&status, "VmHWM:"),
        proportional: kib(&rollup, "Pss:"),
        private: kib(&rollup, "Private_Clean:") + kib(&rollup, "Private_Dirty:"),
        cpu: cpu(&read("stat")),
    }
}

/// The field of that name, which the system gives in KiB, in bytes.
fn kib(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or_else(|| panic!("no {name} in {text}")) << 10
}

/// The times of program and system in `stat`, which count in ticks.
fn cpu(stat: &str) -> Duration {
    // The name stands in brackets and may hold anything. The third field follows it; the 14th and 15th are meant.
    let fields = stat.rsplit_once(") ").expect("a name in brackets").1;
    let ticks: u64 =
        fields.split(' ').skip(11).take(2).map(|field| field.parse::<u64>().expect("a time")).sum();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_taken_shows() {
        let before = of(std::process::id());
        assert!(
            before.private <= before.proportional && before.proportional <= before.resident,
            "{before:?}"
        );
        // Each page has to be written to, or the system gives none.
        let taken = std::hint::black_box(vec![1_u8; 64 << 20]);
        let after = of(std::process::id());
        drop(taken);
        assert!(after.private >= before.private + (60 << 20), "{before:?} {after:?}");
        let freed = of(std::process::id());
        assert!(freed.resident < after.resident, "{after:?} {freed:?}");
        // The system counts the peak a little late.
        assert!(freed.peak + (1 << 20) >= after.resident, "{after:?} {freed:?}");
    }

    #[test]
    fn processor_time_is_read_past_a_strange_name() {
        let stat = "7 (a) b) R 1 2 3 4 5 6 7 8 9 10 200 100 0 0";
        let ticks = rustix::param::clock_ticks_per_second();
        assert_eq!(cpu(stat), Duration::from_millis(300 * 1000 / ticks));
    }
}
