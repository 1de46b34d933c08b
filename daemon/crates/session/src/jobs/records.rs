//! The entries by which a session knows its processes that are jobs, so that none is forgotten when the daemon ends. Pure.

use std::collections::{HashMap, HashSet};

use agentd_protocol::{
    entry::EntryBody,
    jobs::{JOB_ENTRY, JOB_MESSAGE, JobInfo, JobRecord, JobRecords, JobStatus},
};
use agentd_store::{EntryKind, SessionTree};
use serde_json::json;

/// Jobs of before that a session lists at most: the last ones.
const REMEMBERED: usize = 64;

/// What a session's entries say of its jobs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordedJobs {
    /// The last of them, the oldest first. Those that worked then were interrupted.
    pub(crate) jobs: Vec<JobInfo>,
    /// Those of them whose end the model was not told.
    pub(crate) untold: Vec<JobInfo>,
}

/// The entry for a job that began or ended.
pub(crate) fn job_entry(session: &str, record: JobRecord) -> EntryBody {
    let records = JobRecords { session: session.to_owned(), jobs: vec![record] };
    EntryBody::Custom { custom_type: JOB_ENTRY.to_owned(), data: Some(json!(records)) }
}

fn records(tree: &SessionTree) -> impl Iterator<Item = JobRecords> {
    tree.entries().iter().filter(|entry| entry.may_be_custom(JOB_ENTRY)).filter_map(|entry| {
        // What another version wrote in another form is passed over.
        match entry.body() {
            Some(EntryBody::Custom { custom_type, data: Some(data) }) if custom_type == JOB_ENTRY => {
                serde_json::from_value(data).ok()
            }
            _ => None,
        }
    })
}

/// What the entries of all branches say of the jobs of `session`. A copy of a session has its entries, and not its jobs.
pub(crate) fn jobs_in(tree: &SessionTree, session: &str) -> RecordedJobs {
    let mut known: Vec<JobRecord> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for record in records(tree).filter(|records| records.session == session).flat_map(|records| records.jobs)
    {
        match places.get(&record.job.id) {
            Some(&place) => known[place] = record,
            None => {
                places.insert(record.job.id.clone(), known.len());
                known.push(record);
            }
        }
    }
    if known.is_empty() {
        return RecordedJobs::default();
    }
    let told = told_in(tree);
    let mut found = RecordedJobs::default();
    for JobRecord { mut job, told: is_told } in known {
        if job.status == JobStatus::Running {
            job.status = JobStatus::Interrupted;
        }
        if !is_told && !told.contains(&job.id) {
            found.untold.push(job.clone());
        }
        found.jobs.push(job);
    }
    let surplus = found.jobs.len().saturating_sub(REMEMBERED);
    found.jobs.drain(..surplus);
    found
}

/// The ids of the jobs whose ends messages tell.
fn told_in(tree: &SessionTree) -> HashSet<String> {
    let messages = tree.entries().iter().filter(|entry| entry.kind() == EntryKind::CustomMessage);
    let ids = messages.filter_map(|entry| match entry.body() {
        Some(EntryBody::CustomMessage { custom_type, details: Some(details), .. })
            if custom_type == JOB_MESSAGE =>
        {
            details.pointer("/job/id")?.as_str().map(str::to_owned)
        }
        _ => None,
    });
    ids.collect()
}

/// The number in the last id that an entry has, of a copied session's jobs, too: ids are not given twice.
pub(crate) fn last_number(tree: &SessionTree) -> u64 {
    let jobs = records(tree).flat_map(|records| records.jobs);
    let number = |record: JobRecord| record.job.id.strip_prefix("bg-")?.parse::<u64>().ok();
    jobs.filter_map(number).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use agentd_protocol::{jobs::JobKind, message::MessageContent};
    use agentd_store::{NewEntry, NewSession, Store, StoreOptions};

    use super::*;

    fn job(id: &str, status: JobStatus) -> JobInfo {
        JobInfo {
            id: id.to_owned(),
            kind: JobKind::Process,
            label: "make".to_owned(),
            status,
            duration_ms: 1,
            started_at: Some(2),
            name: None,
            exit_code: None,
            output_bytes: Some(0),
            artifact_id: None,
            session_id: None,
            tool_call_id: Some("c1".to_owned()),
        }
    }

    fn entry(session: &str, id: &str, status: JobStatus, told: bool) -> EntryBody {
        job_entry(session, JobRecord { job: job(id, status), told })
    }

    #[test]
    fn an_end_is_owed_until_a_message_or_a_call_has_told_it() {
        use JobStatus::{Completed, Failed, Interrupted, Running};
        let store = Store::new(StoreOptions::default());
        let mut tree = store.in_memory(NewSession::new("/w", 0)).unwrap().tree;
        let entries = [
            entry("s", "bg-1", Running, false),
            entry("s", "bg-1", Completed, false),
            EntryBody::CustomMessage {
                custom_type: JOB_MESSAGE.to_owned(),
                content: MessageContent::Text("x".to_owned()),
                display: true,
                details: Some(json!({"job": job("bg-1", Completed)})),
            },
            entry("s", "bg-2", Running, false),
            entry("s", "bg-3", Failed, true),
            entry("s", "bg-4", Failed, false),
            entry("other", "bg-9", Running, false),
            EntryBody::Custom { custom_type: JOB_ENTRY.to_owned(), data: Some(json!({"jobs": 3})) },
        ];
        for body in entries {
            let entry = tree.prepare(NewEntry::from_body(&body).unwrap(), 0);
            tree.push(entry);
        }
        let found = jobs_in(&tree, "s");
        let shown =
            |jobs: &[JobInfo]| jobs.iter().map(|job| (job.id.clone(), job.status)).collect::<Vec<_>>();
        let of = |id: &str, status| (id.to_owned(), status);
        assert_eq!(
            shown(&found.jobs),
            [of("bg-1", Completed), of("bg-2", Interrupted), of("bg-3", Failed), of("bg-4", Failed)]
        );
        assert_eq!(shown(&found.untold), [of("bg-2", Interrupted), of("bg-4", Failed)]);
        assert_eq!(jobs_in(&tree, "copy"), RecordedJobs::default());
        assert_eq!(last_number(&tree), 9);
    }
}
