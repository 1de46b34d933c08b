use std::os::unix::fs::symlink;

use futures::future::join_all;

use super::*;

fn known(queue: &FileQueue) -> usize {
    queue.files.lock().unwrap().len()
}

#[tokio::test]
async fn changes_of_one_file_follow_the_order_of_the_tickets() {
    let queue = FileQueue::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let tickets: Vec<FileTicket> = (0..20).map(|_| queue.ticket()).collect();
    // Use the last ticket first.
    let calls = tickets.into_iter().enumerate().rev().map(|(index, ticket)| {
        let seen = Arc::clone(&seen);
        async move {
            let turn = ticket.enter("/nonexistent/file".into()).await.unwrap();
            assert_eq!(turn.real_path(), Path::new("/nonexistent/file"));
            tokio::task::yield_now().await;
            seen.lock().unwrap().push(index);
        }
    });
    join_all(calls).await;
    assert_eq!(*seen.lock().unwrap(), (0..20).collect::<Vec<_>>());
    assert_eq!(known(&queue), 0);
}

#[tokio::test]
async fn other_files_do_not_wait() {
    let queue = FileQueue::new();
    let first = queue.ticket().enter("/nonexistent/a".into()).await.unwrap();
    let second = queue.ticket().enter("/nonexistent/b".into()).await.unwrap();
    assert_eq!(known(&queue), 2);
    drop((first, second));
    assert_eq!(known(&queue), 0);
}

#[tokio::test]
async fn queues_beside_each_other_change_a_file_one_after_the_other_and_have_their_own_order() {
    let queue = FileQueue::new();
    let (one, other) = (queue.beside(), queue.beside());
    let first = one.ticket().enter("/nonexistent/file".into()).await.unwrap();
    let mut second = tokio::spawn(other.ticket().enter("/nonexistent/file".into()));
    // The second call has resolved its path once the next one of its queue has its turn.
    drop(other.ticket().enter("/nonexistent/other".into()).await.unwrap());
    assert!((&mut second).now_or_never().is_none());
    drop(first);
    drop(second.await.unwrap().unwrap());
    // A call that has not resolved its path yet delays no other session.
    let _undecided = one.ticket();
    drop(other.ticket().enter("/nonexistent/file".into()).await.unwrap());
    assert_eq!(known(&queue), 0);
}

#[tokio::test]
async fn two_names_of_one_file_wait_for_each_other() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("real")).unwrap();
    symlink("real", dir.path().join("link")).unwrap();
    let queue = FileQueue::new();
    let first = queue.ticket().enter(dir.path().join("real/new")).await.unwrap();
    let mut second = tokio::spawn(queue.ticket().enter(dir.path().join("link/new")));
    // A later call for another file has its turn, so the second one had resolved its path.
    drop(queue.ticket().enter(dir.path().join("other")).await.unwrap());
    assert!((&mut second).now_or_never().is_none());
    drop(first);
    let second = second.await.unwrap().unwrap();
    assert!(second.real_path().ends_with("real/new"));
}

#[tokio::test]
async fn a_wait_that_is_given_up_lets_nobody_through_early() {
    let queue = FileQueue::new();
    let path = || PathBuf::from("/nonexistent/file");
    let first = queue.ticket().enter(path()).await.unwrap();
    let second = tokio::spawn(queue.ticket().enter(path()));
    drop(queue.ticket().enter("/nonexistent/other".into()).await.unwrap());
    let mut third = tokio::spawn(queue.ticket().enter(path()));
    drop(queue.ticket().enter("/nonexistent/other".into()).await.unwrap());
    second.abort();
    assert!(second.await.err().is_some_and(|error| error.is_cancelled()));
    assert!((&mut third).now_or_never().is_none());
    drop(first);
    drop(third.await.unwrap().unwrap());
    assert_eq!(known(&queue), 0);
}

#[tokio::test]
async fn a_ticket_that_is_dropped_holds_nobody_up() {
    let queue = FileQueue::new();
    let first = queue.ticket();
    let second = queue.ticket();
    let third = queue.ticket();
    drop(second);
    drop(first);
    third.enter("/nonexistent/file".into()).await.unwrap();
}

#[tokio::test]
async fn a_path_that_cannot_be_followed_gives_its_place_up() {
    let dir = tempfile::tempdir().unwrap();
    symlink("a", dir.path().join("a")).unwrap();
    let queue = FileQueue::new();
    let error = queue.ticket().enter(dir.path().join("a")).await.err().unwrap();
    assert_eq!(crate::errno::code(&error), "ELOOP");
    assert_eq!(known(&queue), 0);
    queue.ticket().enter(dir.path().join("b")).await.unwrap();
}
