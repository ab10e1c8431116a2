//! The filter against its table, against its own words, and against another compiler.

use proptest::prelude::*;
use ringfence_plan::bpf::{Action, BpfError, Call, Clause, Compare, Insn, Rule, Table, Test, compile, run};
use ringfence_plan::seccomp::{Arch, build, table};
use std::collections::BTreeMap;

const ARCHES: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];
const EPERM: Action = Action::Errno(1);

fn call(arch: Arch, number: u32, args: &[u64]) -> Call {
    let mut all = [0; 6];
    for (to, from) in all.iter_mut().zip(args) {
        *to = *from;
    }
    Call { number, arch: arch.audit(), args: all }
}

fn x86(number: u32, args: &[u64]) -> u32 {
    let program = build(Arch::X86_64, &[]).unwrap().program;
    run(&program, &call(Arch::X86_64, number, args)).unwrap().value
}

#[track_caller]
fn refused(number: u32, args: &[u64]) {
    let value = x86(number, args);
    assert_eq!(value & 0xffff_0000, 0x0005_0000, "call {number} {args:x?} came to {value:#x}");
}

#[track_caller]
fn passes(number: u32, args: &[u64]) {
    assert_eq!(x86(number, args), Action::Allow.code(), "call {number} {args:x?}");
}

#[test]
fn every_number_gets_what_the_table_says() {
    for arch in ARCHES {
        let (table, program) = (table(arch, &[]).unwrap(), build(arch, &[]).unwrap().program);
        for number in (0..1100).chain([0x3fff_ffff, 0x4000_0000, 0x4000_0029, u32::MAX]) {
            let call = call(arch, number, &[]);
            assert_eq!(run(&program, &call).unwrap().value, table.answer(&call).code(), "{arch:?} {number}");
        }
    }
}

#[test]
fn calls_of_another_architecture_die() {
    for (arch, other) in [(Arch::X86_64, Arch::Aarch64), (Arch::Aarch64, Arch::X86_64)] {
        let program = build(arch, &[]).unwrap().program;
        // i386 (AUDIT_ARCH_I386), by which int 0x80 comes in on x86-64.
        for foreign in [other.audit(), 0x4000_0003, 0] {
            for number in [0, 1, 41, 102, 359, 425] {
                let call = Call { number, arch: foreign, args: [0; 6] };
                assert_eq!(run(&program, &call).unwrap().value, Action::Kill.code());
            }
        }
    }
}

#[test]
fn x32_calls_die() {
    for number in [0x4000_0000, 0x4000_0001, 0x4000_0029, 0x4000_0200, u32::MAX] {
        assert_eq!(x86(number, &[]), Action::Kill.code());
    }
    assert_eq!(x86(0x3fff_ffff, &[]), Action::Allow.code());
}

/// read, write, open, close, stat, fstat, mmap, mprotect, futex, openat, newfstatat, epoll_wait, clock_gettime, execve.
#[test]
fn hot_calls_are_allowed_without_a_look_at_arguments() {
    let program = build(Arch::X86_64, &[]).unwrap().program;
    for number in [0, 1, 2, 3, 4, 5, 9, 10, 202, 257, 262, 232, 228, 59] {
        let outcome = run(&program, &call(Arch::X86_64, number, &[])).unwrap();
        assert_eq!(outcome.value, Action::Allow.code(), "{number}");
        assert!(!outcome.looked_at_arguments, "{number}");
        assert!(outcome.steps <= 14, "{number}: {} steps", outcome.steps);
    }
    assert!(run(&program, &call(Arch::X86_64, 16, &[])).unwrap().looked_at_arguments);
}

#[test]
fn namespaces_are_refused_and_threads_are_not() {
    let (clone, unshare, clone3) = (56, 272, 435);
    // What pthread_create(3) and fork(3) ask for.
    passes(clone, &[0x003d_0f00]);
    passes(clone, &[0x0120_0011]);
    for flag in [0x2_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000_u64] {
        refused(clone, &[flag | 0x11]);
        refused(unshare, &[flag]);
    }
    refused(unshare, &[0x80]);
    passes(unshare, &[0x400 | 0x200]);
    // ENOSYS: the C library then calls clone(2).
    assert_eq!(x86(clone3, &[]), 0x0005_0000 | 38);
}

