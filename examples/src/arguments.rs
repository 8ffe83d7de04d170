//! The command line.

use std::process::ExitCode;

use clap::Parser;

use crate::terminal;

/// Reads the arguments of this process.
///
/// # Errors
///
/// The exit code to end with: 0 after `--help`, 2 after arguments that make no sense. What there is to say has then been
/// printed, for bad arguments as one line.
pub fn parse<T: Parser>() -> Result<T, ExitCode> {
    T::try_parse().map_err(|error| {
        let text = error.to_string();
        if error.use_stderr() {
            terminal::complain(&format!("{}; see --help", first_line(&text)));
            ExitCode::from(2)
        } else {
            terminal::say(text.trim_end());
            ExitCode::SUCCESS
        }
    })
}

/// Reads the arguments of this process and does what they ask for.
///
/// Gives the exit code to end with: that of [`parse`] where they make no sense, 1 after an error, which has then been printed in
/// one line.
pub fn run<T: Parser>(run: impl FnOnce(&T) -> anyhow::Result<()>) -> ExitCode {
    let arguments = match parse::<T>() {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::complain(&format!("{} failed: {error:#}", T::command().get_name()));
            ExitCode::FAILURE
        }
    }
}

/// The line that says what is wrong, without the usage and hints that follow it.
fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or(text).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::Scale;

    #[derive(Debug, Parser)]
    struct Arguments {
        #[command(flatten)]
        scale: Scale,
    }

    fn complaint(arguments: &[&str]) -> String {
        let error = Arguments::try_parse_from(arguments).expect_err("these arguments are bad");
        first_line(&error.to_string()).to_owned()
    }

    #[test]
    fn the_scale_is_thirty_unless_told_otherwise() {
        let default = Arguments::try_parse_from(["example"]).expect("no argument is needed");
        assert_eq!(default.scale.to_string(), Scale::new(30).to_string());
        let real = Arguments::try_parse_from(["example", "--scale", "1"]).expect("1 is the real scale");
        assert_eq!(real.scale.to_string(), Scale::new(1).to_string());
    }

    #[test]
    fn a_bad_scale_is_answered_with_one_line_that_names_the_range() {
        assert_eq!(
            complaint(&["example", "--scale", "0"]),
            "error: invalid value '0' for '--scale <N>': 0 is not in 1..=100"
        );
        assert_eq!(
            complaint(&["example", "fast"]),
            "error: unexpected argument 'fast' found"
        );
    }
}
