use agentd_protocol::message::{BashExecutionMessage, MessageContent, UserMessage};
use agentd_store::{NewEntry, NewSession, Store, StoreOptions};
use proptest::prelude::*;

use super::*;

const STARTED: CachedAnswer = CachedAnswer::Accepted(Disposition::Started);
const QUEUED: CachedAnswer = CachedAnswer::Accepted(Disposition::Queued);

fn key(name: impl ToString) -> RequestKey {
    name.to_string().into()
}

fn message(text: &str) -> Json<Message> {
    let content = MessageContent::Text(text.into());
    Json::new(Message::User(UserMessage { content, timestamp: 1 })).unwrap()
}

fn bash(output: &str) -> Json<Message> {
    Json::new(Message::BashExecution(BashExecutionMessage {
        command: "ls".into(),
        output: output.into(),
        exit_code: Some(0),
        cancelled: false,
        truncated: false,
        full_output_path: None,
        timestamp: 1,
        exclude_from_context: None,
    }))
    .unwrap()
}

fn tree(entries: impl IntoIterator<Item = NewEntry>) -> SessionTree {
    let store = Store::new(StoreOptions::default());
    let mut tree = store.in_memory(NewSession::new("/", 0)).unwrap().tree;
    for entry in entries {
        tree.push(tree.prepare(entry, 0));
    }
    tree
}

#[test]
fn a_repetition_waits_for_the_first_and_knows_the_answer_after_it() {
    let mut cache = IdempotencyCache::default();
    assert_eq!(cache.admit(&key("k"), CommandKind::Message, 1), Admission::First(1));
    assert_eq!(cache.admit(&key("k"), CommandKind::Message, 2), Admission::Waits);
    assert_eq!(cache.admit(&key("k"), CommandKind::Message, 3), Admission::Waits);
    assert_eq!(cache.admit(&key("other"), CommandKind::Message, 4), Admission::First(4));
    assert_eq!(cache.answer(key("k"), STARTED), [2, 3]);
    assert_eq!(cache.admit(&key("k"), CommandKind::Message, 5), Admission::Answered(5, STARTED));
    assert_eq!(cache.answer(key("other"), QUEUED), [0; 0]);
}

#[test]
fn a_refused_command_leaves_no_trace() {
    let mut cache = IdempotencyCache::default();
    assert_eq!(cache.admit(&key("k"), CommandKind::Bash, 1), Admission::First(1));
    assert_eq!(cache.admit(&key("k"), CommandKind::Bash, 2), Admission::Waits);
    assert_eq!(cache.refuse("k"), [2]);
    assert_eq!(cache.admit(&key("k"), CommandKind::Message, 3), Admission::First(3));
    assert_eq!((cache.waiting, cache.working.len(), cache.answered.len()), (0, 1, 0));
}

#[test]
fn a_forgotten_key_is_new() {
    let mut cache = IdempotencyCache::default();
    cache.admit(&key("k"), CommandKind::Message, 1);
    cache.answer(key("k"), QUEUED);
    cache.forget("k");
    cache.forget("never there");
    assert_eq!(cache.admit(&key("k"), CommandKind::Message, 2), Admission::First(2));
    assert!(cache.order.is_empty());
}

#[test]
fn a_key_serves_one_kind_of_answer() {
    let mut cache = IdempotencyCache::default();
    cache.admit(&key("k"), CommandKind::Message, 1);
    assert_eq!(cache.admit(&key("k"), CommandKind::Bash, 2), Admission::OtherKind(2, CommandKind::Message));
    cache.answer(key("k"), STARTED);
    assert_eq!(cache.admit(&key("k"), CommandKind::Bash, 2), Admission::OtherKind(2, CommandKind::Message));
    cache.admit(&key("b"), CommandKind::Bash, 1);
    cache.answer(key("b"), CachedAnswer::Bash(bash("x")));
    assert_eq!(cache.admit(&key("b"), CommandKind::Message, 2), Admission::OtherKind(2, CommandKind::Bash));
}

#[test]
fn no_more_than_so_many_wait() {
    let mut cache = IdempotencyCache::default();
    cache.admit(&key("k"), CommandKind::Bash, 0);
    for who in 1..=WAITING {
        assert_eq!(cache.admit(&key("k"), CommandKind::Bash, who), Admission::Waits);
    }
    assert_eq!(cache.admit(&key("k"), CommandKind::Bash, 0), Admission::TooMany(0));
    assert_eq!(cache.answer(key("k"), STARTED).len(), WAITING);
    cache.admit(&key("l"), CommandKind::Bash, 0);
    assert_eq!(cache.admit(&key("l"), CommandKind::Bash, 7), Admission::Waits);
    assert_eq!(cache.give_up(), [7], "waiters at the end of the session");
    assert_eq!(cache.admit(&key("l"), CommandKind::Bash, 8), Admission::First(8));
}

#[test]
fn a_thousand_keys_are_known_and_the_oldest_is_forgotten_first() {
    let mut cache = IdempotencyCache::default();
    for number in 0..=KEYS {
        cache.admit(&key(number), CommandKind::Message, ());
        cache.answer(key(number), STARTED);
    }
    assert_eq!((cache.answered.len(), cache.order.len()), (KEYS, KEYS));
    assert_eq!(cache.admit(&key(1), CommandKind::Message, ()), Admission::Answered((), STARTED));
    assert_eq!(cache.admit(&key(0), CommandKind::Message, ()), Admission::First(()));
}

