//! Goes through the cases, and keeps what came of each.

use serde_json::Value;
use tripwit::Policy;

use super::case::Case;
use super::cases;
use super::problem::{Checked, Problem};
use super::ran::Ran;
use super::schema::Schema;
use super::subject::{History, Subject, Watch};
use super::walk::{Play, Walks};
use crate::terminal::Progress;

/// Under as many settings a policy is checked at the most.
const SETTINGS: usize = 6;

/// A case of scripts.
type Scripted = fn(&Subject) -> Checked<Ran>;
/// A case that also takes walks.
type Walked = fn(&Subject, &Walks) -> Checked<Ran>;

/// What came of one case.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    /// All is well; what was done.
    Passed(String),
    /// All is well, and there is something to know.
    Noted(String, Vec<String>),
    /// There was nothing to do, and why.
    NotApplicable(String),
    /// It could not be tried to its end, since another promise is broken.
    CutShort(Case),
    /// The promise is broken.
    Failed(Box<Failure>),
}

/// How a promise is broken.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) expected: String,
    pub(super) got: String,
    pub(super) history: History,
}

/// What came of all cases.
#[derive(Debug)]
pub(super) struct Verdicts(pub(super) Vec<(Case, Verdict)>);

impl Verdicts {
    pub(super) fn failed(&self) -> usize {
        let failed = self
            .0
            .iter()
            .filter(|(_, verdict)| matches!(verdict, Verdict::Failed(_)));
        failed.count()
    }

    /// A failure stays, unless another shows the same in fewer steps.
    fn set(&mut self, case: Case, verdict: Verdict) {
        let Some((_, place)) = self.0.iter_mut().find(|(known, _)| *known == case) else {
            return;
        };
        match (&*place, &verdict) {
            (Verdict::Failed(known), Verdict::Failed(new))
                if new.history.steps.len() >= known.history.steps.len() => {}
            (Verdict::Failed(_), verdict) if !matches!(verdict, Verdict::Failed(_)) => {}
            _ => *place = verdict,
        }
    }

    fn fail(&mut self, subject: &Subject, case: Case, problem: Problem) {
        let broken = problem.case.unwrap_or(case);
        if broken != case {
            self.set(case, Verdict::CutShort(broken));
        }
        self.broken(broken, problem, subject.history());
    }

    fn broken(&mut self, case: Case, problem: Problem, history: History) {
        let failure = Failure {
            expected: problem.expected,
            got: problem.got,
            history,
        };
        self.set(case, Verdict::Failed(Box::new(failure)));
    }

    /// Tries a case. What else is found by the way is kept as well.
    fn run(&mut self, subject: &Subject, case: Case, run: impl FnOnce() -> Checked<Ran>) {
        subject.watch.set(Watch::Only(case));
        let ran = run();
        self.ran(subject, case, ran);
        for (case, problem, history) in subject.take_by_the_way() {
            self.broken(case, problem, history);
        }
    }

    fn ran(&mut self, subject: &Subject, case: Case, ran: Checked<Ran>) {
        let notes = subject.take_notes();
        match ran {
            Err(problem) => self.fail(subject, case, problem),
            Ok(ran) if !ran.applicable => self.set(case, Verdict::NotApplicable(ran.what)),
            Ok(ran) if notes.is_empty() => self.set(case, Verdict::Passed(ran.what)),
            Ok(ran) => self.set(case, Verdict::Noted(ran.what, notes)),
        }
    }
}

/// Checks a policy under `given` settings, or its defaults, and under some that its schema suggests for what those leave open.
pub(super) fn check(policy: &Policy, given: Option<&str>, seed: u64) -> Verdicts {
    let (progress, first) = (Progress::new(), given.unwrap_or("{}"));
    let mut subject = Subject::new(policy.clone(), vec![first.to_owned()], seed);
    think_up_settings(&mut subject);
    let subject = &subject;
    let mut verdicts = Verdicts(
        Case::ALL
            .map(|case| (case, Verdict::CutShort(Case::Contract)))
            .to_vec(),
    );
    let described = policy.description();
    let contract = format!(
        "it is {} {}, {}",
        described.name,
        described.version,
        policy.digest()
    );
    verdicts.set(Case::Contract, Verdict::Passed(contract));
    let scripted: [(Case, Scripted); 10] = [
        (Case::Moves, cases::moves),
        (Case::Description, cases::description),
        (Case::Settings, cases::settings),
        (Case::Keys, cases::keys),
        (Case::Limits, cases::limits),
        (Case::Edges, cases::edges),
        (Case::Operator, cases::operator),
        (Case::Generations, cases::generations),
        (Case::HalfOpen, cases::half_open),
        (Case::CoolDown, cases::cool_down),
    ];
    for (case, run) in scripted {
        progress.show(case.name());
        verdicts.run(subject, case, || run(subject));
    }
    progress.show("random walks");
    let (walks, problem) = Walks::new(subject);
    if let Some((problem, history)) = problem {
        let case = problem.case.unwrap_or(Case::Contract);
        verdicts.broken(case, problem, history);
    }
    let walked: [(Case, Walked); 6] = [
        (Case::Permits, cases::permits),
        (Case::Modes, cases::modes),
        (Case::Queries, cases::queries),
        (Case::Clock, cases::clock),
        (Case::Snapshots, cases::snapshots),
        (Case::Leases, leases),
    ];
    for (case, run) in walked {
        progress.show(case.name());
        verdicts.run(subject, case, || run(subject, &walks));
    }
    verdicts
}

fn leases(subject: &Subject, walks: &Walks) -> Checked<Ran> {
    let walked = walks.play(subject, Play::Leases)?;
    Ok(Ran::done(format!(
        "asking each time and by leases, side by side in the host: {walked}"
    )))
}

/// Settings that the policy's schema suggests, and that it accepts.
fn think_up_settings(subject: &mut Subject) {
    let Ok(schema) = Schema::read(&subject.policy.description().settings_schema) else {
        return;
    };
    let clock = tripwit::ManualClock::new();
    let given = serde_json::from_str(subject.main_settings());
    let Ok(Value::Object(given)) = given else {
        return;
    };
    for mut settings in schema.thought_up(subject.seed, &given) {
        // A field that is refused because of another is left out.
        for _ in 0..4 {
            let text = settings.to_string();
            let Ok(Ok(answer)) = subject
                .start(&clock)
                .map(|mut instance| instance.attach("settings", &text))
            else {
                return;
            };
            match answer {
                Ok(_) if subject.settings.contains(&text) || subject.settings.len() >= SETTINGS => break,
                Ok(_) => subject.settings.push(text),
                Err(tripwit::raw::AttachError::Settings(error)) => {
                    let name = error.field.trim_start_matches('/').to_owned();
                    if given.contains_key(&name) {
                        break;
                    }
                    if settings
                        .as_object_mut()
                        .and_then(|fields: &mut serde_json::Map<String, Value>| fields.remove(&name))
                        .is_none()
                    {
                        break;
                    }
                }
                Err(_) => break,
            }
        }
    }
}
