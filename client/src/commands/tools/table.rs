//! The table of tools.

use agentd_protocol::tool_list::{ToolInfo, ToolSource};

use crate::render::{Screen, cut, one_line};

/// What a line holds where nothing says how wide it may be.
const DEFAULT_WIDTH: usize = 120;

/// The least room for what a tool does.
const MIN_TEXT: usize = 20;

/// A line for each tool, cut to the width; nothing for no tools.
pub(super) fn table(tools: &[ToolInfo], screen: Screen) -> String {
    let rows: Vec<[String; 3]> = tools.iter().map(row).collect();
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (names, sources) = (widest(0), widest(1));
    let width = screen.width.unwrap_or(DEFAULT_WIDTH);
    let room = width.saturating_sub(names + sources + 6).max(MIN_TEXT);
    let lines = rows.iter().zip(tools).map(|([name, source, does], tool)| {
        let mark = if tool.active { screen.paint("32", "*") } else { " ".to_owned() };
        let line = format!("{mark} {name:<names$}  {source:<sources$}  {}", cut(does, room));
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

fn row(tool: &ToolInfo) -> [String; 3] {
    let source = match (tool.source, &tool.client) {
        (ToolSource::Builtin, _) => "built in".to_owned(),
        (ToolSource::Client, Some(client)) => one_line(client),
        (ToolSource::Client, None) => "a client".to_owned(),
    };
    // The description of a tool is for the model, and long.
    let does = tool.snippet.as_deref().unwrap_or(&tool.description);
    [one_line(&tool.name), source, one_line(does)]
}

/// A tool for tests.
#[cfg(test)]
pub(super) fn example(name: &str, active: bool) -> ToolInfo {
    ToolInfo {
        name: name.into(),
        label: name.into(),
        description: format!("Does\n{name}."),
        parameters: serde_json::Value::Null,
        active,
        source: ToolSource::Builtin,
        client: None,
        snippet: None,
        guidelines: Vec::new(),
        execution: agentd_protocol::tool_list::ToolExecution::Parallel,
        timeout_ms: None,
        constrained_sampling: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each() {
        let mut deploy = example("deploy", true);
        deploy.source = ToolSource::Client;
        deploy.client = Some("edi\u{1b}tor".into());
        deploy.snippet = Some("long ".repeat(20));
        let tools = [example("read", true), example("ls", false), deploy];
        let screen = Screen { width: Some(50), ..Screen::default() };
        assert_eq!(
            table(&tools, screen),
            "* read    built in  Does read.\n\
             \u{20} ls      built in  Does ls.\n\
             * deploy  edi tor   long long long long long long…\n"
        );
        assert_eq!(table(&[], screen), "");
    }
}