#[test]
fn terminals_cannot_be_typed_into_by_any_spelling() {
    for request in [0x5412, 0x541c, 0x5423_u64] {
        for high in [0, 1, 0xffff_ffff_u64] {
            refused(16, &[0, high << 32 | request]);
        }
    }
    passes(16, &[0, 0x5413]);
    passes(16, &[0, 0x5401]);
}

#[test]
fn limits_are_set_on_nobody_else() {
    passes(302, &[0, 7, 0x7fff_0000_1000]);
    for other in [1, 3, u64::from(u32::MAX), 0xffff_ffff_0000_0001] {
        refused(302, &[other, 0, 0x7fff_0000_1000]);
        // A pointer whose low half is 0 is a pointer all the same.
        refused(302, &[other, 0, 1 << 32]);
    }
}

#[test]
fn sockets() {
    let (socket, pair) = (41, 53);
    let flags = 0o2_004_000;
    for family in [2, 10] {
        for (kind, protocol) in [(1, 0), (1, 6), (1, 262), (2, 0), (2, 17)] {
            passes(socket, &[family, kind | flags, protocol]);
        }
        // Raw, ICMP by datagram, SCTP, UDP-Lite, DCCP.
        for (kind, protocol) in [(3, 1), (3, 255), (2, 1), (2, 58), (1, 132), (5, 132), (2, 136), (6, 33)] {
            refused(socket, &[family, kind | flags, protocol]);
        }
    }
    for call in [socket, pair] {
        passes(call, &[1, 1 | flags, 0]);
        passes(call, &[1, 5 | flags, 0]);
        // SOCK_RAW makes a datagram socket, too (unix(7)).
        refused(call, &[1, 2 | flags, 0]);
        refused(call, &[1, 3, 0]);
        // Packet, the kernel's ciphers, the hypervisor, TIPC, XDP, Bluetooth, CAN.
        for family in [17, 38, 40, 30, 44, 31, 29, 0, 46] {
            refused(call, &[family, 1, 0]);
            refused(call, &[family | 1 << 32, 3, 0]);
        }
    }
    passes(socket, &[16, 3, 0]);
    for protocol in [4, 9, 12, 15, 16, 21] {
        refused(socket, &[16, 3, protocol]);
    }
    // The kernel takes ints: what lies above them neither opens nor closes anything.
    passes(socket, &[1 << 32 | 2, 1 << 32 | 1, 1 << 32]);
}

#[test]
fn programs_may_filter_themselves_and_debug_their_children() {
    // seccomp, prctl, ptrace, process_vm_readv, landlock_create_ruleset, memfd_create.
    for number in [317, 157, 101, 310, 444, 319] {
        passes(number, &[]);
    }
    passes(135, &[0xffff_ffff]);
    passes(135, &[0x4_0000]);
    refused(135, &[0x40_0000]);
}

#[test]
fn a_listener_is_asked_only_about_what_it_was_named_for() {
    let program = build(Arch::X86_64, &["openat", "connect"]).unwrap().program;
    let value = |number| run(&program, &call(Arch::X86_64, number, &[])).unwrap().value;
    assert_eq!(value(257), Action::Notify.code());
    assert_eq!(value(42), Action::Notify.code());
    assert_eq!(value(0), Action::Allow.code());
    assert_eq!(value(165), EPERM.code());
    assert!(build(Arch::X86_64, &["read"]).is_err());
}

#[test]
fn the_words_name_every_refused_call() {
    let plan = build(Arch::X86_64, &[]).unwrap();
    let table = table(Arch::X86_64, &[]).unwrap();
    // One line more: foreign architectures.
    assert_eq!(plan.rules.len(), table.rules.len() + 1);
    insta::assert_snapshot!("rules", plan.rules.join("\n"));
}

#[test]
fn a_program_that_is_not_ours_is_an_error_and_not_an_answer() {
    let outside = |code, jt| [Insn { code, jt, jf: jt, k: 0 }];
    let call = call(Arch::X86_64, 0, &[]);
    assert_eq!(run(&[], &call), Err(BpfError::PastEnd(0)));
    assert_eq!(run(&outside(0x15, 9), &call), Err(BpfError::PastEnd(10)));
    assert_eq!(run(&outside(0x61, 0), &call), Err(BpfError::UnknownCode(0, 0x61)));
    let rule = Rule { clauses: vec![Clause { tests: vec![Test::is(6, 0)], action: EPERM }], otherwise: EPERM };
    let table = Table { arch: 1, kill_from: None, rules: BTreeMap::from([(1, rule)]) };
    assert_eq!(compile(&table), Err(BpfError::NoSuchArgument(6)));
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![Just(Action::Allow), Just(Action::Kill), Just(Action::Notify), (1_u16..200).prop_map(Action::Errno)]
}

