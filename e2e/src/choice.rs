//! Command line arguments.

use crate::Error;

/// All steps.
const STEPS: [&str; 27] = [
    "conformance/real",
    "conformance/embedded",
    "conformance/sharded",
    "kubectl",
    "programs/real",
    "programs/embedded",
    "command/real",
    "command/embedded",
    "command/forms",
    "informer/tokens",
    "informer/kinds",
    "informer/writes",
    "informer/access",
    "informer/definitions",
    "informer/shards",
    "informer/sharded",
    "informer/compaction",
    "informer/apiserver-killed",
    "informer/etcd-stopped",
    "leadership",
    "shards",
    "controllers/foo",
    "controllers/website",
    "differential/real",
    "differential/embedded",
    "without-go",
    "clean-up",
];

/// What to run.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) release: Release,
    task: Task,
}

#[derive(Debug)]
enum Task {
    /// The steps with these names or in these folders; all steps if empty.
    Judge(Vec<String>),
    Serve,
}

/// The Kubernetes release to test against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    /// The release that the project is built for.
    Current,
    /// A release several minor versions older.
    Old,
}

impl Release {
    /// The Go module that pins the release.
    pub(crate) fn module(self) -> &'static str {
        match self {
            Self::Current => "e2e/control-plane",
            Self::Old => "e2e/control-plane-old",
        }
    }

    /// The results page of a run against the release.
    pub(crate) fn page(self) -> &'static str {
        match self {
            Self::Current => "target/e2e/results.md",
            Self::Old => "target/e2e/results-old.md",
        }
    }
}

impl Choice {
    pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, Error> {
        let (mut release, mut serve, mut wanted) = (Release::Current, false, Vec::new());
        for argument in arguments {
            match argument.as_str() {
                "--old" => release = Release::Old,
                "serve" => serve = true,
                name if STEPS.iter().any(|step| is_part_of(step, name)) => wanted.push(argument),
                unknown => return Err(format!("there is no step {unknown:?}\n\n{}", usage()).into()),
            }
        }
        let task = if serve { Task::Serve } else { Task::Judge(wanted) };
        Ok(Self { release, task })
    }

    /// Whether to only start a control plane.
    pub(crate) fn is_serve(&self) -> bool {
        matches!(self.task, Task::Serve)
    }

    /// Whether a step is selected.
    pub(crate) fn wants(&self, step: &str) -> bool {
        match &self.task {
            Task::Judge(wanted) => wanted.is_empty() || wanted.iter().any(|name| is_part_of(step, name)),
            Task::Serve => false,
        }
    }
}

/// Whether a name selects a step: its own name, or that of its folder.
fn is_part_of(step: &str, name: &str) -> bool {
    step.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn usage() -> String {
    format!(
        "e2e [--old] [STEP...]   runs these steps, or all: {}\n\
         e2e [--old] serve       only runs a control plane, until Ctrl-C\n\n\
         --old                   with an older Kubernetes\n\
         KUBECONFIG=FILE         against that cluster instead of one of its own",
        STEPS.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(arguments: &[&str]) -> Result<Choice, Error> {
        Choice::parse(arguments.iter().copied().map(str::to_owned))
    }

    #[test]
    fn without_a_word_every_step_runs() -> Result<(), Error> {
        let all = chosen(&[])?;
        assert!(STEPS.iter().all(|step| all.wants(step)));
        assert!(!all.is_serve());
        Ok(())
    }

    #[test]
    fn a_step_is_chosen_by_its_name_or_its_folder() -> Result<(), Error> {
        let folder = chosen(&["conformance"])?;
        assert!(folder.wants("conformance/real") && folder.wants("conformance/embedded"));
        let one = chosen(&["--old", "conformance/real"])?;
        assert!(one.wants("conformance/real") && !one.wants("conformance/embedded"));
        assert_eq!(one.release, Release::Old);
        Ok(())
    }

    #[test]
    fn a_step_that_there_is_not_is_refused_with_all_there_are() {
        let said = chosen(&["conform"]).map_or_else(|error| error.to_string(), |_| String::new());
        assert!(said.contains("\"conform\"") && said.contains("conformance/real"), "{said}");
    }
}
