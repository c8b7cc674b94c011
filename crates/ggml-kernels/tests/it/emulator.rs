//! SIGILL trap-and-emulate for the VEX-encoded VNNI instructions (AVX-VNNI, AVX-VNNI-INT8),
//! so that their kernels' tests run on any AVX2 Linux machine.  Test helper only.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "a signal handler that rewrites a saved register file is unsafe from end to end"
)]

use core::arch::x86_64::__cpuid_count;
use libc::*;
use std::sync::{
    Once,
    atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
};

static COUNT: AtomicU64 = AtomicU64::new(0);
static YMM_OFF: AtomicUsize = AtomicUsize::new(576);
static ZMM_OFF: AtomicUsize = AtomicUsize::new(0); // 0: no AVX-512 state
static mut OLD: core::mem::MaybeUninit<sigaction> = core::mem::MaybeUninit::zeroed();

/// Instructions emulated so far, in this process.
pub(crate) fn emulated() -> u64 {
    COUNT.load(Relaxed)
}

/// Install the handler (once). Needs AVX2; call before the first VEX-VNNI instruction.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| unsafe {
        YMM_OFF.store(__cpuid_count(0xd, 2).ebx as usize, Relaxed);
        ZMM_OFF.store(__cpuid_count(0xd, 6).ebx as usize, Relaxed);
        let mut sa: sigaction = core::mem::zeroed();
        sa.sa_sigaction = on_sigill as *const () as usize;
        sa.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        assert_eq!(sigaction(SIGILL, &sa, (&raw mut OLD).cast()), 0);
    });
}

#[derive(Debug, PartialEq, Clone, Copy)]
pub(crate) struct Insn {
    pub words: bool,
    pub sat: bool,
    pub s1: bool,
    pub s2: bool,
    pub ymm: bool,
    pub dst: u8,
    pub src1: u8,
    pub rm: Rm,
    pub len: u8,
}
#[derive(Debug, PartialEq, Clone, Copy)]
pub(crate) enum Rm {
    Reg(u8),
    Mem { base: Option<u8>, index: Option<u8>, scale: u8, disp: i32, rip: bool },
}

/// Decode one VEX VNNI instruction; None: something else. `b` must hold 15 readable bytes (or up to the end of the page).
pub(crate) fn decode(b: impl Fn(usize) -> u8) -> Option<Insn> {
    if b(0) != 0xC4 {
        return None;
    } // 3-byte VEX only: map 0F38 has no 2-byte form; no legacy prefixes/segment overrides
    let (p1, p2, op) = (b(1), b(2), b(3));
    if p1 & 0x1f != 2 || p2 & 0x80 != 0 || !(0x50..=0x53).contains(&op) {
        return None;
    } // map 0F38, W0
    let (words, sat) = (op >= 0x52, op & 1 == 1);
    // pp: 0 none, 1 66, 2 F3, 3 F2
    let (s1, s2) = match (words, p2 & 3) {
        (false, 1) => (false, true),
        (false, 3) => (true, true),
        (false, 2) => (true, false),
        (false, 0) => (false, false),
        (true, 1) => (true, true),
        _ => return None,
    };
    let (r, x, bb) = ((!p1 >> 7 & 1) << 3, (!p1 >> 6 & 1) << 3, (!p1 >> 5 & 1) << 3);
    let m = b(4);
    let (md, rm) = (m >> 6, m & 7);
    let mut len = 5;
    let rm = if md == 3 {
        Rm::Reg(rm | bb)
    } else {
        let (mut base, mut index, mut scale, mut rip) = (Some(rm | bb), None, 0, false);
        if rm == 4 {
            let sib = b(len);
            len += 1;
            scale = sib >> 6;
            let i = (sib >> 3 & 7) | x;
            if i != 4 {
                index = Some(i);
            }
            base = Some((sib & 7) | bb);
            if sib & 7 == 5 && md == 0 {
                base = None;
            }
        } else if rm == 5 && md == 0 {
            base = None;
            rip = true;
        }
        let disp = match md {
            1 => {
                len += 1;
                b(len - 1) as i8 as i32
            }
            0 if base.is_some() => 0,
            _ => {
                len += 4;
                i32::from_le_bytes([b(len - 4), b(len - 3), b(len - 2), b(len - 1)])
            }
        };
        Rm::Mem { base, index, scale, disp, rip }
    };
    Some(Insn {
        words,
        sat,
        s1,
        s2,
        ymm: p2 & 4 != 0,
        dst: (m >> 3 & 7) | r,
        src1: !p2 >> 3 & 15,
        rm,
        len: len as u8,
    })
}

