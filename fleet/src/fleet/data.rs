//! What of a store the statistics look at: small tables, made by SQL.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Result;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::prelude::SessionContext;
use futures::StreamExt;

use super::PeerGroups;
use super::day_values::DayValues;
use super::names::SharedNames;
use super::screen_sql::statement;
use crate::engine_error::with_advice;
use crate::request::FleetQuestion;
use crate::statistics::median;

/// The column of `runs` behind which stands what hosts may have in common.
const LAST_OF_RUN: &str = "truncated";
/// What is added to every time before its share is taken, in nanoseconds: what is near nothing is alike.
const NOTHING_NS: f64 = 1e6;

/// A recording.
#[derive(Debug, Clone)]
pub(crate) struct FleetRun {
    pub(crate) host: String,
    pub(crate) run: String,
    pub(crate) day: String,
    pub(crate) input: String,
    pub(crate) can_tell: Arc<BTreeSet<String>>,
    pub(crate) lost_events: f64,
    pub(crate) truncated: bool,
    /// What hosts may have in common, by name.
    pub(crate) facts: Arc<BTreeMap<String, String>>,
}

impl FleetRun {
    /// Returns whether what it says is not all that happened.
    pub(crate) fn is_lossy(&self) -> bool {
        self.truncated || self.lost_events > 0.0
    }
}

/// A finding of a recording.
#[derive(Debug, Clone)]
pub(crate) struct FleetFinding {
    pub(crate) host: String,
    pub(crate) run: String,
    pub(crate) day: String,
    pub(crate) id: String,
    pub(crate) severity: String,
    pub(crate) cost_ns: f64,
    pub(crate) cost_share: f64,
}

/// Where in a recording a thread waited longest for a CPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LongestWait {
    pub(crate) at_ns: f64,
    pub(crate) wait_ns: f64,
}

/// All of it.
#[derive(Debug)]
pub(crate) struct FleetData {
    /// The day in question.
    pub(crate) day: String,
    /// Those it is held against, earliest first.
    pub(crate) before: Vec<String>,
    /// All that the store has.
    pub(crate) all_days: Vec<String>,
    pub(crate) runs: Vec<FleetRun>,
    pub(crate) findings: Vec<FleetFinding>,
    /// By metric, host and day the logarithm of the middle of its recordings' values.
    pub(crate) metrics: BTreeMap<String, DayValues>,
    pub(crate) waits: BTreeMap<String, LongestWait>,
    /// Names that several machines have.
    pub(crate) names: SharedNames,
}

/// What many recordings have alike, held once: hundreds of thousands of them are of some thousand hosts.
#[derive(Debug)]
struct CommonParts<T>(BTreeSet<Arc<T>>);

impl<T: Ord> CommonParts<T> {
    fn one(&mut self, part: T) -> Arc<T> {
        if let Some(one) = self.0.get(&part) {
            return Arc::clone(one);
        }
        let part = Arc::new(part);
        self.0.insert(Arc::clone(&part));
        part
    }
}

/// A column of an answer: numbers of any kind are read as one, all else as texts.
enum AnswerColumn {
    Numbers(Float64Array),
    Texts(StringArray),
}

impl AnswerColumn {
    /// Returns a column as it is read, made once for all of its rows.
    fn of(column: &ArrayRef) -> Result<AnswerColumn> {
        Ok(match column.data_type().is_numeric() {
            true => AnswerColumn::Numbers(cast(column, &DataType::Float64)?.as_primitive().clone()),
            false => AnswerColumn::Texts(cast(column, &DataType::Utf8)?.as_string().clone()),
        })
    }
}

/// A row of an answer, as texts and numbers.
struct AnswerRow<'c> {
    names: &'c [String],
    columns: &'c [AnswerColumn],
    row: usize,
}

impl AnswerRow<'_> {
    /// Returns a text as it is held; an empty one where there is none.
    fn word(&self, at: usize) -> &str {
        match self.columns.get(at) {
            Some(AnswerColumn::Texts(texts)) if texts.is_valid(self.row) => texts.value(self.row),
            _ => "",
        }
    }

    /// Returns a text; an empty one where there is none.
    fn text(&self, at: usize) -> String {
        match self.columns.get(at) {
            // Numbers of facts are counts, such as that of CPUs.
            Some(AnswerColumn::Numbers(numbers)) if numbers.is_valid(self.row) => {
                numbers.value(self.row).to_string()
            }
            _ => self.word(at).to_owned(),
        }
    }

    fn number(&self, at: usize) -> Option<f64> {
        match self.columns.get(at) {
            Some(AnswerColumn::Numbers(numbers)) => {
                numbers.is_valid(self.row).then(|| numbers.value(self.row))
            }
            _ => None,
        }
    }
}

