//! The metrics of the process: counted while sessions work, read when they are exported.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::data::{Attributes, HistogramPoint, Metric, Number, NumberPoint, Points, Value, scrub_attributes};

/// The sets of attributes of one metric. Further ones are counted together, under `otel.metric.overflow`.
const MAX_SERIES: usize = 200;

/// The bounds that the semantic conventions advise for durations, in seconds.
const SECONDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// The bounds that they advise for tokens.
const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// Bounds for whole runs, in seconds: up to hours.
const RUN_SECONDS: &[f64] =
    &[0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0];

/// A distribution that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Histogram {
    TokenUsage,
    CallDuration,
    TimeToFirstChunk,
    ToolDuration,
    RunDuration,
}

/// A sum that only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counter {
    Cost,
    Retries,
    Fallbacks,
    Compactions,
    Permissions,
    BudgetsReached,
}

/// A name, a description and a unit.
type Words = (&'static str, &'static str, &'static str);

impl Histogram {
    fn words(self) -> Words {
        match self {
            Self::TokenUsage => {
                ("gen_ai.client.token.usage", "Number of input and output tokens used.", "{token}")
            }
            Self::CallDuration => ("gen_ai.client.operation.duration", "GenAI operation duration.", "s"),
            Self::TimeToFirstChunk => (
                "gen_ai.client.operation.time_to_first_chunk",
                "Time from the request to the first chunk of the answer.",
                "s",
            ),
            Self::ToolDuration => ("gen_ai.execute_tool.duration", "Running time of tool calls.", "s"),
            Self::RunDuration => {
                ("gen_ai.invoke_agent.duration", "Time from a prompt to the end of its run.", "s")
            }
        }
    }

    fn bounds(self) -> &'static [f64] {
        match self {
            Self::TokenUsage => TOKENS,
            Self::CallDuration | Self::TimeToFirstChunk | Self::ToolDuration => SECONDS,
            Self::RunDuration => RUN_SECONDS,
        }
    }
}

impl Counter {
    fn words(self) -> Words {
        match self {
            Self::Cost => ("agentd.cost", "Cost of model calls by the prices of the models.", "{USD}"),
            Self::Retries => ("agentd.retries", "Answers that are asked for again.", "{retry}"),
            Self::Fallbacks => {
                ("agentd.fallbacks", "Models that took the place of one that failed.", "{fallback}")
            }
            Self::Compactions => ("agentd.compactions", "Compactions of contexts.", "{compaction}"),
            Self::Permissions => ("agentd.permission.decisions", "Decisions about calls.", "{decision}"),
            Self::BudgetsReached => ("agentd.budgets.reached", "Runs that a budget ended.", "{run}"),
        }
    }
}

/// A number that is read when metrics are exported.
pub struct ObservedNumber {
    /// The name of the metric.
    pub name: &'static str,
    /// Its description.
    pub description: &'static str,
    /// Its unit, by UCUM.
    pub unit: &'static str,
    /// Whether it only grows.
    pub is_monotonic: bool,
    /// Reads it. Must be quick and never wait.
    pub read: Box<dyn Fn() -> u64 + Send + Sync>,
}

/// All metrics.
#[derive(Default)]
pub(crate) struct Metrics {
    measured: Mutex<Measured>,
    observed: Mutex<Vec<ObservedNumber>>,
}

#[derive(Default)]
struct Measured {
    histograms: Vec<(Histogram, Vec<HistogramPoint>)>,
    counters: Vec<(Counter, Vec<(Attributes, f64)>)>,
}

impl Metrics {
    /// Adds a value to a distribution.
    pub(crate) fn record(&self, histogram: Histogram, value: f64, attributes: Attributes) {
        let mut measured = lock(&self.measured);
        let points = entry(&mut measured.histograms, histogram);
        let bounds = histogram.bounds();
        let fresh = |attributes| HistogramPoint {
            attributes,
            count: 0,
            sum: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            buckets: vec![0; bounds.len() + 1],
        };
        let point = series(points, attributes, |point| &point.attributes, fresh);
        point.count += 1;
        point.sum += value;
        point.min = point.min.min(value);
        point.max = point.max.max(value);
        // A value that is equal to a bound belongs below it.
        point.buckets[bounds.partition_point(|bound| *bound < value)] += 1;
    }

    /// Adds to a sum.
    pub(crate) fn add(&self, counter: Counter, value: f64, attributes: Attributes) {
        let mut measured = lock(&self.measured);
        let points = entry(&mut measured.counters, counter);
        series(points, attributes, |(attributes, _)| attributes, |attributes| (attributes, 0.0)).1 += value;
    }

    /// Has a number read with every export.
    pub(crate) fn observe(&self, number: ObservedNumber) {
        lock(&self.observed).push(number);
    }

    /// All metrics that have a value, without known secrets.
    pub(crate) fn collect(&self) -> Vec<Metric> {
        let metric = |(name, description, unit), points| Metric { name, description, unit, points };
        let mut metrics = Vec::new();
        let measured = lock(&self.measured);
        for (histogram, points) in &measured.histograms {
            let points = Points::Histogram { bounds: histogram.bounds(), points: points.clone() };
            metrics.push(metric(histogram.words(), points));
        }
        for (counter, points) in &measured.counters {
            let number = |value: f64| match counter {
                Counter::Cost => Number::Double(value),
                _ => Number::Int(value as i64),
            };
            let points = points
                .iter()
                .map(|(attributes, value)| NumberPoint {
                    attributes: attributes.clone(),
                    value: number(*value),
                })
                .collect();
            metrics.push(metric(counter.words(), Points::Sum { is_monotonic: true, points }));
        }
        drop(measured);
        for number in lock(&self.observed).iter() {
            let value = Number::Int(i64::try_from((number.read)()).unwrap_or(i64::MAX));
            let points = vec![NumberPoint { attributes: Vec::new(), value }];
            let words = (number.name, number.description, number.unit);
            metrics.push(metric(words, Points::Sum { is_monotonic: number.is_monotonic, points }));
        }
        metrics.iter_mut().for_each(scrub);
        metrics
    }
}

