//! Measures what a command uses, while it has limits.

use std::{
    collections::HashSet,
    fs,
    time::{Duration, Instant},
};

use rustix::{
    param::clock_ticks_per_second,
    process::{Pid, getpid},
    time::{ClockId, clock_gettime},
};

use super::{
    procfs::{self, Stat},
    shared::{Resident, Shared},
};
use crate::limits::{LimitedResource, ProcessLimits};

/// The shortest and the longest pause between two measurements: short while something grows, long while a command is
/// steady.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));

/// The pause before the first measurement: most commands have ended by then.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Measures the processes of a supervisor from time to time.
pub(super) struct Meter {
    limits: ProcessLimits,
    pause: Duration,
    next: Instant,
    last: Usage,
    last_tasks: u64,
}

/// What the processes below a supervisor use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) processes: u64,
    /// 0 without a memory limit.
    pub(super) memory_bytes: u64,
    cpu: Duration,
}

impl Meter {
    /// `None` when no limit needs measuring.
    pub(super) fn new(limits: ProcessLimits) -> Option<Self> {
        limits.need_measuring().then(|| Self {
            limits,
            pause: PAUSES.0,
            next: Instant::now() + FIRST_PAUSE,
            last: Usage::default(),
            last_tasks: 0,
        })
    }

    /// The time until the next measurement.
    pub(super) fn wait(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Measures, if it is time.
    pub(super) fn look(&mut self) -> Option<Usage> {
        if Instant::now() < self.next {
            return None;
        }
        let start = cpu_time();
        let tasks = tasks_of_system();
        // If the whole system has few tasks, this single read suffices.
        let few = |limit| tasks.is_some_and(|tasks| tasks <= limit);
        let so_few = self.counts_only() && self.limits.of(LimitedResource::Processes).is_some_and(few);
        let usage = if so_few { Usage::default() } else { self.measure() };
        let tasks = tasks.unwrap_or(0);
        let steady = usage.processes <= self.last.processes
            && usage.memory_bytes <= self.last.memory_bytes + self.last.memory_bytes / 16
            && tasks <= self.last_tasks + self.last_tasks / 16;
        self.pause = if steady { (self.pause * 2).min(PAUSES.1) } else { PAUSES.0 };
        (self.last, self.last_tasks) = (usage, tasks);
        // Measuring takes a small part of one processor, however many processes there are.
        self.next = Instant::now() + self.pause.max(cpu_time().saturating_sub(start) * 4);
        Some(usage)
    }

    /// Whether only the number of processes is limited.
    fn counts_only(&self) -> bool {
        [LimitedResource::Memory, LimitedResource::Cpu]
            .into_iter()
            .all(|resource| self.limits.of(resource).is_none())
    }

    /// The limit that this command alone exceeds.
    pub(super) fn exceeded(&self, usage: &Usage) -> Option<LimitedResource> {
        let over = |resource, used: u64| self.limits.of(resource).is_some_and(|limit| used > limit);
        let cpu =
            self.limits.of(LimitedResource::Cpu).is_some_and(|limit| usage.cpu > Duration::from_secs(limit));
        if over(LimitedResource::Processes, usage.processes) {
            Some(LimitedResource::Processes)
        } else if over(LimitedResource::Memory, usage.memory_bytes) {
            Some(LimitedResource::Memory)
        } else {
            cpu.then_some(LimitedResource::Cpu)
        }
    }

    fn measure(&self) -> Usage {
        let processes = self.limits.of(LimitedResource::Processes).unwrap_or(u64::MAX);
        let with_memory = self.limits.of(LimitedResource::Memory).is_some();
        let mut usage = Usage::default();
        let mut ticks = procfs::children_ticks();
        let mut shared = Shared::default();
        walk(|stat| {
            // An ended process that was not waited for still has its time.
            ticks += stat.cpu + stat.children_cpu;
            if !stat.zombie {
                usage.processes += 1;
                if with_memory {
                    let resident = Resident::of(stat.pid);
                    usage.memory_bytes += resident.private;
                    shared.add(stat.pid, resident.shared);
                }
            }
            usage.processes <= processes
        });
        usage.memory_bytes = usage.memory_bytes.saturating_add(shared.bytes());
        let ms = ticks.saturating_mul(1000).checked_div(clock_ticks_per_second()).unwrap_or(0);
        usage.cpu = Duration::from_millis(ms);
        usage
    }
}

/// Visits everything below this process until `visit` returns false.
fn walk(mut visit: impl FnMut(&Stat) -> bool) {
    let own = getpid();
    let Some(mut waiting) = procfs::children_by_thread(own) else {
        // The kernel does not list children: go by the parents of all processes.
        let Ok(all) = procfs::everything() else { return };
        let own = own.as_raw_nonzero().get();
        let below = procfs::with_descendants(HashSet::from([own]), &all);
        below.iter().filter(|stat| stat.pid != own).all(visit);
        return;
    };
    // A reused process id could lead in a circle.
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

/// The number of processes and threads of the whole system, which is at least a command's number of processes.
fn tasks_of_system() -> Option<u64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_ascii_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// The processor time of this process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_counts_by_itself() {
        let limits = ProcessLimits {
            processes: Some(3),
            memory_bytes: Some(100),
            cpu_seconds: Some(2),
            output_bytes: None,
        };
        let meter = Meter::new(limits).unwrap();
        let usage =
            |processes, memory_bytes, cpu| Usage { processes, memory_bytes, cpu: Duration::from_millis(cpu) };
        assert_eq!(meter.exceeded(&usage(3, 100, 2000)), None);
        assert_eq!(meter.exceeded(&usage(4, 101, 2001)), Some(LimitedResource::Processes));
        assert_eq!(meter.exceeded(&usage(3, 101, 0)), Some(LimitedResource::Memory));
        assert_eq!(meter.exceeded(&usage(0, 0, 2001)), Some(LimitedResource::Cpu));
        assert!(Meter::new(ProcessLimits { output_bytes: Some(1), ..ProcessLimits::default() }).is_none());
    }

    #[test]
    fn the_system_has_tasks() {
        let own = procfs::everything().unwrap().len() as u64;
        assert!(tasks_of_system().unwrap() >= own.min(3));
    }
}
