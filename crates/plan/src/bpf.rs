//! Rules to a BPF program with a binary search over system call numbers, and an interpreter that checks it.
//!
//! Two facts of seccomp(2) shape the program. The kernel runs it once for every call number when it is installed, to
//! learn which calls it allows without looking at their arguments; so the path to an answer must be short (a tree, not
//! a chain), and a call whose answer depends on no argument must never reach a load of one. And the kernel hands over
//! arguments as 64-bit words although it truncates most of them to `int` itself; so a check looks at the low word only,
//! else a caller could set high bits that the kernel ignores and the filter does not.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// One classic BPF instruction (`struct sock_filter` of linux/filter.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insn {
    /// Operation.
    pub code: u16,
    /// Jump when true.
    pub jt: u8,
    /// Jump when false.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// It goes to the kernel.
    Allow,
    /// It fails with this error number.
    Errno(u16),
    /// The whole process dies (`SECCOMP_RET_KILL_PROCESS`).
    Kill,
    /// A listener decides (`SECCOMP_RET_USER_NOTIF`).
    Notify,
}

impl Action {
    /// The value that the program returns (linux/seccomp.h).
    pub fn code(self) -> u32 {
        match self {
            Self::Allow => 0x7fff_0000,
            Self::Errno(errno) => 0x0005_0000 | u32::from(errno),
            Self::Kill => 0x8000_0000,
            Self::Notify => 0x7fc0_0000,
        }
    }
}

/// How a masked argument is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compare {
    /// Equal to the value.
    Equal,
    /// Not equal to the value.
    Differs,
}

/// A test of the low 32 bits of one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Test {
    /// Which argument, from 0 to 5.
    pub arg: u8,
    /// The bits that are looked at.
    pub mask: u32,
    /// How.
    pub compare: Compare,
    /// With what.
    pub value: u32,
}

impl Test {
    /// The argument is this value.
    pub const fn is(arg: u8, value: u32) -> Self {
        Self { arg, mask: u32::MAX, compare: Compare::Equal, value }
    }

    /// The argument, under a mask, is this value.
    pub const fn masked(arg: u8, mask: u32, value: u32) -> Self {
        Self { arg, mask, compare: Compare::Equal, value }
    }

    /// The argument has one of these bits.
    pub const fn any_bit(arg: u8, mask: u32) -> Self {
        Self { arg, mask, compare: Compare::Differs, value: 0 }
    }

    fn holds(self, args: &[u64; 6]) -> bool {
        let word = args.get(usize::from(self.arg)).map_or(0, |arg| low(*arg));
        match self.compare {
            Compare::Equal => word & self.mask == self.value,
            Compare::Differs => word & self.mask != self.value,
        }
    }
}

/// When all tests hold, this action.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Clause {
    /// All of these must hold.
    pub tests: Vec<Test>,
    /// What then happens.
    pub action: Action,
}

/// What happens to one call: the first clause whose tests hold, else `otherwise`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rule {
    /// Tried in order.
    pub clauses: Vec<Clause>,
    /// When none holds.
    pub otherwise: Action,
}

impl Rule {
    /// A rule that looks at no argument.
    pub const fn always(action: Action) -> Self {
        Self { clauses: Vec::new(), otherwise: action }
    }

    /// The answer by the meaning of the rule, without a program.
    pub fn answer(&self, args: &[u64; 6]) -> Action {
        let held = self.clauses.iter().find(|clause| clause.tests.iter().all(|test| test.holds(args)));
        held.map_or(self.otherwise, |clause| clause.action)
    }
}

/// All rules of a filter. A call without a rule is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The architecture (`AUDIT_ARCH_*` of linux/audit.h); a call made under any other kills the process, because
    /// numbers mean something else there.
    pub arch: u32,
    /// Calls with numbers from here on kill the process: the second set of numbers of x86-64 (x32), by which every
    /// call could be made without matching its rule.
    pub kill_from: Option<u32>,
    /// Rules by call number.
    pub rules: BTreeMap<u32, Rule>,
}

impl Table {
    /// The answer by the meaning of the table, without a program.
    pub fn answer(&self, call: &Call) -> Action {
        if call.arch != self.arch || self.kill_from.is_some_and(|first| call.number >= first) {
            return Action::Kill;
        }
        self.rules.get(&call.number).map_or(Action::Allow, |rule| rule.answer(&call.args))
    }
}