/// One destination lane.
pub(crate) fn lane(i: &Insn, acc: i32, a: u32, b: u32) -> i32 {
    let mut s = 0i64;
    if i.words {
        for k in 0..2 {
            s += ((a >> (16 * k)) as i16 as i64) * ((b >> (16 * k)) as i16 as i64);
        }
    } else {
        let ext = |v: u32, k: i32, signed: bool| {
            let v = (v >> (8 * k)) as u8;
            if signed { v as i8 as i64 } else { v as i64 }
        };
        for k in 0..4 {
            s += ext(a, k, i.s1) * ext(b, k, i.s2);
        }
    }
    let s = s + if !i.s1 && !i.s2 && !i.words { acc as u32 as i64 } else { acc as i64 };
    match (i.sat, i.words || i.s1 || i.s2) {
        (false, _) => s as i32,
        (true, true) => s.clamp(i32::MIN as i64, i32::MAX as i64) as i32,
        (true, false) => s.clamp(0, u32::MAX as i64) as u32 as i32,
    }
}

// ModRM register number -> index in mcontext gregs
const G: [c_int; 16] = [
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI, REG_R8, REG_R9, REG_R10, REG_R11,
    REG_R12, REG_R13, REG_R14, REG_R15,
];

unsafe extern "C" fn on_sigill(sig: c_int, info: *mut siginfo_t, ctx: *mut c_void) {
    unsafe {
        let uc = &mut *(ctx as *mut ucontext_t);
        let ip = uc.uc_mcontext.gregs[REG_RIP as usize] as usize;
        let fp = uc.uc_mcontext.fpregs as *mut u8;
        // sw_reserved.magic1 == FP_XSTATE_MAGIC1: the frame holds a standard-format XSAVE area
        let ok = !fp.is_null() && (fp.add(464) as *const u32).read_unaligned() == 0x4650_5853;
        let insn = if ok { decode(|k| *((ip + k) as *const u8)) } else { None };
        let Some(i) = insn else { return chain(sig, info, ctx) };
        let (yo, zo) = (YMM_OFF.load(Relaxed), ZMM_OFF.load(Relaxed));
        let bv = fp.add(512) as *mut u64; // XSTATE_BV: a clear bit means the component is in its initial (zero) state
        if *bv & 2 == 0 {
            fp.add(160).write_bytes(0, 256);
        }
        if *bv & 4 == 0 {
            fp.add(yo).write_bytes(0, 256);
        }
        *bv |= 6;
        let rd = |r: u8| -> [u32; 8] {
            let mut v = [0u32; 8];
            core::ptr::copy_nonoverlapping(fp.add(160 + 16 * r as usize), v.as_mut_ptr().cast(), 16);
            core::ptr::copy_nonoverlapping(fp.add(yo + 16 * r as usize), v.as_mut_ptr().add(4).cast(), 16);
            v
        };
        let n = if i.ymm { 8 } else { 4 };
        let a = rd(i.src1);
        let b = match i.rm {
            Rm::Reg(r) => rd(r),
            Rm::Mem { base, index, scale, disp, rip } => {
                let g =
                    |r: Option<u8>| r.map_or(0, |r| uc.uc_mcontext.gregs[G[r as usize] as usize] as usize);
                let ea = g(base)
                    .wrapping_add(g(index) << scale)
                    .wrapping_add(disp as isize as usize)
                    .wrapping_add(if rip { ip + i.len as usize } else { 0 });
                let mut v = [0u32; 8];
                core::ptr::copy_nonoverlapping(ea as *const u8, v.as_mut_ptr().cast(), 4 * n);
                v
            }
        };
        let mut d = rd(i.dst);
        for k in 0..n {
            d[k] = lane(&i, d[k] as i32, a[k], b[k]) as u32;
        }
        d[n..].fill(0); // VEX.128 zeroes bits 255:128
        core::ptr::copy_nonoverlapping(d.as_ptr().cast(), fp.add(160 + 16 * i.dst as usize), 16);
        core::ptr::copy_nonoverlapping(d.as_ptr().add(4).cast(), fp.add(yo + 16 * i.dst as usize), 16);
        if zo != 0 && *bv & (1 << 6) != 0 {
            fp.add(zo + 32 * i.dst as usize).write_bytes(0, 32);
        } // ... and 511:256
        uc.uc_mcontext.gregs[REG_RIP as usize] += i.len as i64;
        COUNT.fetch_add(1, Relaxed);
    }
}

unsafe fn chain(sig: c_int, info: *mut siginfo_t, ctx: *mut c_void) {
    unsafe {
        let old = &*(&raw const OLD).cast::<sigaction>();
        match old.sa_sigaction {
            SIG_DFL | SIG_IGN => {
                let mut d: sigaction = core::mem::zeroed();
                d.sa_sigaction = SIG_DFL;
                sigaction(sig, &d, core::ptr::null_mut());
            } // the instruction faults again, fatally
            f if old.sa_flags & SA_SIGINFO != 0 => core::mem::transmute::<
                usize,
                extern "C" fn(c_int, *mut siginfo_t, *mut c_void),
            >(f)(sig, info, ctx),
            f => core::mem::transmute::<usize, extern "C" fn(c_int)>(f)(sig),
        }
    }
}