fn scrub(metric: &mut Metric) {
    match &mut metric.points {
        Points::Sum { points, .. } => points.iter_mut().for_each(|it| scrub_attributes(&mut it.attributes)),
        Points::Histogram { points, .. } => {
            points.iter_mut().for_each(|it| scrub_attributes(&mut it.attributes));
        }
    }
}

/// The points of an instrument.
fn entry<I: PartialEq + Copy, P>(all: &mut Vec<(I, Vec<P>)>, instrument: I) -> &mut Vec<P> {
    let index = all.iter().position(|(other, _)| *other == instrument).unwrap_or_else(|| {
        all.push((instrument, Vec::new()));
        all.len() - 1
    });
    &mut all[index].1
}

/// The point with these attributes.
fn series<P>(
    points: &mut Vec<P>,
    attributes: Attributes,
    of: impl Fn(&P) -> &Attributes,
    fresh: impl FnOnce(Attributes) -> P,
) -> &mut P {
    let known =
        |points: &[P], attributes: &Attributes| points.iter().position(|point| of(point) == attributes);
    let index = match known(points, &attributes) {
        Some(index) => index,
        None if points.len() < MAX_SERIES => {
            points.push(fresh(attributes));
            points.len() - 1
        }
        None => {
            let overflow: Attributes = vec![("otel.metric.overflow".into(), Value::Bool(true))];
            known(points, &overflow).unwrap_or_else(|| {
                points.push(fresh(overflow));
                points.len() - 1
            })
        }
    };
    &mut points[index]
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &'static str) -> Attributes {
        vec![("k".into(), value.into())]
    }

    #[test]
    fn values_go_into_their_buckets() {
        let metrics = Metrics::default();
        for value in [0.005, 0.01, 0.011, 1000.0] {
            metrics.record(Histogram::CallDuration, value, of("a"));
        }
        metrics.record(Histogram::CallDuration, 1.0, of("b"));
        let [Metric { name, points: Points::Histogram { bounds, points }, .. }] = &metrics.collect()[..]
        else {
            panic!("one histogram");
        };
        assert_eq!((*name, bounds.len()), ("gen_ai.client.operation.duration", 14));
        assert_eq!(points.len(), 2);
        let HistogramPoint { count, sum, min, max, buckets, .. } = &points[0];
        assert_eq!((*count, *min, *max), (4, 0.005, 1000.0));
        assert!((sum - 1000.026).abs() < 1e-9);
        assert_eq!(buckets.len(), 15);
        assert_eq!((buckets[0], buckets[1], buckets[14]), (2, 1, 1));
        assert_eq!(buckets.iter().sum::<u64>(), 4);
    }

    #[test]
    fn money_is_a_fraction_and_the_rest_are_numbers() {
        let metrics = Metrics::default();
        metrics.add(Counter::Cost, 0.25, of("a"));
        metrics.add(Counter::Cost, 0.25, of("a"));
        metrics.add(Counter::Retries, 1.0, of("a"));
        let values: Vec<Number> = metrics
            .collect()
            .into_iter()
            .map(|metric| match metric.points {
                Points::Sum { is_monotonic: true, points } => points[0].value,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(values, [Number::Double(0.5), Number::Int(1)]);
    }

    #[test]
    fn the_sets_of_attributes_are_bounded() {
        let metrics = Metrics::default();
        for number in 0..MAX_SERIES + 50 {
            metrics.add(Counter::Retries, 1.0, vec![("model".into(), format!("m{number}").into())]);
        }
        let [Metric { points: Points::Sum { points, .. }, .. }] = &metrics.collect()[..] else {
            panic!("one sum");
        };
        assert_eq!(points.len(), MAX_SERIES + 1);
        assert_eq!(points[MAX_SERIES].value, Number::Int(50));
        assert_eq!(points[MAX_SERIES].attributes, [("otel.metric.overflow".into(), Value::Bool(true))]);
    }

    #[test]
    fn observed_numbers_are_read_with_each_export() {
        let metrics = Metrics::default();
        let (number, read) =
            (std::sync::Arc::new(std::sync::atomic::AtomicU64::new(1)), |n: &std::sync::Arc<_>| {
                let n: std::sync::Arc<std::sync::atomic::AtomicU64> = std::sync::Arc::clone(n);
                Box::new(move || n.load(std::sync::atomic::Ordering::Relaxed))
            });
        metrics.observe(ObservedNumber {
            name: "agentd.sessions.loaded",
            description: "",
            unit: "{session}",
            is_monotonic: false,
            read: read(&number),
        });
        number.store(3, std::sync::atomic::Ordering::Relaxed);
        let [Metric { points: Points::Sum { points, is_monotonic: false }, .. }] = &metrics.collect()[..]
        else {
            panic!("one sum");
        };
        assert_eq!(points[0].value, Number::Int(3));
    }
}
