//! Measures what a command uses, while it has limits.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io::{BufRead as _, BufReader, Read as _},
    os::unix::fs::MetadataExt as _,
    time::{Duration, Instant},
};

use rustix::{
    param::clock_ticks_per_second,
    process::{Pid, getpid},
    time::{ClockId, clock_gettime},
};

use super::procfs::{self, Stat};
use crate::limits::{LimitedResource, ProcessLimits};

/// The shortest and the longest pause between two measurements: short while something grows, long while a command is
/// steady.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));

/// The pause before the first measurement: most commands have ended by then.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Measures the processes of a supervisor from time to time.
pub(super) struct UsageMeter {
    limits: ProcessLimits,
    pause: Duration,
    next: Instant,
    last: Usage,
    last_tasks: u64,
    /// The processor time in clock ticks of earlier commands of the same supervisor.
    earlier_ticks: u64,
}

/// What the processes below a supervisor use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) processes: u64,
    /// 0 without a memory limit.
    pub(super) memory_bytes: u64,
    cpu: Duration,
}

impl UsageMeter {
    /// `None` when no limit needs measuring.
    pub(super) fn new(limits: ProcessLimits) -> Option<Self> {
        limits.need_measuring().then(|| Self {
            limits,
            pause: PAUSES.0,
            next: Instant::now() + FIRST_PAUSE,
            last: Usage::default(),
            last_tasks: 0,
            earlier_ticks: limits.of(LimitedResource::Cpu).map_or(0, |_| procfs::children_ticks()),
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
        let mut ticks = procfs::children_ticks().saturating_sub(self.earlier_ticks);
        let mut shared = SharedMemory::default();
        walk(|stat| {
            // An ended process that was not waited for still has its time.
            ticks += stat.cpu + stat.children_cpu;
            if !stat.zombie {
                usage.processes += 1;
                if with_memory {
                    let resident = ResidentMemory::of(stat.pid);
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

/// From this size on, shared mappings are told apart; smaller ones count once for each process.
const WORTH_A_LOOK: u64 = 4 << 20;

/// The most descriptors that one measurement examines, of all processes of a command together.
const MOST_DESCRIPTORS: usize = 16 * 1024;

/// The most bytes read about the mappings of one process. All that a process with more shares counts as its own.
const MOST_MAPPINGS: u64 = 8 << 20;

/// The names of memory-only files in lists of mappings.
const NAMES: [&str; 4] = ["/memfd:", "/dev/zero", "/SYSV", "/dev/shm/"];

/// The result of one measurement.
#[derive(Debug, Default)]
pub(super) struct SharedMemory {
    /// Bytes of held or mapped objects, by inode.
    objects: HashMap<u64, u64>,
    /// Processes that map shared memory, and how many bytes.
    mapping: Vec<(i32, u64)>,
    descriptors: usize,
}

/// Resident memory of a process, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ResidentMemory {
    /// Anonymous memory that no other process shares.
    pub(super) private: u64,
    /// Memory that it shares with others, or could share.
    pub(super) shared: u64,
}

impl ResidentMemory {
    /// Zero for a process that has ended or is not readable.
    pub(super) fn of(pid: i32) -> Self {
        Self::read(&fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default())
    }

    fn read(status: &str) -> Self {
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            kibibytes(line).unwrap_or(0)
        };
        Self { private: bytes("RssAnon:"), shared: bytes("RssShmem:") }
    }
}

impl SharedMemory {
    /// Adds what a process holds and maps.
    pub(super) fn add(&mut self, pid: i32, mapped: u64) {
        if mapped > 0 {
            self.mapping.push((pid, mapped));
        }
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
            self.descriptors += 1;
            if self.descriptors > MOST_DESCRIPTORS {
                return;
            }
            let path = entry.path();
            if fs::read_link(&path)
                .is_ok_and(|link| link.as_os_str().as_encoded_bytes().starts_with(b"/memfd:"))
                && let Ok(file) = fs::metadata(&path)
            {
                self.object(file.ino(), file.blocks().saturating_mul(512));
            }
        }
    }

    fn object(&mut self, inode: u64, bytes: u64) {
        let known = self.objects.entry(inode).or_default();
        *known = bytes.max(*known);
    }

    /// The total in bytes.
    pub(super) fn bytes(mut self) -> u64 {
        let mapping = std::mem::take(&mut self.mapping);
        let at_most: u64 = mapping.iter().map(|(_, bytes)| bytes).sum();
        let mut rest = 0;
        for (pid, mapped) in mapping {
            if at_most < WORTH_A_LOOK || self.map(pid).is_none() {
                rest += mapped;
            }
        }
        self.objects.values().sum::<u64>().saturating_add(rest)
    }

    /// Adds the mappings of a process; `None` when they are not readable, or too many.
    fn map(&mut self, pid: i32) -> Option<()> {
        let file = File::open(format!("/proc/{pid}/smaps")).ok()?;
        let mut lines = BufReader::new(file.take(MOST_MAPPINGS));
        let mut found: HashMap<u64, u64> = HashMap::new();
        let (mut line, mut read, mut inode) = (String::new(), 0, None);
        loop {
            line.clear();
            match lines.read_line(&mut line) {
                Ok(0) => break,
                Ok(count) => read += count as u64,
                Err(_) => return None,
            }
            if let Some(rest) = line.strip_prefix("Rss:") {
                if let (Some(inode), Some(bytes)) = (inode, kibibytes(rest)) {
                    *found.entry(inode).or_default() += bytes;
                }
            } else if !line.split(' ').next().is_some_and(|word| word.ends_with(':')) {
                inode = inode_of(&line);
            }
        }
        if read >= MOST_MAPPINGS {
            return None;
        }
        found.into_iter().for_each(|(inode, bytes)| self.object(inode, bytes));
        Some(())
    }
}

/// The inode of a memory-only mapping: `7f0-7f1 rw-s 00000000 00:01 1026  /memfd:x (deleted)`.
fn inode_of(line: &str) -> Option<u64> {
    let mut fields = line.split_ascii_whitespace().skip(4);
    let (inode, name) = (fields.next()?, fields.next()?);
    NAMES.iter().any(|known| name.starts_with(known)).then(|| inode.parse().ok()).flatten()
}

/// Parses `   12 kB`, as bytes.
fn kibibytes(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
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
        let meter = UsageMeter::new(limits).unwrap();
        let usage =
            |processes, memory_bytes, cpu| Usage { processes, memory_bytes, cpu: Duration::from_millis(cpu) };
        assert_eq!(meter.exceeded(&usage(3, 100, 2000)), None);
        assert_eq!(meter.exceeded(&usage(4, 101, 2001)), Some(LimitedResource::Processes));
        assert_eq!(meter.exceeded(&usage(3, 101, 0)), Some(LimitedResource::Memory));
        assert_eq!(meter.exceeded(&usage(0, 0, 2001)), Some(LimitedResource::Cpu));
        assert!(
            UsageMeter::new(ProcessLimits { output_bytes: Some(1), ..ProcessLimits::default() }).is_none()
        );
    }

    #[test]
    fn the_system_has_tasks() {
        let own = procfs::everything().unwrap().len() as u64;
        assert!(tasks_of_system().unwrap() >= own.min(3));
    }
}

#[cfg(test)]
mod shared_tests {
    use std::io::Write as _;

    use rustix::{
        fs::{MemfdFlags, memfd_create},
        process::getpid,
    };

    use crate::linux::meter::*;

    #[test]
    fn private_memory_is_told_from_shared() {
        let status = "Name:\tx\nVmRSS:\t 900 kB\nRssAnon:\t     100 kB\nRssFile:\t     600 kB\nRssShmem:\t     200 kB\n";
        assert_eq!(ResidentMemory::read(status), ResidentMemory { private: 100 << 10, shared: 200 << 10 });
        let own = ResidentMemory::of(getpid().as_raw_nonzero().get());
        assert!((10_000..10_000_000_000).contains(&own.private), "{own:?}");
        assert_eq!(ResidentMemory::of(-1), ResidentMemory::default());
    }

    #[test]
    fn mappings_in_memory_are_known_by_their_names() {
        assert_eq!(inode_of("7f00-7f01 rw-s 00000000 00:01 1026    /memfd:x y (deleted)\n"), Some(1026));
        assert_eq!(inode_of("7f00-7f01 rw-s 00000000 00:01 7    /dev/zero (deleted)\n"), Some(7));
        assert_eq!(inode_of("7f00-7f01 r-xp 00000000 08:01 99    /usr/bin/bash\n"), None);
        assert_eq!(inode_of("7f00-7f01 rw-p 00000000 00:00 0 \n"), None);
    }

    #[test]
    fn what_is_held_counts_once() {
        let bytes = 3 << 20;
        let file = File::from(memfd_create("held", MemfdFlags::CLOEXEC).unwrap());
        (&file).write_all(&vec![0; bytes]).unwrap();
        let _again = file.try_clone().unwrap();
        let own = getpid().as_raw_nonzero().get();
        let mut shared = SharedMemory::default();
        shared.add(own, 0);
        shared.add(own, 0);
        let inode = file.metadata().unwrap().ino();
        assert_eq!(shared.objects[&inode], bytes as u64);
    }
}
