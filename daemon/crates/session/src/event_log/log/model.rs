//! The log against a model that keeps a queue of its own for each subscriber, under any order of calls.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const GRACE: Duration = Duration::from_millis(1000);

#[derive(Debug, Clone)]
enum Call {
    Publish { len: usize },
    Reply { who: usize, len: usize },
    Attach,
    AttachForNow,
    AttachSince { missed: u64 },
    AttachBeyond { by: u64 },
    AttachAside { is_onlooker: bool },
    StartOver { len: usize },
    Take { who: usize, max_bytes: usize },
    Detach { who: usize },
    Mute { who: usize },
    Announce,
    Unannounce,
    Wait { millis: u64 },
    MakeRoom,
    Close,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let len = 0..40_usize;
    let who = 0..8_usize;
    let call = prop_oneof![
        12 => len.clone().prop_map(|len| Call::Publish { len }),
        4 => (who.clone(), len.clone()).prop_map(|(who, len)| Call::Reply { who, len }),
        1 => len.prop_map(|len| Call::StartOver { len }),
        1 => any::<bool>().prop_map(|is_onlooker| Call::AttachAside { is_onlooker }),
        2 => Just(Call::Attach),
        1 => Just(Call::AttachForNow),
        3 => (0..12_u64).prop_map(|missed| Call::AttachSince { missed }),
        1 => (1..3_u64).prop_map(|by| Call::AttachBeyond { by }),
        8 => (who.clone(), 0..120_usize).prop_map(|(who, max_bytes)| Call::Take { who, max_bytes }),
        1 => who.clone().prop_map(|who| Call::Detach { who }),
        1 => who.prop_map(|who| Call::Mute { who }),
        1 => Just(Call::Announce),
        1 => Just(Call::Unannounce),
        3 => (0..900_u64).prop_map(|millis| Call::Wait { millis }),
        5 => Just(Call::MakeRoom),
        1 => Just(Call::Close),
    ];
    prop::collection::vec(call, 0..200)
}

/// One subscriber, with a queue of its own.
#[derive(Debug)]
struct ModelSubscriber {
    id: SubscriberId,
    waiting: VecDeque<FeedItem>,
    /// The number of the event that it takes next; `None` when it takes no more.
    next: Option<u64>,
    is_cut_off: bool,
    is_muted: bool,
    is_onlooker: bool,
    over_since: Option<Instant>,
    // For the laws: what it began after, was given and has taken.
    began_after: u64,
    given: Vec<Bytes>,
    taken: Vec<FeedItem>,
}

impl ModelSubscriber {
    fn unread(&self) -> u64 {
        let lines = self.waiting.iter().filter(|item| !matches!(item, FeedItem::Lagged { .. }));
        lines.map(|item| item.line_len() as u64 + 1).sum()
    }

    fn reply_bytes(&self) -> u64 {
        let replies = self.waiting.iter().filter(|item| matches!(item, FeedItem::Reply { .. }));
        replies.map(|item| item.line_len() as u64 + 1).sum()
    }

    /// Clears `over_since` when little enough waits again. True when it was set until now.
    fn relieve(&mut self, capacity: u64) -> bool {
        let relieved = self.over_since.is_some() && !self.is_over(capacity);
        if relieved {
            self.over_since = None;
        }
        relieved
    }

    fn is_over(&self, capacity: u64) -> bool {
        !self.is_cut_off && !self.is_onlooker && self.unread() >= capacity
    }

    fn cut_off(&mut self) {
        (self.is_cut_off, self.over_since) = (true, None);
        let Some(from_seq) = self.next.take() else { return };
        let place = self.waiting.iter().position(|item| matches!(item, FeedItem::Event { .. }));
        self.waiting.insert(place.unwrap_or(self.waiting.len()), FeedItem::Lagged { from_seq });
        self.waiting.retain(|item| !matches!(item, FeedItem::Event { .. }));
    }

    fn mute(&mut self) {
        (self.next, self.is_muted) = (None, true);
        self.waiting.retain(|item| matches!(item, FeedItem::Reply { .. }));
    }

