//! `agentctl ps`: the processes of sessions, as a tree for each session.

use std::{collections::HashSet, time::Duration};

use agentd_protocol::{
    command::WorkKind,
    daemon::{ListProcessesParams, ListSessionsParams, ProcessInfo, Role, SessionInfo},
};
use jiff::Timestamp;

use super::{
    daemon_call,
    find_session::{self, SessionScope},
};
use crate::{
    cli::PsOptions,
    exit::{Exit, Fault, conclude, print_stderr},
    output,
    render::{Screen, age, cut, one_line, session_title, short_id},
    rpc::{ListProcesses, ListSessions},
};

pub(crate) fn run(options: &PsOptions) -> Exit {
    conclude(daemon_call::block_on(show(options)))
}

async fn show(options: &PsOptions) -> Result<Exit, Fault> {
    let connection = daemon_call::require(Role::Observe).await?;
    let client = &connection.client;
    let session_id = match &options.id {
        Some(id) => Some(find_session::on(client, id, SessionScope::Live).await?.id),
        None => None,
    };
    let list = client.call::<ListProcesses>(&ListProcessesParams { session_id }).await?;
    if options.json {
        return output::print_json(&list);
    }
    if list.processes.is_empty() {
        print_stderr("No process is at work.");
        return Ok(Exit::Answered);
    }
    let params = ListSessionsParams { live: Some(true), limit: Some(1_000), ..ListSessionsParams::default() };
    let sessions: Vec<SessionInfo> = client.call::<ListSessions>(&params).await?.sessions;
    output::print(&trees(&list.processes, &sessions, Timestamp::now(), Screen::of_stdout()))
}

const HEAD: [&str; 5] = ["PID", "KIND", "CPU", "MEMORY", "AGE"];

/// The column of the process's kind, the only one that is aligned to the left.
const KIND: usize = 1;

/// The least width of a command.
const MIN_COMMAND: usize = 16;

/// The deepest level that is still indented.
const DEEPEST: usize = 12;

/// A line of the table.
struct ProcessRow {
    cells: [String; 5],
    /// The lines of the tree before the command.
    branch: String,
    command: String,
}

/// A paragraph for each session: its title, a head, and a line for each process. Only commands are cut to the width.
fn trees(processes: &[ProcessInfo], sessions: &[SessionInfo], now: Timestamp, screen: Screen) -> String {
    let mut ids: Vec<&str> = Vec::new();
    for process in processes {
        if !ids.contains(&process.session_id.as_str()) {
            ids.push(&process.session_id);
        }
    }
    let paragraphs: Vec<String> = ids
        .into_iter()
        .map(|id| {
            let own: Vec<&ProcessInfo> =
                processes.iter().filter(|process| process.session_id == id).collect();
            let session = sessions.iter().find(|session| session.id == id);
            let title = format!("{}  {}", short_id(id), session.map(session_title).unwrap_or_default());
            let title = screen.width.map_or_else(|| title.clone(), |width| cut(&title, width));
            format!("{}\n{}", screen.paint("1", title.trim_end()), table(&rows(&own, now), screen))
        })
        .collect();
    paragraphs.join("\n")
}

fn table(rows: &[ProcessRow], screen: Screen) -> String {
    let widths: [usize; 5] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row.cells[column].chars().count());
        cells.chain([HEAD[column].len()]).max().unwrap_or(0)
    });
    let line = |cells: &[String; 5], rest: &str| {
        let cells: Vec<String> = (0..5)
            .map(|column| match column {
                KIND => format!("{:<width$}", cells[column], width = widths[column]),
                _ => format!("{:>width$}", cells[column], width = widths[column]),
            })
            .collect();
        format!("  {}  {rest}\n", cells.join("  "))
    };
    // Two spaces before each column.
    let used = widths.iter().sum::<usize>() + 2 * (widths.len() + 1);
    let head = line(&HEAD.map(str::to_owned), "COMMAND");
    let mut text = screen.paint("2", head.trim_end()) + "\n";
    for row in rows {
        let command = match screen.width {
            Some(width) => {
                let room = width.saturating_sub(used + row.branch.chars().count()).max(MIN_COMMAND);
                cut(&row.command, room)
            }
            None => row.command.clone(),
        };
        text.push_str(&line(&row.cells, &format!("{}{command}", row.branch)));
    }
    text
}

/// The processes of a session in the order of the tree.
fn rows(processes: &[&ProcessInfo], now: Timestamp) -> Vec<ProcessRow> {
    let mut shown = HashSet::new();
    let mut rows = Vec::new();
    let has_parent = |process: &ProcessInfo| {
        process
            .parent_pid
            .is_some_and(|parent| parent != process.pid && processes.iter().any(|other| other.pid == parent))
    };
    for root in processes.iter().filter(|process| !has_parent(process)) {
        add_tree(root, processes, &mut shown, &mut rows, now);
    }
    // Parents that name each other in a circle have no root; they are shown as well.
    for process in processes {
        if !shown.contains(&process.pid) {
            add_tree(process, processes, &mut shown, &mut rows, now);
        }
    }
    rows
}

/// Adds a process and its descendants. Without recursion, since the depth comes from outside.
fn add_tree(
    root: &ProcessInfo,
    processes: &[&ProcessInfo],
    shown: &mut HashSet<u32>,
    rows: &mut Vec<ProcessRow>,
    now: Timestamp,
) {
    // Each process with one flag for itself and each ancestor: whether it is its parent's last child.
    let mut waiting = vec![(root, Vec::<bool>::new())];
    while let Some((process, above)) = waiting.pop() {
        if !shown.insert(process.pid) {
            continue;
        }
        rows.push(row(process, lines(&above), now));
        let children: Vec<&ProcessInfo> = processes
            .iter()
            .copied()
            .filter(|child| child.parent_pid == Some(process.pid) && !shown.contains(&child.pid))
            .collect();
        let count = children.len();
        // The first child comes out first.
        for (at, child) in children.into_iter().enumerate().rev() {
            let mut path = above.clone();
            path.push(at + 1 == count);
            waiting.push((child, path));
        }
    }
}

