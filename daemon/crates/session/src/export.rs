//! The session as a page to read.

use std::path::Path;

use agentd_config::resolve_path;
use agentd_export_html::{ExportError, default_file_name, write_file};
use agentd_protocol::{
    command::{ExportHtmlParams, Exported},
    error::{ErrorCode, Failure},
};

use crate::{actor::Actor, reply::Reply};

impl Actor {
    /// Writes the page on a blocking thread. The session waits for it, as for other long answers, so that there is one at a
    /// time; an abort does not wait.
    pub(crate) async fn export_html(&self, params: ExportHtmlParams, reply: Reply) {
        let target = match self.journal.file() {
            None => Err(in_memory()),
            Some(_) if self.journal.is_unsaved() => Err(nothing_yet()),
            Some(file) => Ok(target(params, file)),
        };
        let path = match target {
            Ok(path) => path,
            Err(failure) => return reply.fail(&self.feed, failure),
        };
        let resolved = resolve_path(&path, &self.context.cwd, &self.context.environment);
        // Entries share their texts with this copy.
        let (tree, report) = (self.journal.tree().clone(), self.journal.report().clone());
        let written = tokio::task::spawn_blocking(move || write_file(&tree, &report, &resolved)).await;
        let result = match written {
            Ok(written) => written.map(|()| Exported { path }).map_err(not_written),
            Err(error) => {
                Err(Failure::new(ErrorCode::Internal, format!("cannot export the session: {error}")))
            }
        };
        reply.result(&self.feed, result);
    }
}

/// Where the page goes, as it is given back.
fn target(params: ExportHtmlParams, session_file: &Path) -> String {
    params.output_path.filter(|path| !path.is_empty()).unwrap_or_else(|| default_file_name(session_file))
}

fn in_memory() -> Failure {
    Failure::new(ErrorCode::Unsupported, "Cannot export in-memory session to HTML")
        .hint("Sessions that are started without --no-session (ephemeral) have a file, and can be exported.")
}

fn nothing_yet() -> Failure {
    Failure::new(ErrorCode::Unsupported, "Nothing to export yet - start a conversation first")
}

fn not_written(error: ExportError) -> Failure {
    Failure::new(ErrorCode::Io, error.to_string()).hint(error.hint())
}
