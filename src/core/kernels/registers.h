// How many vector registers a target has, on which the size of the register
// tile depends.
#pragma once

#include <cstdint>

#include "hwy/highway.h"

namespace polyattn {

enum class Arch { kX86, kArm64, kOther };

inline constexpr Arch kArch = HWY_ARCH_X86       ? Arch::kX86
                              : HWY_ARCH_ARM_A64 ? Arch::kArm64
                                                 : Arch::kOther;

// For versions of Highway that do not say. In its numbering the better of two
// x86 targets is the lower bit, so AVX3 and what comes after it, under names
// that this version may not know, has 32.
constexpr int registers_of(Arch arch, std::int64_t target) {
  const bool many =
      arch == Arch::kArm64 || (arch == Arch::kX86 && target <= HWY_AVX3);
  return many ? 32 : 16;
}
static_assert(registers_of(Arch::kX86, HWY_AVX3 >> 2) == 32);
static_assert(registers_of(Arch::kX86, HWY_AVX3) == 32);
static_assert(registers_of(Arch::kX86, HWY_AVX2) == 16);
static_assert(registers_of(Arch::kArm64, HWY_NEON) == 32);
static_assert(registers_of(Arch::kOther, HWY_NEON) == 16);  // 32-bit Arm

}  // namespace polyattn

// Of the target that is being compiled.
#ifdef HWY_REGISTERS
#define POLYATTN_REGISTERS HWY_REGISTERS
#else
#define POLYATTN_REGISTERS \
  ::polyattn::registers_of(::polyattn::kArch, HWY_TARGET)
#endif
