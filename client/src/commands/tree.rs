//! `agentctl tree`: the branches of a conversation, a line for each entry, indented where branches part.

mod entries;

use std::path::{Path, PathBuf};

use agentd_protocol::{
    command::GetEntriesParams,
    daemon::{Role, SessionInfo},
};

use self::entries::{OutlineEntries, OutlineEntry};
use super::{daemon_call, last_session};
use crate::{
    cli::TreeOptions,
    exit::{Exit, Fault, conclude, print_stderr},
    output,
    render::{Screen, cut, one_line},
    rpc::{CallError, GetEntries},
    session_file::SessionFileError,
};

pub(crate) fn run(options: &TreeOptions) -> Exit {
    conclude(show(options))
}

fn show(options: &TreeOptions) -> Result<Exit, Fault> {
    let entries = match options.session.as_deref() {
        Some(path) if path.contains('/') || path.ends_with(".jsonl") => of_file(&PathBuf::from(path))?,
        given => of_session(&last_session::given_or_last(given)?)?,
    };
    let text = outline(&entries, Screen::of_stdout());
    if text.is_empty() {
        print_stderr("Nothing was said in this session yet.");
        return Ok(Exit::Answered);
    }
    output::print(&text)
}

/// Reads the session from the daemon, which alone knows the leaf after a step back; from the file where no daemon has
/// it.
fn of_session(session: &SessionInfo) -> Result<OutlineEntries, Fault> {
    let asked = daemon_call::block_on(async {
        let Some(connection) = daemon_call::connect(Role::Observe).await? else { return Ok(None) };
        let params = GetEntriesParams::default();
        match connection.client.call_in::<GetEntries>(&session.id, &params).await {
            Ok(entries) => Ok(Some(entries)),
            // A session that is not open is read from its file.
            Err(CallError::Refused { .. }) if session.path.is_some() => Ok(None),
            Err(error) => Err(error.into()),
        }
    })?;
    match (asked, &session.path) {
        (Some(answer), _) => {
            let lines = answer.entries.iter().map(|entry| entry.text());
            Ok(OutlineEntries::of_lines(lines, answer.leaf_id.as_deref()))
        }
        (None, Some(path)) => of_file(Path::new(path)),
        (None, None) => {
            let text = format!("Error: session {} has no file and is in no daemon's memory.", session.id);
            Err(Fault::new(Exit::Failed, text))
        }
    }
}

fn of_file(path: &Path) -> Result<OutlineEntries, Fault> {
    let unreadable = |error: SessionFileError| {
        Fault::new(Exit::Failed, format!("Error: cannot read {}: {error}", path.display()))
    };
    OutlineEntries::read(path).map_err(unreadable)
}

/// The width of a line where nothing limits it.
const DEFAULT_WIDTH: usize = 120;

/// The least width of a text.
const MIN_TEXT: usize = 20;

/// The deepest level that is still indented.
const DEEPEST: usize = 12;

/// A line for each visible entry; empty without any.
fn outline(entries: &OutlineEntries, screen: Screen) -> String {
    let visible: Vec<usize> = (0..entries.all.len()).filter(|at| entries.all[*at].line.is_some()).collect();
    let Some(widest) = visible.iter().filter_map(|at| who(&entries.all[*at])).map(str::len).max() else {
        return String::new();
    };
    let (roots, children) = family(entries);
    let here = entries.leaf.and_then(|leaf| seen_from(entries, leaf));
    let mut text = String::new();
    // Entries with the lines of the tree before them and before their followers. Without recursion, since a
    // conversation is as deep as it is long.
    let mut waiting = Vec::new();
    branch(&roots, &TreeLead::default(), &mut waiting);
    while let Some((at, lead)) = waiting.pop() {
        let entry = &entries.all[at];
        text.push_str(&line(entry, &lead.own, Some(at) == here, widest, screen));
        branch(&children[at], &lead, &mut waiting);
    }
    text
}

/// The lines of the tree before an entry (`own`) and before its followers (`below`).
#[derive(Debug, Clone, Default)]
struct TreeLead {
    own: String,
    below: String,
    level: usize,
}

/// Pushes the followers of an entry so that the first one comes next. A single follower is not indented.
fn branch(followers: &[usize], lead: &TreeLead, waiting: &mut Vec<(usize, TreeLead)>) {
    let only = followers.len() == 1;
    for (place, at) in followers.iter().enumerate().rev() {
        let next = if only {
            TreeLead { own: lead.below.clone(), ..lead.clone() }
        } else {
            let last = place + 1 == followers.len();
            let (own, below) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            let base = if lead.level < DEEPEST { lead.below.as_str() } else { parent_of(&lead.below) };
            TreeLead { own: format!("{base}{own}"), below: format!("{base}{below}"), level: lead.level + 1 }
        };
        waiting.push((*at, next));
    }
}

/// The lead without its last level: deeper branches stay in the same column.
fn parent_of(lead: &str) -> &str {
    lead.char_indices().rev().nth(2).map_or("", |(at, _)| &lead[..at])
}