fn rule() -> impl Strategy<Value = Rule> {
    let test = (0_u8..6, prop_oneof![Just(u32::MAX), any::<u32>()], any::<bool>(), 0_u32..4).prop_map(
        |(arg, mask, equal, value)| {
            let compare = if equal { Compare::Equal } else { Compare::Differs };
            Test { arg, mask, compare, value }
        },
    );
    let clause = (proptest::collection::vec(test, 0..4), action()).prop_map(|(tests, action)| Clause { tests, action });
    (proptest::collection::vec(clause, 0..5), action()).prop_map(|(clauses, otherwise)| Rule { clauses, otherwise })
}

proptest! {
    /// Also with trees that are too wide for short jumps.
    #[test]
    fn programs_mean_their_tables(
        rules in proptest::collection::btree_map(0_u32..300, rule(), 0..120),
        kill_from in proptest::option::of(300_u32..400),
        calls in proptest::collection::vec((0_u32..420, proptest::array::uniform6(prop_oneof![0_u64..5, any::<u64>()])), 64),
    ) {
        let table = Table { arch: 7, kill_from, rules };
        let program = compile(&table).unwrap();
        for (number, args) in calls {
            let call = Call { number, arch: 7, args };
            prop_assert_eq!(run(&program, &call).unwrap().value, table.answer(&call).code());
        }
    }

    #[test]
    fn real_filters_mean_their_tables(
        number in prop_oneof![0_u32..480, Just(41), Just(53), Just(56), Just(272), Just(16), Just(135), Just(198), Just(199), Just(29)],
        args in proptest::array::uniform6(prop_oneof![0_u64..64, any::<u64>(), (0_u64..48).prop_map(|low| low | 1 << 40)]),
    ) {
        for arch in ARCHES {
            let call = Call { number, arch: arch.audit(), args };
            let program = build(arch, &[]).unwrap().program;
            prop_assert_eq!(run(&program, &call).unwrap().value, table(arch, &[]).unwrap().answer(&call).code());
        }
    }
}

/// The same rules, as far as both can say them, through another compiler.
#[test]
fn another_compiler_agrees() {
    use seccompiler::{
        SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition, SeccompFilter, SeccompRule,
        TargetArch,
    };
    let always = [425, 426, 427, 248, 321, 298, 165, 166, 308];
    let mut theirs: BTreeMap<i64, Vec<SeccompRule>> = always.iter().map(|number| (*number, Vec::new())).collect();
    let one =
        |arg, value| SeccompRule::new(vec![SeccompCondition::new(arg, Len::Dword, Op::Eq, value).unwrap()]).unwrap();
    theirs.insert(16, vec![one(1, 0x5412), one(1, 0x541c), one(1, 0x5423)]);
    let filter = SeccompFilter::new(theirs, SeccompAction::Allow, SeccompAction::Errno(1), TargetArch::x86_64).unwrap();
    let theirs: seccompiler::BpfProgram = filter.try_into().unwrap();
    let theirs: Vec<Insn> =
        theirs.iter().map(|insn| Insn { code: insn.code, jt: insn.jt, jf: insn.jf, k: insn.k }).collect();
    let ours = build(Arch::X86_64, &[]).unwrap().program;
    let values = [0, 0x5412, 0x541c, 0x5423, 0x5413, 1 << 32 | 0x5412, u64::MAX];
    for number in always.iter().map(|n| u32::try_from(*n).unwrap()).chain([16, 0, 1, 3, 257, 300, 320, 400]) {
        for value in values {
            let call = call(Arch::X86_64, number, &[value, value, value]);
            let (ours, theirs) = (run(&ours, &call).unwrap().value, run(&theirs, &call).unwrap().value);
            // What their subset does not name is allowed there.
            if number != 320 {
                assert_eq!(ours, theirs, "{number} {value:x}");
            }
        }
    }
}