/// What a filter sees of a call (`struct seccomp_data`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Number.
    pub number: u32,
    /// Architecture.
    pub arch: u32,
    /// Arguments.
    pub args: [u64; 6],
}

/// Why a program cannot be made or run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BpfError {
    /// Longer than `BPF_MAXINSNS`.
    #[error("the filter has {0} instructions, more than the 4096 that the kernel takes")]
    TooLong(usize),
    /// A test names an argument above 5.
    #[error("argument {0} of a system call does not exist")]
    NoSuchArgument(u8),
    /// The interpreter met an instruction that filters of ours do not have.
    #[error("instruction {0} has the unknown code {1:#x}")]
    UnknownCode(usize, u16),
    /// The program ran past its end.
    #[error("the filter runs past its end at {0}")]
    PastEnd(usize),
}

// BPF_LD|BPF_W|BPF_ABS, BPF_JMP|{JA,JEQ,JGE}|BPF_K, BPF_ALU|BPF_AND|BPF_K, BPF_RET|BPF_K (linux/bpf_common.h).
const LOAD: u16 = 0x20;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_AT_LEAST: u16 = 0x35;
const AND: u16 = 0x54;
const RETURN: u16 = 0x06;

const OFFSET_NUMBER: u32 = 0;
const OFFSET_ARCH: u32 = 4;
const OFFSET_ARGS: u32 = 16;
const MAX_LEN: usize = 4096;

/// Compiles a table.
///
/// # Errors
/// The program is too long, or a test names an argument that does not exist.
pub fn compile(table: &Table) -> Result<Vec<Insn>, BpfError> {
    let mut program = vec![
        insn(LOAD, OFFSET_ARCH),
        Insn { code: JUMP_EQUAL, jt: 1, jf: 0, k: table.arch },
        insn(RETURN, Action::Kill.code()),
        insn(LOAD, OFFSET_NUMBER),
    ];
    program.extend(tree(&intervals(table))?);
    if program.len() > MAX_LEN {
        return Err(BpfError::TooLong(program.len()));
    }
    Ok(program)
}

/// Call numbers from `first` up to the next interval's, with one rule for all of them.
struct Interval<'a> {
    first: u32,
    rule: Cow<'a, Rule>,
}

/// The whole range of numbers as intervals; neighbours with the same rule are one.
fn intervals(table: &Table) -> Vec<Interval<'_>> {
    let mut out: Vec<Interval<'_>> = Vec::new();
    let mut next = 0;
    for (&number, rule) in table.rules.range(..table.kill_from.unwrap_or(u32::MAX)) {
        if number > next {
            extend(&mut out, next, Cow::Owned(Rule::always(Action::Allow)));
        }
        extend(&mut out, number, Cow::Borrowed(rule));
        next = number.saturating_add(1);
    }
    extend(&mut out, next, Cow::Owned(Rule::always(Action::Allow)));
    if let Some(first) = table.kill_from {
        extend(&mut out, first, Cow::Owned(Rule::always(Action::Kill)));
    }
    out
}

fn extend<'a>(out: &mut Vec<Interval<'a>>, first: u32, rule: Cow<'a, Rule>) {
    if out.last().is_none_or(|last| last.rule != rule) {
        out.push(Interval { first, rule });
    }
}

