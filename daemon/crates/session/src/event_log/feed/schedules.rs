//! The feed under every order of events: publisher, subscribers, the clock and the end take their steps in all orders up to a
//! bound, and after each step it is checked that nobody sleeps who has something to do.
//!
//! What may run in parallel is a task here, polled by hand: it runs until it waits or says [`pause`], and a waker only
//! notes that it may go on. The search is depth-first: each run repeats the choices of the run before up to the last one
//! that has an alternative left. A task that could go on may be held back only so often in one run; within that bound the
//! search leaves nothing out. `loom` cannot do this: it does not see into tokio's `Notify`, nor the lock that we share with
//! it. What it would add, orders within a call, is what the lock rules out, and `nobody_oversleeps_and_nothing_gets_lost…`
//! in `tests.rs` tries on real threads. The log's own bookkeeping has a model of its own (`event_log/model.rs`).

use std::{
    cell::{Cell, RefCell},
    pin::{Pin, pin},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use tokio::{task::unconstrained, time::advance};

use super::*;
use crate::event_log::FeedItem;

/// Bytes that may wait for a subscriber: two events.
const CAPACITY: usize = 4;

/// Time that too many bytes may wait for one subscriber while there are others.
const GRACE: Duration = Duration::from_secs(1);

const LIMITS: FeedLimits = FeedLimits { outbox_bytes: CAPACITY, replay_bytes: CAPACITY, grace: GRACE };

/// Every event is this, and counts two bytes.
const EVENT: &[u8] = b"e";
const EVENT_BYTES: usize = 2;

/// How often a run may hold back a task that could go on.
const HELD_BACK: usize = 2;

/// How often a run may let the grace time pass while someone could go on.
const TICKS: usize = 1;

/// What a task waits for.
#[derive(Clone)]
enum Wait {
    /// It can go on, or has ended.
    Nothing,
    /// Room for an event.
    Room,
    /// Items of this subscriber.
    Items(usize),
    /// That this subscriber may ask for more.
    ReplyRoom(usize),
    /// Something that a subscriber of bad manners waits for instead of reading.
    Until(Rc<dyn Fn(&World) -> bool>),
}

/// What a subscriber was given so far.
#[derive(Default)]
struct View {
    subscriber: Option<SubscriberId>,
    /// The next event that it is to get.
    next: u64,
    /// The answers that wait for it, and the next one that it is to get.
    answers: Vec<Bytes>,
    next_answer: usize,
    is_muted: bool,
    /// It was told that it was cut off.
    has_lagged: bool,
    /// It was told that nothing more comes.
    has_ended: bool,
}

/// What tasks share, and what is known without asking the log.
struct World {
    feed: Feed,
    views: RefCell<Vec<View>>,
    waits: RefCell<Vec<Wait>>,
    /// The task that runs.
    running: Cell<usize>,
    is_closed: Cell<bool>,
}

impl World {
    fn new() -> Rc<Self> {
        Rc::new(Self {
            feed: Feed::new(LIMITS),
            views: RefCell::default(),
            waits: RefCell::default(),
            running: Cell::new(0),
            is_closed: Cell::new(false),
        })
    }

    /// Waits, and notes for what.
    async fn wait<T>(&self, what: Wait, waiting: impl Future<Output = T>) -> T {
        let me = self.running.get();
        self.waits.borrow_mut()[me] = what;
        let done = waiting.await;
        self.waits.borrow_mut()[me] = Wait::Nothing;
        done
    }

    /// Waits for something that no waker tells of.
    async fn until(&self, done: impl Fn(&Self) -> bool + 'static) {
        let done: Rc<dyn Fn(&Self) -> bool> = Rc::new(done);
        let look = Rc::clone(&done);
        let looking = std::future::poll_fn(|_| if look(self) { Poll::Ready(()) } else { Poll::Pending });
        self.wait(Wait::Until(done), looking).await;
    }

    /// As a session does: waits for room, then publishes; closes after `count` events.
    async fn publish(&self, count: usize) {
        for _ in 0..count {
            pause().await;
            self.wait(Wait::Room, self.feed.room()).await;
            if self.is_closed.get() {
                return;
            }
            self.feed.publish([Bytes::from_static(EVENT)]);
        }
        pause().await;
        self.close();
    }

    fn close(&self) {
        self.is_closed.set(true);
        self.feed.close();
    }

    fn is_cut_off(&self, view: usize) -> bool {
        self.views.borrow()[view].subscriber.is_some_and(|subscriber| self.feed.lock().is_cut_off(subscriber))
    }

    /// How many bytes wait for a subscriber that is still reckoned with.
    fn waiting_bytes(&self, index: usize) -> usize {
        let view = &self.views.borrow()[index];
        if view.subscriber.is_none() || self.is_cut_off(index) {
            return 0;
        }
        let events = if view.is_muted { 0 } else { self.feed.last_seq() + 1 - view.next };
        let events = usize::try_from(events).unwrap_or(usize::MAX);
        events * EVENT_BYTES + self.answer_bytes(view)
    }

    fn answer_bytes(&self, view: &View) -> usize {
        view.answers[view.next_answer..].iter().map(|answer| answer.len() + 1).sum()
    }

    /// Whether a task that waits for this has a reason to.
    fn has_reason(&self, wait: &Wait) -> bool {
        match wait {
            Wait::Nothing => true,
            // Never for one that was cut off, muted or has left.
            Wait::Room => (0..self.views.borrow().len()).any(|view| self.waiting_bytes(view) >= CAPACITY),
            Wait::Items(index) => {
                let view = &self.views.borrow()[*index];
                let has_event = !view.is_muted && !view.has_lagged && view.next <= self.feed.last_seq();
                !has_event && view.next_answer == view.answers.len() && !self.is_closed.get()
            }
            Wait::ReplyRoom(index) => {
                let view = &self.views.borrow()[*index];
                self.answer_bytes(view) >= CAPACITY && !self.is_closed.get()
            }
            Wait::Until(done) => !done(self),
        }
    }
}

/// A subscriber whose view is kept.
struct Client {
    world: Rc<World>,
    view: usize,
    subscriber: Subscriber,
}

impl Client {
    /// Attaches: what was published by now is in the snapshot, and everything from here on comes.
    fn attach(world: &Rc<World>) -> Self {
        let next = world.feed.last_seq() + 1;
        Self::of(world, world.feed.attach(), next)
    }

    /// Attaches after the event `seq`, where that is kept.
    fn attach_since(world: &Rc<World>, seq: u64) -> Option<Self> {
        let subscriber = world.feed.attach_since(seq)?;
        Some(Self::of(world, subscriber, seq + 1))
    }

    fn of(world: &Rc<World>, subscriber: Subscriber, next: u64) -> Self {
        let mut views = world.views.borrow_mut();
        views.push(View { subscriber: Some(subscriber.id()), next, ..View::default() });
        Self { world: Rc::clone(world), view: views.len() - 1, subscriber }
    }

    /// Takes what there is, waiting for it; false at the end.
    async fn take(&self) -> bool {
        let mut items = Vec::new();
        let more = self.world.wait(Wait::Items(self.view), self.subscriber.next_items(&mut items)).await;
        self.note(items, more);
        more
    }

    fn note(&self, items: Vec<FeedItem>, more: bool) {
        let view = &mut self.world.views.borrow_mut()[self.view];
        assert!(!view.has_ended, "something after the end");
        assert_eq!(items.is_empty(), !more);
        for item in items {
            match item {
                FeedItem::Event { seq, .. } => {
                    assert!(!view.has_lagged && !view.is_muted, "an event after all");
                    assert_eq!(seq, view.next, "a hole, or an event twice");
                    view.next += 1;
                }
                FeedItem::Reply { line } => {
                    assert_eq!(
                        Some(&line),
                        view.answers.get(view.next_answer),
                        "an answer that was not next"
                    );
                    view.next_answer += 1;
                }
                FeedItem::Addressed { .. } => panic!("nobody sends such a line here"),
                FeedItem::Lagged { from_seq } => {
                    assert!(!view.has_lagged, "told twice");
                    assert_eq!(from_seq, view.next, "the first event that it did not get");
                    view.has_lagged = true;
                }
            }
        }
        view.has_ended = !more;
    }

    async fn take_all(&self) {
        while self.take().await {
            pause().await;
        }
        let view = &self.world.views.borrow()[self.view];
        assert!(
            view.has_lagged || view.is_muted || view.next == self.world.feed.last_seq() + 1,
            "not everything"
        );
        assert_eq!(view.next_answer, view.answers.len(), "answers are never dropped");
    }

    fn answer(&self, text: &'static str) {
        let line = Bytes::from_static(text.as_bytes());
        self.world.views.borrow_mut()[self.view].answers.push(line.clone());
        self.world.feed.reply(self.subscriber.id(), line);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The subscriber goes next, in the same step.
        self.world.views.borrow_mut()[self.view].subscriber = None;
    }
}

/// Lets others have a turn.
async fn pause() {
    let mut has_paused = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut has_paused, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Work = Pin<Box<dyn Future<Output = ()>>>;

struct Task {
    work: Option<Work>,
    woken: Arc<Woken>,
}

/// The choices of a run: which, of how many.
#[derive(Default)]
struct Choices {
    made: Vec<(usize, usize)>,
    at: usize,
}

impl Choices {
    fn choose(&mut self, of: usize) -> usize {
        if self.at == self.made.len() {
            self.made.push((0, of));
        }
        let (choice, before) = self.made[self.at];
        assert_eq!(before, of, "the same choices lead to the same place");
        self.at += 1;
        choice
    }

    /// Goes on to the next run; false when all have been.
    fn turn(&mut self) -> bool {
        self.at = 0;
        while let Some((choice, of)) = self.made.pop() {
            if choice + 1 < of {
                self.made.push((choice + 1, of));
                return true;
            }
        }
        false
    }
}

/// Runs the tasks that `scenario` makes in every order. The scenario must come to its end in each.
fn explore(scenario: impl Fn(&Rc<World>) -> Vec<Work>) {
    /// A search that ends sooner has lost its choices; one that goes on longer has too many of them.
    const RUNS: std::ops::Range<usize> = 50..100_000;

    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (mut choices, mut runs) = (Choices::default(), 0);
        loop {
            runs += 1;
            assert!(runs < RUNS.end, "too much to look at: {runs} runs");
            let world = World::new();
            let tasks = scenario(&world);
            run(&world, tasks, &mut choices).await;
            if !choices.turn() {
                break;
            }
        }
        assert!(runs >= RUNS.start, "only {runs} runs");
    });
}

