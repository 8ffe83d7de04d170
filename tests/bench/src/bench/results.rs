//! What was measured.

use serde::Serialize;

use crate::subject::Subject;

/// Everything that one run measured.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) rows: Vec<Row>,
    pub(crate) figures: Vec<Figure>,
}

/// What a call of one subject costs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) subject: Subject,
    pub(crate) threads: usize,
    pub(crate) policy: String,
    #[serde(flatten)]
    pub(crate) time: Spread,
    /// To the bare call of the same group and number of threads.
    pub(crate) ratio: Option<f64>,
}

/// Nanoseconds: the median, and the quartiles about it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) ns: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Something else that was measured.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
}

impl Spread {
    /// Of samples, in any order. All are 0 where there is none.
    pub(crate) fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_unstable_by(f64::total_cmp);
        Self {
            ns: quantile(&samples, 0.5),
            low: quantile(&samples, 0.25),
            high: quantile(&samples, 0.75),
        }
    }
}

impl Row {
    /// Fills in the ratios of rows of one group.
    pub(crate) fn fill_ratios(rows: &mut [Self]) {
        let bare: Vec<_> = rows
            .iter()
            .filter(|row| row.subject == Subject::Bare)
            .map(|row| (row.threads, row.time.ns))
            .collect();
        for row in rows {
            let of_threads = bare.iter().find(|(threads, _)| *threads == row.threads);
            row.ratio = of_threads.map(|(_, ns)| row.time.ns / ns);
        }
    }
}

impl Results {
    pub(crate) fn figure(&mut self, name: &'static str, value: f64, unit: &'static str) {
        self.figures.push(Figure { name, value, unit });
    }

    /// The rows of each name, in the order in which they were measured.
    pub(crate) fn by_name(&self) -> Vec<(&str, Vec<&Row>)> {
        let mut all: Vec<(&str, Vec<&Row>)> = Vec::new();
        for row in &self.rows {
            match all.iter_mut().find(|(name, _)| *name == row.name) {
                Some((_, rows)) => rows.push(row),
                None => all.push((&row.name, vec![row])),
            }
        }
        all
    }

    /// The nanoseconds of a row; of any policy where none is given.
    pub(crate) fn ns(
        &self,
        name: &str,
        subject: Subject,
        policy: Option<&str>,
        threads: usize,
    ) -> Option<f64> {
        let is_it = |row: &&Row| {
            row.name == name
                && row.subject == subject
                && row.threads == threads
                && policy.is_none_or(|policy| row.policy == policy)
        };
        self.rows.iter().find(is_it).map(|row| row.time.ns)
    }

    /// A figure by its name.
    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        self.figures
            .iter()
            .find(|figure| figure.name == name)
            .map(|figure| figure.value)
    }
}

/// The value below which that share of the sorted samples lies, drawn between the two next to it.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * sorted.len().saturating_sub(1) as f64;
    let at = |index: f64| sorted.get(index as usize).copied().unwrap_or_default();
    let (below, above) = (at(place.floor()), at(place.ceil()));
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_median_and_the_quartiles() {
        let spread = Spread::of(vec![5.0, 1.0, 4.0, 2.0, 3.0]);
        assert_eq!(
            spread,
            Spread {
                ns: 3.0,
                low: 2.0,
                high: 4.0
            }
        );
        assert_eq!(Spread::of(vec![1.0, 2.0]).ns, 1.5);
        assert_eq!(Spread::of(Vec::new()).ns, 0.0);
    }

    fn row(subject: Subject, threads: usize, ns: f64) -> Row {
        Row {
            name: "healthy".into(),
            subject,
            threads,
            policy: String::new(),
            time: Spread::of(vec![ns]),
            ratio: None,
        }
    }

    #[test]
    fn ratios_are_to_the_bare_call_on_as_many_threads() {
        let mut rows = vec![
            row(Subject::Bare, 1, 2.0),
            row(Subject::Bare, 2, 4.0),
            row(Subject::Tripwit, 1, 6.0),
            row(Subject::Tripwit, 2, 8.0),
            row(Subject::Tripwit, 3, 8.0),
        ];
        Row::fill_ratios(&mut rows);
        let ratios: Vec<_> = rows.iter().map(|row| row.ratio).collect();
        assert_eq!(ratios, [Some(1.0), Some(1.0), Some(3.0), Some(2.0), None]);
    }
}