/// A balanced tree over intervals. The accumulator holds the call number until a leaf loads an argument.
fn tree(intervals: &[Interval<'_>]) -> Result<Vec<Insn>, BpfError> {
    let (left, right) = intervals.split_at(intervals.len() / 2);
    let (false, Some(pivot)) = (left.is_empty(), right.first()) else {
        return intervals.first().map_or_else(|| Ok(vec![insn(RETURN, Action::Allow.code())]), |only| leaf(&only.rule));
    };
    let below = tree(left)?;
    let above = tree(right)?;
    let mut out = Vec::with_capacity(below.len() + above.len() + 2);
    match u8::try_from(below.len()) {
        Ok(distance) => out.push(Insn { code: JUMP_AT_LEAST, jt: distance, jf: 0, k: pivot.first }),
        // Conditional jumps reach 255 instructions; a plain jump reaches everything.
        Err(_) => {
            out.push(Insn { code: JUMP_AT_LEAST, jt: 0, jf: 1, k: pivot.first });
            out.push(insn(JUMP, u32::try_from(below.len()).map_err(|_| BpfError::TooLong(below.len()))?));
        }
    }
    out.extend(below);
    out.extend(above);
    Ok(out)
}

/// The instructions of one rule; each clause jumps to the next one when a test fails.
fn leaf(rule: &Rule) -> Result<Vec<Insn>, BpfError> {
    let mut out = Vec::new();
    for clause in &rule.clauses {
        let mut block = vec![insn(RETURN, clause.action.code())];
        for test in clause.tests.iter().rev() {
            let to_next = u8::try_from(block.len()).map_err(|_| BpfError::TooLong(block.len()))?;
            let (jt, jf) = match test.compare {
                Compare::Equal => (0, to_next),
                Compare::Differs => (to_next, 0),
            };
            let mut head = vec![insn(LOAD, argument(test.arg)?)];
            if test.mask != u32::MAX {
                head.push(insn(AND, test.mask));
            }
            head.push(Insn { code: JUMP_EQUAL, jt, jf, k: test.value });
            head.append(&mut block);
            block = head;
        }
        out.append(&mut block);
    }
    out.push(insn(RETURN, rule.otherwise.code()));
    Ok(out)
}

/// Offset of the low word of an argument; both architectures that are supported are little-endian.
fn argument(arg: u8) -> Result<u32, BpfError> {
    if arg > 5 {
        return Err(BpfError::NoSuchArgument(arg));
    }
    Ok(OFFSET_ARGS + 8 * u32::from(arg))
}

const fn insn(code: u16, k: u32) -> Insn {
    Insn { code, jt: 0, jf: 0, k }
}

fn low(word: u64) -> u32 {
    u32::try_from(word & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}

/// What a run of a program came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// The value returned.
    pub value: u32,
    /// Whether an argument was looked at; a call that is allowed without that costs nothing, see the head of this
    /// module.
    pub looked_at_arguments: bool,
    /// How many instructions ran.
    pub steps: usize,
}

/// Runs a program on a call, as the kernel would.
///
/// # Errors
/// The program has an instruction that [`compile`] never makes, or runs past its end.
pub fn run(program: &[Insn], call: &Call) -> Result<Outcome, BpfError> {
    let mut accumulator = 0_u32;
    let mut at = 0_usize;
    let mut looked = false;
    // Every jump goes forward, so no program takes more steps than it has instructions.
    for steps in 1..=program.len() {
        let insn = program.get(at).ok_or(BpfError::PastEnd(at))?;
        let mut skip = 0_u32;
        match insn.code {
            LOAD => {
                looked |= insn.k >= OFFSET_ARGS;
                accumulator = word(call, insn.k).ok_or(BpfError::UnknownCode(at, insn.code))?;
            }
            AND => accumulator &= insn.k,
            JUMP => skip = insn.k,
            JUMP_EQUAL => skip = u32::from(if accumulator == insn.k { insn.jt } else { insn.jf }),
            JUMP_AT_LEAST => skip = u32::from(if accumulator >= insn.k { insn.jt } else { insn.jf }),
            RETURN => return Ok(Outcome { value: insn.k, looked_at_arguments: looked, steps }),
            code => return Err(BpfError::UnknownCode(at, code)),
        }
        at = at.saturating_add(1).saturating_add(usize::try_from(skip).unwrap_or(usize::MAX));
    }
    Err(BpfError::PastEnd(at))
}

/// The 32-bit word at an offset of `struct seccomp_data`; the instruction pointer is never looked at.
fn word(call: &Call, offset: u32) -> Option<u32> {
    match offset {
        OFFSET_NUMBER => Some(call.number),
        OFFSET_ARCH => Some(call.arch),
        _ => {
            let past = offset.checked_sub(OFFSET_ARGS)?;
            let arg = call.args.get(usize::try_from(past / 8).ok()?)?;
            match past % 8 {
                0 => Some(low(*arg)),
                4 => Some(low(arg >> 32)),
                _ => None,
            }
        }
    }
}