fn lines(is_last: &[bool]) -> String {
    let Some((own, above)) = is_last.split_last() else { return String::new() };
    let above = &above[..above.len().min(DEEPEST)];
    let mut text: String = above.iter().map(|last| if *last { "   " } else { "│  " }).collect();
    text.push_str(if *own { "└─ " } else { "├─ " });
    text
}

fn row(process: &ProcessInfo, branch: String, now: Timestamp) -> ProcessRow {
    let kind = match process.kind {
        WorkKind::Turn => "run",
        WorkKind::Tool => "tool",
        WorkKind::Bash => "bash",
        WorkKind::Background => "background",
        WorkKind::Compaction => "compaction",
    };
    ProcessRow {
        cells: [
            process.pid.to_string(),
            kind.to_owned(),
            process.cpu_ms.map(cpu).unwrap_or_default(),
            process.memory_bytes.map(memory).unwrap_or_default(),
            process.started.as_deref().map(|started| age(started, now)).unwrap_or_default(),
        ],
        branch,
        command: one_line(&process.command),
    }
}

/// Processor time: `0.05s`, `12.3s`, `4m05s`, `3h20m`.
fn cpu(ms: u64) -> String {
    let time = Duration::from_millis(ms);
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.2}s", time.as_secs_f64()),
        10..60 => format!("{:.1}s", time.as_secs_f64()),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
    }
}

/// Memory in the unit that fits, in powers of a thousand.
fn memory(bytes: u64) -> String {
    let amount = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..999_500 => format!("{:.0} kB", amount / 1e3),
        999_500..9_950_000 => format!("{:.1} MB", amount / 1e6),
        9_950_000..999_500_000 => format!("{:.0} MB", amount / 1e6),
        _ => format!("{:.1} GB", amount / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::example_session as example;

    fn process(session: &str, pid: u32, parent_pid: Option<u32>, command: &str) -> ProcessInfo {
        ProcessInfo {
            session_id: session.into(),
            pid,
            parent_pid,
            kind: if pid < 100 { WorkKind::Tool } else { WorkKind::Background },
            id: None,
            command: command.into(),
            started: Some("2026-11-21T14:04:00Z".into()),
            cpu_ms: Some(u64::from(pid) * 1_000),
            memory_bytes: Some(u64::from(pid) * 1_000_000),
        }
    }

    fn show(processes: &[ProcessInfo], width: Option<usize>) -> String {
        let now = "2026-11-21T14:04:42Z".parse().unwrap();
        trees(processes, &[example("s-1")], now, Screen { width, ..Screen::default() })
    }

    #[test]
    fn children_stand_under_their_parents() {
        let processes = [
            process("s-1", 7, None, "bash -c make\n-j"),
            process("s-1", 8, Some(7), "make -j"),
            process("s-1", 9, Some(8), "cc a.c"),
            process("s-1", 10, Some(8), "cc \x1b[2Jb.c"),
            process("s-1", 11, Some(7), "tee log"),
            ProcessInfo {
                cpu_ms: None,
                memory_bytes: None,
                started: None,
                ..process("s-2", 120, Some(1), "sleep 9")
            },
        ];
        assert_eq!(
            show(&processes, None),
            "s-1  project: What is this?
  PID  KIND    CPU  MEMORY  AGE  COMMAND
    7  tool  7.00s  7.0 MB  42s  bash -c make -j
    8  tool  8.00s  8.0 MB  42s  ├─ make -j
    9  tool  9.00s  9.0 MB  42s  │  ├─ cc a.c
   10  tool  10.0s   10 MB  42s  │  └─ cc  [2Jb.c
   11  tool  11.0s   11 MB  42s  └─ tee log

s-2
  PID  KIND        CPU  MEMORY  AGE  COMMAND
  120  background                    sleep 9
"
        );
    }

    #[test]
    fn only_the_command_is_cut() {
        let processes =
            [process("s-1", 7, None, &"long ".repeat(30)), process("s-1", 8, Some(7), &"x".repeat(90))];
        let text = show(&processes, Some(60));
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        assert!(text.contains("  7.0 MB  42s  long long") && text.contains("x…\n"), "{text}");
        assert!(show(&processes, Some(10)).contains("long long long…"), "{}", show(&processes, Some(10)));
    }

    #[test]
    fn a_circle_of_parents_is_shown_once() {
        let processes = [
            process("s-1", 7, Some(8), "a"),
            process("s-1", 8, Some(7), "b"),
            process("s-1", 9, Some(9), "c"),
        ];
        assert_eq!(show(&processes, None).lines().count(), 2 + 3);
    }

    #[test]
    fn amounts() {
        for (ms, expected) in [(0, "0.00s"), (59_900, "59.9s"), (245_000, "4m05s"), (12_000_000, "3h20m")] {
            assert_eq!(cpu(ms), expected);
        }
        for (bytes, expected) in [
            (12, "12 B"),
            (4_096, "4 kB"),
            (1_500_000, "1.5 MB"),
            (12_000_000, "12 MB"),
            (2_100_000_000, "2.1 GB"),
        ] {
            assert_eq!(memory(bytes), expected);
        }
    }
}
