//! Rules to a BPF program with a binary search over system call numbers, and an interpreter that checks it.

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
