//! `agentctl jobs`: what works for sessions beside their runs.

use std::time::Duration;

use agentd_protocol::{
    command::NoParams,
    daemon::{ListSessionsParams, Role, SessionInfo},
    jobs::{JobInfo, JobList, JobOutputParams, JobParams, JobStatus},
};
use serde_json::{Value, json};

use super::{
    daemon_call,
    find_session::{self, SessionScope},
};
use crate::{
    cli::{JobsKillOptions, JobsListOptions, JobsOutputOptions},
    exit::{Exit, Fault, conclude, print_stderr},
    output,
    render::{Screen, cut, one_line, session_title, short_id},
    rpc::{Client, JobOutput, KillJob, ListJobs, ListSessions},
};

/// The least width of a command.
const MIN_LABEL: usize = 16;

pub(crate) fn list(options: &JobsListOptions) -> Exit {
    conclude(daemon_call::block_on(async {
        let connection = daemon_call::require(Role::Observe).await?;
        let found = jobs(&connection.client, options.session.as_deref()).await?;
        if options.json {
            let of = |(session, jobs): &(SessionInfo, Vec<JobInfo>)| {
                jobs.iter().map(|job| with_session(job, session)).collect()
            };
            let all: Vec<Value> = found.iter().flat_map(|found| -> Vec<Value> { of(found) }).collect();
            return output::print_json(&json!({ "jobs": all }));
        }
        if found.iter().all(|(_, jobs)| jobs.is_empty()) {
            print_stderr("There is no job.");
            return Ok(Exit::Answered);
        }
        output::print(&tables(&found, Screen::of_stdout()))
    }))
}

pub(crate) fn show_output(options: &JobsOutputOptions) -> Exit {
    conclude(daemon_call::block_on(async {
        let connection = daemon_call::require(Role::Observe).await?;
        let client = &connection.client;
        let (session, job) = find(client, options.session.as_deref(), &options.job).await?;
        let mut params = JobOutputParams {
            job_id: job.id,
            offset: options.all.then_some(0),
            ..JobOutputParams::default()
        };
        // Part by part, so that memory does not grow with its length; to where it ended when it was asked for.
        let mut end = None;
        loop {
            let part = client.call_in::<JobOutput>(&session.id, &params).await?;
            let end = *end.get_or_insert(part.total_bytes);
            let exit = output::print(&part.output)?;
            let is_stuck = params.offset == Some(part.next_offset);
            if !options.all || exit != Exit::Answered || part.next_offset >= end || is_stuck {
                return Ok(exit);
            }
            params.offset = Some(part.next_offset);
        }
    }))
}

pub(crate) fn kill(options: &JobsKillOptions) -> Exit {
    conclude(daemon_call::block_on(async {
        let connection = daemon_call::require(Role::Control).await?;
        let client = &connection.client;
        let (session, job) = find(client, options.session.as_deref(), &options.job).await?;
        let killed = client.call_in::<KillJob>(&session.id, &JobParams { job_id: job.id }).await?;
        if options.json {
            output::print_json(&killed)?;
        } else {
            print_stderr(&format!("{} {}.", killed.id, killed.state_text()));
        }
        Ok(if killed.status == JobStatus::Running { Exit::Failed } else { Exit::Answered })
    }))
}

/// The jobs of the given session, or of all live ones.
async fn jobs(client: &Client, given: Option<&str>) -> Result<Vec<(SessionInfo, Vec<JobInfo>)>, Fault> {
    let sessions = match given {
        Some(id) => vec![find_session::on(client, id, SessionScope::Live).await?],
        None => {
            let params =
                ListSessionsParams { live: Some(true), limit: Some(1_000), ..ListSessionsParams::default() };
            client.call::<ListSessions>(&params).await?.sessions
        }
    };
    let mut found = Vec::new();
    for session in sessions {
        let JobList { jobs } = client.call_in::<ListJobs>(&session.id, &NoParams {}).await?;
        found.push((session, jobs));
    }
    Ok(found)
}

/// The job that an id or a name stands for, and its session.
async fn find(client: &Client, session: Option<&str>, id: &str) -> Result<(SessionInfo, JobInfo), Fault> {
    let all = jobs(client, session).await?;
    let mut found = Vec::new();
    for (session, jobs) in all {
        let by_name = || jobs.iter().rev().find(|job| job.name.as_deref() == Some(id));
        if let Some(job) = jobs.iter().find(|job| job.id == id).or_else(by_name).cloned() {
            found.push((session, job));
        }
    }
    if found.len() > 1 {
        // One that works is meant before those that have ended.
        let is_at_work = |(_, job): &(SessionInfo, JobInfo)| job.status == JobStatus::Running;
        if found.iter().filter(|found| is_at_work(found)).count() == 1 {
            found.retain(is_at_work);
        }
    }
    match found.len() {
        0 => Err(Fault::new(
            Exit::Failed,
            format!("Error: no live session has a job \"{id}\". `agentctl jobs list` lists them."),
        )),
        1 => Ok(found.remove(0)),
        _ => {
            let ids: Vec<String> = found.iter().map(|(session, _)| short_id(&session.id)).collect();
            let text = format!(
                "Error: several sessions have a job \"{id}\": {}. Say which with --session.",
                ids.join(", ")
            );
            Err(Fault::new(Exit::Failed, text))
        }
    }
}

