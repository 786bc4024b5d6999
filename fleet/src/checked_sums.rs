//! Sums of integers that are exact or an error.
//!
//! DataFusion adds 64-bit integers up modulo 2^64 (`add_wrapping` in its `sum.rs`), so that the nanoseconds of a large
//! fleet can have a negative sum without a word. Here they are added up in 128 bits, and become 64 bits again at the
//! end, where a sum that does not fit is an error, as in DuckDB it is a larger integer.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::WindowFunctionDefinition;
use datafusion::logical_expr::{
    Aggregate, Expr, ExprSchemable, LogicalPlan, Projection, Window, cast,
};
use datafusion::optimizer::AnalyzerRule;

/// The largest 64-bit integers have 19 digits.
const INTEGER: DataType = DataType::Decimal128(19, 0);

/// Adds 64-bit integers up in 128 bits.
#[derive(Debug)]
pub(crate) struct CheckedSums;

impl AnalyzerRule for CheckedSums {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let done = plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Aggregate(node) => aggregate(node),
            LogicalPlan::Window(node) => window(node),
            node => Ok(Transformed::no(node)),
        });
        done.map(|done| done.data)
    }

    fn name(&self) -> &str {
        "checked_sums"
    }
}

fn aggregate(mut node: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let schema = Arc::clone(&node.schema);
    let changed = widened(&mut node.aggr_expr, node.input.schema())?;
    if !changed.contains(&true) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(node)));
    }
    let sums = Aggregate::try_new(node.input, node.group_expr, node.aggr_expr)?;
    narrowed(LogicalPlan::Aggregate(sums), &schema, &changed)
}

fn window(mut node: Window) -> Result<Transformed<LogicalPlan>> {
    let schema = Arc::clone(&node.schema);
    let changed = widened(&mut node.window_expr, node.input.schema())?;
    if !changed.contains(&true) {
        return Ok(Transformed::no(LogicalPlan::Window(node)));
    }
    let sums = Window::try_new(node.window_expr, node.input)?;
    narrowed(LogicalPlan::Window(sums), &schema, &changed)
}

/// Has sums of 64-bit integers add up in 128 bits. Returns which are such.
fn widened(expressions: &mut [Expr], input: &DFSchema) -> Result<Vec<bool>> {
    let each = expressions
        .iter_mut()
        .enumerate()
        .map(|(number, expression)| {
            let wide = expression
                .clone()
                .transform(|one| widened_sum(one, input))?;
            if wide.transformed {
                // Another sum may be of 128 bits by what was asked.
                *expression = wide.data.alias(format!("checked sum {number}"));
            }
            Ok(wide.transformed)
        });
    each.collect()
}

fn widened_sum(mut expression: Expr, input: &DFSchema) -> Result<Transformed<Expr>> {
    let (name, arguments) = match &mut expression {
        Expr::AggregateFunction(sum) => (sum.func.name(), &mut sum.params.args),
        Expr::WindowFunction(window) => match &window.fun {
            // DataFusion has no sliding sums of distinct integers of 128 bits.
            WindowFunctionDefinition::AggregateUDF(sum) if !window.params.distinct => {
                (sum.name(), &mut window.params.args)
            }
            _ => return Ok(Transformed::no(expression)),
        },
        _ => return Ok(Transformed::no(expression)),
    };
    match arguments.as_mut_slice() {
        [argument] if name == "sum" && argument.get_type(input)? == DataType::Int64 => {
            *argument = cast(argument.clone(), INTEGER);
            Ok(Transformed::yes(expression))
        }
        _ => Ok(Transformed::no(expression)),
    }
}

/// Gives sums the names and the 64 bits that they had in `schema`, whose last columns they are.
fn narrowed(
    plan: LogicalPlan,
    schema: &DFSchema,
    changed: &[bool],
) -> Result<Transformed<LogicalPlan>> {
    let before = schema.fields().len() - changed.len();
    let columns = plan
        .schema()
        .columns()
        .into_iter()
        .zip(schema.iter())
        .enumerate();
    let each = columns.map(|(number, (column, (qualifier, field)))| {
        let column = Expr::Column(column);
        match number
            .checked_sub(before)
            .is_some_and(|number| changed[number])
        {
            true => cast(column, DataType::Int64).alias_qualified(qualifier.cloned(), field.name()),
            false => column,
        }
    });
    let each = each.collect();
    let plan = Projection::try_new(each, Arc::new(plan))?;
    Ok(Transformed::yes(LogicalPlan::Projection(plan)))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::engine_error::with_advice;

    /// Returns the rows of an answer, or what is wrong.
    async fn asked(context: &SessionContext, select: &str) -> std::result::Result<String, String> {
        let sql = format!(
            "WITH t(x, g) AS (VALUES (9223372036854775807, 1), (5, 1), (-9223372036854775807, 2), \
                           (NULL, 3)) SELECT {select}"
        );
        let frame = context.sql(&sql).await.map_err(|error| error.to_string())?;
        let names: Vec<String> = frame
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect();
        let batches = frame
            .collect()
            .await
            .map_err(|error| with_advice(&error).to_string())?;
        let table = pretty_format_batches(&batches)
            .map_err(|error| error.to_string())?
            .to_string();
        let cells = table.lines().skip(3).filter(|line| line.starts_with('|'));
        let cells: Vec<String> = cells
            .map(|line| {
                line.replace([' ', '|'], ",")
                    .split(',')
                    .filter(|word| !word.is_empty())
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect();
        Ok(format!("{}: {}", names.join(" "), cells.join("; ")))
    }

    #[test]
    fn sums_of_integers_are_exact_or_an_error() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let context = SessionContext::new();
            context.add_analyzer_rule(Arc::new(CheckedSums));
            for (select, answer) in [
                // In the middle it may be more than 64 bits have.
                ("sum(x) FROM t", "sum(t.x): 5"),
                ("sum(DISTINCT x) AS s, sum(x) FILTER (WHERE g = 2) AS f FROM t", "s f: 5 -9223372036854775807"),
                ("sum(x) + sum(x), count(*) FROM t", "sum(t.x) + sum(t.x) count(*): 10 4"),
                ("g, sum(x) AS s FROM t WHERE g > 1 GROUP BY g HAVING count(x) > 0 ORDER BY sum(x)", "g s: 2 -9223372036854775807"),
                ("sum(x) AS s FROM t WHERE g = 3", "s:"),
                ("sum(s) AS s FROM (SELECT sum(g) AS s FROM t GROUP BY g)", "s: 7"),
                ("g, sum(g) OVER (ORDER BY g ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM t ORDER BY g, s", "g s: 1 1; 1 2; 2 3; 3 5"),
                ("g FROM t WHERE g >= (SELECT sum(g) - 4 FROM t)", "g: 3"),
                ("sum(CAST(x AS DOUBLE)) AS s FROM t WHERE g = 1", "s: 9.223372036854776e18"),
            ] {
                assert_eq!(asked(&context, select).await.as_deref().map(str::trim), Ok(answer), "{select}");
            }
            for select in ["sum(x) FROM t WHERE g = 1", "g, sum(x) FROM t GROUP BY g", "sum(x) OVER (ORDER BY g) FROM t"] {
                let error = asked(&context, select).await.expect_err(select);
                assert!(error.contains("CAST(x AS DOUBLE)"), "{select}: {error}");
            }
        });
    }
}
