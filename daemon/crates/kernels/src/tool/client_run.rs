//! A cell that a client runs instead of a kernel.

use agentd_agent::ToolProgress;
use agentd_process::OutputStorage;
use agentd_protocol::tool::ToolResult;
use tokio::{
    select,
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::updates::Updates;
use crate::{
    arguments::EvalCall,
    executor::{CellExecutor, ExecutorCell, ExecutorEnd},
    report::{CallEnd, CellOutput, ClientEnd},
};

/// Has an executor run a cell. What it prints goes to `outputs` where it is long.
pub(super) async fn run_by_client(
    executor: &dyn CellExecutor,
    cell: ExecutorCell,
    call: &EvalCall,
    outputs: OutputStorage,
    (cancel, progress): (&CancellationToken, &ToolProgress),
) -> ToolResult {
    progress.report(ToolResult::default());
    let since = Instant::now();
    let mut output = CellOutput::new(outputs);
    let mut updates = Updates::new(progress);
    let (printed, mut pieces) = mpsc::unbounded_channel::<String>();
    let mut running = executor.run(cell, printed, cancel);
    let end = loop {
        select! {
            biased;
            Some(piece) = pieces.recv() => {
                output.tail.push(piece.as_bytes()).await;
                updates.changed(&output, call);
            }
            end = &mut running => break end,
            () = sleep_until(updates.next), if updates.is_due => updates.send(&output, call),
        }
    };
    // What came before the end.
    while let Ok(piece) = pieces.try_recv() {
        output.tail.push(piece.as_bytes()).await;
    }
    let end = match end {
        ExecutorEnd::Done { text, images, error } => {
            output.tail.push(text.as_bytes()).await;
            images.into_iter().for_each(|image| output.image(image));
            CallEnd::OfClient(error.map_or(ClientEnd::Done, ClientEnd::Failed))
        }
        ExecutorEnd::TimedOut => CallEnd::OfClient(ClientEnd::TimedOut),
        ExecutorEnd::Aborted => CallEnd::Aborted,
        ExecutorEnd::Lost(why) => CallEnd::OfClient(ClientEnd::Lost(why)),
    };
    output.tail.finish().await;
    output.result(call, end, None, since.elapsed())
}