fn with_session(job: &JobInfo, session: &SessionInfo) -> Value {
    let mut value = json!(job);
    value["session"] = session.id.as_str().into();
    value
}

/// Time in the unit that fits: `42s`, `4m05s`, `3h20m`.
fn time(ms: u64) -> String {
    let seconds = Duration::from_millis(ms).as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
    }
}

/// A paragraph for each session that has jobs: its title, a head, and a line for each job.
fn tables(found: &[(SessionInfo, Vec<JobInfo>)], screen: Screen) -> String {
    let with_jobs = found.iter().filter(|(_, jobs)| !jobs.is_empty());
    let paragraphs: Vec<String> = with_jobs
        .map(|(session, jobs)| {
            let title = format!("{}  {}", short_id(&session.id), session_title(session));
            let title = screen.width.map_or_else(|| title.clone(), |width| cut(&title, width));
            format!("{}\n{}", screen.paint("1", title.trim_end()), table(jobs, screen))
        })
        .collect();
    paragraphs.join("\n")
}

const HEAD: [&str; 4] = ["JOB", "KIND", "STATE", "TIME"];

fn table(jobs: &[JobInfo], screen: Screen) -> String {
    let cells = |job: &JobInfo| {
        let id = job.name.as_ref().map_or_else(|| job.id.clone(), |name| format!("{} ({name})", job.id));
        [one_line(&id), job.kind.as_str().to_owned(), job.state_text(), time(job.duration_ms)]
    };
    let rows: Vec<([String; 4], String)> =
        jobs.iter().map(|job| (cells(job), one_line(&job.label))).collect();
    let widths: [usize; 4] = std::array::from_fn(|column| {
        let lengths = rows.iter().map(|(cells, _)| cells[column].chars().count());
        lengths.chain([HEAD[column].len()]).max().unwrap_or(0)
    });
    let line = |cells: &[String; 4], label: &str| {
        let cells: Vec<String> =
            cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("  {}  {label}\n", cells.join("  "))
    };
    let used = widths.iter().sum::<usize>() + 2 * (widths.len() + 1);
    let mut text = screen.paint("2", line(&HEAD.map(str::to_owned), "COMMAND").trim_end()) + "\n";
    for (cells, label) in &rows {
        let label = match screen.width {
            Some(width) => cut(label, width.saturating_sub(used).max(MIN_LABEL)),
            None => label.clone(),
        };
        text.push_str(&line(cells, &label));
    }
    text
}

#[cfg(test)]
mod tests {
    use agentd_protocol::jobs::JobKind;

    use super::*;
    use crate::render::example_session as example;

    fn job(id: &str, name: Option<&str>, status: JobStatus, exit_code: Option<i32>) -> JobInfo {
        JobInfo {
            id: id.to_owned(),
            kind: if name.is_some() { JobKind::Service } else { JobKind::Process },
            label: "make\ntest \u{1b}[2J".to_owned(),
            status,
            duration_ms: 245_000,
            started_at: None,
            name: name.map(str::to_owned),
            exit_code,
            output_bytes: None,
            artifact_id: None,
            session_id: None,
            tool_call_id: None,
        }
    }

    #[test]
    fn jobs_stand_under_their_session() {
        let jobs = vec![
            job("bg-1", None, JobStatus::Failed, Some(2)),
            job("bg-2", Some("web"), JobStatus::Running, None),
            job("bg-3", None, JobStatus::Interrupted, None),
        ];
        let text = tables(&[(example("s-1"), jobs), (example("s-2"), Vec::new())], Screen::default());
        assert_eq!(
            text,
            "s-1  project: What is this?
  JOB         KIND     STATE               TIME   COMMAND
  bg-1        process  exited with code 2  4m05s  make test  [2J
  bg-2 (web)  service  is running          4m05s  make test  [2J
  bg-3        process  was interrupted     4m05s  make test  [2J
"
        );
        let narrow = Screen { width: Some(40), ..Screen::default() };
        assert!(
            table(&[job("bg-1", None, JobStatus::Completed, Some(0))], narrow).contains("make test  [2J")
        );
    }
}
