//! Opens a session whose file is still locked by another process that is about to end.

use std::time::Duration;

use agentd_session::OpenError;
use agentd_store::StoreError;
use tokio::time::{Instant, sleep};

/// The longest time that the file may stay locked. A host that reloads a session tells its old process to end and starts the next one at once.
/// The old one ends within a second, and takes longer on an overloaded machine.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The time between two tries: the system has no wait for a file lock with a timeout.
const PAUSE: Duration = Duration::from_millis(20);

/// Calls `open`, and again until [`TIMEOUT`] while another process has the file.
///
/// # Errors
/// The error of `open`: at once, or after the timeout when the file stays locked.
pub(super) async fn retry_locked_open<T, Opening>(mut open: impl FnMut() -> Opening) -> Result<T, OpenError>
where
    Opening: Future<Output = Result<T, OpenError>>,
{
    let end = Instant::now() + TIMEOUT;
    loop {
        match open().await {
            Err(OpenError::Store(StoreError::Locked { .. })) if Instant::now() < end => sleep(PAUSE).await,
            settled => return settled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locked() -> OpenError {
        StoreError::Locked { path: "x.jsonl".into(), holder: None }.into()
    }

    /// Opens with these results, and `Locked` from then on; gives the last result, and the number of tries.
    async fn opened(results: Vec<Result<(), OpenError>>) -> (Result<(), OpenError>, usize) {
        let (mut results, mut tries) = (results.into_iter(), 0);
        let settled = retry_locked_open(|| {
            tries += 1;
            std::future::ready(results.next().unwrap_or_else(|| Err(locked())))
        })
        .await;
        (settled, tries)
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_unlocked_is_opened() {
        let (settled, tries) = opened(vec![Err(locked()), Err(locked()), Ok(())]).await;
        assert!(settled.is_ok());
        assert_eq!(tries, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_stays_locked_is_an_error() {
        let started = Instant::now();
        let (settled, _) = opened(Vec::new()).await;
        assert!(matches!(settled, Err(OpenError::Store(StoreError::Locked { .. }))));
        assert_eq!(started.elapsed(), TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn other_errors_are_returned_at_once() {
        let (settled, tries) = opened(vec![Err(OpenError::NotFound("x".into()))]).await;
        assert!(matches!(settled, Err(OpenError::NotFound(_))));
        assert_eq!(tries, 1);
    }
}