async fn run(world: &Rc<World>, works: Vec<Work>, choices: &mut Choices) {
    let task = |work| Task { work: Some(work), woken: Arc::new(Woken(AtomicBool::new(true))) };
    let mut tasks: Vec<Task> = works.into_iter().map(task).collect();
    world.waits.borrow_mut().resize(tasks.len(), Wait::Nothing);
    let (mut held_back, mut ticks, mut last) = (0, 0, 0);
    while tasks.iter().any(|task| task.work.is_some()) {
        let mut ready: Vec<usize> =
            (0..tasks.len()).filter(|index| can_go_on(world, &tasks, *index)).collect();
        if ready.is_empty() {
            // Only time can help, and must: in these scenarios nobody waits for ever.
            advance(GRACE).await;
            let helps = (0..tasks.len()).any(|index| can_go_on(world, &tasks, index));
            assert!(helps, "all sleep for ever: {:?}", choices.made);
            continue;
        }
        // The last one goes on by itself; to choose another one, or the clock, is to hold it back.
        if let Some(at) = ready.iter().position(|index| *index == last) {
            ready.swap(0, at);
            if held_back == HELD_BACK {
                ready.truncate(1);
            }
        }
        let may_tick = ticks < TICKS && held_back < HELD_BACK;
        let choice = choices.choose(ready.len() + usize::from(may_tick));
        if ready[0] == last && choice > 0 {
            held_back += 1;
        }
        match ready.get(choice) {
            Some(index) => {
                step(world, &mut tasks[*index], *index);
                last = *index;
            }
            None => {
                advance(GRACE).await;
                ticks += 1;
            }
        }
        for (index, task) in tasks.iter().enumerate() {
            let wait = world.waits.borrow()[index].clone();
            let sleeps = task.work.is_some() && !task.woken.0.load(Ordering::Relaxed);
            if sleeps && !matches!(wait, Wait::Until(_)) {
                assert!(world.has_reason(&wait), "task {index} sleeps for no reason: {:?}", choices.made);
            }
        }
    }
}

