// Tiles written where they belong: as they are or transposed, through the caches or past them.
//
// A matrix much larger than the caches is written once and read much later.  Written in the ordinary way,
// every line of it is first read from memory and later pushed out again; whole lines that go past the caches
// cost a third of that.  A small matrix is left in the caches for whoever reads it next.
#pragma once
#include "simd.hpp"

namespace mercer::MERCER_ISA {

// Values of a cache line.
template <class T> constexpr int64_t kLine = 64 / int64_t(sizeof(T));

// out[0 .. count) = in.  Returns a vector with a NaN in some lane unless all values are finite.
//   kPast   whole lines go past the caches; `out` lies at a multiple of sizeof(T)
template <class T, bool kPast> MERCER_INLINE Vec<T> write_row(const T* in, int64_t count, T* out) {
    constexpr int W = kLanes<T>;
    Vec<T> seen{};
    int64_t j = 0;
    auto one_by_one = [&](int64_t stop) {
        for (; j < stop; ++j) {
            out[j] = in[j];
            seen[0] += in[j] * T(0);
        }
    };
    if (kPast) {
        const int64_t head = int64_t(-uintptr_t(out) % 64) / int64_t(sizeof(T));
        one_by_one(least(head, count));
        for (; j + kLine<T> <= count; j += kLine<T>)
            for (int64_t l = 0; l < kLine<T>; l += W) {
                const Vec<T> v = load(in + j + l);
                stream(out + j + l, v);
                seen += v * T(0);
            }
    } else {
        for (; j + W <= count; j += W) {
            const Vec<T> v = load(in + j);
            store(out + j, v);
            seen += v * T(0);
        }
    }
    one_by_one(count);
    return seen;
}

// out = a, rows * cols, with strides out_ld and ld.  Returns whether all values are finite.
template <class T, bool kPast>
static bool copy_rows(const T* a, int64_t rows, int64_t cols, int64_t ld, T* out, int64_t out_ld) {
    Vec<T> seen{};
    for (int64_t i = 0; i < rows; ++i) seen += write_row<T, kPast>(a + i * ld, cols, out + i * out_ld);
    return !any(seen != seen);
}

// ---- transposition -------------------------------------------------------------------------------------

// A square of registers becomes its transpose: rows kStep apart exchange halves, quarters, ..., single lanes.
template <int kStep, class T> MERCER_INLINE void turn(Vec<T> (&row)[kLanes<T>]) {
    if constexpr (kStep > 0) {
        constexpr typename FirstLanes<kLanes<T>>::type lanes;
#pragma GCC unroll 16
        for (int r = 0; r < kLanes<T>; ++r) {
            if (r & kStep) continue;
            const Vec<T> a = row[r], b = row[r + kStep];
            row[r] = even_blocks<kStep, T>(a, b, lanes);
            row[r + kStep] = odd_blocks<kStep, T>(a, b, lanes);
        }
        turn<kStep / 2, T>(row);
    }
}

// out[j*out_ld + i] = a[i*ld + j].
//   cost    log2 W shuffles for each register of W values
//   memory  W rows of the result at a time, in the first-level cache; so lines are written whole
template <class T, bool kPast>
static void transpose_rows(const T* a, int64_t rows, int64_t cols, int64_t ld, T* out, int64_t out_ld) {
    constexpr int W = kLanes<T>;
    constexpr int64_t kMost = 192;
    alignas(64) T strip[W][kMost];
    for (int64_t i0 = 0; i0 < rows; i0 += kMost) {
        const int64_t height = least(kMost, rows - i0), squares = height / W * W;
        for (int64_t j0 = 0; j0 < cols; j0 += W) {
            const T* from = a + i0 * ld + j0;
            const int64_t width = least(W, cols - j0), turned = width == W ? squares : 0;
            for (int64_t i = 0; i < turned; i += W) {
                Vec<T> row[W];
#pragma GCC unroll 16
                for (int r = 0; r < W; ++r) row[r] = load(from + (i + r) * ld);
                turn<W / 2, T>(row);
#pragma GCC unroll 16
                for (int r = 0; r < W; ++r) store(&strip[r][i], row[r]);
            }
            for (int64_t i = turned; i < height; ++i)
                for (int64_t l = 0; l < width; ++l) strip[l][i] = from[i * ld + l];
            for (int64_t l = 0; l < width; ++l)
                write_row<T, kPast>(strip[l], height, out + (j0 + l) * out_ld + i0);
        }
    }
}

template <class T>
static bool copy(const T* a, int64_t rows, int64_t cols, int64_t ld, T* out, int64_t out_ld, bool past) {
    return past ? copy_rows<T, true>(a, rows, cols, ld, out, out_ld)
                : copy_rows<T, false>(a, rows, cols, ld, out, out_ld);
}

template <class T>
static void transpose(const T* a, int64_t rows, int64_t cols, int64_t ld, T* out, int64_t out_ld, bool past) {
    return past ? transpose_rows<T, true>(a, rows, cols, ld, out, out_ld)
                : transpose_rows<T, false>(a, rows, cols, ld, out, out_ld);
}

}  // namespace mercer::MERCER_ISA
