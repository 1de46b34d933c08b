//! Opening a session whose file another process is about to let go.

use std::time::Duration;

use agentd_session::OpenError;
use agentd_store::StoreError;
use tokio::time::{Instant, sleep};

/// How long a session file may stay taken. A host that loads a session anew tells its old process to end and starts the next
/// one at once. The old one has less than a second for that, and more on a machine that is at its limits.
const PATIENCE: Duration = Duration::from_secs(3);

/// The time between two tries. The lock of a file cannot be waited for with an end to the wait.
const PAUSE: Duration = Duration::from_millis(20);

/// Opens by `open`, and again for a little while when another process has the file.
///
/// # Errors
/// What `open` says: at once, or at the end of the patience when the file stays taken.
pub(super) async fn once_free<T, Opening>(mut open: impl FnMut() -> Opening) -> Result<T, OpenError>
where
    Opening: Future<Output = Result<T, OpenError>>,
{
    let end = Instant::now() + PATIENCE;
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

    /// Opens with these results, and `Locked` from then on; gives the last one, and how often it tried.
    async fn opened(results: Vec<Result<(), OpenError>>) -> (Result<(), OpenError>, usize) {
        let (mut results, mut tries) = (results.into_iter(), 0);
        let settled = once_free(|| {
            tries += 1;
            std::future::ready(results.next().unwrap_or_else(|| Err(locked())))
        })
        .await;
        (settled, tries)
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_gets_free_is_opened() {
        let (settled, tries) = opened(vec![Err(locked()), Err(locked()), Ok(())]).await;
        assert!(settled.is_ok());
        assert_eq!(tries, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_stays_taken_is_said_to_be() {
        let started = Instant::now();
        let (settled, _) = opened(Vec::new()).await;
        assert!(matches!(settled, Err(OpenError::Store(StoreError::Locked { .. }))));
        assert_eq!(started.elapsed(), PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn other_errors_are_told_at_once() {
        let (settled, tries) = opened(vec![Err(OpenError::NotFound("x".into()))]).await;
        assert!(matches!(settled, Err(OpenError::NotFound(_))));
        assert_eq!(tries, 1);
    }
}
