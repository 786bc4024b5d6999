//! arm64's system registers have their table: a row for each and direction, timed as model specific registers are.

use serde_json::Value;

use crate::common::json;

fn table(event: &str) -> Value {
    let file = fixtures::file("causes/arm64/base-healthy/perf.data.zst");
    json(&["exits", "--event", event], &file).expect("it has exits")
}

#[test]
fn accesses_of_system_registers_are_counted_by_register() {
    let registers = table("msr");
    let rows = registers["rows"].as_array().expect("there are rows");
    let keys: Vec<&str> = rows.iter().filter_map(|row| row["key"].as_str()).collect();
    assert_eq!(keys, ["S3_0_C12_C11_5:W"]);
    assert_eq!(rows[0]["name"], "ICC_SGI1R_EL1");
    // Each was one exit: the recording has 281 kvm_sys_access and kvm_handle_sys_reg.
    let exits = table("vmexit");
    let exits = exits["rows"].as_array().expect("there are rows");
    let sys64 = exits.iter().find(|row| row["key"] == "SYS64");
    let sys64 = sys64.expect("there is a row of SYS64");
    assert_eq!(rows[0]["count"], 281);
    assert_eq!(rows[0]["count"], sys64["count"]);
    let ns = |row: &Value| row["total_ns"].as_u64().expect("it is timed");
    // From the event to the entry is less than from the exit.
    assert!(ns(&rows[0]) < ns(sys64) && ns(&rows[0]) * 2 > ns(sys64));
}