/// Asks, and hands out each row.
async fn each(
    context: &SessionContext,
    sql: &str,
    mut row: impl FnMut(&AnswerRow<'_>),
) -> Result<()> {
    let frame = context
        .sql(sql)
        .await
        .map_err(|error| with_advice(&error))?;
    let fields = frame.schema().fields().iter();
    let names: Vec<String> = fields.map(|field| field.name().clone()).collect();
    let stream = frame.execute_stream().await;
    let mut stream = stream.map_err(|error| with_advice(&error))?;
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(|error| with_advice(&error))?;
        let columns = batch.columns().iter().map(AnswerColumn::of);
        let columns: Vec<AnswerColumn> = columns.collect::<Result<_>>()?;
        for number in 0..batch.num_rows() {
            row(&AnswerRow {
                names: &names,
                columns: &columns,
                row: number,
            });
        }
    }
    Ok(())
}

/// The number of a host, and that of a day.
type HostAndDay = (u32, u32);

/// Returns by recording which host's and which day's it is, by their numbers. Recordings that lost events say too
/// little of some times: they are not tested.
fn places<'r>(
    runs: &'r [FleetRun],
    hosts: &[&str],
    days: &BTreeMap<&str, u32>,
) -> BTreeMap<&'r str, HostAndDay> {
    let whole = runs.iter().filter(|run| !run.is_lossy());
    let places = whole.filter_map(|run| {
        let host = hosts.binary_search(&run.host.as_str()).ok()?;
        let day = days.get(run.day.as_str())?;
        Some((run.run.as_str(), (u32::try_from(host).ok()?, *day)))
    });
    places.collect()
}

impl FleetData {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub(crate) async fn read(
        context: &SessionContext,
        question: &FleetQuestion,
    ) -> Result<FleetData> {
        let mut all_days = Vec::new();
        each(
            context,
            "SELECT DISTINCT day FROM runs ORDER BY day",
            |row| all_days.push(row.text(0)),
        )
        .await?;
        let day = question
            .day
            .clone()
            .or_else(|| all_days.last().cloned())
            .unwrap_or_default();
        let since = question.since.clone().unwrap_or_default();
        let before = all_days.iter().filter(|one| **one < day && **one >= since);
        let before: Vec<String> = before.cloned().collect();
        let days: Vec<String> = before.iter().chain([&day]).cloned().collect();
        let mut data = FleetData {
            day,
            before,
            all_days,
            runs: Vec::new(),
            findings: Vec::new(),
            metrics: BTreeMap::new(),
            waits: BTreeMap::new(),
            names: SharedNames::default(),
        };
        data.read_runs(context, &days).await?;
        data.names = SharedNames::separate(&mut data.runs);
        data.read_findings(context, &days).await?;
        data.read_metrics(context, &days).await?;
        data.read_waits(context).await?;
        Ok(data)
    }

    async fn read_runs(&mut self, context: &SessionContext, days: &[String]) -> Result<()> {
        let runs = &mut self.runs;
        let mut causes = CommonParts(BTreeSet::new());
        let mut settings = CommonParts(BTreeSet::new());
        each(context, &statement("runs", days), |row| {
            let facts = row.names.iter().enumerate();
            let facts = facts.skip_while(|(_, name)| *name != LAST_OF_RUN).skip(1);
            let facts = facts.map(|(at, name)| (name.clone(), row.text(at)));
            let can_tell = row.text(4);
            runs.push(FleetRun {
                host: row.text(0),
                run: row.text(1),
                day: row.text(2),
                input: row.text(3),
                can_tell: causes.one(can_tell.split(',').map(str::to_owned).collect()),
                lost_events: row.number(5).unwrap_or(0.0),
                truncated: row.text(6) == "true",
                facts: settings.one(facts.filter(|(_, value)| !value.is_empty()).collect()),
            });
        })
        .await?;
        // Settings of hosts, by the facts that were stored with their recordings.
        let mut facts: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        each(context, &statement("facts", days), |row| {
            facts
                .entry(row.text(1))
                .or_default()
                .push((row.text(3), row.text(4)));
        })
        .await?;
        for run in &mut self.runs {
            if let Some(more) = facts.remove(&run.run) {
                let all = run.facts.iter();
                let all = all.map(|(key, value)| (key.clone(), value.clone()));
                run.facts = settings.one(all.chain(more).collect());
            }
        }
        Ok(())
    }