    /// What holds for everything that a subscriber has taken, whatever else happened.
    fn check_laws(&self) {
        let events = self.taken.iter().filter_map(|item| match item {
            FeedItem::Event { seq, .. } => Some(*seq),
            _ => None,
        });
        let count = events.clone().count() as u64;
        assert!(events.eq(self.began_after + 1..=self.began_after + count), "no hole, nothing twice");
        let replies = self.taken.iter().filter_map(|item| match item {
            FeedItem::Reply { line } => Some(line),
            _ => None,
        });
        assert!(replies.eq(&self.given[..replies_taken(&self.taken)]), "each answer once and in order");
        let lags = self.taken.iter().enumerate().filter(|(_, item)| matches!(item, FeedItem::Lagged { .. }));
        for (place, lag) in lags.clone() {
            assert_eq!(*lag, FeedItem::Lagged { from_seq: self.began_after + count + 1 });
            assert!(!self.taken[place..].iter().any(|item| matches!(item, FeedItem::Event { .. })));
        }
        assert!(lags.count() <= 1);
    }
}

fn replies_taken(taken: &[FeedItem]) -> usize {
    taken.iter().filter(|item| matches!(item, FeedItem::Reply { .. })).count()
}

/// The log and its model, side by side.
struct Pair {
    log: EventLog,
    now: Instant,
    capacity: u64,
    replay_bytes: u64,
    last_subscriber: u64,
    subscribers: Vec<ModelSubscriber>,
    announced: usize,
    closed: bool,
    /// All events that there ever were, and the number before the first.
    history: Vec<Bytes>,
    /// Those that say that the session starts over.
    starts_over: Vec<u64>,
    /// Whether a subscriber has ever been there that may come back.
    has_been_followed: bool,
    before_first: u64,
    /// The first after which one can go on.
    continues_from: u64,
    /// The oldest that is still there.
    kept_from: u64,
    largest: u64,
    lines: u64,
}

impl Pair {
    fn new(before_first: u64, capacity: usize, replay_bytes: usize) -> Self {
        Self {
            log: EventLog::starting_after(before_first, capacity, replay_bytes),
            now: Instant::now(),
            capacity: capacity as u64,
            replay_bytes: replay_bytes as u64,
            last_subscriber: 0,
            subscribers: Vec::new(),
            announced: 0,
            closed: false,
            history: Vec::new(),
            starts_over: Vec::new(),
            has_been_followed: false,
            before_first,
            continues_from: before_first,
            kept_from: before_first + 1,
            largest: 0,
            lines: 0,
        }
    }

    fn last_seq(&self) -> u64 {
        self.before_first + self.history.len() as u64
    }

    fn event(&self, seq: u64) -> FeedItem {
        let index = usize::try_from(seq - self.before_first - 1).unwrap();
        let starts_over = self.starts_over.contains(&seq);
        let audience = if starts_over { Audience::Counting } else { Audience::Everyone };
        FeedItem::Event { seq, audience, message: None, line: self.history[index].clone() }
    }

    /// A line like no other, of about that length.
    fn line(&mut self, len: usize) -> Bytes {
        self.lines += 1;
        let line = Bytes::from(format!("{:len$}", self.lines));
        self.largest = self.largest.max(line.len() as u64 + 1);
        line
    }

    fn subscriber(&mut self, who: usize) -> Option<&mut ModelSubscriber> {
        let count = self.subscribers.len();
        self.subscribers.get_mut(who % count.max(1))
    }

