//! `trapline compare --each`: several sides against the first, with what somebody measured beside them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use compare::ComparedSide;
use render::ClockUnit;
use render::compare_each::{self, EachScore, letter};
use session::HostInput;

use crate::answer::Answer;
use crate::commands::compare::args::CompareArgs;
use crate::commands::compare::sides::{Ready, diagnose, names as names_of};
use crate::output;
use crate::usage::Usage;

/// Files of scores are not read beyond this many bytes.
const MAX_SCORES: u64 = 1 << 20;

/// Runs the command.
pub(crate) fn run(args: &CompareArgs, ready: &Ready<'_>, hosts: &[HostInput<'_>]) -> Result<()> {
    let recordings: Vec<&[HostInput<'_>]> = hosts.iter().map(std::slice::from_ref).collect();
    let paths: Vec<&Path> = hosts.iter().map(HostInput::path).collect();
    let scores = scores(&args.score, &paths)?;
    let pictures = ready.session.sides(&recordings, &ready.pictures)?;
    let diagnoses: Vec<_> = pictures
        .iter()
        .map(|side| diagnose(side, ready.session, None))
        .collect();
    let sides: Vec<ComparedSide<'_>> = pictures
        .iter()
        .zip(&diagnoses)
        .map(|(pictures, diagnosis)| ComparedSide {
            pictures,
            diagnosis,
        })
        .collect();
    let each = compare::each(&sides, args.work.as_deref(), ready.options);
    let each = each.map_err(anyhow::Error::msg)?;
    let quality = output::merged(pictures.iter().flatten());
    // Which guests of folders are used is known behind the walk.
    let names: Vec<Vec<String>> = recordings.iter().map(|side| names_of(side)).collect();
    let inputs = names.concat();
    let all = pictures.iter().flatten();
    let answer = Answer {
        format: args.common.format,
        command: "compare",
        inputs: &inputs,
        quality: &quality,
        clock: ClockUnit::of_all(all.map(|one| !one.about.in_ticks)),
    };
    answer.print(
        || {
            let limit = args.limit.unwrap_or(usize::MAX);
            let mut text = compare_each::text(&each, &names, &scores, limit, output::width());
            text.push_str(&output::qualities(pictures.iter().flatten()));
            text
        },
        || compare_each::document(&each, &names, &scores),
        |clock| compare_each::csv(&each, names.len(), &scores, clock),
    )
}

/// Reads what was given with `--score`, for sides of these files.
fn scores(reports: &[String], sides: &[impl AsRef<Path>]) -> Result<Vec<EachScore>> {
    let mut out: Vec<EachScore> = Vec::new();
    for one in reports {
        match one.split_once('=') {
            // A file may have = in its name.
            Some((name, values)) if !Path::new(one).is_file() => {
                let values: Vec<&str> = values.split(',').map(str::trim).collect();
                add(&mut out, name.trim(), &values, sides)
                    .map_err(|error| Usage::error(format!("--score {one}: {error:#}")))?;
            }
            _ => file(&mut out, one, sides)?,
        }
    }
    Ok(out)
}

/// Reads a file of scores: a line each, a name and values; what is behind # is a comment.
fn file(out: &mut Vec<EachScore>, path: &str, sides: &[impl AsRef<Path>]) -> Result<()> {
    let size = fs::metadata(path).with_context(|| {
        format!("--score {path}: it is no NAME=VALUE, and no file that can be read")
    })?;
    if size.len() > MAX_SCORES {
        bail!(
            "--score {path}: {} bytes are too many for a file of scores",
            size.len()
        );
    }
    let text = fs::read_to_string(path).with_context(|| format!("--score {path}"))?;
    let before = out.len();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let words = line.split(|c: char| c.is_whitespace() || ",;=".contains(c));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let Some((name, values)) = words.split_first() else {
            continue;
        };
        add(out, name, values, sides)
            .with_context(|| format!("--score {path}, line {}", number + 1))?;
    }
    if out.len() == before && !out.iter().any(|score| score.name == SCORE) {
        bail!("--score {path}: it has no line of a name and its values");
    }
    Ok(())
}

