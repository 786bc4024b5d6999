//! Path files.

use super::cond::{EventAttribute, EventCondition, EventPattern};
use super::error::LanguageError;
use super::pair::selector;
use super::part::PartList;
use super::path::{
    MAX_ALTS, MAX_CHAINS, MAX_ROLES, MAX_STEPS, PathChain, PathDefinition, PathGrouping, PathStep,
    RoleJoin, StepAlternative, StepOption, WaitEnd,
};
use super::table::{FileToml, SkipRule, StepToml, TextList};

/// Parses a path file.
///
/// # Errors
/// It is no TOML, has unknown keys, or does not make sense: the message says where.
pub fn parse(text: &str) -> Result<PathDefinition, LanguageError> {
    understand(text).map_err(|LanguageError(error)| LanguageError(short(&error, MAX_ERROR)))
}

/// Characters of an error, and of a line of the file in it.
const MAX_ERROR: usize = 400;
const MAX_EXCERPT: usize = 60;

/// Makes one line of a text that may be long, and steer a terminal: it is whatever stands in the file.
fn short(text: &str, most: usize) -> String {
    let mut out: String = text
        .chars()
        .take(most)
        .map(|c| match c {
            '\n' => ' ',
            c if c.is_control() => '?',
            c => c,
        })
        .collect();
    if text.chars().nth(most).is_some() {
        out.push_str("...");
    }
    out
}

/// Says where a file is no TOML, or not what is expected.
fn toml_error(text: &str, error: &toml::de::Error) -> LanguageError {
    let Some(at) = error.span().map(|span| span.start) else {
        return LanguageError(error.message().to_owned());
    };
    let before = text.get(..at).unwrap_or(text);
    let line = before.bytes().filter(|byte| *byte == b'\n').count();
    let excerpt = text.lines().nth(line).unwrap_or_default().trim();
    let message = error.message().trim();
    LanguageError(match excerpt {
        "" => format!("line {}: {message}", line + 1),
        excerpt => format!(
            "line {}, '{}': {message}",
            line + 1,
            short(excerpt, MAX_EXCERPT)
        ),
    })
}

fn understand(text: &str) -> Result<PathDefinition, LanguageError> {
    let file: FileToml = toml::from_str(text).map_err(|error| toml_error(text, &error))?;
    let by = match file.by.as_deref() {
        None => None,
        Some("waker") => Some(PathGrouping::Waker),
        Some("back-end") => Some(PathGrouping::BackEnd),
        Some("access") => Some(PathGrouping::Access),
        Some("chain") => Some(PathGrouping::Chain),
        Some("numa-distance") => Some(PathGrouping::NodeDistance),
        Some("raiser") => Some(PathGrouping::Raiser),
        Some(other) => {
            return Err(LanguageError(format!(
                "by = \"{other}\": expected waker, back-end, access, chain, numa-distance or raiser"
            )));
        }
    };
    let parts = PartList(&file.part);
    let mut chains = Vec::new();
    if !file.step.is_empty() {
        if !file.chain.is_empty() {
            return Err(LanguageError(
                "has steps of its own and in chains; put all in [[chain.step]] or all in [[step]]"
                    .to_owned(),
            ));
        }
        chains.push(chain(None, &file.step, &parts)?);
    }
    for one in &file.chain {
        chains.push(chain(one.name.clone(), &one.step, &parts)?);
    }
    if chains.is_empty() || chains.len() > MAX_CHAINS {
        return Err(LanguageError(format!(
            "has {} chains of steps; expected [[step]] tables, or [[chain.step]] tables in 1 to {MAX_CHAINS} chains",
            chains.len()
        )));
    }
    let name = file.name.trim();
    if name.is_empty() {
        return Err(LanguageError("name is empty".to_owned()));
    }
    Ok(PathDefinition {
        name: name.to_owned(),
        about: file.about.unwrap_or_default().trim().to_owned(),
        by,
        chains,
        only_if_found: false,
    })
}

