//! Measuring what a command uses, for as long as it has limits.

use std::{
    collections::HashSet,
    fs,
    time::{Duration, Instant},
};

use rustix::{
    param::{clock_ticks_per_second, page_size},
    process::{Pid, getpid},
};

use super::procfs::{self, Stat};
use crate::limits::{Limits, Resource};

/// Pauses between two looks: short while something changes, long while a command only goes on.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));

/// Looks at the processes of a scope from time to time.
pub(super) struct Meter {
    limits: Limits,
    pause: Duration,
    next: Instant,
    last: Usage,
}

/// What the processes below a scope use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) processes: u64,
    /// 0 if there is no limit for it.
    pub(super) memory_bytes: u64,
    cpu: Duration,
}

impl Meter {
    /// `None` if there is nothing to measure.
    pub(super) fn new(limits: Limits) -> Option<Self> {
        let next = Instant::now() + PAUSES.0;
        limits.need_measuring().then(|| Self { limits, pause: PAUSES.0, next, last: Usage::default() })
    }

    /// How long until the next look.
    pub(super) fn wait(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Looks, if it is time to.
    pub(super) fn look(&mut self) -> Option<Usage> {
        let start = Instant::now();
        if start < self.next {
            return None;
        }
        let usage = self.measure();
        let steady = usage.processes <= self.last.processes
            && usage.memory_bytes <= self.last.memory_bytes + self.last.memory_bytes / 16;
        self.pause = if steady { (self.pause * 2).min(PAUSES.1) } else { PAUSES.0 };
        self.last = usage;
        // However many processes there are, looking at them takes a small part of one processor.
        self.next = Instant::now() + self.pause.max(start.elapsed() * 4);
        Some(usage)
    }

    /// The resource of which this command alone uses too much.
    pub(super) fn exceeded(&self, usage: &Usage) -> Option<Resource> {
        let over = |resource, used: u64| self.limits.of(resource).is_some_and(|limit| used > limit);
        let cpu = self.limits.of(Resource::Cpu).is_some_and(|limit| usage.cpu > Duration::from_secs(limit));
        if over(Resource::Processes, usage.processes) {
            Some(Resource::Processes)
        } else if over(Resource::Memory, usage.memory_bytes) {
            Some(Resource::Memory)
        } else {
            cpu.then_some(Resource::Cpu)
        }
    }

    fn measure(&self) -> Usage {
        let processes = self.limits.of(Resource::Processes).unwrap_or(u64::MAX);
        let with_memory = self.limits.of(Resource::Memory).is_some();
        let mut usage = Usage::default();
        let mut ticks = procfs::children_ticks();
        walk(|stat| {
            // What has ended and was not waited for has its time still.
            ticks += stat.cpu + stat.children_cpu;
            if !stat.zombie {
                usage.processes += 1;
                if with_memory {
                    usage.memory_bytes += private_bytes(stat.pid);
                }
            }
            usage.processes <= processes
        });
        let ms = ticks.saturating_mul(1000).checked_div(clock_ticks_per_second()).unwrap_or(0);
        usage.cpu = Duration::from_millis(ms);
        usage
    }
}

/// Visits everything below this process until `visit` says that it is enough.
fn walk(mut visit: impl FnMut(&Stat) -> bool) {
    let own = getpid();
    let Some(mut waiting) = procfs::children_by_thread(own) else {
        // A kernel that does not list children: the long way, by everybody's parent.
        let Ok(all) = procfs::everything() else { return };
        let own = own.as_raw_nonzero().get();
        let below = procfs::with_descendants(HashSet::from([own]), &all);
        below.iter().filter(|stat| stat.pid != own).all(visit);
        return;
    };
    // A number that was given again meanwhile could lead in a circle.
    let mut met: HashSet<i32> = waiting.iter().copied().collect();
    while let Some(pid) = waiting.pop() {
        let Some(stat) = Stat::of(pid) else { continue };
        if !visit(&stat) {
            return;
        }
        let Some(pid) = Pid::from_raw(pid) else { continue };
        match procfs::children_by_thread(pid) {
            Some(children) => waiting.extend(children.into_iter().filter(|child| met.insert(*child))),
            None => return,
        }
    }
}

/// Memory that mirrors no file.
fn private_bytes(pid: i32) -> u64 {
    // A process that has ended meanwhile has none.
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let mut fields = text.split_ascii_whitespace().skip(1).map_while(|field| field.parse::<u64>().ok());
    let (Some(resident), Some(shared)) = (fields.next(), fields.next()) else { return 0 };
    resident.saturating_sub(shared).saturating_mul(page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_counts_by_itself() {
        let limits =
            Limits { processes: Some(3), memory_bytes: Some(100), cpu_seconds: Some(2), output_bytes: None };
        let meter = Meter::new(limits).unwrap();
        let usage =
            |processes, memory_bytes, cpu| Usage { processes, memory_bytes, cpu: Duration::from_millis(cpu) };
        assert_eq!(meter.exceeded(&usage(3, 100, 2000)), None);
        assert_eq!(meter.exceeded(&usage(4, 101, 2001)), Some(Resource::Processes));
        assert_eq!(meter.exceeded(&usage(3, 101, 0)), Some(Resource::Memory));
        assert_eq!(meter.exceeded(&usage(0, 0, 2001)), Some(Resource::Cpu));
        assert!(Meter::new(Limits { output_bytes: Some(1), ..Limits::default() }).is_none());
    }

    #[test]
    fn private_memory_is_a_part_of_all_memory() {
        let bytes = private_bytes(getpid().as_raw_nonzero().get());
        assert!((10_000..10_000_000_000).contains(&bytes), "{bytes}");
        assert_eq!(private_bytes(-1), 0);
    }
}