    async fn read_findings(&mut self, context: &SessionContext, days: &[String]) -> Result<()> {
        let (findings, names) = (&mut self.findings, &self.names);
        each(context, &statement("findings", days), |row| {
            findings.push(FleetFinding {
                host: names.host(row.text(0), &row.text(1)),
                run: row.text(1),
                day: row.text(2),
                id: row.text(3),
                severity: row.text(4),
                cost_ns: row.number(5).unwrap_or(0.0),
                cost_share: row.number(6).unwrap_or(0.0),
            });
        })
        .await
    }

    async fn read_metrics(&mut self, context: &SessionContext, days: &[String]) -> Result<()> {
        let numbers = days.iter().map(String::as_str).zip(0..).collect();
        let hosts: BTreeSet<&str> = self.runs.iter().map(|run| run.host.as_str()).collect();
        let hosts: Vec<&str> = hosts.into_iter().collect();
        let places = places(&self.runs, &hosts, &numbers);
        let mut values: BTreeMap<String, Vec<(HostAndDay, f64)>> = BTreeMap::new();
        let mut add = |metric: &str, row: &AnswerRow<'_>, value: Option<f64>| {
            let place = places.get(row.word(1)).copied();
            if let (Some(value), Some(place)) = (value.filter(|value| *value > 0.0), place) {
                if !values.contains_key(metric) {
                    values.insert(metric.to_owned(), Vec::new());
                }
                if let Some(values) = values.get_mut(metric) {
                    values.push((place, value.ln()));
                }
            }
        };
        each(context, &statement("vcpus", days), |row| {
            let Some(observed) = row.number(8).filter(|ns| *ns > 0.0) else {
                return;
            };
            for (metric, at) in [
                ("vCPU time waiting for a CPU", 3),
                ("vCPU time in the VMM", 4),
                ("vCPU time in KVM", 5),
                ("vCPU time in halt polling", 6),
            ] {
                add(
                    metric,
                    row,
                    row.number(at).map(|ns| (ns + NOTHING_NS) / observed),
                );
            }
            add(
                "exits a second",
                row,
                row.number(7).map(|exits| (exits + 1.0) / observed * 1e9),
            );
        })
        .await?;
        each(context, &statement("paths", days), |row| {
            add(&format!("p99 of path {}", row.text(3)), row, row.number(4));
        })
        .await?;
        for (metric, mut values) in values {
            values.sort_by_key(|(place, _)| *place);
            let mut middles = DayValues::default();
            for of_day in values.chunk_by(|(one, _), (other, _)| one == other) {
                let logs: Vec<f64> = of_day.iter().map(|(_, log)| *log).collect();
                let (host, day) = of_day[0].0;
                if let (Some(middle), Some(host)) = (median(&logs), hosts.get(host as usize)) {
                    middles.set(host, (day as usize, days.len()), middle);
                }
            }
            self.metrics.insert(metric, middles);
        }
        Ok(())
    }

    async fn read_waits(&mut self, context: &SessionContext) -> Result<()> {
        let day = std::slice::from_ref(&self.day);
        let waits = &mut self.waits;
        each(context, &statement("tasks", day), |row| {
            if let (Some(at_ns), Some(wait_ns)) = (row.number(3), row.number(4)) {
                waits.insert(row.text(1), LongestWait { at_ns, wait_ns });
            }
        })
        .await
    }

    /// Returns the recordings of the day in question.
    pub(crate) fn of_day(&self) -> impl Iterator<Item = &FleetRun> {
        self.runs.iter().filter(|run| run.day == self.day)
    }

    /// Returns the hosts of the day by what makes them peers.
    pub(crate) fn groups(&self, peers: &[String]) -> PeerGroups {
        let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for run in self.of_day() {
            let values = peers
                .iter()
                .map(|name| run.facts.get(name).map_or("-", String::as_str));
            let name = values.collect::<Vec<_>>().join(", ");
            groups.entry(name).or_default().insert(run.host.clone());
        }
        let groups = groups.into_iter();
        groups
            .map(|(name, hosts)| (name, hosts.into_iter().collect()))
            .collect()
    }
}
