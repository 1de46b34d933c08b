//! Writes entries as parts of the page.

use std::{
    collections::{HashMap, HashSet},
    io,
};

use agentd_protocol::{
    entry::EntryBody,
    message::{
        AssistantMessage, BashExecutionMessage, ContentBlock, Message, StopReason, ToolResultMessage, Usage,
    },
};
use agentd_store::{Entry, EntryKind, Role, SessionTree};
use serde_json::Value;

use crate::{
    blocks::{self, Answer},
    figures, gist, markdown,
    page::{Anchor, Attr, Page},
    system, terminal,
    totals::Totals,
};

/// Characters of a command shown in its summary line.
const GIST: usize = 120;

/// Writes consecutive entries, given as indices in the order of the file. `has_system`: whether a system message came
/// before.
pub(crate) fn all(
    page: &mut Page<'_>,
    tree: &SessionTree,
    places: &[u32],
    totals: &mut Totals,
    has_system: &mut bool,
) -> io::Result<()> {
    // Results already written with their calls.
    let mut written: HashSet<u32> = HashSet::new();
    for (position, at) in places.iter().enumerate() {
        let Some(entry) = tree.entries().get(*at as usize) else { continue };
        if written.remove(at) {
            continue;
        }
        let one = One { tree, entry, at: *at };
        let Some(body) = gist::body(entry) else {
            one.unknown(page)?;
            continue;
        };
        totals.add(&body);
        match body {
            EntryBody::Message { message: Message::Assistant(answer) } => {
                let results = results(tree, &answer, &places[position + 1..]);
                for result in results.values() {
                    written.insert(result.at);
                    totals.add(&EntryBody::Message { message: Message::ToolResult(result.result.clone()) });
                }
                one.answer(page, &answer, &results)?;
            }
            EntryBody::Message { message: Message::System(message) } => {
                system::write(page, *at, &message, !std::mem::replace(has_system, true))?;
            }
            body => one.write(page, body)?,
        }
    }
    Ok(())
}

/// The results of an answer's calls, by call id, as far as they follow it before any other message.
fn results(tree: &SessionTree, answer: &AssistantMessage, places: &[u32]) -> HashMap<String, Answer> {
    let calls: HashSet<&str> = answer.tool_calls().map(|call| call.id.as_str()).collect();
    let mut results = HashMap::new();
    for at in places {
        let Some(entry) = tree.entries().get(*at as usize).filter(|_| results.len() < calls.len()) else {
            break;
        };
        match entry.kind() {
            EntryKind::Message(Role::ToolResult) => {}
            EntryKind::Message(_) => break,
            _ => continue,
        }
        if let Some(EntryBody::Message { message: Message::ToolResult(result) }) = gist::body(entry)
            && calls.contains(result.tool_call_id.as_str())
            && !results.contains_key(&result.tool_call_id)
        {
            results.insert(result.tool_call_id.clone(), Answer { at: *at, result });
        }
    }
    results
}

/// An entry and its index.
struct One<'a> {
    tree: &'a SessionTree,
    entry: &'a Entry,
    at: u32,
}