    fn apply(&mut self, call: &Call) {
        match *call {
            Call::Publish { len } => self.publish(len),
            Call::Reply { who, len } => self.reply(who, len),
            Call::Attach => {
                self.last_subscriber += 1;
                self.log.attach(SubscriberId(self.last_subscriber));
                self.has_been_followed = true;
                self.attached(self.last_seq());
            }
            Call::AttachForNow => {
                self.last_subscriber += 1;
                self.log.attach_for_now(SubscriberId(self.last_subscriber));
                self.attached(self.last_seq());
            }
            Call::AttachSince { missed } => {
                self.last_subscriber += 1;
                let seq = self.last_seq().saturating_sub(missed);
                let is_there = seq + 1 >= self.kept_from && seq >= self.continues_from;
                assert_eq!(self.log.attach_since(SubscriberId(self.last_subscriber), seq), is_there);
                if is_there {
                    self.has_been_followed = true;
                    self.attached(seq);
                }
            }
            Call::AttachAside { is_onlooker } => {
                self.last_subscriber += 1;
                self.log.attach_aside(SubscriberId(self.last_subscriber), is_onlooker);
                self.attached(self.last_seq());
                if let Some(subscriber) = self.subscribers.last_mut() {
                    subscriber.mute();
                    subscriber.is_onlooker = is_onlooker;
                }
            }
            Call::StartOver { len } => {
                let line = self.line(len);
                self.log.start_over(line.clone());
                self.starts_over.push(self.last_seq() + 1);
                self.published(line);
                self.continues_from = self.last_seq() + 1;
            }
            Call::AttachBeyond { by } => {
                assert!(!self.log.attach_since(SubscriberId(u64::MAX), self.last_seq() + by));
            }
            Call::Take { who, max_bytes } => self.take(who, max_bytes),
            Call::Detach { who } => {
                if !self.subscribers.is_empty() {
                    let gone = self.subscribers.swap_remove(who % self.subscribers.len());
                    let held_back = gone.over_since.is_some() || gone.reply_bytes() >= self.capacity;
                    assert_eq!(self.log.detach(gone.id), held_back);
                }
            }
            Call::Mute { who } => {
                let capacity = self.capacity;
                let Some(subscriber) = self.subscriber(who) else { return };
                subscriber.mute();
                let (id, relieved) = (subscriber.id, subscriber.relieve(capacity));
                assert_eq!(self.log.mute(id), relieved);
            }
            Call::Announce => {
                self.announced += 1;
                self.log.announce();
            }
            Call::Unannounce if self.announced > 0 => {
                self.announced -= 1;
                self.log.unannounce();
            }
            Call::Unannounce => {}
            Call::Wait { millis } => self.now += Duration::from_millis(millis),
            Call::MakeRoom => self.make_room(),
            Call::Close => {
                self.closed = true;
                self.log.close();
            }
        }
    }

    fn publish(&mut self, len: usize) {
        let line = self.line(len);
        let seq = self.log.publish(line.clone());
        self.published(line);
        assert_eq!(seq, self.last_seq());
    }

    fn published(&mut self, line: Bytes) {
        self.history.push(line);
        let event = self.event(self.last_seq());
        for subscriber in self.subscribers.iter_mut().filter(|subscriber| subscriber.next.is_some()) {
            subscriber.waiting.push_back(event.clone());
        }
    }

    fn reply(&mut self, who: usize, len: usize) {
        let (line, upcoming) = (self.line(len), self.last_seq() + 1);
        let Some(subscriber) = self.subscriber(who) else { return };
        // The news of a cut stands where the event stands that was missed first, even if that has yet to come.
        let lag = |item: &FeedItem| matches!(item, FeedItem::Lagged { from_seq } if *from_seq == upcoming);
        let place = subscriber.waiting.iter().position(lag).unwrap_or(subscriber.waiting.len());
        subscriber.waiting.insert(place, FeedItem::Reply { line: line.clone() });
        subscriber.given.push(line.clone());
        let id = subscriber.id;
        self.log.reply(id, line);
    }

    fn attached(&mut self, seq: u64) {
        let waiting = (seq + 1..=self.last_seq()).map(|seq| self.event(seq)).collect();
        self.subscribers.push(ModelSubscriber {
            id: SubscriberId(self.last_subscriber),
            waiting,
            next: Some(seq + 1),
            is_cut_off: false,
            is_muted: false,
            is_onlooker: false,
            over_since: None,
            began_after: seq,
            given: Vec::new(),
            taken: Vec::new(),
        });
    }

    fn take(&mut self, who: usize, max_bytes: usize) {
        let capacity = self.capacity;
        let Some(subscriber) = self.subscriber(who) else { return };
        let full_of_replies = subscriber.reply_bytes() >= capacity;
        let (mut expected, mut bytes) = (Vec::new(), 0);
        while let Some(item) = subscriber.waiting.pop_front() {
            bytes += item.line_len() + 1;
            if let FeedItem::Event { seq, .. } = item {
                subscriber.next = Some(seq + 1);
            }
            expected.push(item);
            if bytes >= max_bytes {
                break;
            }
        }
        let frees_replies = full_of_replies && subscriber.reply_bytes() < capacity;
        let relieves = subscriber.relieve(capacity) || frees_replies;
        subscriber.taken.extend(expected.iter().cloned());
        let (id, mut got) = (subscriber.id, Vec::new());
        let taken = self.log.take(id, max_bytes, &mut got);
        assert_eq!(got, expected);
        assert_eq!(taken, Taken { any: !expected.is_empty(), relieves });
    }