fn chain(
    name: Option<String>,
    tables: &[StepToml],
    parts: &PartList<'_>,
) -> Result<PathChain, LanguageError> {
    let what = name
        .as_ref()
        .map_or_else(String::new, |name| format!("chain \"{name}\": "));
    let fail = |LanguageError(text)| LanguageError(format!("{what}{text}"));
    let tables = with_exits(parts.steps(tables).map_err(fail)?);
    if tables.len() < 2 || tables.len() > MAX_STEPS {
        return Err(fail(LanguageError(format!(
            "has {} steps; a path goes from one event to another, in 2 to {MAX_STEPS} steps",
            tables.len()
        ))));
    }
    let mut steps: Vec<PathStep> = Vec::new();
    let mut roles = Vec::new();
    for (position, table) in tables.iter().enumerate() {
        let known: Vec<&str> = tables[..position].iter().map(|t| t.name.as_str()).collect();
        check_name(&table.name, &known).map_err(fail)?;
        let starts = steps.iter().all(|step| step.optional != StepOption::Never);
        let step = step(table, &known, &mut roles, starts)
            .and_then(|step| check_named(&step, &tables).map(|()| step))
            .map_err(|error| fail(LanguageError(format!("step \"{}\": {error}", table.name))))?;
        steps.push(step);
    }
    // Where nothing is said of it, every instance counts.
    if !steps.iter().any(|step| step.counts) {
        for step in &mut steps {
            step.counts = true;
        }
    }
    check_one_is_reached(&steps).map_err(fail)?;
    Ok(PathChain { name, steps, roles })
}

/// Puts the exit that a step begins with before it.
fn with_exits(tables: Vec<StepToml>) -> Vec<StepToml> {
    let mut all = Vec::with_capacity(tables.len());
    for table in tables {
        all.extend(table.from_exit.as_ref().map(|name| StepToml {
            name: name.clone(),
            optional: Some(SkipRule::Always(true)),
            is_exit: true,
            ..StepToml::default()
        }));
        all.push(table);
    }
    all
}

/// A step has a name, and it is none that a step before it has.
fn check_name(name: &str, before: &[&str]) -> Result<(), LanguageError> {
    if name.trim().is_empty() {
        return Err(LanguageError(format!(
            "the name of step {} is empty; stages are named by their steps",
            before.len() + 1
        )));
    }
    if before.contains(&name) {
        return Err(LanguageError(format!("two steps are called \"{name}\"")));
    }
    Ok(())
}

/// What a step is reached instead of, yields to and does without are steps of its chain.
fn check_named(step: &PathStep, tables: &[StepToml]) -> Result<(), LanguageError> {
    let instead = step.alts.iter().flat_map(|alt| &alt.instead_of);
    let mut all = (instead.map(|name| ("instead-of", name)))
        .chain(step.yields.iter().map(|name| ("yields", name)))
        .chain((step.optional_with.iter()).map(|name| ("optional-with", name)));
    match all.find(|(_, named)| !tables.iter().any(|table| table.name == **named)) {
        None => Ok(()),
        Some((key, named)) => Err(LanguageError(format!(
            "{key} = \"{named}\": there is no such step"
        ))),
    }
}

/// Not every step can be passed over.
fn check_one_is_reached(steps: &[PathStep]) -> Result<(), LanguageError> {
    let always = |step: &PathStep| step.optional == StepOption::Always;
    if steps.iter().all(always) || steps.len() == 2 && steps.last().is_some_and(always) {
        return Err(LanguageError(
            "every step is optional; one at least has to be reached".to_owned(),
        ));
    }
    Ok(())
}

fn step(
    table: &StepToml,
    before: &[&str],
    roles: &mut Vec<String>,
    starts: bool,
) -> Result<PathStep, LanguageError> {
    let optional = optional(table.optional.as_ref())?;
    let alts = if table.is_exit {
        Vec::new()
    } else {
        alts(table, before, roles)?
    };
    if table.from_exit.is_some() && before.len() != 1 {
        return Err(LanguageError(
            "has from-exit, which the first step alone can have".to_owned(),
        ));
    }
    if !starts && alts.iter().any(|alt| alt.joins.is_empty()) {
        return Err(LanguageError(
            "has no join, so that nothing says which instance an event belongs to; expected join = \"thread = ROLE\" \
             or the like"
                .to_owned(),
        ));
    }
    let not_after = steps_before(&table.not_after, before)?;
    let only_after = steps_before(&table.only_after, before)?;
    let unique = known_roles(&table.unique, roles)?;
    if table.several && !unique.is_empty() {
        return Err(LanguageError(
            "has unique and several; there is one instance at a time with the same roles, or there are \
             several"
                .to_owned(),
        ));
    }
    let recall = recalls(&table.recall, roles)?;
    let needs = known_roles(&table.needs, roles)?;
    Ok(PathStep {
        name: table.name.clone(),
        needs,
        optional,
        optional_with: table.optional_with.clone(),
        counts: table.counts,
        each: table.each,
        unique,
        coalesces: table.coalesces,
        several: table.several,
        until: ends(&table.until, roles)?,
        over: ends(&table.over, roles)?,
        soon: table.soon,
        ends: table.ends,
        answers: table.answers,
        polls: table.polls,
        is_exit: table.is_exit,
        unless: patterns(&table.unless)?,
        not_after,
        only_after,
        recall,
        yields: table.yields.clone(),
        alts,
    })
}

