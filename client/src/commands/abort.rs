//! `agentctl abort`: stops the work of a session.

use agentd_protocol::{
    command::{AbortParams, AbortReceipt, AbortScope, Work, WorkKind},
    daemon::Role,
};

use super::{
    daemon_call,
    find_session::{self, SessionScope},
    only_at_work,
};
use crate::{
    cli::AbortOptions,
    exit::{Exit, Fault, conclude, print_stderr},
    output,
    render::{one_line, short_id},
    rpc::AbortScoped,
};

/// How many names of one kind of work are shown.
const NAMED: usize = 5;

pub(crate) fn run(options: &AbortOptions) -> Exit {
    conclude(daemon_call::block_on(abort(options)))
}

async fn abort(options: &AbortOptions) -> Result<Exit, Fault> {
    let Some(connection) = daemon_call::connect(Role::Control).await? else {
        print_stderr("Nothing is at work: agentd is not running.");
        return nothing(options);
    };
    let client = &connection.client;
    let session = match &options.id {
        Some(id) => {
            Some(find_session::on(client, id, SessionScope::All).await?).filter(|session| session.live)
        }
        None => only_at_work::only(client).await?,
    };
    let Some(session) = session else {
        print_stderr("Nothing is at work.");
        return nothing(options);
    };
    let params = AbortParams { scope: Some(options.scope.map_or(AbortScope::Turn, Into::into)) };
    let receipt = client.call_in::<AbortScoped>(&session.id, &params).await?;
    if options.json {
        output::print_json(&receipt)
    } else {
        output::print(&text(&short_id(&session.id), &receipt))
    }
}

fn nothing(options: &AbortOptions) -> Result<Exit, Fault> {
    if options.json { output::print_json(&AbortReceipt::default()) } else { Ok(Exit::Answered) }
}

fn text(id: &str, receipt: &AbortReceipt) -> String {
    let mut text = if receipt.ended.is_empty() {
        format!("{id}: nothing was at work.\n")
    } else {
        format!("{id}: stopped {}.\n", works(&receipt.ended))
    };
    if !receipt.survives.is_empty() {
        text.push_str(&format!("Still at work: {}.\n", works(&receipt.survives)));
    }
    text
}

/// Such as `the run, 2 tool calls (bash, read) and 1 background process`.
fn works(works: &[Work]) -> String {
    let of = |kind: WorkKind| works.iter().filter(move |work| work.kind == kind);
    let several = |kind: WorkKind, one: &str, many: &str| {
        let count = of(kind).count();
        let names: Vec<String> = of(kind).filter_map(|work| work.name.as_deref()).map(one_line).collect();
        let more = if names.len() > NAMED { ", …" } else { "" };
        let names = match names.as_slice() {
            [] => String::new(),
            names => format!(" ({}{more})", names[..names.len().min(NAMED)].join(", ")),
        };
        (count > 0).then(|| format!("{count} {}{names}", if count == 1 { one } else { many }))
    };
    let parts: Vec<String> = [
        of(WorkKind::Turn).next().map(|_| "the run".to_owned()),
        several(WorkKind::Tool, "tool call", "tool calls"),
        several(WorkKind::Bash, "shell command", "shell commands"),
        several(WorkKind::Background, "background process", "background processes"),
    ]
    .into_iter()
    .flatten()
    .collect();
    match parts.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} and {last}", first.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(kind: WorkKind, name: Option<&str>) -> Work {
        Work { kind, id: None, name: name.map(str::to_owned) }
    }

    #[test]
    fn the_receipt_says_what_ended_and_what_goes_on() {
        let ended = vec![
            work(WorkKind::Turn, None),
            work(WorkKind::Tool, Some("bash")),
            work(WorkKind::Tool, Some("re\x1bad")),
        ];
        let survives = vec![
            work(WorkKind::Bash, Some("make")),
            work(WorkKind::Background, None),
            work(WorkKind::Background, None),
        ];
        assert_eq!(
            text("0198", &AbortReceipt { ended, survives }),
            "0198: stopped the run and 2 tool calls (bash, re ad).\n\
             Still at work: 1 shell command (make) and 2 background processes.\n"
        );
        assert_eq!(text("0198", &AbortReceipt::default()), "0198: nothing was at work.\n");
    }

    #[test]
    fn many_names_are_cut() {
        let tools: Vec<Work> = (0..7).map(|n| work(WorkKind::Tool, Some(&format!("t{n}")))).collect();
        assert_eq!(works(&tools), "7 tool calls (t0, t1, t2, t3, t4, …)");
        assert_eq!(works(&[work(WorkKind::Background, None)]), "1 background process");
    }
}