#[test]
fn the_entries_of_a_session_say_what_was_answered() {
    let with = |message, key: &str| NewEntry::message(message).with(KEY_FIELD, &key).unwrap();
    let queued = with(message("q"), "q").with(DISPOSITION_FIELD, &Disposition::Queued).unwrap();
    let started = with(message("s"), "s").with(DISPOSITION_FIELD, &Disposition::Started).unwrap();
    let long = "k".repeat(MAX_REQUEST_KEY_BYTES + 1);
    let odd = NewEntry::message(message("n")).with(KEY_FIELD, &7).unwrap();
    let tree = tree([
        queued,
        started,
        with(message("other program's"), "o"),
        with(message("too long"), &long),
        with(message("empty"), ""),
        odd,
        NewEntry::message(message("without")),
        NewEntry::session_info("name").with(KEY_FIELD, &"info").unwrap(),
        with(bash("files"), "b"),
    ]);
    let mut cache = IdempotencyCache::of(&tree);
    assert_eq!(cache.order, ["q", "s", "o", "b"].map(RequestKey::from));
    assert_eq!(cache.admit(&key("q"), CommandKind::Message, ()), Admission::Answered((), QUEUED));
    assert_eq!(cache.admit(&key("s"), CommandKind::Message, ()), Admission::Answered((), STARTED));
    assert_eq!(cache.admit(&key("o"), CommandKind::Message, ()), Admission::Answered((), STARTED));
    assert_eq!(cache.admit(&key(long), CommandKind::Message, ()), Admission::First(()));
    let Admission::Answered((), CachedAnswer::Bash(kept)) = cache.admit(&key("b"), CommandKind::Bash, ())
    else {
        panic!("a bash command that is known")
    };
    let stored = tree.leaf().and_then(|entry| entry.message()).unwrap();
    assert!(std::ptr::eq(kept.text(), stored.text()), "shared with the entry, and no copy");
}

#[test]
fn a_long_session_gives_its_last_keys() {
    let entry = |number: usize| NewEntry::message(message("m")).with(KEY_FIELD, &number.to_string()).unwrap();
    // One key is there twice: it was forgotten in between.
    let tree = tree((0..KEYS + 5).chain([2]).map(entry));
    let mut cache = IdempotencyCache::of(&tree);
    assert_eq!((cache.answered.len(), cache.order.len()), (KEYS, KEYS));
    assert_eq!(cache.order.back(), Some(&key(2)));
    assert_eq!(cache.order.front(), Some(&key(6)));
    assert_eq!(cache.admit(&key(5), CommandKind::Message, ()), Admission::First(()));
}

/// What may happen to one of a few keys.
#[derive(Debug, Clone)]
enum Step {
    Send(u8),
    CachedAnswer(u8, Disposition),
    Refuse(u8),
    Forget(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let disposition = prop_oneof![Just(Disposition::Started), Just(Disposition::Queued)];
    prop_oneof![
        4 => (0..6u8).prop_map(Step::Send),
        2 => (0..6u8, disposition).prop_map(|(key, answer)| Step::CachedAnswer(key, answer)),
        1 => (0..6u8).prop_map(Step::Refuse),
        1 => (0..6u8).prop_map(Step::Forget),
    ]
}

/// The plainest account of the same: lists, searched from end to end.
#[derive(Default)]
struct Model {
    known: Vec<(u8, Disposition)>,
    working: Vec<(u8, Vec<usize>)>,
}

impl Model {
    fn take(&mut self, key: u8) -> Option<Vec<usize>> {
        let at = self.working.iter().position(|(of, _)| *of == key)?;
        Some(self.working.remove(at).1)
    }
}

proptest! {
    #[test]
    fn every_command_is_answered_once_and_by_the_first(steps in proptest::collection::vec(step(), 0..60)) {
        const LIMIT: usize = 3;
        let mut cache = IdempotencyCache::with_limit(LIMIT);
        let mut model = Model::default();
        let mut answered = Vec::new();
        let mut sent = 0;
        for step in steps {
            match step {
                Step::Send(name) => {
                    let who = sent;
                    sent += 1;
                    let met = cache.admit(&key(name), CommandKind::Message, who);
                    let known = model.known.iter().find(|(of, _)| *of == name);
                    if let Some((_, disposition)) = known {
                        prop_assert_eq!(met, Admission::Answered(who, CachedAnswer::Accepted(*disposition)));
                        answered.push(who);
                    } else if let Some((_, waiting)) = model.working.iter_mut().find(|(of, _)| *of == name) {
                        prop_assert_eq!(met, Admission::Waits);
                        waiting.push(who);
                    } else {
                        prop_assert_eq!(met, Admission::First(who));
                        model.working.push((name, Vec::new()));
                        // The first is answered by the command itself.
                        answered.push(who);
                    }
                }
                // Only what works is answered or refused.
                Step::CachedAnswer(name, disposition) => if let Some(waiting) = model.take(name) {
                    prop_assert_eq!(&cache.answer(key(name), CachedAnswer::Accepted(disposition)), &waiting);
                    answered.extend(waiting);
                    model.known.push((name, disposition));
                    if model.known.len() > LIMIT {
                        model.known.remove(0);
                    }
                },
                Step::Refuse(name) => if let Some(waiting) = model.take(name) {
                    prop_assert_eq!(&cache.refuse(&name.to_string()), &waiting);
                    answered.extend(waiting);
                },
                Step::Forget(name) => {
                    cache.forget(&name.to_string());
                    model.known.retain(|(of, _)| *of != name);
                }
            }
            prop_assert!(cache.answered.len() <= LIMIT && cache.order.len() == cache.answered.len());
        }
        answered.extend(cache.give_up());
        answered.sort_unstable();
        prop_assert_eq!(answered, (0..sent).collect::<Vec<_>>());
    }
}
