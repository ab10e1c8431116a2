//! The stored inputs of the fuzzer, through the same function, on every compiler.

#![allow(clippy::unwrap_used, reason = "an integration test is one crate of test code")]

#[test]
fn policy() {
    let folder = format!("{}/../../fuzz/corpus/policy", env!("CARGO_MANIFEST_DIR"));
    let mut inputs = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        ringfence_dialect::fuzz_native(&std::fs::read(entry.unwrap().path()).unwrap());
        inputs += 1;
    }
    assert!(inputs >= 10, "{folder} holds {inputs} inputs");
}
