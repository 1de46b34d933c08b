//! Measures what it costs to hand a session's events to many subscribers: `cargo run --release -p agentd-session --example
//! fan_out`. The CPU time for one event and one subscriber should not grow with the number of subscribers.

use std::{
    error::Error,
    fs,
    io::{Write, stdout},
};

use agentd_session::{Feed, FeedLimits};
use bytes::Bytes;
use tokio::task::{JoinSet, yield_now};

const EVENTS: usize = 20_000;
const EVENT_BYTES: usize = 120;

/// One thread, so that its CPU time is all there is.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut out = stdout();
    writeln!(out, "{EVENTS} events of {EVENT_BYTES} bytes")?;
    for at_once in [1, 16] {
        for subscribers in [1, 10, 100] {
            // The same work for any number of subscribers, so that the system's clock is fine enough.
            let rounds = 100 / subscribers;
            let before = cpu_nanos()?;
            for _ in 0..rounds {
                fan_out(subscribers, at_once).await?;
            }
            let each = (cpu_nanos()? - before) / (EVENTS * subscribers * rounds) as u64;
            writeln!(
                out,
                "{subscribers:>3} subscribers, {at_once:>2} at once: {each} ns for an event and subscriber"
            )?;
        }
    }
    Ok(())
}

async fn fan_out(subscribers: usize, at_once: usize) -> Result<(), Box<dyn Error>> {
    let feed = Feed::new(FeedLimits::default());
    let mut tasks = JoinSet::new();
    for _ in 0..subscribers {
        let subscriber = feed.attach();
        tasks.spawn(async move {
            let (mut items, mut count) = (Vec::new(), 0);
            while subscriber.next_items(&mut items).await {
                count += items.len();
                items.clear();
            }
            count
        });
    }
    let line = Bytes::from(vec![b'x'; EVENT_BYTES]);
    for _ in 0..EVENTS / at_once {
        feed.room().await;
        feed.publish(std::iter::repeat_n(line.clone(), at_once));
        // Everyone takes it before the next comes: the worst case, one wake-up for each.
        yield_now().await;
    }
    feed.close();
    while let Some(count) = tasks.join_next().await {
        if count? != EVENTS {
            return Err("a subscriber missed something".into());
        }
    }
    Ok(())
}

/// The CPU time of this thread.
fn cpu_nanos() -> Result<u64, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/schedstat")?;
    Ok(stat.split(' ').next().ok_or("no time in schedstat")?.parse()?)
}