fn optional(skip: Option<&SkipRule>) -> Result<StepOption, LanguageError> {
    match skip {
        None | Some(SkipRule::Always(false)) => Ok(StepOption::Never),
        Some(SkipRule::Always(true)) => Ok(StepOption::Always),
        Some(SkipRule::When(when)) if when == "unrecorded" => Ok(StepOption::Unrecorded),
        Some(SkipRule::When(when)) => Err(LanguageError(format!(
            "optional = \"{when}\": expected true, false or \"unrecorded\""
        ))),
    }
}

/// Returns the places of steps by their names.
fn steps_before(names: &TextList, before: &[&str]) -> Result<Vec<usize>, LanguageError> {
    names
        .list()
        .iter()
        .map(|name| {
            before
                .iter()
                .position(|step| step == name)
                .ok_or_else(|| LanguageError(format!("\"{name}\" is no step before it")))
        })
        .collect()
}

/// Parses the alternatives of a step: the one that stands in its own table, and those in tables of theirs.
fn alts(
    table: &StepToml,
    before: &[&str],
    roles: &mut Vec<String>,
) -> Result<Vec<StepAlternative>, LanguageError> {
    let mut alts = Vec::new();
    let in_guest = is_in_guest(table.machine.as_deref())?;
    if !table.event.list().is_empty() {
        let one = alt(&table.event, &table.conds, &table.join, &table.bind, roles)?;
        alts.push(StepAlternative {
            in_guest: in_guest.unwrap_or(false),
            ..one
        });
    }
    for on in &table.on {
        let mut one = alt(&on.event, &on.conds, &on.join, &on.bind, roles)?;
        let own = is_in_guest(on.machine.as_deref())?;
        one.in_guest = own.or(in_guest).unwrap_or(false);
        one.unless = patterns(&on.unless)?;
        one.not_after = steps_before(&on.not_after, before)?;
        one.only_after = steps_before(&on.only_after, before)?;
        one.instead_of = on.instead_of.list().to_vec();
        one.soon = on.soon;
        one.awake = on.awake;
        one.only_binds = on.only_binds;
        one.within = on
            .within
            .as_deref()
            .map(EventAttribute::parse)
            .transpose()?;
        alts.push(one);
    }
    if alts.is_empty() || alts.len() > MAX_ALTS {
        return Err(LanguageError(format!(
            "is reached by {} alternatives; expected event = ... or 1 to {MAX_ALTS} [[...on]] tables",
            alts.len()
        )));
    }
    Ok(alts)
}

/// Returns whether events are a guest's, as far as `machine` says.
fn is_in_guest(machine: Option<&str>) -> Result<Option<bool>, LanguageError> {
    match machine {
        None => Ok(None),
        Some("host") => Ok(Some(false)),
        Some("guest") => Ok(Some(true)),
        Some(other) => Err(LanguageError(format!(
            "machine = \"{other}\": expected \"host\" or \"guest\""
        ))),
    }
}

/// Parses `ROLE by ROLE` and `ROLE by ROLE and ROLE`.
fn recalls(
    texts: &TextList,
    roles: &mut Vec<String>,
) -> Result<Vec<(usize, Vec<usize>)>, LanguageError> {
    let one = |text: &String| {
        let (name, by) = text.split_once(" by ").ok_or_else(|| {
            LanguageError(format!(
                "recall = \"{text}\": expected \"ROLE by ROLE\" or \"ROLE by ROLE and ROLE\""
            ))
        })?;
        let by = by
            .split(" and ")
            .map(|name| known_role(roles, name))
            .collect::<Result<Vec<usize>, LanguageError>>()?;
        Ok((role(roles, name)?, by))
    };
    texts.list().iter().map(one).collect()
}

