use super::*;

const GRACE: Duration = Duration::from_secs(1);

fn line(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn log(capacity: usize, replay_bytes: usize) -> EventLog {
    EventLog::starting_after(0, capacity, replay_bytes)
}

fn attach(log: &mut EventLog, id: u64) -> SubscriberId {
    log.attach(SubscriberId(id));
    SubscriberId(id)
}

/// Everything that waits, as text: events with their numbers.
fn take_all(log: &mut EventLog, subscriber: SubscriberId) -> Vec<String> {
    let mut items = Vec::new();
    log.take(subscriber, usize::MAX, &mut items);
    items
        .iter()
        .map(|item| match item {
            FeedItem::Event { seq, line, .. } => format!("{seq} {}", String::from_utf8_lossy(line)),
            FeedItem::Reply { line } | FeedItem::Addressed { line } => {
                String::from_utf8_lossy(line).into_owned()
            }
            FeedItem::LongReply { reply } => String::from_utf8_lossy(&reply.line()).into_owned(),
            FeedItem::Lagged { from_seq } => format!("lagged from {from_seq}"),
        })
        .collect()
}

#[test]
fn everyone_takes_every_event_and_only_their_own_replies_in_order() {
    let mut log = log(100, 0);
    assert_eq!(log.publish(line("nobody listens")), 1);
    let (one, two) = (attach(&mut log, 1), attach(&mut log, 2));
    log.publish(line("a"));
    log.reply(one, line("to one"));
    log.publish(line("b"));
    assert_eq!(take_all(&mut log, one), ["2 a", "to one", "3 b"]);
    assert!(take_all(&mut log, one).is_empty());
    assert_eq!(log.events.kept(), (2..4, 4), "kept for the other subscriber");
    assert_eq!(take_all(&mut log, two), ["2 a", "3 b"]);
    assert_eq!(log.events.kept(), (4..4, 0));
    log.detach(one);
    log.reply(one, line("late"));
    assert!(take_all(&mut log, one).is_empty(), "nobody waits for that reply any more");
}

#[test]
fn lines_are_shared_and_never_copied() {
    let mut log = log(100, 0);
    let (one, two) = (attach(&mut log, 1), attach(&mut log, 2));
    let published = line("a");
    log.publish(published.clone());
    for subscriber in [one, two] {
        let mut items = Vec::new();
        log.take(subscriber, 1, &mut items);
        assert!(matches!(&items[..], [FeedItem::Event { line, .. }] if line.as_ptr() == published.as_ptr()));
    }
}

#[test]
fn room_is_counted_in_bytes_for_each_listener_and_comes_back_as_lines_are_taken() {
    let mut log = log(6, 0);
    let (one, two) = (attach(&mut log, 1), attach(&mut log, 2));
    log.publish(line("1234"));
    assert!(log.has_room(), "five bytes, LF counted");
    log.reply(two, line(""));
    assert!(!log.has_room(), "six for the second subscriber");
    take_all(&mut log, two);
    assert!(log.has_room());
    log.publish(line(""));
    assert!(!log.has_room(), "six for the first");
    log.take(one, 1, &mut Vec::new());
    assert!(log.has_room());
    log.publish(line("12345"));
    log.detach(one);
    log.detach(two);
    assert!(log.has_room(), "a subscriber that left holds nothing back");
}

#[test]
fn nothing_is_kept_before_a_client_that_may_come_back() {
    let mut log = EventLog::starting_after(0, 100, 100);
    log.publish(line("nobody was there"));
    log.attach_for_now(SubscriberId(1));
    log.publish(line("one is there"));
    assert_eq!(log.events.kept().0, 2..3, "it has yet to take it");
    log.detach(SubscriberId(1));
    assert_eq!(log.events.kept().0, 3..3);
    let client = attach(&mut log, 2);
    log.detach(client);
    log.publish(line("it may come back"));
    assert!(log.attach_since(SubscriberId(3), 2));
}

#[test]
fn events_stay_within_a_bound_for_those_who_come_back() {
    let mut log = EventLog::starting_after(10, 100, 4);
    assert!(log.attach_since(SubscriberId(1), 10), "nothing was missed");
    assert!(!log.attach_since(SubscriberId(2), 9), "from before");
    assert!(
        !log.attach_since(SubscriberId(2), 11) && !log.attach_since(SubscriberId(2), u64::MAX),
        "from the future"
    );
    log.detach(SubscriberId(1));
    for text in ["a", "b", "c"] {
        log.publish(line(text));
    }
    assert_eq!((log.events.kept(), log.last_seq()), ((12..14, 4), 13));
    assert!(!log.attach_since(SubscriberId(3), 10), "the first is gone");
    assert!(log.attach_since(SubscriberId(4), 11));
    log.publish(line("d"));
    assert_eq!(take_all(&mut log, SubscriberId(4)), ["12 b", "13 c", "14 d"]);
    assert_eq!(log.events.kept(), (13..15, 4), "taken by all, and kept as far as the bound goes");
    assert!(log.has_room());
    log.publish(line("longer than that"));
    assert_eq!(log.events.kept().0, 15..16, "the subscriber has yet to take it");
    log.detach(SubscriberId(4));
    assert_eq!(log.events.kept().0, 16..16);
}

#[test]
fn one_listener_is_waited_for_and_one_of_several_is_cut_off() {
    let mut log = log(4, 0);
    let (slow, start) = (attach(&mut log, 1), Instant::now());
    log.publish(line("a"));
    log.reply(slow, line("reply"));
    log.publish(line("b"));
    let waiting = Room { is_there: false, next_cut: None, has_cut: false };
    assert_eq!(log.make_room(start, GRACE), waiting);
    assert_eq!(log.make_room(start + 5 * GRACE, GRACE), waiting, "alone it may take all the time there is");

    let late = start + 5 * GRACE;
    let quick = attach(&mut log, 2);
    let cut = log.make_room(late, GRACE);
    assert_eq!(cut, Room { is_there: true, next_cut: None, has_cut: true });
    log.publish(line("c"));
    log.reply(slow, line("another"));
    log.publish(line("d"));
    assert_eq!(take_all(&mut log, slow), ["lagged from 1", "reply", "another"]);
    log.publish(line("e"));
    assert!(take_all(&mut log, slow).is_empty(), "told once, and no more events");
    assert_eq!(take_all(&mut log, quick), ["3 c", "4 d", "5 e"]);
}

#[test]
fn what_is_for_one_listener_alone_is_never_dropped() {
    let mut log = log(4, 0);
    let (slow, start) = (attach(&mut log, 1), Instant::now());
    let other = attach(&mut log, 2);
    log.publish(line("a"));
    log.address(slow, line("request"));
    log.publish(line("b"));
    assert_eq!(take_all(&mut log, other), ["1 a", "2 b"]);
    log.make_room(start, GRACE);
    assert!(log.make_room(start + 2 * GRACE, GRACE).has_cut);
    log.mute(slow);
    assert_eq!(take_all(&mut log, slow), ["request"], "neither by a cut nor by leaving");
    log.address(SubscriberId(3), line("to nobody"));
    assert!(take_all(&mut log, slow).is_empty() && take_all(&mut log, other).is_empty());
}

#[test]
fn the_time_of_grace_begins_when_too_much_waits_and_anew_after_it_was_taken() {
    let mut log = log(2, 0);
    let (slow, _quick, start) = (attach(&mut log, 1), attach(&mut log, 2), Instant::now());
    log.publish(line("a"));
    take_all(&mut log, SubscriberId(2));
    let room = log.make_room(start, GRACE);
    assert_eq!(room, Room { is_there: false, next_cut: Some(start + GRACE), has_cut: false });
    let taken = log.take(slow, 1, &mut Vec::new());
    assert_eq!(taken, Taken { any: true, relieves: true });
    log.publish(line("b"));
    take_all(&mut log, SubscriberId(2));
    let later = start + GRACE;
    assert_eq!(log.make_room(later, GRACE).next_cut, Some(later + GRACE), "the time begins anew");
    assert!(!log.make_room(later + GRACE - Duration::from_nanos(1), GRACE).has_cut);
    assert!(log.make_room(later + GRACE, GRACE).has_cut);
}

#[test]
fn a_muted_listener_takes_answers_only_and_holds_no_events() {
    let mut log = log(4, 0);
    let subscriber = attach(&mut log, 1);
    log.publish(line("event"));
    log.reply(subscriber, line("answer"));
    log.mute(subscriber);
    assert_eq!(log.events.kept().0, 2..2);
    log.publish(line("event"));
    assert_eq!(take_all(&mut log, subscriber), ["answer"]);
    assert!(log.has_room());
}

#[test]
fn answers_of_a_listener_have_a_bound_of_their_own() {
    let mut log = log(4, 0);
    let (slow, _other, start) = (attach(&mut log, 1), attach(&mut log, 2), Instant::now());
    log.reply(slow, line("long"));
    log.make_room(start, GRACE);
    assert!(log.make_room(start + GRACE, GRACE).has_cut && log.has_room());
    assert!(!log.has_reply_room(slow), "nobody waits for it, but it should not ask for more");
    let taken = log.take(slow, 1, &mut Vec::new());
    assert!(taken.relieves && log.has_reply_room(slow));
    assert_eq!(take_all(&mut log, slow), ["lagged from 1"]);
}

#[test]
fn a_burst_leaves_no_memory_behind() {
    let mut log = log(1 << 20, 0);
    assert_eq!(log.events.row_capacity(), 0);
    let subscriber = attach(&mut log, 1);
    for _ in 0..10_000 {
        log.publish(line("{}"));
    }
    take_all(&mut log, subscriber);
    assert!(log.events.row_capacity() <= 64, "{}", log.events.row_capacity());
}

#[test]
fn what_is_being_stopped_may_go_beyond_the_limit_but_not_for_ever() {
    let mut log = log(100, 0);
    let subscriber = attach(&mut log, 1);
    let mut beyond = 0;
    while log.has_room_to_stop() {
        log.publish(line(&"x".repeat(99)));
        beyond += 1;
    }
    assert_eq!(beyond, STOPPING);
    assert!(!log.has_room());
    take_all(&mut log, subscriber);
    assert!(log.has_room_to_stop() && log.has_room());
}