/// What a score is called that stands side by side.
const SCORE: &str = "score";

/// Adds values of one name: of a score on all sides, or of one side, if it is called so.
fn add(
    out: &mut Vec<EachScore>,
    name: &str,
    values: &[&str],
    sides: &[impl AsRef<Path>],
) -> Result<()> {
    if name.is_empty() {
        bail!("it has no name");
    }
    for value in values {
        if !value.parse::<f64>().is_ok_and(f64::is_finite) {
            bail!("'{value}' is no number");
        }
    }
    if let [value] = values {
        let side = side_of(name, sides)?;
        let at = out.iter().position(|score| score.name == SCORE);
        let at = at.unwrap_or_else(|| {
            out.push(EachScore {
                name: SCORE.to_owned(),
                values: vec![None; sides.len()],
            });
            out.len() - 1
        });
        if let Some(known) = out[at].values.get_mut(side)
            && known.replace((*value).to_owned()).is_some()
        {
            bail!("{} has a score already", letter(side));
        }
        return Ok(());
    }
    if values.len() != sides.len() {
        bail!(
            "{} for {} recordings: one for each is needed, in their order",
            words::plural(values.len(), "value"),
            sides.len()
        );
    }
    if out.iter().any(|score| score.name == name) {
        bail!("there is a score '{name}' already");
    }
    out.push(EachScore {
        name: name.to_owned(),
        values: values
            .iter()
            .map(|value| Some((*value).to_owned()))
            .collect(),
    });
    Ok(())
}

/// Returns the side that is called so: by its letter, by its path, or by a part of its path that no other has.
fn side_of(name: &str, sides: &[impl AsRef<Path>]) -> Result<usize> {
    let exact = (0..sides.len())
        .find(|at| letter(*at) == name || sides[*at].as_ref().to_string_lossy() == name);
    if let Some(at) = exact {
        return Ok(at);
    }
    let part: Vec<usize> = (0..sides.len())
        .filter(|at| sides[*at].as_ref().to_string_lossy().contains(name))
        .collect();
    match part.as_slice() {
        [at] => Ok(*at),
        [] => bail!(
            "no recording is called '{name}': give a value for each of the {} (NAME=VALUE,VALUE,...), or name one by \
             its letter or a part of its path",
            sides.len()
        ),
        many => bail!(
            "'{name}' is a part of the names of {} recordings",
            many.len()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDES: [&str; 3] = ["x/kvm-clock.txt", "x/tsc.txt", "x/hpet.txt"];

    fn of(reports: &[&str]) -> Result<Vec<EachScore>> {
        let reports: Vec<String> = reports.iter().map(|one| (*one).to_owned()).collect();
        scores(&reports, &SIDES)
    }

    #[test]
    fn a_score_is_of_all_sides_or_of_one() {
        let scores = of(&["tps=1,2.5,3", "lat=9,8,7"]).unwrap();
        assert_eq!(scores[0].values[1].as_deref(), Some("2.5"));
        assert_eq!((scores.len(), scores[1].name.as_str()), (2, "lat"));
        let scores = of(&["hpet=282.44", "A=287.60"]).unwrap();
        let values = [Some("287.60".to_owned()), None, Some("282.44".to_owned())];
        assert_eq!((scores.len(), &scores[0].values[..]), (1, &values[..]));
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        for (reports, words) in [
            (&["tps=1,2"][..], "2 values for 3 recordings"),
            (&["tps=1,2,x"], "'x' is no number"),
            (&["tps=1,2,inf"], "'inf' is no number"),
            (&["tps=1"], "no recording is called 'tps'"),
            (&["txt=1"], "a part of the names of 3"),
            (&["A=1", "A=2"], "A has a score already"),
            (&["tps=1,2,3", "tps=1,2,3"], "already"),
            (&["=1,2,3"], "no name"),
            (&["nowhere"], "no NAME=VALUE, and no file"),
        ] {
            let error = format!("{:#}", of(reports).unwrap_err());
            assert!(error.contains(words), "{reports:?}: {error}");
        }
    }
}