fn can_go_on(world: &World, tasks: &[Task], index: usize) -> bool {
    let task = &tasks[index];
    let wait = world.waits.borrow()[index].clone();
    let may = match wait {
        Wait::Until(done) => done(world),
        _ => task.woken.0.load(Ordering::Relaxed),
    };
    task.work.is_some() && may
}

fn step(world: &World, task: &mut Task, index: usize) {
    let Some(work) = &mut task.work else { return };
    world.running.set(index);
    task.woken.0.store(false, Ordering::Relaxed);
    let waker = Waker::from(Arc::clone(&task.woken));
    // Without tokio's budget: it would make tasks wait that have no reason to.
    if pin!(unconstrained(work.as_mut())).poll(&mut Context::from_waker(&waker)).is_ready() {
        task.work = None;
    }
}

/// Gives a task its own share of the world.
fn task<F: Future<Output = ()> + 'static>(world: &Rc<World>, work: impl FnOnce(Rc<World>) -> F) -> Work {
    Box::pin(work(Rc::clone(world)))
}

#[test]
fn a_client_that_joins_at_any_point_gets_all_that_follows() {
    explore(|world| {
        let join = |world: Rc<World>| async move {
            pause().await;
            Client::attach(&world).take_all().await;
        };
        vec![task(world, |world| async move { world.publish(4).await }), task(world, join), task(world, join)]
    });
}