/// The roots among the visible entries, and the followers of each.
fn family(entries: &OutlineEntries) -> (Vec<usize>, Vec<Vec<usize>>) {
    let mut roots = Vec::new();
    let mut children = vec![Vec::new(); entries.all.len()];
    // For each entry itself or its nearest visible ancestor. Parents come before their children.
    let mut nearest: Vec<Option<usize>> = Vec::with_capacity(entries.all.len());
    for (at, entry) in entries.all.iter().enumerate() {
        let above = entry.parent.and_then(|parent| nearest[parent]);
        if entry.line.is_none() {
            nearest.push(above);
            continue;
        }
        nearest.push(Some(at));
        match above {
            Some(above) => children[above].push(at),
            None => roots.push(at),
        }
    }
    (roots, children)
}

/// The entry itself, or its nearest visible ancestor.
fn seen_from(entries: &OutlineEntries, at: usize) -> Option<usize> {
    std::iter::successors(Some(at), |at| entries.all[*at].parent).find(|at| entries.all[*at].line.is_some())
}

fn who(entry: &OutlineEntry) -> Option<&'static str> {
    entry.line.as_ref().map(|(who, _)| *who)
}

fn line(entry: &OutlineEntry, lead: &str, is_here: bool, widest: usize, screen: Screen) -> String {
    let Some((who, text)) = &entry.line else { return String::new() };
    let id = one_line(&entry.id);
    let label = entry.label.as_deref().map(|label| format!("  [{}]", one_line(label))).unwrap_or_default();
    let used = 2 + lead.chars().count() + id.chars().count() + 2 + widest + 2 + label.chars().count();
    let room = screen.width.unwrap_or(DEFAULT_WIDTH).saturating_sub(used).max(MIN_TEXT);
    let mark = if is_here { screen.paint("32", ">") } else { " ".into() };
    let text = cut(&one_line(text), room);
    let label = if label.is_empty() { label } else { screen.paint("33", &label) };
    format!("{}\n", format!("{mark} {lead}{id}  {who:<widest$}  {text}{label}").trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(id: &str, parent: &str, text: &str) -> String {
        let parent = if parent == "-" { "null".to_owned() } else { format!("\"{parent}\"") };
        format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"t","message":{{"role":"user","content":"{text}"}}}}"#
        )
    }

    fn check(lines: &[String], leaf: &str, width: usize, expected: &[&str]) {
        let entries = OutlineEntries::of_lines(lines.iter().map(String::as_str), Some(leaf));
        let screen = Screen { width: Some(width), ..Screen::default() };
        assert_eq!(outline(&entries, screen).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn branches_part_and_a_chain_stays_straight() {
        let other = |kind: &str, id: &str, parent: &str, more: &str| {
            format!(r#"{{"type":"{kind}","id":"{id}","parentId":"{parent}","timestamp":"t"{more}}}"#)
        };
        let lines = [
            user("a", "-", "one"),
            user("b", "a", "two\\nand more"),
            other("model_change", "m", "b", r#","provider":"p","modelId":"m""#),
            user("c", "m", "left"),
            user("d", "c", "left on"),
            user("e", "m", "right"),
            other("label", "l", "e", r#","targetId":"d","label":"good""#),
            user("f", "e", "a text that is far too long for this screen"),
        ];
        check(
            &lines,
            "l",
            44,
            &[
                "  a  user  one",
                "  b  user  two and more",
                "  ├─ c  user  left",
                "  │  d  user  left on  [good]",
                "> └─ e  user  right",
                "     f  user  a text that is far too long f…",
            ],
        );
        check(&lines[..1], "x", 80, &["  a  user  one"]);
        check(&[], "x", 80, &[]);
    }

    #[test]
    fn several_roots_and_many_levels() {
        let mut lines = vec![user("r", "-", "root"), user("s", "-", "other root")];
        let mut parent = "r".to_owned();
        for level in 0..40 {
            for side in ["x", "y"] {
                lines.push(user(&format!("{side}{level}"), &parent, "t"));
            }
            parent = format!("y{level}");
        }
        let entries = OutlineEntries::of_lines(lines.iter().map(String::as_str), None);
        let text = outline(&entries, Screen::default());
        assert!(text.starts_with("  ├─ r  user  root\n  │  ├─ x0  user  t\n  │  └─ y0  user  t\n"), "{text}");
        assert!(text.ends_with("  └─ s  user  other root\n"), "{text}");
        assert_eq!(text.lines().count(), lines.len());
        assert!(text.lines().all(|line| line.chars().count() < 60), "{text}");
    }

    #[test]
    fn a_long_conversation_is_no_deep_recursion() {
        let lines: Vec<String> = (0..20_000)
            .map(|at| {
                user(&format!("n{at}"), &if at == 0 { "-".into() } else { format!("n{}", at - 1) }, "t")
            })
            .collect();
        let entries = OutlineEntries::of_lines(lines.iter().map(String::as_str), Some("n19999"));
        assert_eq!(outline(&entries, Screen::default()).lines().count(), 20_000);
    }
}
