//! Runs tasks in every order up to a bound, and checks after each step that no task sleeps that has something to do.

use super::super::*;
use crate::event_log::FeedItem;
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

/// Bytes that may wait for a subscriber: two events.
pub(super) const CAPACITY: usize = 4;

/// Time that too many bytes may wait for one subscriber while there are others.
pub(super) const GRACE: Duration = Duration::from_secs(1);

pub(super) const LIMITS: FeedLimits =
    FeedLimits { outbox_bytes: CAPACITY, replay_bytes: CAPACITY, grace: GRACE };

/// Every event is this, and counts two bytes.
pub(super) const EVENT: &[u8] = b"e";

pub(super) const EVENT_BYTES: usize = 2;

/// How often a run may hold back a task that could go on.
pub(super) const HELD_BACK: usize = 2;

/// How often a run may let the grace time pass while someone could go on.
pub(super) const TICKS: usize = 1;

/// What a task waits for.
#[derive(Clone)]
pub(super) enum Wait {
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
pub(super) struct View {
    pub(super) subscriber: Option<SubscriberId>,
    /// The next event that it is to get.
    pub(super) next: u64,
    /// The answers that wait for it, and the next one that it is to get.
    pub(super) answers: Vec<Bytes>,
    pub(super) next_answer: usize,
    pub(super) is_muted: bool,
    /// It was told that it was cut off.
    pub(super) has_lagged: bool,
    /// It was told that nothing more comes.
    pub(super) has_ended: bool,
}

/// What tasks share, and what is known without asking the log.
pub(super) struct World {
    pub(super) feed: Feed,
    pub(super) views: RefCell<Vec<View>>,
    pub(super) waits: RefCell<Vec<Wait>>,
    /// The task that runs.
    pub(super) running: Cell<usize>,
    pub(super) is_closed: Cell<bool>,
}

impl World {
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self {
            feed: Feed::new(LIMITS),
            views: RefCell::default(),
            waits: RefCell::default(),
            running: Cell::new(0),
            is_closed: Cell::new(false),
        })
    }

    /// Waits, and notes for what.
    pub(super) async fn wait<T>(&self, what: Wait, waiting: impl Future<Output = T>) -> T {
        let me = self.running.get();
        self.waits.borrow_mut()[me] = what;
        let done = waiting.await;
        self.waits.borrow_mut()[me] = Wait::Nothing;
        done
    }

    /// Waits for something that no waker tells of.
    pub(super) async fn until(&self, done: impl Fn(&Self) -> bool + 'static) {
        let done: Rc<dyn Fn(&Self) -> bool> = Rc::new(done);
        let look = Rc::clone(&done);
        let looking = std::future::poll_fn(|_| if look(self) { Poll::Ready(()) } else { Poll::Pending });
        self.wait(Wait::Until(done), looking).await;
    }

    /// As a session does: waits for room, then publishes; closes after `count` events.
    pub(super) async fn publish(&self, count: usize) {
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

    pub(super) fn close(&self) {
        self.is_closed.set(true);
        self.feed.close();
    }

    pub(super) fn is_cut_off(&self, view: usize) -> bool {
        self.views.borrow()[view].subscriber.is_some_and(|subscriber| self.feed.lock().is_cut_off(subscriber))
    }

    /// How many bytes wait for a subscriber that is still reckoned with.
    pub(super) fn waiting_bytes(&self, index: usize) -> usize {
        let view = &self.views.borrow()[index];
        if view.subscriber.is_none() || self.is_cut_off(index) {
            return 0;
        }
        let events = if view.is_muted { 0 } else { self.feed.last_seq() + 1 - view.next };
        let events = usize::try_from(events).unwrap_or(usize::MAX);
        events * EVENT_BYTES + self.answer_bytes(view)
    }

    pub(super) fn answer_bytes(&self, view: &View) -> usize {
        view.answers[view.next_answer..].iter().map(|answer| answer.len() + 1).sum()
    }

    /// Whether a task that waits for this has a reason to.
    pub(super) fn has_reason(&self, wait: &Wait) -> bool {
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
pub(super) struct Client {
    pub(super) world: Rc<World>,
    pub(super) view: usize,
    pub(super) subscriber: Subscriber,
}

impl Client {
    /// Attaches: what was published by now is in the snapshot, and everything from here on comes.
    pub(super) fn attach(world: &Rc<World>) -> Self {
        let next = world.feed.last_seq() + 1;
        Self::of(world, world.feed.attach(), next)
    }

    /// Attaches after the event `seq`, where that is kept.
    pub(super) fn attach_since(world: &Rc<World>, seq: u64) -> Option<Self> {
        let subscriber = world.feed.attach_since(seq)?;
        Some(Self::of(world, subscriber, seq + 1))
    }

    pub(super) fn of(world: &Rc<World>, subscriber: Subscriber, next: u64) -> Self {
        let mut views = world.views.borrow_mut();
        views.push(View { subscriber: Some(subscriber.id()), next, ..View::default() });
        Self { world: Rc::clone(world), view: views.len() - 1, subscriber }
    }

    /// Takes what there is, waiting for it; false at the end.
    pub(super) async fn take(&self) -> bool {
        let mut items = Vec::new();
        let more = self.world.wait(Wait::Items(self.view), self.subscriber.next_items(&mut items)).await;
        self.note(items, more);
        more
    }

    pub(super) fn note(&self, items: Vec<FeedItem>, more: bool) {
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
                FeedItem::Addressed { .. } | FeedItem::LongReply { .. } => {
                    panic!("nobody sends such a line here")
                }
                FeedItem::Lagged { from_seq } => {
                    assert!(!view.has_lagged, "told twice");
                    assert_eq!(from_seq, view.next, "the first event that it did not get");
                    view.has_lagged = true;
                }
            }
        }
        view.has_ended = !more;
    }

    pub(super) async fn take_all(&self) {
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

    pub(super) fn answer(&self, text: &'static str) {
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
pub(super) async fn pause() {
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

pub(super) struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(super) type Work = Pin<Box<dyn Future<Output = ()>>>;

pub(super) struct Task {
    work: Option<Work>,
    woken: Arc<Woken>,
}

/// The choices of a run: which, of how many.
#[derive(Default)]
pub(super) struct Choices {
    made: Vec<(usize, usize)>,
    at: usize,
}

impl Choices {
    pub(super) fn choose(&mut self, of: usize) -> usize {
        if self.at == self.made.len() {
            self.made.push((0, of));
        }
        let (choice, before) = self.made[self.at];
        assert_eq!(before, of, "the same choices lead to the same place");
        self.at += 1;
        choice
    }

    /// Goes on to the next run; false when all have been.
    pub(super) fn turn(&mut self) -> bool {
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
pub(super) fn explore(scenario: impl Fn(&Rc<World>) -> Vec<Work>) {
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

pub(super) async fn run(world: &Rc<World>, works: Vec<Work>, choices: &mut Choices) {
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

pub(super) fn can_go_on(world: &World, tasks: &[Task], index: usize) -> bool {
    let task = &tasks[index];
    let wait = world.waits.borrow()[index].clone();
    let may = match wait {
        Wait::Until(done) => done(world),
        _ => task.woken.0.load(Ordering::Relaxed),
    };
    task.work.is_some() && may
}

pub(super) fn step(world: &World, task: &mut Task, index: usize) {
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
pub(super) fn task<F: Future<Output = ()> + 'static>(
    world: &Rc<World>,
    work: impl FnOnce(Rc<World>) -> F,
) -> Work {
    Box::pin(work(Rc::clone(world)))
}