#[test]
fn one_that_stops_is_cut_off_once_and_holds_up_nobody() {
    explore(|world| {
        let (slow, quick) = (Client::attach(world), Client::attach(world));
        vec![
            task(world, |world| async move { world.publish(4).await }),
            task(world, |_| async move { quick.take_all().await }),
            task(world, |world| async move {
                let view = slow.view;
                world.until(move |world| world.is_cut_off(view)).await;
                slow.take_all().await;
                assert!(world.views.borrow()[view].has_lagged);
            }),
        ]
    });
}

#[test]
fn one_that_was_cut_off_comes_back_and_goes_on() {
    explore(|world| {
        let (slow, quick) = (Client::attach(world), Client::attach(world));
        vec![
            task(world, |world| async move { world.publish(4).await }),
            task(world, |_| async move { quick.take_all().await }),
            task(world, |world| async move {
                let view = slow.view;
                world.until(move |world| world.is_cut_off(view)).await;
                while !world.views.borrow()[view].has_lagged {
                    slow.take().await;
                }
                let seq = world.views.borrow()[view].next - 1;
                drop(slow);
                pause().await;
                // The whole of what it missed is kept, or it begins anew.
                let back = Client::attach_since(&world, seq).unwrap_or_else(|| Client::attach(&world));
                back.take_all().await;
            }),
        ]
    });
}

#[test]
fn one_that_leaves_at_any_point_is_waited_for_no_more() {
    explore(|world| {
        let (leaving, staying) = (Client::attach(world), Client::attach(world));
        vec![
            task(world, |world| async move { world.publish(4).await }),
            task(world, |_| async move { staying.take_all().await }),
            task(world, |_| async move {
                for _ in 0..2 {
                    pause().await;
                }
                leaving.take().await;
                pause().await;
            }),
        ]
    });
}

#[test]
fn one_that_is_alone_is_waited_for_and_gets_everything() {
    explore(|world| {
        let alone = Client::attach(world);
        vec![
            task(world, |world| async move { world.publish(5).await }),
            task(world, |_| async move {
                for _ in 0..3 {
                    pause().await;
                }
                let view = alone.view;
                alone.take_all().await;
                assert!(!alone.world.views.borrow()[view].has_lagged);
            }),
        ]
    });
}

#[test]
fn the_end_at_any_point_reaches_everyone() {
    explore(|world| {
        let (one, two) = (Client::attach(world), Client::attach(world));
        let asking = two.subscriber.id();
        vec![
            task(world, |world| async move { world.publish(2).await }),
            task(world, |_| async move { one.take_all().await }),
            task(world, |_| async move { two.take_all().await }),
            task(world, move |world| async move {
                pause().await;
                // Who waits to hand on another command does not wait for ever either.
                world.wait(Wait::ReplyRoom(1), world.feed.reply_room(asking)).await;
                world.close();
            }),
        ]
    });
}

