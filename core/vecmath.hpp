// Vector exp, log, log1p, pow, sin, cos, tanh, acos: within 2 ulp, branch-free but for huge
// arguments of sin and cos.
//
// Polynomials are Chebyshev interpolants computed in 50-digit arithmetic; each line states its interval.
// exp, the hot one, is native in float64 and float32. The others run float32 as two float64 halves:
// simpler, correctly rounded almost always, and still vectorised.
// Special values: NaN in, NaN out; exp flushes results below the smallest normal number to 0.
#pragma once
#include "simd.hpp"

namespace mercer::MERCER_ISA {

MERCER_INLINE N64 bits(V64 x) { return (N64)x; }
MERCER_INLINE V64 from_bits(N64 i) { return (V64)i; }

// c[0] + x (c[1] + x (c[2] + ...)), unrolled at compile time.
template <class V, class C, int n> MERCER_INLINE V horner(V x, const C (&c)[n]) {
    V p = V{} + c[n - 1];
#pragma GCC unroll 16
    for (int k = n - 2; k >= 0; --k) p = p * x + c[k];
    return p;
}

// The same with even and odd powers apart: one more multiplication, half the latency.
template <class V, class C, int n> MERCER_INLINE V horner_split(V x, V xx, const C (&c)[n]) {
    constexpr int top_even = (n - 1) / 2 * 2, top_odd = (n - 2) / 2 * 2 + 1;
    V even = V{} + c[top_even], odd = V{} + c[top_odd];
#pragma GCC unroll 16
    for (int k = top_even - 2; k >= 0; k -= 2) even = even * xx + c[k];
#pragma GCC unroll 16
    for (int k = top_odd - 2; k >= 1; k -= 2) odd = odd * xx + c[k];
    return odd * x + even;
}

// ---- exp: e^x = 2^k e^r, |r| <= ln2/2 ---------------------------------------------------------------

constexpr double kExp64[] = {0.5000000000000001,     0.16666666666666669,    0.04166666666662404,
                             0.008333333333330055,   0.0013888888917258759,  0.00019841269863088255,
                             2.4801521225986432e-05, 2.7557268406190795e-06, 2.7620121717381933e-07,
                             2.51004110820149e-08};  // (e^r - 1 - r) / r^2, |r| < 0.3467
constexpr float kExp32[] = {0.5f, 0.166665768946066f, 0.0416665544984137f, 0.008363194882419041f,
                            0.0013926203361634337f};
constexpr double kLn2Hi = 0x1.62e42fee00000p-1, kLn2Lo = 0x1.a39ef35793c76p-33;  // k kLn2Hi is exact

// e^(x + tail) with |tail| far below 1.  The magic number 1.5 2^52 rounds to an integer in the low bits.
template <bool kTail> MERCER_INLINE V64 exp_sum(V64 x, V64 tail) {
    constexpr double magic = 0x1.8p52, lowest = -708.39, highest = 709.782712893384;
    V64 shifted = x * 1.4426950408889634 + magic;
    V64 k = shifted - magic;
    V64 r = (x - k * kLn2Hi) - k * kLn2Lo;
    if (kTail) r += tail;
    V64 rr = r * r;
    V64 p = rr * horner_split(r, rr, kExp64) + r + 1.0;
    V64 y = from_bits(bits(p) + (bits(shifted) << 52));  // multiply by 2^k: add k to the exponent
    y = from_bits(bits(y) & ~(N64)(x < lowest));
    return x <= highest ? y : x + __builtin_inf();  // inf beyond, NaN for NaN
}
MERCER_INLINE V64 vexp(V64 x) { return exp_sum<false>(x, x); }

MERCER_INLINE V32 vexp(V32 x) {
    constexpr float magic = 0x1.8p23f, lowest = -87.33f, highest = 88.72283935546875f;
    V32 shifted = x * 1.44269504f + magic;
    V32 k = shifted - magic;
    V32 r = (x - k * 0x1.62e4p-1f) - k * 0x1.7f7d1cp-20f;
    V32 rr = r * r;
    V32 p = rr * horner_split(r, rr, kExp32) + r + 1.0f;
    V32 y = (V32)((N32)p + ((N32)shifted << 23));
    y = (V32)((I32)y & ~(x < lowest));
    return x <= highest ? y : x + __builtin_inff();
}

// ---- log: x = 2^k m, sqrt(1/2) <= m < sqrt(2); log m = 2 atanh(s), s = (m - 1)/(m + 1) -----------------

// (2 atanh s - 2s)/s^3 in s^2, and (2 atanh s - 2s - 2 s^3/3)/s^5.
constexpr double kLog[] = {0.666666666666667,  0.3999999999989889,  0.28571428626253836, 0.22222211089379496,
                           0.1818289243253687, 0.15331611722055008, 0.14617807153417325};
constexpr double kLogTail[] = {0.4000000000000003,  0.2857142857133801,  0.22222222271326808,
                               0.18181808210921882, 0.15385577463308145, 0.13285868837545742,
                               0.1291471218393509};

struct Split {
    V64 k, m;
};
// Exponent and mantissa of positive x, subnormal numbers included; other x give garbage.
MERCER_INLINE Split split(V64 x) {
    I64 small = x < 0x1p-1022;
    V64 y = small ? x * 0x1p54 : x;
    N64 e = bits(y) - 0x3fe6a09e667f3bcdULL;  // bits of sqrt(1/2)
    N64 k = (N64)((I64)e >> 52);
    V64 m = from_bits(bits(y) - (k << 52));
    // int64 -> double without a conversion instruction: |k| < 2^11 fits the low bits of the magic number.
    V64 kd = from_bits(bits(V64{} + 0x1.8p52) + k) - 0x1.8p52;
    return {small ? kd - 54.0 : kd, m};
}
// The value of log at 0, negative, infinite and NaN arguments laid over `y`.
MERCER_INLINE V64 log_specials(V64 x, V64 y) {
    y = x == __builtin_inf() ? x : y;
    y = x == 0.0 ? V64{} - __builtin_inf() : y;
    return x >= 0.0 ? y : V64{} + __builtin_nan("");
}
MERCER_INLINE V64 vlog(V64 x) {
    Split a = split(x);
    V64 f = a.m - 1.0;
    V64 s = f / (f + 2.0), z = s * s, half = 0.5 * f * f;
    V64 tail = s * (half + z * horner(z, kLog)) + a.k * kLn2Lo;  // log m = f - (f^2/2 - s (f^2/2 + z R))
    return log_specials(x, a.k * kLn2Hi + (f - (half - tail)));
}
// log(1 + h) for h >= 0, with one division: 1 + h = 2^k m, m = (1+s)/(1-s), and what the sum lost, at most
// half an ulp of it, returns divided by m to two digits.
MERCER_INLINE V64 vlog1p(V64 h) {
    V64 u = 1.0 + h;
    N64 k = (N64)((I64)(bits(u) - 0x3fe6a09e667f3bcdULL) >> 52);
    V64 m = from_bits(bits(u) - (k << 52)), kd = from_bits(bits(V64{} + 0x1.8p52) + k) - 0x1.8p52;
    V64 lost = h - (u - 1.0);
    V64 f = m - 1.0, s = f / (f + 2.0), z = s * s, half = 0.5 * f * f;
    V64 shrink = from_bits((0x3ffULL - k) << 52);  // 2^-k
    V64 back = lost * shrink * (1.0 - 2.0 * s + 2.0 * z);
    V64 tail = s * (half + z * horner(z, kLog)) + (kd * kLn2Lo + back);
    V64 y = kd * kLn2Hi + (f - (half - tail));
    return u < __builtin_inf() ? y : u;
}

// ---- pow: log in about 65 bits, then exp ----------------------------------------------------------------

struct Pair {
    V64 hi, lo;
};
MERCER_INLINE Pair fast_sum(V64 a, V64 b) {  // |a| >= |b|
    V64 s = a + b;
    return {s, b - (s - a)};
}
MERCER_INLINE Pair product(V64 a, V64 b) {
    V64 p = a * b;
#if defined(__FMA__)
    return {p, vfma(a, b, -p)};
#else
    V64 ca = a * 134217729.0, cb = b * 134217729.0;  // 2^27 + 1: Dekker's split
    V64 ah = ca - (ca - a), bh = cb - (cb - b), al = a - ah, bl = b - bh;
    return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
#endif
}
MERCER_INLINE V64 remainder_of(V64 a, V64 q, V64 b) {  // a - q b, exact up to the last rounding
#if defined(__FMA__)
    return vfma(-q, b, a);
#else
    Pair p = product(q, b);
    return (a - p.hi) - p.lo;
#endif
}
// log x as hi + lo: the two leading terms of 2 atanh(s) in double-double, the rest in double.
MERCER_INLINE Pair vlog_pair(V64 x) {
    Split a = split(x);
    V64 f = a.m - 1.0;                  // exact
    Pair w = fast_sum(V64{} + 2.0, f);  // m + 1
    V64 s = f / w.hi;
    V64 s_lo = (remainder_of(f, s, w.hi) - s * w.lo) / w.hi;
    Pair z = product(s, s);
    z.lo += 2.0 * s * s_lo;
    Pair c = product(s, z.hi);
    c.lo += s * z.lo + s_lo * z.hi;  // s^3
    constexpr double third = 0.6666666666666666, third_lo = 3.700743415417188e-17;
    Pair t = product(c.hi, V64{} + third);
    t.lo += c.lo * third + c.hi * third_lo;
    V64 rest = (c.hi * z.hi) * horner(z.hi, kLogTail);
    Pair sum = fast_sum(2.0 * s, t.hi);
    sum.lo += 2.0 * s_lo + (t.lo + rest);
    V64 base = a.k * kLn2Hi;  // exact; either 0 or larger than the sum
    V64 hi = base + sum.hi;
    V64 lo = (a.k == 0.0 ? V64{} : sum.hi - (hi - base)) + (sum.lo + a.k * kLn2Lo);
    return fast_sum(hi, lo);
}
// x^p for x >= 0 (NaN for x < 0); 0^0 = 1 as in C.
MERCER_INLINE V64 vpow(V64 x, V64 p) {
    Pair l = vlog_pair(x);
    Pair e = product(l.hi, p);
    V64 tail = e.lo + l.lo * p;
    V64 y = exp_sum<true>(e.hi, vabs(e.hi) < 800.0 ? tail : V64{});
    V64 inf = V64{} + __builtin_inf();
    y = x == 0.0 ? (p > 0.0 ? V64{} : inf) : y;
    y = x == inf ? (p > 0.0 ? inf : V64{}) : y;
    y = x >= 0.0 ? y : V64{} + __builtin_nan("");
    y = p == p ? y : p;
    return p == 0.0 ? V64{} + 1.0 : y;
}

// ---- sin, cos: x = k pi/2 + r + tail, |r| <= pi/4 ------------------------------------------------------

constexpr double kSin[] = {-0.16666666666666666,   0.008333333333330948,   -0.00019841269836756774,
                           2.7557316101617874e-06, -2.505113165023518e-08, 1.5918115263265974e-10};
constexpr double kCos[] = {0.041666666666666664,    -0.0013888888888887398, 2.480158729876456e-05,
                           -2.7557317271145144e-07, 2.087614614655861e-09,  -1.1382623647474604e-11};
constexpr double kReduced = 3.0e5;  // beyond this k pi/2 no longer splits exactly: libm, lane by lane

struct Angle {
    N64 quadrant;
    V64 sin, cos;  // of r + tail
};
MERCER_INLINE Angle reduce(V64 x) {
    constexpr double magic = 0x1.8p52;
    constexpr double a = 0x1.921fb54400000p+0, b = 0x1.0b4611a600000p-34, c = 0x1.3198a2e037073p-69;  // pi/2
    V64 shifted = x * 0.6366197723675814 + magic;
    V64 k = shifted - magic;
    V64 r = x - k * a;  // exact: a has 33 bits, k at most 18
    V64 t = r - k * b;
    V64 lo = ((r - t) - k * b) - k * c;
    V64 hi = t + lo;
    V64 tail = (t - hi) + lo;
    V64 z = hi * hi;
    V64 s = hi + (hi * z * horner(z, kSin) + tail * (1.0 - 0.5 * z));
    V64 h = 0.5 * z, one = 1.0 - h;
    V64 co = one + (((1.0 - one) - h) + (z * z * horner(z, kCos) - hi * tail));
    return {bits(shifted), s, co};
}
MERCER_INLINE V64 by_quadrant(Angle g, uint64_t shift) {
    N64 q = g.quadrant + shift;
    V64 y = (q & 1) != 0 ? g.cos : g.sin;
    return from_bits(bits(y) ^ ((q & 2) << 62));
}
// A lane beyond kReduced, or NaN, is done by libm.
template <class F> MERCER_INLINE V64 with_large(V64 x, V64 y, F libm) {
    if (__builtin_expect(any(~(vabs(x) <= kReduced)), 0))
        for (int i = 0; i < kLanes<double>; ++i)
            if (!(fabs(x[i]) <= kReduced)) y[i] = libm(x[i]);
    return y;
}
MERCER_INLINE V64 sin_of(V64 x, Angle g) {
    V64 y = with_large(x, by_quadrant(g, 0), [](double a) { return ::sin(a); });
    return x == 0.0 ? x : y;
}
MERCER_INLINE V64 cos_of(V64 x, Angle g) {
    return with_large(x, by_quadrant(g, 1), [](double a) { return ::cos(a); });
}
MERCER_INLINE V64 vsin(V64 x) { return sin_of(x, reduce(x)); }
MERCER_INLINE V64 vcos(V64 x) { return cos_of(x, reduce(x)); }

// Both for little more than one, with the same bits.
template <class V> struct SinCos {
    V sin, cos;
};
MERCER_INLINE SinCos<V64> vsincos(V64 x) {
    const Angle g = reduce(x);
    return {sin_of(x, g), cos_of(x, g)};
}

// ---- tanh, acos ------------------------------------------------------------------------------------------

constexpr double kTanh[] = {-0.3333333333333333,    0.133333333333333,      -0.05396825396820291,
                            0.02186948853313033,    -0.008863235437120377,  0.003592126352822234,
                            -0.0014558149436249654, 0.0005898788187502341,  -0.00023836459039376214,
                            9.427778828319503e-05,  -3.333062013997152e-05, 7.634414185118713e-06};
MERCER_INLINE V64 vtanh(V64 x) {
    V64 a = vabs(x), z = x * x;
    V64 small = x + x * z * horner(z, kTanh);  // |x| < 0.5625
    V64 e = vexp(2.0 * (a < 40.0 ? a : V64{} + 40.0));
    V64 large = vcopysign(1.0 - 2.0 / (e + 1.0), x);
    V64 y = a < 0.5625 ? small : large;
    return x == x ? y : x;
}

constexpr double kAsin[] = {0.16666666666666669,  0.07499999999998425,  0.04464285714637338,
                            0.030381944137085216, 0.022372173002005596, 0.017352391265909227,
                            0.013971235301124539, 0.011478952690257387, 0.010324318288744113,
                            0.00545087818772055,  0.017419357964884856, -0.014881409392818066,
                            0.02877844261259304};  // (asin s - s)/s^3 in s^2, s <= 1/2
// acos on [-1, 1]: asin near 0, the half-angle formula near the ends, where the naive form cancels.
MERCER_INLINE V64 vacos(V64 c) {
    constexpr double half_pi = 1.5707963267948966, half_pi_lo = 6.123233995736766e-17;
    V64 a = vabs(c);
    I64 inner = a <= 0.5;
    V64 s = inner ? a : vsqrt(0.5 * (1.0 - a));
    V64 z = s * s;
    V64 t = s + s * z * horner(z, kAsin);
    V64 middle = half_pi - (vcopysign(t, c) - half_pi_lo);
    V64 ends = c > 0.0 ? 2.0 * t : 2.0 * (half_pi - (t - half_pi_lo));
    return inner ? middle : ends;
}

// ---- float32 through float64 halves -------------------------------------------------------------------

template <class F> MERCER_INLINE V32 halves(V32 x, F f) {
    V32 y;
    H32 part[2];
    __builtin_memcpy(part, &x, sizeof x);
    for (int i = 0; i < 2; ++i) part[i] = narrow(f(wide(part[i])));
    __builtin_memcpy(&y, part, sizeof y);
    return y;
}
// clang-format off
MERCER_INLINE V32 vlog(V32 x) { return halves(x, [](V64 a) { return vlog(a); }); }
MERCER_INLINE V32 vlog1p(V32 x) { return halves(x, [](V64 a) { return vlog1p(a); }); }
MERCER_INLINE V32 vsin(V32 x) { return halves(x, [](V64 a) { return vsin(a); }); }
MERCER_INLINE V32 vcos(V32 x) { return halves(x, [](V64 a) { return vcos(a); }); }
MERCER_INLINE V32 vtanh(V32 x) { return halves(x, [](V64 a) { return vtanh(a); }); }
MERCER_INLINE V32 vacos(V32 x) { return halves(x, [](V64 a) { return vacos(a); }); }
// clang-format on
MERCER_INLINE SinCos<V32> vsincos(V32 x) {
    H32 part[2], sines[2], cosines[2];
    __builtin_memcpy(part, &x, sizeof x);
    for (int i = 0; i < 2; ++i) {
        const SinCos<V64> both = vsincos(wide(part[i]));
        sines[i] = narrow(both.sin);
        cosines[i] = narrow(both.cos);
    }
    SinCos<V32> y;
    __builtin_memcpy(&y.sin, sines, sizeof y.sin);
    __builtin_memcpy(&y.cos, cosines, sizeof y.cos);
    return y;
}
// In float32 log x needs no second word: float64 carries 29 spare bits.
MERCER_INLINE V32 vpow(V32 x, V32 p) {
    return halves(x, [q = double(p[0])](V64 a) { return vpow(a, V64{} + q); });
}

}  // namespace mercer::MERCER_ISA