/// Parses `EVENT`, `EVENT[COND]`, and either with ` anew`, with ` of ROLE`, or with both behind it.
fn ends(texts: &TextList, roles: &[String]) -> Result<Vec<WaitEnd>, LanguageError> {
    let one = |text: &String| {
        let (event, of) = match text.rsplit_once(" of ") {
            Some((event, role)) => (event, Some(known_role(roles, role)?)),
            None => (text.as_str(), None),
        };
        let (event, anew) = match event.trim().strip_suffix(" anew") {
            Some(event) => (event, true),
            None => (event, false),
        };
        let alt = selector(event)?;
        let event = alt.events.into_iter().next();
        Ok(WaitEnd {
            event: event.ok_or_else(|| LanguageError(format!("'{text}' names no event")))?,
            conds: alt.conds,
            of,
            anew,
        })
    };
    texts.list().iter().map(one).collect()
}

fn patterns(names: &TextList) -> Result<Vec<EventPattern>, LanguageError> {
    names
        .list()
        .iter()
        .map(|name| EventPattern::parse(name))
        .collect()
}

fn alt(
    events: &TextList,
    conds: &TextList,
    joins: &TextList,
    binds: &TextList,
    roles: &mut Vec<String>,
) -> Result<StepAlternative, LanguageError> {
    let events = patterns(events)?;
    if events.is_empty() {
        return Err(LanguageError("event = [] names no event".to_owned()));
    }
    let conds = conds
        .list()
        .iter()
        .map(|cond| EventCondition::parse(cond))
        .collect::<Result<_, _>>()?;
    let joins = joins
        .list()
        .iter()
        .map(|text| {
            let (differs, parts) = match text.split_once("!=") {
                Some(parts) => (true, Some(parts)),
                None => (false, text.split_once('=')),
            };
            let (attr, name) = parts.ok_or_else(|| {
                LanguageError(format!("join = \"{text}\": expected \"ATTRIBUTE = ROLE\""))
            })?;
            Ok(RoleJoin {
                attr: EventAttribute::parse(attr)?,
                role: known_role(roles, name)?,
                differs,
            })
        })
        .collect::<Result<_, LanguageError>>()?;
    let binds = binds
        .list()
        .iter()
        .map(|text| {
            let (name, attr) = text.split_once('=').ok_or_else(|| {
                LanguageError(format!("bind = \"{text}\": expected \"ROLE = ATTRIBUTE\""))
            })?;
            Ok((role(roles, name)?, EventAttribute::parse(attr)?))
        })
        .collect::<Result<_, LanguageError>>()?;
    Ok(StepAlternative {
        events,
        not_after: Vec::new(),
        only_after: Vec::new(),
        instead_of: Vec::new(),
        in_guest: false,
        soon: false,
        awake: false,
        only_binds: false,
        within: None,
        unless: Vec::new(),
        conds,
        joins,
        binds,
    })
}

/// Returns the number of a role, which is a new one if it was not named before.
fn role(roles: &mut Vec<String>, name: &str) -> Result<usize, LanguageError> {
    let name = name.trim();
    if let Some(known) = roles.iter().position(|role| role == name) {
        return Ok(known);
    }
    if name.is_empty() || roles.len() == MAX_ROLES {
        return Err(LanguageError(format!(
            "role \"{name}\": a chain has at most {MAX_ROLES} roles, each with a name"
        )));
    }
    roles.push(name.to_owned());
    Ok(roles.len() - 1)
}

fn known_role(roles: &[String], name: &str) -> Result<usize, LanguageError> {
    let name = name.trim();
    roles.iter().position(|role| role == name).ok_or_else(|| {
        LanguageError(format!(
            "role \"{name}\" is not bound by a step before it; bound are: {}",
            if roles.is_empty() {
                "none".to_owned()
            } else {
                roles.join(", ")
            }
        ))
    })
}

fn known_roles(names: &TextList, roles: &[String]) -> Result<Vec<usize>, LanguageError> {
    let one = |name: &String| known_role(roles, name);
    names.list().iter().map(one).collect()
}