#[test]
fn answers_come_in_order_and_to_the_last_one() {
    explore(|world| {
        let asking = Rc::new(Client::attach(world));
        let reading = Rc::clone(&asking);
        vec![
            task(world, |world| async move { world.publish(2).await }),
            task(world, |_| async move { reading.take_all().await }),
            task(world, |world| async move {
                for text in ["one", "two"] {
                    pause().await;
                    let (view, id) = (asking.view, asking.subscriber.id());
                    world.wait(Wait::ReplyRoom(view), world.feed.reply_room(id)).await;
                    if world.is_closed.get() {
                        return;
                    }
                    asking.answer(text);
                }
            }),
        ]
    });
}

#[test]
fn one_that_lets_events_pass_gets_its_answers_and_holds_up_nobody() {
    explore(|world| {
        let (mut leaving, staying) = (Client::attach(world), Client::attach(world));
        vec![
            task(world, |world| async move { world.publish(4).await }),
            task(world, |_| async move { staying.take_all().await }),
            task(world, |world| async move {
                pause().await;
                leaving.answer("before");
                pause().await;
                leaving.subscriber.mute();
                world.views.borrow_mut()[leaving.view].is_muted = true;
                pause().await;
                if !world.is_closed.get() {
                    leaving.answer("after");
                }
                let view = leaving.view;
                let done = |world: &World| {
                    world.views.borrow()[view].next_answer == world.views.borrow()[view].answers.len()
                };
                while !done(&world) && leaving.take().await {}
                assert!(done(&world));
            }),
        ]
    });
}

#[test]
fn waiting_that_is_broken_off_loses_nothing() {
    explore(|world| {
        let (breaking, other) = (Client::attach(world), Client::attach(world));
        vec![
            task(world, |world| async move {
                for _ in 0..4 {
                    // Asks for room, gives up, and asks again, as a session does that hears a command meanwhile.
                    tokio::select! {
                        biased;
                        () = world.feed.room() => {}
                        () = pause() => world.wait(Wait::Room, world.feed.room()).await,
                    }
                    world.feed.publish([Bytes::from_static(EVENT)]);
                }
                world.close();
            }),
            task(world, |_| async move { other.take_all().await }),
            task(world, |_| async move {
                let mut items = Vec::new();
                for _ in 0..2 {
                    tokio::select! {
                        biased;
                        more = breaking.subscriber.next_items(&mut items) => {
                            breaking.note(std::mem::take(&mut items), more);
                            if !more {
                                return;
                            }
                        }
                        () = pause() => assert!(items.is_empty(), "taken, and not given"),
                    }
                }
                breaking.take_all().await;
            }),
        ]
    });
}

#[test]
fn one_that_joins_is_not_held_up_by_one_that_stopped() {
    explore(|world| {
        let stopped = Client::attach(world);
        vec![
            task(world, |world| async move { world.publish(4).await }),
            task(world, |world| async move {
                let view = stopped.view;
                world.until(move |world| world.is_cut_off(view) || world.is_closed.get()).await;
                stopped.take_all().await;
            }),
            task(world, |world| async move {
                pause().await;
                Client::attach(&world).take_all().await;
            }),
        ]
    });
}

#[test]
fn one_that_announced_itself_is_let_in_past_one_that_stopped() {
    explore(|world| {
        let stopped = Client::attach(world);
        vec![
            task(world, |world| async move { world.publish(4).await }),
            task(world, |world| async move {
                let view = stopped.view;
                world.until(move |world| world.is_cut_off(view) || world.is_closed.get()).await;
                stopped.take_all().await;
            }),
            task(world, |world| async move {
                let announced = world.feed.announce();
                pause().await;
                // As a session does: it lets in between two events.
                world.wait(Wait::Room, world.feed.room()).await;
                let joined = Client::attach(&world);
                drop(announced);
                joined.take_all().await;
            }),
        ]
    });
}
