use tokio::time::{sleep, timeout};

use super::*;
use crate::event_log::FeedItem;

const SOON: Duration = Duration::from_secs(30);

fn small(outbox_bytes: usize) -> FeedLimits {
    FeedLimits { outbox_bytes, ..FeedLimits::default() }
}

const GRACE: Duration = Duration::from_secs(1);

fn line(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// The lines of the next batch, and where it says that events were left out; `None` at the end.
async fn next(subscriber: &Subscriber) -> Option<String> {
    let items = next_items(subscriber).await;
    let text = items.iter().map(|item| match item {
        FeedItem::Event { line, .. } | FeedItem::Reply { line } | FeedItem::Addressed { line } => {
            format!("{}\n", String::from_utf8_lossy(line))
        }
        FeedItem::LongReply { reply } => format!("{}\n", String::from_utf8_lossy(&reply.line())),
        FeedItem::Lagged { from_seq } => format!("lagged {from_seq}\n"),
    });
    (!items.is_empty()).then(|| text.collect())
}

async fn next_items(subscriber: &Subscriber) -> Vec<FeedItem> {
    let mut items = Vec::new();
    timeout(SOON, subscriber.next_items(&mut items)).await.expect("a subscriber that is woken");
    items
}

#[tokio::test]
async fn a_waiting_reader_is_woken_and_ends_with_the_feed() {
    let feed = Feed::new(small(100));
    let subscriber = feed.attach();
    let writing = feed.clone();
    let writer = tokio::spawn(async move {
        writing.publish([line("a"), line("b")]);
        writing.close();
    });
    let mut taken = String::new();
    while let Some(lines) = next(&subscriber).await {
        taken.push_str(&lines);
    }
    assert_eq!(taken, "a\nb\n", "everything before the end");
    writer.await.unwrap();
    assert!(next_items(&subscriber).await.is_empty());
}

#[tokio::test]
async fn a_full_feed_has_room_again_once_its_reader_took_something_or_left() {
    let feed = Feed::new(small(2));
    let subscriber = feed.attach();
    feed.publish([line("abc")]);
    assert!(!feed.has_room());
    let waiting = tokio::spawn({
        let feed = feed.clone();
        async move { feed.room().await }
    });
    tokio::task::yield_now().await;
    assert_eq!(next(&subscriber).await.as_deref(), Some("abc\n"));
    timeout(SOON, waiting).await.expect("room").unwrap();

    feed.publish([line("abc")]);
    let waiting = tokio::spawn({
        let feed = feed.clone();
        async move { feed.room().await }
    });
    tokio::task::yield_now().await;
    drop(subscriber);
    timeout(SOON, waiting).await.expect("a subscriber that left holds nothing back").unwrap();
}

#[tokio::test]
async fn a_muted_reader_takes_answers_only() {
    let feed = Feed::new(small(100));
    let mut subscriber = feed.attach();
    feed.publish([line("event")]);
    subscriber.mute();
    feed.publish([line("event")]);
    feed.reply(subscriber.id(), line("answer"));
    feed.publish([line("event")]);
    feed.close();
    assert_eq!(next(&subscriber).await.as_deref(), Some("answer\n"));
    assert_eq!(next(&subscriber).await, None);
}

#[tokio::test]
async fn a_session_that_breaks_down_still_ends_its_feed() {
    let feed = Feed::new(small(10));
    let (subscriber, end) = (feed.attach(), feed.close_at_the_end());
    let broken = tokio::spawn(async move {
        let _end = end;
        panic!("a bug in a session");
    });
    broken.await.unwrap_err();
    assert_eq!(next(&subscriber).await, None);
}

#[tokio::test]
async fn a_reader_that_comes_back_gets_what_it_missed() {
    let feed = Feed::starting_after(7, FeedLimits { replay_bytes: 100, ..small(100) });
    drop(feed.attach());
    feed.publish([line("a"), line("b")]);
    assert_eq!(feed.last_seq(), 9);
    assert!(feed.attach_since(6).is_none() && feed.attach_since(10).is_none());
    let subscriber = feed.attach_since(8).unwrap();
    feed.publish([line("c")]);
    let expected = [
        FeedItem::Event { seq: 9, audience: Audience::Everyone, message: None, line: line("b") },
        FeedItem::Event { seq: 10, audience: Audience::Everyone, message: None, line: line("c") },
    ];
    assert_eq!(next_items(&subscriber).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_cut_off_after_a_second_when_others_read() {
    let feed = Feed::new(small(4));
    let (slow, quick) = (feed.attach(), feed.attach());
    feed.publish([line("abcd")]);
    assert_eq!(next(&quick).await.as_deref(), Some("abcd\n"));
    let begun = Instant::now();
    timeout(SOON, feed.room()).await.expect("room");
    assert_eq!(begun.elapsed(), GRACE);
    feed.publish([line("e")]);
    assert_eq!(next_items(&slow).await, [FeedItem::Lagged { from_seq: 1 }]);
    assert_eq!(next(&quick).await.as_deref(), Some("e\n"));
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_waits_is_told_that_it_was_cut_off_by_its_answers() {
    let feed = Feed::new(small(4));
    let (slow, _other) = (feed.attach(), feed.attach());
    feed.reply(slow.id(), line("answer"));
    timeout(SOON, feed.room()).await.expect("room");
    assert!(feed.has_room());
    let room = timeout(Duration::from_millis(1), feed.reply_room(slow.id())).await;
    assert!(room.is_err(), "it should not ask for more");
    let waiting = tokio::spawn({
        let (feed, id) = (feed.clone(), slow.id());
        async move { feed.reply_room(id).await }
    });
    tokio::task::yield_now().await;
    assert_eq!(next(&slow).await.as_deref(), Some("answer\nlagged 1\n"), "answers are never dropped");
    timeout(SOON, waiting).await.expect("room for answers").unwrap();

    feed.reply(slow.id(), line("answer"));
    let waiting = tokio::spawn({
        let (feed, id) = (feed.clone(), slow.id());
        async move { feed.reply_room(id).await }
    });
    tokio::task::yield_now().await;
    feed.close();
    timeout(SOON, waiting).await.expect("nobody waits when a session has ended").unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reader_is_waited_for_until_it_is_not_alone_any_more() {
    let feed = Feed::new(small(2));
    let slow = feed.attach();
    feed.publish([line("a")]);
    let waiting = tokio::spawn({
        let feed = feed.clone();
        async move { feed.room().await }
    });
    sleep(60 * GRACE).await;
    assert!(!waiting.is_finished());
    let begun = Instant::now();
    let _quick = feed.attach();
    timeout(SOON, waiting).await.expect("room").unwrap();
    assert!(begun.elapsed() <= GRACE);
    assert_eq!(next_items(&slow).await, [FeedItem::Lagged { from_seq: 1 }]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_announces_itself_is_not_held_up_by_a_reader_that_has_stopped() {
    let feed = Feed::new(small(2));
    let slow = feed.attach();
    feed.publish([line("a")]);
    let waiting = tokio::spawn({
        let feed = feed.clone();
        async move { feed.room().await }
    });
    sleep(60 * GRACE).await;
    assert!(!waiting.is_finished());
    let announced = feed.announce();
    timeout(SOON, waiting).await.expect("room").unwrap();
    drop(announced);
    assert_eq!(next_items(&slow).await, [FeedItem::Lagged { from_seq: 1 }]);
}

#[tokio::test]
async fn names_of_readers_are_never_used_twice() {
    let (one, two) = (Feed::new(small(10)), Feed::new(small(10)));
    let (in_one, in_two) = (one.attach(), two.attach());
    assert_ne!(in_one.id(), in_two.id());
    two.reply(in_one.id(), line("strayed"));
    two.close();
    assert_eq!(next(&in_two).await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_oversleeps_and_nothing_gets_lost_with_many_readers_at_once() {
    const EVENTS: u64 = 3000;
    // Room for two lines: the writer and every subscriber wait all the time. Nobody is cut off, however busy the machine is.
    let feed = Feed::new(FeedLimits { replay_bytes: 0, grace: 100 * SOON, ..small(4) });
    let subscribers = (0..8).map(|number| {
        let subscriber = feed.attach();
        tokio::spawn(async move {
            let mut items = Vec::new();
            loop {
                let more = tokio::select! {
                    biased;
                    more = subscriber.next_items(&mut items) => more,
                    // Every second one breaks its waiting off again and again.
                    () = tokio::task::yield_now(), if number % 2 == 0 => continue,
                };
                if !more {
                    return items;
                }
            }
        })
    });
    let subscribers: Vec<_> = subscribers.collect();
    let writing = async {
        for _ in 0..EVENTS {
            feed.room().await;
            feed.publish([line("e")]);
        }
        feed.close();
    };
    timeout(SOON, writing).await.expect("a writer that is woken");
    for subscriber in subscribers {
        let items = timeout(SOON, subscriber).await.expect("a subscriber that is woken").unwrap();
        let expected = (1..=EVENTS).map(|seq| FeedItem::Event {
            seq,
            audience: Audience::Everyone,
            message: None,
            line: line("e"),
        });
        assert!(items.into_iter().eq(expected));
    }
}
