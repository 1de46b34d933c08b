//! `agentctl history`: finds and deletes prompts that were sent.

use agentd_protocol::prompt_history::{
    DeleteHistoryParams, PromptHistoryEntry, PromptHistoryList, SearchHistoryParams,
};
use jiff::Timestamp;

use super::{
    confirm::{self, EnterMeans},
    daemon_call,
};
use crate::{
    cli::HistoryOptions,
    exit::{Exit, Fault, conclude, print_stderr},
    output,
    render::{Screen, ago, columns, counted, cut, one_line, padded},
    rpc::{DeleteHistory, SearchHistory},
};

/// The width of a line where nothing limits it.
const DEFAULT_WIDTH: usize = 120;

const DIM: &str = "2";

pub(crate) fn history(options: &HistoryOptions) -> Exit {
    conclude(match (&options.delete, options.delete_all) {
        (Some(id), _) => delete(&DeleteHistoryParams { entry_id: Some(id.clone()), all: None }),
        (None, true) => delete_all(options.yes),
        (None, false) => show(options),
    })
}

fn show(options: &HistoryOptions) -> Result<Exit, Fault> {
    let here = std::env::current_dir().map_err(|error| {
        Fault::new(Exit::Failed, format!("agentctl: the working directory cannot be used: {error}"))
    })?;
    let params = SearchHistoryParams {
        query: (!options.words.is_empty()).then(|| options.words.join(" ")),
        cwd: options.here.then(|| here.display().to_string()),
        limit: Some(options.limit),
    };
    let list: PromptHistoryList = daemon_call::any::<SearchHistory>(&params)?;
    let printed = if options.json {
        output::print_json(&list)?
    } else {
        let screen = Screen::of_stdout();
        let text = if screen.is_terminal {
            table(&list.entries, Timestamp::now(), screen)
        } else {
            lines(&list.entries)
        };
        output::print(&text)?
    };
    if list.entries.is_empty() {
        print_stderr("No prompt fits.");
    }
    Ok(if printed == Exit::Answered && list.entries.is_empty() { Exit::Failed } else { printed })
}

fn delete_all(is_sure: bool) -> Result<Exit, Fault> {
    if !is_sure {
        if !confirm::possible() {
            return Err(Fault::usage("Error: nobody can be asked here. Give --yes to delete all prompts."));
        }
        if !confirm::agreed("Delete all prompts of the history for good?", EnterMeans::No)? {
            return Err(Fault::new(Exit::Failed, "Nothing was deleted."));
        }
    }
    delete(&DeleteHistoryParams { entry_id: None, all: Some(true) })
}

fn delete(params: &DeleteHistoryParams) -> Result<Exit, Fault> {
    let deleted = daemon_call::any::<DeleteHistory>(params)?.deleted;
    let count = usize::try_from(deleted).unwrap_or(usize::MAX);
    print_stderr(&format!("Deleted {}.", counted(count, "prompt")));
    Ok(Exit::Answered)
}

/// The time of an entry, where it is known.
fn time(entry: &PromptHistoryEntry) -> Option<Timestamp> {
    Timestamp::from_millisecond(entry.created_at).ok().filter(|_| entry.created_at > 0)
}

/// A line for each prompt, cut to the width, the newest last: there the eye is.
fn table(entries: &[PromptHistoryEntry], now: Timestamp, screen: Screen) -> String {
    let ages: Vec<String> = entries
        .iter()
        .map(|entry| time(entry).map_or_else(|| "-".to_owned(), |time| ago(&time.to_string(), now)))
        .collect();
    let age_width = ages.iter().map(|age| columns(age)).max().unwrap_or_default();
    let room = screen.width.unwrap_or(DEFAULT_WIDTH).saturating_sub(age_width + 2);
    let mut text = String::new();
    for (entry, age) in entries.iter().zip(&ages).rev() {
        let prompt = cut(&one_line(&entry.prompt), room);
        text.push_str(&format!("{}  {prompt}\n", screen.paint(DIM, &padded(age, age_width, true))));
    }
    text
}

/// Lines for a program, the newest first.
fn lines(entries: &[PromptHistoryEntry]) -> String {
    let mut text = String::new();
    for entry in entries {
        let time = time(entry).map_or_else(|| "-".to_owned(), |time| time.to_string());
        let folder = one_line(entry.cwd.as_deref().unwrap_or("-"));
        let session = one_line(entry.session_id.as_deref().unwrap_or("-"));
        let prompt = one_line(&entry.prompt.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t"));
        text.push_str(&format!(
            "{}\t{time}\t{}\t{folder}\t{session}\t{prompt}\n",
            one_line(&entry.id),
            entry.use_count
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(prompt: &str, created_at: i64) -> PromptHistoryEntry {
        PromptHistoryEntry {
            id: "1".to_owned(),
            prompt: prompt.to_owned(),
            created_at,
            cwd: Some("/p".to_owned()),
            session_id: None,
            use_count: 2,
        }
    }

    #[test]
    fn prompts_are_lines() {
        let entries = [entry("new\nwith\ttab \u{1b}[31m", 60_000), entry("old", 0)];
        let piped = lines(&entries);
        assert!(piped.starts_with("1\t1970-01-01T00:01:00Z\t2\t/p\t-\tnew\\nwith\\ttab "), "{piped}");
        assert!(piped.ends_with("1\t-\t2\t/p\t-\told\n") && !piped.contains('\u{1b}'), "{piped}");
        let screen = Screen { width: Some(20), ..Screen::of_stdout() };
        let shown = table(&entries, Timestamp::from_millisecond(120_000).unwrap(), screen);
        let shown: Vec<&str> = shown.lines().collect();
        assert!(shown[0].ends_with("-  old") && shown[1].contains("new"), "{shown:?}");
    }
}