    fn make_room(&mut self) {
        let (now, capacity) = (self.now, self.capacity);
        let counted = self.subscribers.iter().filter(|subscriber| !subscriber.is_onlooker).count();
        let is_shared = counted + self.announced > 1;
        let (mut next_cut, mut has_cut) = (None, false);
        for subscriber in self.subscribers.iter_mut().filter(|subscriber| subscriber.is_over(capacity)) {
            let since = *subscriber.over_since.get_or_insert(now);
            if is_shared && now.duration_since(since) >= GRACE {
                subscriber.cut_off();
                has_cut = true;
            } else if is_shared {
                next_cut = next_cut.into_iter().chain([since + GRACE]).min();
            }
        }
        let is_there = !self.subscribers.iter().any(|subscriber| subscriber.is_over(capacity));
        assert_eq!(self.log.make_room(now, GRACE), Room { is_there, next_cut, has_cut });
    }

    fn check(&mut self, is_polite: bool) {
        let weight = |line: &Bytes| line.len() as u64 + 1;
        let (mut replay_from, mut replayed) = (self.last_seq() + 1, 0);
        for line in self.history.iter().rev() {
            replayed += weight(line);
            if replayed > self.replay_bytes || !self.has_been_followed {
                break;
            }
            replay_from -= 1;
        }
        let needed_from = self.subscribers.iter().filter_map(|subscriber| subscriber.next).min();
        self.kept_from = self.kept_from.max(needed_from.map_or(replay_from, |from| from.min(replay_from)));
        let first = usize::try_from(self.kept_from - self.before_first - 1).unwrap();
        let bytes = self.history[first..].iter().map(weight).sum();
        assert_eq!(self.log.events.kept(), (self.kept_from..self.last_seq() + 1, bytes));
        assert!(self.log.events.row_capacity() <= 64.max(4 * (self.history.len() - first) + 4));
        assert_eq!(self.log.last_seq(), self.last_seq());
        assert_eq!(self.log.is_closed(), self.closed);
        let capacity = self.capacity;
        assert_eq!(
            self.log.has_room(),
            !self.subscribers.iter().any(|subscriber| subscriber.is_over(capacity))
        );
        for subscriber in &self.subscribers {
            assert_eq!(self.log.is_cut_off(subscriber.id), subscriber.is_cut_off);
            assert_eq!(self.log.subscriptions[&subscriber.id].over_since, subscriber.over_since);
            let may_ask = self.closed || subscriber.reply_bytes() < capacity;
            assert_eq!(self.log.has_reply_room(subscriber.id), may_ask);
            assert_eq!(self.log.is_full(subscriber.id), subscriber.is_over(capacity));
            // Nobody waits for an onlooker: its answers are bounded by who asks, and by `has_reply_room`.
            if is_polite && !subscriber.is_cut_off && !subscriber.is_onlooker {
                assert!(subscriber.unread() <= self.replay_bytes.max(capacity + self.largest));
            }
        }
        if is_polite {
            assert!(bytes <= self.replay_bytes.max(capacity + self.largest), "bounded memory");
        }
    }
}

proptest! {
    #[test]
    fn does_what_a_queue_for_each_listener_would(
        calls in calls(),
        before_first in prop_oneof![Just(0_u64), Just(1000)],
        capacity in 1..200_usize,
        replay_bytes in prop_oneof![1 => Just(0_usize), 3 => 0..150_usize],
        // Adds only where there is room, as a session does.
        is_polite: bool,
    ) {
        let mut pair = Pair::new(before_first, capacity, replay_bytes);
        for call in &calls {
            let adds = matches!(call, Call::Publish { .. } | Call::StartOver { .. } | Call::Reply { .. });
            if !(is_polite && adds && !pair.log.has_room()) {
                pair.apply(call);
            }
            pair.check(is_polite);
        }
        // In the end everyone gets the rest.
        for who in 0..pair.subscribers.len() {
            pair.take(who, usize::MAX);
            let subscriber = &pair.subscribers[who];
            subscriber.check_laws();
            assert_eq!(replies_taken(&subscriber.taken), subscriber.given.len());
            let lags = subscriber.taken.iter().any(|item| matches!(item, FeedItem::Lagged { .. }));
            assert!(lags == subscriber.is_cut_off || subscriber.is_muted);
            if let Some(next) = subscriber.next {
                assert_eq!(next, pair.last_seq() + 1, "nothing is missing at the end");
            }
        }
        pair.check(is_polite);
    }
}
