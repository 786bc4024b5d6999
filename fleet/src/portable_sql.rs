//! What is asked here has the same answer in other engines: no integer is divided by an integer, which has digits behind
//! the point in DuckDB, Spark and ClickHouse, and none in DataFusion.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError, Result, plan_err};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::AnalyzerRule;
use datafusion::prelude::SessionContext;
use serde_json::{Value, json};

use crate::engine::{context, losses, register};
use crate::fleet::FleetData;
use crate::request::{FleetQuestion, Request};
use crate::view::StoreView;

/// The questions that come along.
const QUESTIONS: &str = include_str!("../../crates/cli/src/commands/sql/questions.sql");
/// All tables and their columns.
const COLUMNS: &str = include_str!("../../docs/fleet-columns.md");

/// Refuses to plan a division of integers.
#[derive(Debug)]
struct NoWholeDivision;

impl AnalyzerRule for NoWholeDivision {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.apply_with_subqueries(|node| {
            let mut schema = DFSchema::empty();
            for input in node.inputs() {
                schema.merge(input.schema());
            }
            node.apply_expressions(|expression| {
                expression.apply(|one| match one {
                    Expr::BinaryExpr(BinaryExpr {
                        left,
                        op: Operator::Divide,
                        right,
                    }) if is_integer(left, &schema)? && is_integer(right, &schema)? => {
                        plan_err!("{one} divides integers")
                    }
                    _ => Ok(TreeNodeRecursion::Continue),
                })
            })
        })?;
        Ok(plan)
    }

    fn name(&self) -> &str {
        "no_whole_division"
    }
}

fn is_integer(expression: &Expr, schema: &DFSchema) -> Result<bool, DataFusionError> {
    Ok(expression.get_type(schema)?.is_integer())
}

/// Returns all tables as a request has them.
fn tables() -> Vec<Value> {
    let mut tables: Vec<Value> = Vec::new();
    let mut columns: Vec<Value> = Vec::new();
    for line in COLUMNS.lines().rev() {
        if let Some(name) = line
            .strip_prefix("## `")
            .and_then(|rest| rest.strip_suffix('`'))
        {
            tables.push(json!({"name": name, "columns": std::mem::take(&mut columns)}));
        } else if let Some((name, rest)) = line
            .strip_prefix("| `")
            .and_then(|rest| rest.split_once("` | "))
        {
            let kind = match rest.split(" | ").next() {
                Some("INT64") => "integer",
                Some("DOUBLE") => "double",
                Some("BOOLEAN") => "flag",
                _ => "text",
            };
            columns.push(json!({"name": name, "kind": kind}));
        }
    }
    tables
}

/// Returns a store without recordings that refuses to divide integers.
fn empty_store() -> SessionContext {
    let folder = tempfile::tempdir().expect("a folder");
    let request = json!({
        "schema": 1, "store": folder.path(), "inputs": [], "question": {"sql": ""}, "format": "json", "limit": 1,
        "threads": 1, "memory": 1 << 28, "compacted": "all.", "tables": tables(),
    });
    let request: Request = serde_json::from_value(request).expect("a request");
    assert_eq!(request.tables.len(), 14);
    let view = StoreView::of(folder.path(), &[], &request.compacted).expect("a view");
    let context = context(&request, 0).expect("a context");
    for table in &request.tables {
        register(&context, &view, table).expect("a table");
    }
    context.add_analyzer_rule(Arc::new(NoWholeDivision));
    context
}

#[test]
fn no_integer_is_divided_by_an_integer() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let context = empty_store();
        // The rule sees what it is there for, wherever it stands.
        for sql in [
            "SELECT exits / tid FROM vcpus",
            "SELECT vm FROM vcpus GROUP BY vm HAVING sum(exits) / count(*) > 1",
            "SELECT tid FROM vcpus WHERE exits > (SELECT max(exits) / 2 FROM vcpus)",
        ] {
            let frame = context.sql(sql).await.expect("a plan");
            let error = frame.collect().await.expect_err(sql).to_string();
            assert!(error.contains("divides integers"), "{error}");
        }
        let text: String = QUESTIONS
            .lines()
            .filter(|line| !line.starts_with("--"))
            .map(|line| format!("{line}\n"))
            .collect();
        let questions: Vec<&str> = text
            .split(';')
            .filter(|sql| !sql.trim().is_empty())
            .collect();
        assert_eq!(questions.len(), 12);
        for sql in questions {
            let sql = sql
                .replace(":day", "'2026-01-12'")
                .replace(":before", "'2026-01-05'");
            let frame = context
                .sql(&sql)
                .await
                .unwrap_or_else(|error| panic!("{error}: {sql}"));
            frame
                .collect()
                .await
                .unwrap_or_else(|error| panic!("{error}: {sql}"));
        }
        losses(&context).await.expect("what recordings lost");
        let question = FleetQuestion {
            day: Some("2026-01-12".to_owned()),
            since: None,
            peers: vec!["role".to_owned()],
            future: Vec::new(),
        };
        FleetData::read(&context, &question)
            .await
            .expect("what the screen is made of");
    });
}