impl One<'_> {
    fn write(&self, page: &mut Page<'_>, body: EntryBody) -> io::Result<()> {
        match body {
            EntryBody::Message { message } => self.message(page, message),
            EntryBody::CustomMessage { custom_type, content, display, .. } => {
                self.custom(page, &custom_type, &content.blocks(), display)
            }
            EntryBody::ModelChange { provider, model_id } => {
                self.note(page, "Model", &format!("{provider}/{model_id}"))
            }
            EntryBody::ThinkingLevelChange { thinking_level } => self.note(page, "Thinking", &thinking_level),
            EntryBody::Compaction { summary, tokens_before, details, usage, .. } => {
                let tokens =
                    (tokens_before > 0).then(|| format!("{} tokens before", figures::grouped(tokens_before)));
                let tokens = tokens.unwrap_or_default();
                self.summary(
                    page,
                    "Summary of what came before",
                    &tokens,
                    &summary,
                    details.as_ref(),
                    usage.as_ref(),
                )
            }
            EntryBody::BranchSummary { summary, details, usage, .. } => self.summary(
                page,
                "Summary of a branch that was left",
                "",
                &summary,
                details.as_ref(),
                usage.as_ref(),
            ),
            EntryBody::ContextEdit { target_id, replacement } => {
                self.edit(page, &target_id, replacement.is_none())
            }
            // These are not shown by themselves.
            EntryBody::Usage { .. }
            | EntryBody::Custom { .. }
            | EntryBody::Label { .. }
            | EntryBody::SessionInfo { .. } => Ok(()),
        }
    }

    fn message(&self, page: &mut Page<'_>, message: Message) -> io::Result<()> {
        match message {
            Message::User(user) => {
                self.article(page, "user", "User", None, |page| blocks::plain(page, &user.content.blocks()))
            }
            Message::Assistant(answer) => self.answer(page, &answer, &HashMap::new()),
            Message::ToolResult(result) => self.lone_result(page, result),
            Message::BashExecution(bash) => self.bash(page, &bash),
            Message::Custom(custom) => {
                self.custom(page, &custom.custom_type, &custom.content.blocks(), custom.display)
            }
            Message::BranchSummary(branch) => {
                self.summary(page, "Summary of a branch that was left", "", &branch.summary, None, None)
            }
            Message::CompactionSummary(compaction) => {
                self.summary(page, "Summary of what came before", "", &compaction.summary, None, None)
            }
            Message::System(message) => system::write(page, self.at, &message, false),
        }
    }

    /// A part of the conversation with a heading.
    fn article(
        &self,
        page: &mut Page<'_>,
        class: &'static str,
        who: &str,
        by: Option<&str>,
        content: impl FnOnce(&mut Page<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        page.element("article", &[Attr::Class(class), Attr::Anchor(Anchor(self.at))], |page| {
            page.element("header", &[], |page| {
                page.words("h2", &[], who)?;
                if let Some(by) = by {
                    page.ours(" ")?;
                    page.words("code", &[Attr::Class("by")], by)?;
                }
                self.label(page)?;
                self.time(page)
            })?;
            page.ours("\n")?;
            content(page)
        })?;
        page.ours("\n")
    }

    fn label(&self, page: &mut Page<'_>) -> io::Result<()> {
        match self.tree.label(self.entry.id()) {
            Some(label) => {
                page.ours(" ")?;
                page.words("span", &[Attr::Class("label")], &label.text)
            }
            None => Ok(()),
        }
    }

    /// The entry's time, as a link to the entry.
    fn time(&self, page: &mut Page<'_>) -> io::Result<()> {
        let title = format!("Entry {}", self.entry.id());
        page.ours(" ")?;
        page.element("a", &[Attr::Class("when"), Attr::To(Anchor(self.at)), Attr::Title(&title)], |page| {
            match figures::time(&self.entry.timestamp()) {
                Some((exact, shown)) => page.words("time", &[Attr::Time(&exact)], &shown),
                None => page.text("#"),
            }
        })
    }

    fn note(&self, page: &mut Page<'_>, what: &'static str, value: &str) -> io::Result<()> {
        page.element("p", &[Attr::Class("note"), Attr::Anchor(Anchor(self.at))], |page| {
            page.text(what)?;
            page.text(": ")?;
            page.words("code", &[], value)?;
            self.label(page)
        })?;
        page.ours("\n")
    }

    fn answer(
        &self,
        page: &mut Page<'_>,
        answer: &AssistantMessage,
        results: &HashMap<String, Answer>,
    ) -> io::Result<()> {
        let model = answer.response_model.as_ref().unwrap_or(&answer.model);
        let by = (!model.is_empty()).then(|| format!("{}/{model}", answer.provider));
        self.article(page, "assistant", "Assistant", by.as_deref(), |page| {
            for block in &answer.content {
                match block {
                    ContentBlock::Text { text, .. } => markdown::write(page, text)?,
                    ContentBlock::ToolCall(call) => blocks::call(page, call, results.get(&call.id))?,
                    other => blocks::other(page, other)?,
                }
            }
            if let Some(text) = ending(answer) {
                page.words("p", &[Attr::Class("error")], &text)?;
            }
            let mut parts = vec![figures::usage(&answer.usage)];
            parts.extend(answer.duration_ms.map(figures::duration));
            parts.extend(
                answer
                    .thinking_level
                    .as_ref()
                    .filter(|level| *level != "off")
                    .map(|level| format!("thinking {level}")),
            );
            parts.retain(|part| !part.is_empty());
            match parts.is_empty() {
                true => Ok(()),
                false => page.words("p", &[Attr::Class("figures")], &parts.join(" · ")),
            }
        })
    }

    fn lone_result(&self, page: &mut Page<'_>, result: ToolResultMessage) -> io::Result<()> {
        blocks::lone_result(page, &Answer { at: self.at, result })
    }

    fn bash(&self, page: &mut Page<'_>, bash: &BashExecutionMessage) -> io::Result<()> {
        let failed = bash.exit_code.is_some_and(|code| code != 0);
        self.article(page, "shell", "Shell command", None, |page| {
            page.folded(
                &[Attr::Class(if failed { "tool failed" } else { "tool" })],
                |page| {
                    page.words(
                        "code",
                        &[Attr::Class("gist")],
                        &format!("$ {}", figures::first_line(&bash.command, GIST)),
                    )?;
                    if let Some(code) = bash.exit_code.filter(|code| *code != 0) {
                        page.ours(" ")?;
                        page.words("span", &[Attr::Class("badge bad")], &format!("exit code {code}"))?;
                    }
                    if bash.cancelled {
                        page.ours(" ")?;
                        page.words("span", &[Attr::Class("badge")], "stopped")?;
                    }
                    if bash.exclude_from_context == Some(true) {
                        page.ours(" ")?;
                        page.words("span", &[Attr::Class("badge")], "not told to the model")?;
                    }
                    Ok(())
                },
                |page| {
                    page.preformatted("command", &bash.command)?;
                    if bash.truncated {
                        let rest = bash.full_output_path.as_deref();
                        let rest = rest.map(|path| format!(" All of it was in {path}.")).unwrap_or_default();
                        page.words(
                            "p",
                            &[Attr::Class("note")],
                            &format!("Only the end of the output.{rest}"),
                        )?;
                    }
                    page.preformatted("output", &terminal::plain(&bash.output))
                },
            )
        })
    }

    /// A message of an extension; folded when clients do not show it.
    fn custom(
        &self,
        page: &mut Page<'_>,
        kind: &str,
        content: &[ContentBlock],
        is_shown: bool,
    ) -> io::Result<()> {
        if is_shown {
            return self.article(page, "custom", kind, None, |page| blocks::plain(page, content));
        }
        page.folded(
            &[Attr::Class("more"), Attr::Anchor(Anchor(self.at))],
            |page| {
                page.text("Message to the model from ")?;
                page.words("code", &[], kind)
            },
            |page| blocks::plain(page, content),
        )
    }

    fn summary(
        &self,
        page: &mut Page<'_>,
        what: &'static str,
        figures: &str,
        summary: &str,
        details: Option<&Value>,
        usage: Option<&Usage>,
    ) -> io::Result<()> {
        page.folded(
            &[Attr::Class("summary"), Attr::Anchor(Anchor(self.at))],
            |page| {
                page.words("span", &[Attr::Class("name")], what)?;
                page.ours(" ")?;
                page.words("span", &[Attr::Class("figures")], figures)?;
                self.label(page)
            },
            |page| {
                markdown::write(page, summary)?;
                for (name, title) in [("readFiles", "Files read"), ("modifiedFiles", "Files changed")] {
                    let files = details.and_then(|details| details.get(name)).and_then(Value::as_array);
                    let files: Vec<&str> = files.into_iter().flatten().filter_map(Value::as_str).collect();
                    if !files.is_empty() {
                        page.words("p", &[Attr::Class("note")], &format!("{title}: {}", files.join(", ")))?;
                    }
                }
                match usage.map(crate::figures::usage).filter(|usage| !usage.is_empty()) {
                    Some(usage) => page.words("p", &[Attr::Class("figures")], &usage),
                    None => Ok(()),
                }
            },
        )
    }

    fn edit(&self, page: &mut Page<'_>, target: &str, is_left_out: bool) -> io::Result<()> {
        let target = self.tree.place_of(target);
        page.element("p", &[Attr::Class("note"), Attr::Anchor(Anchor(self.at))], |page| {
            match target {
                Some(at) => page.words("a", &[Attr::To(Anchor(at))], "An earlier message")?,
                None => page.text("An earlier message")?,
            }
            page.text(if is_left_out {
                " is left out of the context from here on."
            } else {
                " has other content in the context from here on."
            })
        })?;
        page.ours("\n")
    }

    /// An entry that this version cannot read, as it is in the file.
    fn unknown(&self, page: &mut Page<'_>) -> io::Result<()> {
        page.folded(
            &[Attr::Class("more"), Attr::Anchor(Anchor(self.at))],
            |page| page.text("An entry that this version of agentd does not know"),
            |page| page.preformatted("code", &self.entry.line()),
        )
    }
}

/// The note for an answer that did not end by itself.
fn ending(answer: &AssistantMessage) -> Option<String> {
    let why = answer.error_message.as_deref().filter(|why| !why.is_empty());
    match answer.stop_reason {
        StopReason::Error => Some(format!("The answer failed: {}", why.unwrap_or("it is not known why"))),
        StopReason::Aborted => Some("The answer was stopped.".into()),
        StopReason::Length => Some("The answer was cut off at the model's output limit.".into()),
        StopReason::Stop | StopReason::ToolUse | StopReason::Pending | StopReason::Deferred => None,
    }
}
