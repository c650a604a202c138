// The function table of one instruction set; included last by each isa_*.cpp.
#pragma once
#include "elementwise.hpp"
#include "reverse.hpp"
#include "writing.hpp"

namespace mercer::MERCER_ISA {

// Eight sums side by side, so that no addition waits for the one before it.
template <class T> static void norms(const T* x, int64_t n, int64_t d, T* out) {
    constexpr int64_t kSums = 8;
    for (int64_t i = 0; i < n; ++i) {
        const T* row = x + i * d;
        double sums[kSums] = {};
        int64_t k = 0;
        for (; k + kSums <= d; k += kSums)
            for (int64_t l = 0; l < kSums; ++l) sums[l] += double(row[k + l]) * double(row[k + l]);
        for (int64_t l = 0; k + l < d; ++l) sums[l] += double(row[k + l]) * double(row[k + l]);
        double total = 0;
        for (int64_t l = 0; l < kSums; ++l) total += sums[l];
        out[i] = T(total);
    }
}

template <class T> static void phases(const T* x, int64_t count, T* out) {
    constexpr int W = kLanes<T>;
    for (int64_t i = 0; i < count; i += W) {
        const int64_t here = least(W, count - i);
        T buffer[W];
        for (int64_t l = 0; l < W; ++l) buffer[l] = x[i + least(l, here - 1)];
        const SinCos<Vec<T>> both = vsincos(load(buffer));
        for (int64_t l = 0; l < here; ++l) {
            out[2 * (i + l)] = both.sin[l];
            out[2 * (i + l) + 1] = both.cos[l];
        }
    }
}

// cosines[j] = weight[j] cos phase[j] and sines[j] = weight[j] sin phase[j], count of them.
template <class T>
static void waves(const T* phase, const T* weight, int64_t count, T* cosines, T* sines, bool past) {
    constexpr int64_t W = kLanes<T>, kMost = 256;
    alignas(64) T c[kMost], s[kMost];
    for (int64_t j0 = 0; j0 < count; j0 += kMost) {
        const int64_t here = least(kMost, count - j0);
        auto turn_to = [&](const T* t, const T* w, int64_t j) {
            const SinCos<Vec<T>> both = vsincos(load(t));
            store(c + j, load(w) * both.cos);
            store(s + j, load(w) * both.sin);
        };
        int64_t j = 0;
        for (; j + W <= here; j += W) turn_to(phase + j0 + j, weight + j0 + j, j);
        if (j < here) {
            T t[W], w[W];
            for (int64_t l = 0; l < W; ++l) {
                t[l] = phase[j0 + least(j + l, here - 1)];
                w[l] = weight[j0 + least(j + l, here - 1)];
            }
            turn_to(t, w, j);
        }
        copy(c, 1, here, kMost, cosines + j0, count, past);
        copy(s, 1, here, kMost, sines + j0, count, past);
    }
}

template <class T>
static void multiply(const T* a, int64_t rs, int64_t cs, int64_t rows, int64_t depth, const T* panels,
                     int64_t panel_stride, int64_t npanels, T* c, int64_t ld, bool accumulate) {
    sweep<T, Dot<T>>(a, rs, cs, rows, depth, panels, panel_stride, npanels, nullptr, accumulate, c, ld);
}

// y[0 .. kRows] += K v and down += K' w for a few rows of a tile, `full` of whose columns fill registers.
//   order   one row after the other: the same bits for any kRows
template <int kRows, class T>
MERCER_INLINE void matvec_rows(const T* K, int64_t cols, int64_t full, int64_t ld, const T* v, double* y,
                               const T* w, T* down) {
    constexpr int W = kLanes<T>;
    Vec<T> across[kRows][2] = {};
    int64_t j = 0;
    for (; j + 2 * W <= full; j += 2 * W) {
        const Vec<T> v0 = load(v + j), v1 = load(v + j + W);
        Vec<T> down0 = load(down + j), down1 = load(down + j + W);
        for (int r = 0; r < kRows; ++r) {
            const Vec<T> k0 = load(K + r * ld + j), k1 = load(K + r * ld + j + W);
            across[r][0] += k0 * v0;
            across[r][1] += k1 * v1;
            down0 += k0 * w[r];
            down1 += k1 * w[r];
        }
        store(down + j, down0);
        store(down + j + W, down1);
    }
    for (int r = 0; r < kRows; ++r) {
        double total = hsum(across[r][0] + across[r][1]);
        for (int64_t l = j; l < cols; ++l) {
            total += K[r * ld + l] * v[l];
            down[l] += K[r * ld + l] * w[r];
        }
        y[r] += total;
    }
}

// y += K v and, if w is given, yt += K' w, in one pass over the tile.
//   order   within a tile in T (at most a few hundred terms), across tiles in float64
template <class T>
static void matvec(const T* K, int64_t rows, int64_t cols, int64_t ld, const T* v, double* y, const T* w,
                   double* yt) {
    constexpr int W = kLanes<T>, kMost = 512, kTogether = 4;
    const int64_t full = cols / W * W;
    if (w) {
        T down[kMost];  // cols <= kMost
        for (int64_t j = 0; j < cols; ++j) down[j] = 0;
        int64_t i = 0;
        // Rows that are read together keep more of the memory busy, and touch `down` once.
        for (; i + kTogether <= rows; i += kTogether)
            matvec_rows<kTogether>(K + i * ld, cols, full, ld, v, y + i, w + i, down);
        for (; i < rows; ++i) matvec_rows<1>(K + i * ld, cols, full, ld, v, y + i, w + i, down);
        for (int64_t j = 0; j < cols; ++j) yt[j] += down[j];
        return;
    }
    for (int64_t i = 0; i < rows; ++i) {
        const T* row = K + i * ld;
        Vec<T> across{}, across2{};
        int64_t j = 0;
        for (; j + 2 * W <= full; j += 2 * W) {
            across += load(row + j) * load(v + j);
            across2 += load(row + j + W) * load(v + j + W);
        }
        double total = hsum(across + across2);
        for (; j < cols; ++j) total += row[j] * v[j];
        y[i] += total;
    }
}

// The vector functions one by one, for tests and rooflines; the last, shorter vector goes through a buffer.
template <class T, class F> MERCER_INLINE void over(const T* in, T* out, int64_t count, F f) {
    constexpr int W = kLanes<T>;
    int64_t i = 0;
    for (; i + W <= count; i += W) store(out + i, f(load(in + i)));
    if (i == count) return;
    T buffer[W];
    for (int64_t l = 0; l < W; ++l) buffer[l] = in[least(i + l, count - 1)];
    store(buffer, f(load(buffer)));
    for (int64_t l = 0; i + l < count; ++l) out[i + l] = buffer[l];
}
// 0 exp, 1 log, 2 pow, 3 sin, 4 cos, 5 tanh, 6 acos, 7 log1p.
template <class T> static void elementwise(int which, const T* in, T* out, int64_t count, double p) {
    using V = Vec<T>;
    switch (which) {
        case 0: return over(in, out, count, [](V x) { return vexp(x); });
        case 1: return over(in, out, count, [](V x) { return vlog(x); });
        case 2: return over(in, out, count, [e = splat(T(p))](V x) { return vpow(x, e); });
        case 3: return over(in, out, count, [](V x) { return vsin(x); });
        case 4: return over(in, out, count, [](V x) { return vcos(x); });
        case 5: return over(in, out, count, [](V x) { return vtanh(x); });
        case 6: return over(in, out, count, [](V x) { return vacos(x); });
        case 7: return over(in, out, count, [](V x) { return vlog1p(x); });
    }
}

template <class T> constexpr Kernels<T> kernels() {
    return {kPanel<T>,   pack<T>,   norms<T>, phases<T>,    waves<T>, evaluate<T>,   differentiate<T>,
            multiply<T>, matvec<T>, copy<T>,  transpose<T>, drain,    elementwise<T>};
}

extern const Isa table;
const Isa table = {MERCER_ISA_NAME, kernels<double>(), kernels<float>()};

}  // namespace mercer::MERCER_ISA
