//! The feed under every order of events: publisher, subscribers, the clock and the end take their steps in all orders up to a
//! bound, and after each step it is checked that nobody sleeps who has something to do.
//!
//! What may run in parallel is a task here, polled by hand: it runs until it waits or says [`pause`], and a waker only
//! notes that it may go on. The search is depth-first: each run repeats the choices of the run before up to the last one
//! that has an alternative left. A task that could go on may be held back only so often in one run; within that bound the
//! search leaves nothing out. `loom` cannot do this: it does not see into tokio's `Notify`, nor the lock that we share with
//! it. What it would add, orders within a call, is what the lock rules out, and `nobody_oversleeps_and_nothing_gets_lost…`
//! in `tests.rs` tries on real threads. The log's own bookkeeping has a model of its own (`event_log/model.rs`).

mod explorer;

use std::rc::Rc;

use bytes::Bytes;

use self::explorer::{Client, EVENT, Wait, World, explore, pause, task};

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
