//! Snapshots of the process table, for lists of processes.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, Read as _},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use agentd_protocol::text_bounds;
use rustix::{
    param::{clock_ticks_per_second, page_size},
    time::{ClockId, clock_gettime},
};

use super::procfs::{self, Stat};

/// The longest command line that is reported, in bytes.
const MAX_COMMAND_BYTES: usize = 4096;

/// Every process that this one may see, by its parent.
#[derive(Debug)]
pub(crate) struct Table {
    by_parent: HashMap<i32, Vec<Stat>>,
}

/// Facts about a running process.
#[derive(Debug)]
pub(crate) struct ProcessFacts {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    /// For sorting: finer than `started_ms`.
    pub(crate) started_ticks: u64,
    pub(crate) started_ms: Option<i64>,
    pub(crate) command: String,
    pub(crate) cpu_time: Option<Duration>,
    pub(crate) memory_bytes: Option<u64>,
}

impl Table {
    /// Takes the snapshot. Blocks.
    pub(crate) fn read() -> io::Result<Self> {
        Ok(procfs::everything()?.into_iter().collect())
    }

    /// Everything running below a process. Blocks: reads the command lines.
    pub(crate) fn below(&self, root: i32) -> Vec<ProcessFacts> {
        self.descendants(root).into_iter().filter(|stat| !stat.zombie).filter_map(facts).collect()
    }

    /// Children, their children, and so on, ended ones included.
    fn descendants(&self, root: i32) -> Vec<Stat> {
        let (mut found, mut next) = (Vec::new(), Vec::from([root]));
        // Reading took a while: process ids that were reused meanwhile can form a circle.
        let mut met = HashSet::from([root]);
        while let Some(parent) = next.pop() {
            for child in self.by_parent.get(&parent).into_iter().flatten() {
                if met.insert(child.pid) {
                    found.push(*child);
                    next.push(child.pid);
                }
            }
        }
        found
    }
}

impl FromIterator<Stat> for Table {
    fn from_iter<I: IntoIterator<Item = Stat>>(all: I) -> Self {
        let mut by_parent: HashMap<i32, Vec<Stat>> = HashMap::new();
        for stat in all {
            by_parent.entry(stat.parent).or_default().push(stat);
        }
        Self { by_parent }
    }
}

/// Completes the facts; `None` when the process has ended since.
fn facts(stat: Stat) -> Option<ProcessFacts> {
    let command = command_line(stat.pid)?;
    // The command line is the process's own only if the process still runs.
    Stat::of(stat.pid).filter(|now| now.started == stat.started && !now.zombie)?;
    let ticks = clock_ticks_per_second();
    let ms = |count: u64| count.saturating_mul(1000).checked_div(ticks);
    Some(ProcessFacts {
        pid: u32::try_from(stat.pid).ok()?,
        parent: u32::try_from(stat.parent).ok()?,
        started_ticks: stat.started,
        started_ms: ms(stat.started).and_then(since_boot),
        command,
        cpu_time: ms(stat.cpu).map(Duration::from_millis),
        memory_bytes: Some(stat.resident.saturating_mul(page_size() as u64)),
    })
}

/// The Unix time in milliseconds of a moment that many milliseconds after boot.
fn since_boot(ms: u64) -> Option<i64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let uptime = clock_gettime(ClockId::Boottime);
    let uptime = Duration::new(u64::try_from(uptime.tv_sec).ok()?, u32::try_from(uptime.tv_nsec).ok()?);
    let started = now.checked_sub(uptime)?.checked_add(Duration::from_millis(ms))?;
    i64::try_from(started.as_millis()).ok()
}

/// The arguments, joined by spaces; the name in brackets when there are none. `None` when the process is gone.
fn command_line(pid: i32) -> Option<String> {
    let mut bytes = Vec::new();
    // One byte more than the limit, to see a character that the limit cuts.
    let arguments = File::open(format!("/proc/{pid}/cmdline")).ok()?;
    arguments.take(MAX_COMMAND_BYTES as u64 + 1).read_to_end(&mut bytes).ok()?;
    if bytes.iter().all(|byte| *byte == 0) {
        let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
        return Some(format!("[{}]", String::from_utf8_lossy(&name).trim_end_matches('\n')));
    }
    Some(joined(&bytes))
}

/// Joins arguments as they are in memory, each ended by a NUL, into one line of bounded length.
fn joined(bytes: &[u8]) -> String {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let spaced: Vec<u8> = bytes[..end].iter().map(|byte| if *byte == 0 { b' ' } else { *byte }).collect();
    let mut text = String::from_utf8_lossy(&spaced).into_owned();
    // A character may cross the limit; its first bytes alone are not text.
    text.truncate(text_bounds::floor(&text, MAX_COMMAND_BYTES));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: i32, parent: i32, started: u64) -> Stat {
        let line = format!("{pid} (x) S {parent} 0 0 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 {started} 99 8");
        line.parse().unwrap()
    }

    #[test]
    fn everything_below_a_process_is_found_whatever_the_order() {
        let table: Table =
            [stat(9, 7, 3), stat(7, 5, 2), stat(5, 1, 1), stat(6, 1, 1), stat(8, 6, 2)].into_iter().collect();
        let below = |root| {
            let mut pids: Vec<i32> = table.descendants(root).iter().map(|stat| stat.pid).collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!((below(5), below(1), below(9)), (vec![7, 9], vec![5, 6, 7, 8, 9], vec![]));
    }

    #[test]
    fn a_torn_look_at_the_system_has_an_end() {
        let table: Table = [stat(7, 5, 2), stat(5, 7, 1), stat(8, 8, 1)].into_iter().collect();
        assert_eq!((table.descendants(5).len(), table.descendants(8).len()), (1, 0));
        assert_eq!(table.descendants(1).len(), 0);
    }

    #[test]
    fn command_lines_are_one_bounded_line() {
        assert_eq!(joined(b"sh\0-c\0echo a b\0"), "sh -c echo a b");
        assert_eq!(joined(b"title without end"), "title without end");
        assert_eq!(joined(b"odd\xff\0\0x\0\0"), "odd\u{fffd}  x");
        let cut = joined("\u{fc}".repeat(3000).as_bytes());
        assert_eq!((cut.len(), cut.chars().all(|c| c == '\u{fc}')), (MAX_COMMAND_BYTES, true));
        let odd = joined(format!("x{}", "\u{fc}".repeat(3000)).as_bytes());
        assert_eq!(odd.len(), MAX_COMMAND_BYTES - 1);
    }

    #[test]
    fn this_process_has_facts() {
        let own = procfs::own().unwrap();
        let facts = facts(own).unwrap();
        assert_eq!(Some(facts.pid), Some(std::process::id()));
        let name = std::env::args().next().unwrap();
        assert!(facts.command.starts_with(&name), "{} {name}", facts.command);
        assert!(facts.memory_bytes.unwrap() > 100_000, "{facts:?}");
        let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
        let age = now - facts.started_ms.unwrap();
        assert!((-1000..3_600_000).contains(&age), "started {age} ms ago");
    }
}
