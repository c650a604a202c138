// Vectors of the instruction set being compiled: a thin layer over gcc/clang vector extensions.
//
// Included once per instruction set with MERCER_ISA (a namespace) and MERCER_BYTES (register width) set.
// Nothing here may have external linkage outside namespace MERCER_ISA, and no std:: template may be used:
// a weak symbol compiled for AVX2 could otherwise be the one the linker keeps for the baseline.
#pragma once
#include <math.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define MERCER_INLINE static inline __attribute__((always_inline))
#define MERCER_MEMBER inline __attribute__((always_inline))

namespace mercer::MERCER_ISA {

constexpr int kBytes = MERCER_BYTES;

typedef double V64 __attribute__((vector_size(MERCER_BYTES)));
typedef float V32 __attribute__((vector_size(MERCER_BYTES)));
typedef int64_t I64 __attribute__((vector_size(MERCER_BYTES)));
typedef int32_t I32 __attribute__((vector_size(MERCER_BYTES)));
typedef uint64_t N64 __attribute__((vector_size(MERCER_BYTES)));  // bit patterns: arithmetic that may wrap
typedef uint32_t N32 __attribute__((vector_size(MERCER_BYTES)));
typedef float H32 __attribute__((vector_size(MERCER_BYTES / 2)));  // half of a V32
typedef double U64 __attribute__((vector_size(MERCER_BYTES), aligned(8), may_alias));
typedef float U32 __attribute__((vector_size(MERCER_BYTES), aligned(4), may_alias));

template <class T> struct Simd;
template <> struct Simd<double> {
    using V = V64;
    using I = I64;
    using U = U64;
    static constexpr int W = kBytes / 8;
};
template <> struct Simd<float> {
    using V = V32;
    using I = I32;
    using U = U32;
    static constexpr int W = kBytes / 4;
};

template <class T> using Vec = typename Simd<T>::V;
template <class T> using Mask = typename Simd<T>::I;
template <class T> constexpr int kLanes = Simd<T>::W;
// Columns of a panel: two registers, so that one broadcast of x feeds two multiply-adds.
template <class T> constexpr int kPanel = 2 * kLanes<T>;

template <class T> MERCER_INLINE Vec<T> load(const T* p) { return *(const typename Simd<T>::U*)p; }
template <class T> MERCER_INLINE void store(T* p, Vec<T> v) { *(typename Simd<T>::U*)p = v; }
// a - 0 is a for every a, so the compiler drops the subtraction; a + 0 is not (-0 + 0 = 0).
template <class T> MERCER_INLINE Vec<T> splat(T a) { return a - Vec<T>{}; }

template <class V> struct Scalar;
template <> struct Scalar<V64> {
    using type = double;
    using Int = I64;
};
template <> struct Scalar<V32> {
    using type = float;
    using Int = I32;
};

template <class V> MERCER_INLINE V vabs(V x) {
    using I = typename Scalar<V>::Int;
    using T = typename Scalar<V>::type;
    constexpr int bits = sizeof(T) * 8 - 1;
    return (V)((I)x & ~((I{} + 1) << bits));
}
// Magnitude of x with the sign of s.
template <class V> MERCER_INLINE V vcopysign(V x, V s) {
    using I = typename Scalar<V>::Int;
    using T = typename Scalar<V>::type;
    I sign = (I{} + 1) << int(sizeof(T) * 8 - 1);
    return (V)(((I)x & ~sign) | ((I)s & sign));
}
// x as it is: keeps the compiler from fusing the product that made it into a following sum.
template <class V> MERCER_INLINE V rounded(V x) {
#if defined(__x86_64__)
    asm("" : "+v"(x));
#elif defined(__aarch64__)
    asm("" : "+w"(x));
#else
    asm("" : "+m"(x));
#endif
    return x;
}
// The bits of both.
template <class V> MERCER_INLINE V either(V a, V b) {
    using I = typename Scalar<V>::Int;
    return (V)((I)a | (I)b);
}
// a < b ? a : b and a > b ? a : b: of what is no number, b.  (From the expressions gcc makes a comparison and
// a masked move where it can share the mask, and what follows waits for both.)
#if defined(__x86_64__) && MERCER_BYTES == 64
MERCER_INLINE V64 vmin(V64 a, V64 b) { return (V64)_mm512_min_pd((__m512d)a, (__m512d)b); }
MERCER_INLINE V32 vmin(V32 a, V32 b) { return (V32)_mm512_min_ps((__m512)a, (__m512)b); }
MERCER_INLINE V64 vmax(V64 a, V64 b) { return (V64)_mm512_max_pd((__m512d)a, (__m512d)b); }
MERCER_INLINE V32 vmax(V32 a, V32 b) { return (V32)_mm512_max_ps((__m512)a, (__m512)b); }
#elif defined(__x86_64__) && MERCER_BYTES == 32
MERCER_INLINE V64 vmin(V64 a, V64 b) { return (V64)_mm256_min_pd((__m256d)a, (__m256d)b); }
MERCER_INLINE V32 vmin(V32 a, V32 b) { return (V32)_mm256_min_ps((__m256)a, (__m256)b); }
MERCER_INLINE V64 vmax(V64 a, V64 b) { return (V64)_mm256_max_pd((__m256d)a, (__m256d)b); }
MERCER_INLINE V32 vmax(V32 a, V32 b) { return (V32)_mm256_max_ps((__m256)a, (__m256)b); }
#elif defined(__x86_64__)
MERCER_INLINE V64 vmin(V64 a, V64 b) { return (V64)_mm_min_pd((__m128d)a, (__m128d)b); }
MERCER_INLINE V32 vmin(V32 a, V32 b) { return (V32)_mm_min_ps((__m128)a, (__m128)b); }
MERCER_INLINE V64 vmax(V64 a, V64 b) { return (V64)_mm_max_pd((__m128d)a, (__m128d)b); }
MERCER_INLINE V32 vmax(V32 a, V32 b) { return (V32)_mm_max_ps((__m128)a, (__m128)b); }
#else
template <class V> MERCER_INLINE V vmin(V a, V b) { return a < b ? a : b; }
template <class V> MERCER_INLINE V vmax(V a, V b) { return a > b ? a : b; }
#endif

#if defined(__x86_64__) && MERCER_BYTES == 64
MERCER_INLINE V64 vsqrt(V64 x) { return (V64)_mm512_sqrt_pd((__m512d)x); }
MERCER_INLINE V32 vsqrt(V32 x) { return (V32)_mm512_sqrt_ps((__m512)x); }
MERCER_INLINE V64 vfma(V64 a, V64 b, V64 c) {
    return (V64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
MERCER_INLINE uint32_t bits_of(I64 m) { return _mm512_movepi64_mask((__m512i)m); }
MERCER_INLINE uint32_t bits_of(I32 m) { return _mm512_cmplt_epi32_mask((__m512i)m, _mm512_setzero_si512()); }
#elif defined(__x86_64__) && MERCER_BYTES == 32
MERCER_INLINE V64 vsqrt(V64 x) { return (V64)_mm256_sqrt_pd((__m256d)x); }
MERCER_INLINE V32 vsqrt(V32 x) { return (V32)_mm256_sqrt_ps((__m256)x); }
MERCER_INLINE V64 vfma(V64 a, V64 b, V64 c) {
    return (V64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
MERCER_INLINE uint32_t bits_of(I64 m) { return uint32_t(_mm256_movemask_pd((__m256d)m)); }
MERCER_INLINE uint32_t bits_of(I32 m) { return uint32_t(_mm256_movemask_ps((__m256)m)); }
#elif defined(__x86_64__)
MERCER_INLINE V64 vsqrt(V64 x) { return (V64)_mm_sqrt_pd((__m128d)x); }
MERCER_INLINE V32 vsqrt(V32 x) { return (V32)_mm_sqrt_ps((__m128)x); }
MERCER_INLINE uint32_t bits_of(I64 m) { return uint32_t(_mm_movemask_pd((__m128d)m)); }
MERCER_INLINE uint32_t bits_of(I32 m) { return uint32_t(_mm_movemask_ps((__m128)m)); }
#else
template <class V> MERCER_INLINE V vsqrt(V x) {
    for (int i = 0; i < int(sizeof(V) / sizeof(x[0])); ++i)
        x[i] = sizeof(x[0]) == 8 ? sqrt(x[i]) : sqrtf(x[i]);
    return x;
}
template <class I> MERCER_INLINE uint32_t bits_of(I m) {
    uint32_t bits = 0;
    for (int i = 0; i < int(sizeof(I) / sizeof(m[0])); ++i) bits |= uint32_t(m[i] != 0) << i;
    return bits;
}
#endif

// Half a register of float32 as float64, and back.  (Of __builtin_convertvector gcc 12 makes two.)
#if defined(__x86_64__) && MERCER_BYTES == 64
MERCER_INLINE V64 wide(H32 x) { return (V64)_mm512_cvtps_pd((__m256)x); }
MERCER_INLINE H32 narrow(V64 x) { return (H32)_mm512_cvtpd_ps((__m512d)x); }
#elif defined(__x86_64__) && MERCER_BYTES == 32
MERCER_INLINE V64 wide(H32 x) { return (V64)_mm256_cvtps_pd((__m128)x); }
MERCER_INLINE H32 narrow(V64 x) { return (H32)_mm256_cvtpd_ps((__m256d)x); }
#else
MERCER_INLINE V64 wide(H32 x) { return __builtin_convertvector(x, V64); }
MERCER_INLINE H32 narrow(V64 x) { return __builtin_convertvector(x, H32); }
#endif

// The lanes in which a comparison holds, a bit each, and whether there is one.  Compilers differ in the
// integer type that a comparison gives (clang: long long), so the mask is named by its width.
template <class M> MERCER_INLINE uint32_t lanes(M mask) {
    if constexpr (sizeof(mask[0]) == 8) return bits_of((I64)mask);
    else return bits_of((I32)mask);
}
template <class M> MERCER_INLINE bool any(M mask) { return lanes(mask) != 0; }

// Writes past the caches: `p` at a multiple of the register, and whole cache lines at a time.  Other threads
// see it for certain after `drain`.
#if defined(__x86_64__) && MERCER_BYTES == 64
MERCER_INLINE void stream(double* p, V64 v) { _mm512_stream_pd(p, (__m512d)v); }
MERCER_INLINE void stream(float* p, V32 v) { _mm512_stream_ps(p, (__m512)v); }
#elif defined(__x86_64__) && MERCER_BYTES == 32
MERCER_INLINE void stream(double* p, V64 v) { _mm256_stream_pd(p, (__m256d)v); }
MERCER_INLINE void stream(float* p, V32 v) { _mm256_stream_ps(p, (__m256)v); }
#elif defined(__x86_64__)
MERCER_INLINE void stream(double* p, V64 v) { _mm_stream_pd(p, (__m128d)v); }
MERCER_INLINE void stream(float* p, V32 v) { _mm_stream_ps(p, (__m128)v); }
#else
template <class T> MERCER_INLINE void stream(T* p, Vec<T> v) { store(p, v); }
#endif
#if defined(__x86_64__)
[[maybe_unused]] static void drain() { _mm_sfence(); }
#else
[[maybe_unused]] static void drain() {}
#endif

// Lanes of a and b in blocks of kStep: the even blocks of both, a's in place, and the odd ones, b's in place.
template <int... l> struct Lanes {};
template <int count, int... l> struct FirstLanes : FirstLanes<count - 1, count - 1, l...> {};
template <int... l> struct FirstLanes<0, l...> {
    using type = Lanes<l...>;
};
template <class T, int... l> MERCER_INLINE Vec<T> pick(Vec<T> a, Vec<T> b) {
#if defined(__clang__)
    return __builtin_shufflevector(a, b, l...);
#else
    return __builtin_shuffle(a, b, Mask<T>{l...});
#endif
}
template <int kStep, class T, int... l> MERCER_INLINE Vec<T> even_blocks(Vec<T> a, Vec<T> b, Lanes<l...>) {
    return pick<T, (l & kStep ? kLanes<T> + l - kStep : l)...>(a, b);
}
template <int kStep, class T, int... l> MERCER_INLINE Vec<T> odd_blocks(Vec<T> a, Vec<T> b, Lanes<l...>) {
    return pick<T, (l & kStep ? kLanes<T> + l : l + kStep)...>(a, b);
}

// Lane l holds what lane l + kStep held, around the end.
template <int kStep, class T, int... l> MERCER_INLINE Vec<T> rotated(Vec<T> a, Lanes<l...>) {
    return pick<T, ((l + kStep) % kLanes<T>)...>(a, a);
}
// The largest and the smallest lane, in every lane.
template <class T, int kStep = kLanes<T> / 2> MERCER_INLINE Vec<T> highest(Vec<T> a) {
    if constexpr (kStep == 0) return a;
    else return highest<T, kStep / 2>(vmax(a, rotated<kStep, T>(a, typename FirstLanes<kLanes<T>>::type{})));
}
template <class T, int kStep = kLanes<T> / 2> MERCER_INLINE Vec<T> lowest(Vec<T> a) {
    if constexpr (kStep == 0) return a;
    else return lowest<T, kStep / 2>(vmin(a, rotated<kStep, T>(a, typename FirstLanes<kLanes<T>>::type{})));
}

template <class V> MERCER_INLINE double hsum(V x) {
    double total = 0;
    for (int i = 0; i < int(sizeof(V) / sizeof(x[0])); ++i) total += x[i];
    return total;
}

MERCER_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

}  // namespace mercer::MERCER_ISA
